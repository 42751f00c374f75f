"""Measure the aims of README.md, and write their table: python benchmarks/aims.py (--help lists all options).

Each line is a cell of the table of another script, which measures in pairs that run in turns. All of it takes about an
hour. `--only loop` measures the lines of one script, and the others keep what was measured before. `--nanogpt FOLDER`
names a clone of github.com/karpathy/nanoGPT, with which generation and `against.py` compare.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import tyro
from measure import RECORD, ROOT, versions

README = ROOT / "benchmarks" / "README.md"
TABLE = re.compile(r"(?<=<!-- begin of the aims -->\n).*?(?=<!-- end of the aims -->)", re.DOTALL)
UNMEASURED = "not measured"


class Aim(NamedTuple):
    """A line of the table. before: what was measured first; row, column: the cell in the tables of a command.

    The row is the first one with these words, divided by |, in its cells.
    """

    what: str
    before: str
    aim: str
    command: str
    row: str
    column: int


START, SWEEP = "startup.py --repeats 3", "sweep.py --repeats 2 --steps 100 --task names --source sample"
WRITE = "generation.py --pairs 5 --nanogpt"
OTHERS = "against.py --sizes nanogpt --pairs 3 --steps 180 --others encoder trainer --nanogpt"
REVIEWS, PLAYS, NAMES = (
    f"loop.py --pairs 15 --steps 30 task={each}" for each in ("sentiment model=small", "shakespeare", "names")
)
AIMS = [
    Aim("`predict` of a small run / `import torch`", "4.3", "≤ 1.4", START, "predict", 2),
    Aim("`generate`", "4.3", "≤ 1.4", START, "generate", 2),
    Aim("`evaluate`", "4.3", "≤ 2", START, "evaluate", 2),
    Aim("`explore`", "4.3", "≤ 2", START, "explore", 2),
    Aim(
        "`train` to its first step, cached / `import torch, lightning`", "1.33", "≤ 1.0", START, "first step, cached", 3
    ),
    Aim("processor seconds of a job of a sweep beyond its fit, basic", "2.3", "≤ 0.4", SWEEP, "basic", 3),
    Aim("the same, joblib with 2 processes", "4.0", "≤ 0.4", SWEEP, "joblib", 3),
    Aim("12 jobs of 100 steps / their fits and one start-up, basic", "1.47", "≤ 1.1", SWEEP, "basic", 2),
    Aim("12 jobs of 100 steps / their fits and one start-up, joblib", "2.08", "≤ 1.1", SWEEP, "joblib", 2),
    Aim(
        "a step / the bare loop, `sentiment model=small`",
        "1.01",
        "≤ 1.02",
        REVIEWS,
        "ratio",
        1,
    ),
    Aim("the same, `shakespeare`", "1.06", "≤ 1.02", PLAYS, "ratio", 1),
    Aim("milliseconds more", "1 to 2", "≤ 0.4", PLAYS, "difference", 1),
    Aim("a step / the bare loop, `names`", "1.12", "", NAMES, "ratio", 1),
    Aim("milliseconds more", "1 to 2", "≤ 0.4", NAMES, "difference", 1),
    Aim("generation / nanoGPT's, half windows", "7.5", "≥ 10", WRITE, "half", 2),
    Aim("generation / nanoGPT's, `roll`", "", "≥ 2", WRITE, "roll", 2),
    Aim("generation / nanoGPT's, `slide`", "0.93 to 1.0", "≥ 2", WRITE, "slide", 2),
    Aim("encoding words, Hugging Face's `tokenizers` / firstlight", "2.7", "", "encoding.py", "words|tokenizers", 3),
    Aim("a step of `train` / nanoGPT's `train.py`", "1.01", "", OTHERS, "nanoGPT", 5),
    Aim("the command of 180 steps", "1.39", "", OTHERS, "nanoGPT", 6),
    Aim(
        "a step of `train` / a loop over `torch.nn.TransformerEncoder`, no dropout",
        "0.40 with dropout",
        "",
        OTHERS,
        "encoder",
        5,
    ),
    Aim("a step of `train` / Hugging Face's Trainer", "0.74", "", OTHERS, "trainer", 5),
]


@dataclass
class Options:
    """Options of the measurement."""

    only: tuple[str, ...] = ()
    """Measure only the scripts whose names contain one of these words."""
    nanogpt: Path | None = None
    """A clone of nanoGPT. Without it, the lines that compare with it keep what was measured before."""


def main() -> None:
    """Measure, and write the table."""
    options = tyro.cli(Options)
    found: dict[str, list[list[str]]] = {}
    for command in dict.fromkeys(each.command for each in AIMS):
        script, *arguments = command.split()
        is_wanted = not options.only or any(word in script for word in options.only)
        if is_wanted and not (options.nanogpt is None and command.endswith("--nanogpt")):
            found[command] = tables(script, [*arguments, *([str(options.nanogpt)] if "--nanogpt" in arguments else [])])
    text = README.read_text(encoding="utf-8")
    [table] = TABLE.findall(text)
    before = dict(re.findall(r"^\| (.*? \| .*?) \| .*? \| .*? \| (.*?) \|$", table, re.MULTILINE))
    lines = ["| what | command | before | aim | measured |", "|---|---|---|---|---|"]
    for each in AIMS:
        named = f"{each.what} | `{each.command}`"
        wanted = set(each.row.split("|"))
        cell = next((row[each.column] for row in found.get(each.command, []) if wanted <= set(row)), None)
        lines.append(f"| {named} | {each.before} | {each.aim} | {cell or before.get(named, UNMEASURED)} |")
    README.write_text(TABLE.sub(lambda _: "\n".join([*lines, ""]), text), encoding="utf-8")
    print(f"{README}: {versions()}, load average {os.getloadavg()[0]:.1f}")


def tables(script: str, arguments: list[str]) -> list[list[str]]:
    """Run a script, and return the rows of its tables."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "tables"
        command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
        subprocess.run(command, check=True, env=os.environ | {RECORD: str(record)})  # noqa: S603
        lines = record.read_text(encoding="utf-8").splitlines()
    return [row for line in lines for row in json.loads(line)]


if __name__ == "__main__":
    main()
