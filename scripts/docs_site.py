"""Hooks of the documentation's build (mkdocs.yml): pages outside docs/, links to them, public names and keys."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from key_reference import key_reference
from lesson_pages import lessons_with_pages, page_of_lesson

ROOT = Path(__file__).parents[1]
PAGES = ("RESULTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")  # outside docs/
LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)#\s]+)")
KEYS = "<!-- the keys -->"  # in keys.md
LOOK = ("look.css", "logo.svg")  # of the pages that firstlight writes
COMMANDS = "<!-- the three commands -->"  # in index.md; README has them
OF_README = re.compile(r"^## Three commands\n(```\n.*?^```)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```\n(.*?^```)$", re.MULTILINE | re.DOTALL)  # without a language
COMMAND = re.compile(r"(?:# .*\n|[A-Z_]+=\S+ )*(?:python|make|pip|firstlight|source|export|git|ray|wandb|docker)\b")
PACKAGE = re.compile(r"^::: firstlight\.(\w+)$", re.MULTILINE)
PUBLIC_NAME = re.compile(r"^from \S+ import \w+ as (\w+)$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are in the repository, but not in docs/, and the exported pages of the lessons."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    for name in LOOK:
        files.append(File.generated(config, f"assets/{name}", abs_src_path=str(ROOT / "src/firstlight/lab" / name)))
    for lesson in lessons_with_pages():
        page = page_of_lesson(lesson)
        files.append(File.generated(config, f"lessons/{page.name}", abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page with public names, keys, commands of README, languages of code, and links of the site filled in."""
    if COMMANDS in markdown:
        (commands,) = OF_README.findall((ROOT / "README.md").read_text(encoding="utf-8"))
        markdown = markdown.replace(COMMANDS, commands)
    markdown = FENCE.sub(with_language, markdown)
    written = PACKAGE.sub(public_names, markdown)
    if KEYS in written:
        written = written.replace(KEYS, key_reference())
    return LINK.sub(lambda link: link[1] + page_of(link[2], page.file.src_uri), written)


def with_language(block: re.Match[str]) -> str:
    """Return a block of code with its language: a session on a terminal, a command, or a text.

    Lines of the class `boxed` are so close that the lines of a table touch.
    """
    text = block[1]
    language = "console" if re.search(r"^\$ ", text, re.MULTILINE) else "bash" if COMMAND.match(text) else "text"
    return f"``` {{ .{language} {'.boxed' if '│' in text else ''} }}\n{text}"


def page_of(link: str, source: str) -> str:
    """Return the link to a page of the site for a link that is written for the repository.

    source: the page with the link, relative to docs/, or to the root of the repository if it is one of PAGES.
    """
    folder = posixpath.dirname(source if source in PAGES else f"docs/{source}")
    target = posixpath.normpath(posixpath.join(folder, link)).removeprefix("docs/")
    return posixpath.relpath(target, posixpath.dirname(source) or ".")


def public_names(package: re.Match[str]) -> str:
    """Return a directive of mkdocstrings for each public name of a package; other directives stay unchanged."""
    stub = ROOT / "src/firstlight" / package[1] / "__init__.pyi"
    if not stub.is_file():
        return package[0]
    return "\n\n".join(f"{package[0]}.{name}" for name in PUBLIC_NAME.findall(stub.read_text(encoding="utf-8")))
