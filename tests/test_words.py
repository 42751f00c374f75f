"""The texts of the project avoid phrases that readers had to read twice (docs/style.md)."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PHRASES = (
    *("go on", "goes on", "gone on", "going on", "went on"),  # resume, continue
    *("is told", "are told"),  # gets an error, is shown
    *("is of", "are of"),  # belongs to, requires
    *("is none of", "nothing of"),  # must be one of, no
    *("that there are", "as it stands", "likewise", "anew", "for everybody"),
    *("simple counting", "compared with counting", "what counting achieves"),  # a classical baseline (TF-IDF, n-grams)
    *("another split would", "rank nothing", "effect of a single key is unknown"),
    *(r"aims? of `", "waits to be measured"),  # of a number: what was measured, and what it means
    *("neighbour", "neighbours", "neighbouring"),  # neighbor, as in American English
    *("a checkout", "the checkout"),  # a clone
    *("install first what", "other programs are understood"),
)
BETWEEN = r"[\s#]+"  # a phrase may be broken by a line
WORDS = re.compile(rf"\b(?:{'|'.join(phrase.replace(' ', BETWEEN) for phrase in PHRASES)})\b", re.IGNORECASE)
TEXTS = ("*.py", "*.pyi", "*.md", "*.yaml", "*.yml", "*.toml", "*.html", "*.js", "*.template", "*.sh", "Makefile")
WITHOUT = (
    "src/firstlight/project_template/data/",  # texts to learn from
    "docs/style.md",  # its examples of what to avoid
    "tests/test_words.py",
)

POST = re.compile(r"\bposts? ([1-5])\b", re.IGNORECASE)
SUBJECTS = {"1": "review", "2": "plays|Shakespeare|GPT", "3": "film|movie", "4": "names", "5": "transl"}
NEAR = 60  # characters before and after the number of a post


def texts_of_readers() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", *TEXTS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.splitlines() if not name.startswith(WITHOUT) and (ROOT / name).is_file()]
    assert len(names) > 500
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names}


def test_a_post_is_named_with_its_subject() -> None:
    found = []
    for name, text in texts_of_readers().items():
        for post in POST.finditer("" if name.startswith(("tests/", "docs/posts.md")) else text):
            near = text[max(post.start() - NEAR, 0) : post.end() + NEAR]
            if not re.search(SUBJECTS[post[1]], near, re.IGNORECASE):
                found.append(f"{name}: {near!r}")
    assert not found, "\n".join(found)


def test_no_text_has_a_phrase_that_readers_had_to_read_twice() -> None:
    found = []
    for name, text in texts_of_readers().items():
        for match in WORDS.finditer(text):
            found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}")
    assert not found, "\n".join(found)
