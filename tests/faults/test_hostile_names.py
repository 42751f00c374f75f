"""Folders, files, columns, classes and tags with hostile names work or give a one-line error."""

import contextlib
import csv
import itertools
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from faults.conftest import RunOf
from faults.damage import assert_refused
from faults.trials import Trials, drawn
from firstlight.files.rows import read_rows
from firstlight.spelling import quoted
from tests_support import Done, Scripts

NAMES = (
    *("a b", " a ", "a=b", "a,b", "a:b", "a;b", "a|b", "a&b", "a*b", "a?b", "a#b", "a%20b", "a%sb", "a@b", "~a", "!a"),
    *("a'b", 'a"b', "a\\b", "a\\", "`a`", "$HOME", "${oc.env:HOME}", "${a", "{a}", "(a)", "[a]", "<b>", "&amp;"),
    *("[/b]", "[red]a[/red]", "[link=http://127.0.0.1]a", ":smile:", "\x1b[31ma\x1b[0m", "\x1b]0;title\x07", "\x9b31m"),
    *("a\nb", "a\rb", "a\tb", "\x08\x08", "é", "e\u0301", "中文", "🙂", "\u202eab", "\u200b", "\ufeffa", "ß" * 60),
    *("-a", "--help", "-m", "null", "true", "1e5", "0x1f", "latest", "best", "best:val/loss", "http:a", "a.ckpt"),
    *(".a", "...", "a.csv", "x" * 150, "task=stars", "<script>alert(1)</script>", "=1+1", "| a |", "*a*", "a\u2028b"),
)
TRIED = {"run folder": 18, "data file": 18, "column": 18, "class": 18, "tag": 18}  # the number of names of each kind
LABELS = 12  # the number of tags and names for W&B
TYPED = 40  # the number of texts for each command
SECONDS = 120  # the limit for a command
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def names_for(place: str, count: int) -> list[str]:
    """Return `count` of the names, which differ for each place and each FAULTS_SEED."""
    return drawn(NAMES, f"names for {place}", count)


def assert_clean(done: Done, *, may_fail: bool = True, writes_results: bool = False) -> bool:
    """Fail for a traceback, a crash or a control character. Return whether the command succeeded.

    writes_results: whether standard output is a result, which is written to a pipe unchanged.
    """
    assert "Traceback" not in done.stdout + done.stderr, (done.stdout + done.stderr)[-2000:]
    shown = done.stderr if writes_results else done.stdout + done.stderr
    found = UNPRINTABLE.search(shown)
    assert not found, f"a control character reached the terminal: {shown[max(0, found.start() - 80) :][:160]!r}"
    if done.returncode == 0:
        return True
    assert_refused(done.returncode, done.stderr)
    assert may_fail, done.stderr
    return False


@pytest.mark.faults("hostile names: folders of runs")
@pytest.mark.parametrize("part", range(3))
def test_a_run_in_a_folder_of_any_name_is_read(part: int, trials: Trials, finished: RunOf, tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    further = ["trainer.max_steps=51", f"paths.cache_dir={tmp_path / 'cache'}"]
    for name in names_for("run folder", TRIED["run folder"])[part::3]:
        logs = tmp_path / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        run = shutil.copytree(finished("sentiment"), logs / name)
        uses = {
            "predict": ["predict", str(run), "--text", "It is great."],
            "latest": ["predict", "latest", "--text", "It is great."],
            "report": ["report", "logs"],
            "resume": ["train", f"resume={quoted(str(run))}"],
            "further": ["train", f"resume={quoted(str(run))}", *further],
        }
        for use, (script, *arguments) in uses.items():
            with trials.one(f"run folder {name!r}: {use}", seconds=SECONDS):
                may_fail = ("${" in name and script == "train") or (name.startswith(".") and use == "report")
                assert_clean(scripts.run(script, *arguments), may_fail=may_fail)  # a report ignores hidden folders


@pytest.mark.faults("hostile names: folders, files, columns, classes, tags")
@pytest.mark.parametrize("place", ["data file", "column", "class", "tag"])
def test_a_training_with_any_name_is_done_or_refused(place, trials, training, small_data, tmp_path) -> None:
    source = small_data / "amazon_reviews" / "train.jsonl"
    rows = [row.values for row in itertools.islice(read_rows(source), 80)]
    short = [each for each in training("sentiment") if not each.startswith(("data.path", "trainer.", "task"))]
    short += ["task=reviews", "trainer.max_steps=2", "trainer.limit_val_batches=1", "trainer.limit_test_batches=1"]
    short += ["trainer.accelerator=cpu"]
    for name in names_for(place, TRIED[place]):
        folder = tmp_path / "work" / name  # the working folder also has the name
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        folder.mkdir(parents=True)
        scripts = Scripts(folder)
        overrides = write_data(place, name, folder, rows)
        with trials.one(f"{place} {name!r}: train", seconds=SECONDS):
            if not assert_clean(scripts.run("train", *short, *overrides)):
                continue
            run = scripts.newest_run()
        for use in (["predict", "latest", "--text", "It is great."], ["evaluate", str(run)], ["report", "logs"]):
            with trials.one(f"{place} {name!r}: {use[0]}", seconds=SECONDS):
                assert_clean(scripts.run(*use), may_fail=False, writes_results=use[0] == "predict")


@pytest.mark.faults("hostile names: tags and names for W&B")
def test_a_training_that_logs_to_wandb_with_any_label_is_done_or_refused(trials, training, tmp_path) -> None:
    scripts = Scripts(tmp_path)
    short = [each for each in training("sentiment") if not each.startswith(("trainer.", "logger"))]
    short += ["trainer.max_steps=2", "trainer.limit_val_batches=1", "test=false", "trainer.accelerator=cpu"]
    short += ["logger=wandb", "logger.wandb.offline=true"]
    hostile = ["", "a\nb", "\x1b[31ma", "\x00", "\ud800", "x" * 65, "x" * 10_000, "\u202eab"]
    for number, name in enumerate([*hostile, *names_for("label", LABELS)]):
        for key in ("tags", "logger.wandb.tags", "logger.wandb.name", "logger.wandb.group")[number % 4 :][:1]:
            value = f"[{quoted(name)}]" if key.endswith("tags") else quoted(name)
            with trials.one(f"{key}={name!r:.80}", seconds=SECONDS):
                is_done = assert_clean(scripts.run("train", *short, f"{key}={value}"))
                assert not is_done or name.isprintable()


def write_data(place: str, name: str, folder: Path, rows: list[dict[str, Any]]) -> list[str]:
    """Write a file of data with the name at its place; returns the overrides that read it."""
    cells = [(row["text"], row["label"]) for row in rows]
    match place:
        case "data file":
            path = folder / f"{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)  # a name with a slash
            write_csv(path, ["text", "label"], cells)
            return ["data.labels=stars", f"data.path={quoted(f'./{name}.csv')}"]
        case "column":
            write_csv(folder / "data.csv", [name, "label"], cells)
            return ["data.labels=stars", "data.path=data.csv", f"data.text_column={quoted(name)}"]
        case "class":
            lines = ({"text": row["text"], "label": [name, "other"][i % 2]} for i, row in enumerate(rows))
            (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            return ["data.labels=classes", "data.path=data.jsonl"]
    write_csv(folder / "data.csv", ["text", "label"], cells)
    return ["data.labels=stars", "data.path=data.csv", f"tags=[{quoted(name)}]"]


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


@pytest.mark.faults("hostile names: texts that are typed")
def test_texts_of_any_kind_are_answered(trials: Trials, finished: RunOf, tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    for name in names_for("texts", TYPED):
        uses = [
            ["predict", str(finished("sentiment")), f"--text={name}"],
            ["predict", str(finished("translation")), f"--text={name}", "--beam-size", "1"],
            ["generate", str(finished("names")), f"--prompt={name}", "--tokens", "5", "--seed", "1"],
        ]
        for script, *arguments in uses:
            with trials.one(f"{script} {name!r}"):
                assert_clean(scripts.run(script, *arguments), writes_results=True)
        with trials.one(f"the name of a run that is not there: {name!r}"), contextlib.suppress(OSError):
            assert not assert_clean(scripts.run("predict", f"./{name}", "--text", "x"))


@pytest.mark.faults("hostile names: terminals of ASCII")
def test_a_terminal_of_ascii_is_no_crash(trials: Trials, finished: RunOf, tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    run = tmp_path / "logs" / "中文 é"
    shutil.copytree(finished("translation"), run)
    uses = {
        "predict": [str(run), "--text", "Ein Mädchen — 中文"],
        "report": ["logs"],
        "evaluate": [str(run)],
        "train": [f"resume={quoted(str(run))}"],
    }
    for script, arguments in uses.items():
        with trials.one(f"{script} {arguments}", seconds=120, memory=None):
            done = scripts.run_alone(script, *arguments, fresh=True, environ={"PYTHONIOENCODING": "ascii"})
            assert_clean(done, may_fail=False)
