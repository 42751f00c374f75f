"""Hooks of the documentation's build (mkdocs.yml): pages outside docs/, links to them, public names and keys."""

import os
import posixpath
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files

from key_reference import key_reference
from lesson_notebooks import lessons_with_cells, notebook_of, page_of_notebook
from lesson_pages import lessons_with_pages, page_of_lesson

ROOT = Path(__file__).parents[1]
PAGES = ("RESULTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")  # outside docs/
LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)#\s]+)")
KEYS = "<!-- the keys -->"  # in keys.md
LOOK = ("look.css", "logo.svg")  # of the pages that firstlight writes
COMMANDS = "<!-- the three commands -->"  # in index.md; README has them
OF_README = re.compile(r"^## Three commands\n(```\n.*?^```)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```([^\n]*)\n(.*?^```)$", re.MULTILINE | re.DOTALL)  # its language and its text
COMMAND = re.compile(r"(?:# .*\n|[A-Z_]+=\S+ )*(?:python|make|pip|firstlight|source|export|git|ray|wandb|docker)\b")
TABLE = re.compile(r"^\|.*\|\n\|(?: ?-+ ?\|)+\n((?:\|.*\n)+)", re.MULTILINE)
WIDE = ("RESULTS.md", "export.md")  # pages with wide tables
MOST_ROWS = 4  # of a table of RESULTS.md that is not folded
PACKAGE = re.compile(r"^::: firstlight\.(\w+)$", re.MULTILINE)
PUBLIC_NAME = re.compile(r"^from \S+ import \w+ as (\w+)$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are in the repository, but not in docs/, and the notebooks and pages that lessons make."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    for name in LOOK:
        files.append(File.generated(config, f"assets/{name}", abs_src_path=str(ROOT / "src/firstlight/lab" / name)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each lesson is a process
        notebooks = pool.map(notebook_of, lessons_with_cells())
        pages = pool.map(page_of_lesson, lessons_with_pages())
        for lesson, notebook in zip(lessons_with_cells(), notebooks, strict=True):
            written = nbformat.writes(notebook).replace(".md)", ".html)")  # links to pages of the site
            files.append(File.generated(config, f"lessons/{lesson.stem}.ipynb", content=written))
        for page in pages:
            files.append(File.generated(config, f"lessons/{page.name}", abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page with public names, keys, outputs of lessons, languages of code, and links of the site filled in."""
    lesson = ROOT / "docs" / page.file.src_uri
    if lesson in lessons_with_cells():
        markdown = page_of_notebook(notebook_of(lesson), f"{lesson.stem}.ipynb")
    if COMMANDS in markdown:
        (commands,) = OF_README.findall((ROOT / "README.md").read_text(encoding="utf-8"))
        markdown = markdown.replace(COMMANDS, commands)
    markdown = FENCE.sub(with_language, markdown)
    written = PACKAGE.sub(public_names, markdown)
    if KEYS in written:
        written = written.replace(KEYS, key_reference())
    if page.file.src_uri in WIDE:
        page.meta["hide"] = ["navigation"]
    if page.file.src_uri == "RESULTS.md":
        head, chapters, rest = written.partition("\n## How to read the tables\n")  # the tables before it are a summary
        written = head + chapters + TABLE.sub(folded, rest)
    return LINK.sub(lambda link: link[1] + page_of(link[2], page.file.src_uri), written)


def with_language(block: re.Match[str]) -> str:
    """Return a block of code without a language with one: a session on a terminal, a command, or a text.

    Lines of the class `boxed` are so close that the lines of a table touch.
    """
    if block[1]:
        return block[0]
    text = block[2]
    language = "console" if re.search(r"^\$ ", text, re.MULTILINE) else "bash" if COMMAND.match(text) else "text"
    return f"``` {{ .{language} {'.boxed' if '│' in text else ''} }}\n{text}"


def folded(table: re.Match[str]) -> str:
    """Return a long table below a line that opens it, and a short one unchanged."""
    rows = table[1].count("\n")
    summary = f"<summary>Table with {rows} rows</summary>"
    return f'<details markdown="1">\n{summary}\n\n{table[0]}\n</details>\n' if rows > MOST_ROWS else table[0]


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
