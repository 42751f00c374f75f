"""The commands of docs/data.md that read your own data run on files of these names."""

import gzip
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from tests_support import ROOT, Scripts

PAGE = (ROOT / "docs/data.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^python src/train\.py (.*data\.path=.*)$", PAGE, flags=re.MULTILINE)
QUICK = [
    "model=tiny",
    "trainer.max_steps=1",
    "trainer.limit_val_batches=1",
    "trainer.limit_test_batches=1",
    "min_steps=1",
]

TEXTS = [f"the {animal} sees the café after {number} weeks" for number in range(60) for animal in ("dog", "cat")]
TABLE = pd.DataFrame(
    dict.fromkeys(("body", "premise", "hypothesis", "story", "ending_1", "ending_2", "text", "en", "fr"), TEXTS)
    | {name: [1, 0] * 60 for name in ("verdict", "label", "right")}
)


@pytest.fixture
def files(scripts: Scripts) -> Path:
    """Return a folder with the files that the commands name."""
    folder = scripts.folder
    for name in ("my.csv", "pairs.csv"):
        TABLE.to_csv(folder / name, index=False)
    TABLE.to_csv(folder / "excel_export.csv", index=False, sep=";", encoding="cp1252")
    TABLE.to_excel(folder / "reviews.xlsx", index=False)
    (folder / "reviews.csv.gz").write_bytes(gzip.compress(TABLE.to_csv(index=False, sep="|").encode()))
    for name in ("my.txt", "my_novel.txt"):
        (folder / name).write_text("\n".join(TEXTS), encoding="utf-8")
    for number, text in enumerate(TEXTS):
        split, label = ("test" if number % 3 == 0 else "train"), ("neg", "pos")[number % 2]
        for name in (f"aclImdb/{split}", f"20news-bydate/20news-bydate-{split}"):
            path = folder / name / label / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="latin-1" if "news" in name else "utf-8")
    return folder


@pytest.mark.slow  # a minute for all; tests/files and tests/data test each form of data
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_trains(command: str, files: Path, scripts: Scripts) -> None:
    pytest.importorskip("openpyxl")
    arguments = [argument for argument in shlex.split(command) if not argument.startswith("init_from=")]
    scripts.succeed("train", *arguments, *QUICK)
