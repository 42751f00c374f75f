"""RESULTS.md: a finished run is not measured again, and the page has the numbers of the records."""

import csv
import json
import random
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import hydra
import numpy as np
import pytest
from omegaconf import OmegaConf
from sacrebleu.metrics import BLEU

from firstlight.commands.train import CONFIG_DIR, CONFIG_NAME
from firstlight.config.schema import register_schemas
from firstlight.lab.reports.significance import mcnemar
from firstlight.runs.identity import run_key
from tests_support import ROOT, Scripts, captured

BENCHMARKS = ROOT / "benchmarks"
sys.path.append(str(BENCHMARKS))

import results  # noqa: E402
from result_tables import comparisons, records, runs  # noqa: E402
from result_tables.page import BEGIN, END, page_of, readme_of  # noqa: E402
from result_tables.plan import Column, Line, plan_of, read_plan  # noqa: E402

ACCURACY = Column("test accuracy", "test", "accuracy")
PERPLEXITY = Column("perplexity", "validation", "perplexity")


def content_of(lines: list[dict[str, Any]], **table: Any) -> dict[str, Any]:
    """Return the content of a plan with one table."""
    columns = [["validation accuracy", "validation", "accuracy"], ["test accuracy", "test", "accuracy"]]
    tables = [{"columns": columns, "lines": lines} | table]
    section = {"title": "A task", "unit": "training rows", "text": "Rows.", "tables": tables}
    return {"findings": "# Results", "reading": "Read.", "protocol": "A machine.", "sections": {"task": section}}


def record_of(seed: int | None, **units: Any) -> dict[str, Any]:
    """Return a record. units: of the evaluations, either bool arrays or the units of a record with its metrics."""
    evaluations = {}
    for name, found in units.items():
        if isinstance(found, np.ndarray):
            packed = {"key": name, "count": len(found), "correct": np.packbits(found).tobytes().hex()}
            found = {"metrics": {"accuracy": float(found.mean())}, "units": packed}
        evaluations[name] = found
    return {
        "command": f"python src/train.py task=stars seed={seed}",
        "seed": seed,
        "parameters": 1234,
        "tokens_seen": None,
        "processor_minutes": 1.5,
        "commit": "0123456789",
        "modified": False,
        "versions": {"torch": "9.9"},
        "data": {"rows": {"train": 5678}},
        "references": {"largest_class": {"test/accuracy": 0.25}},
        "evaluations": evaluations,
    }


def right(share: float, count: int = 1000, seed: int = 0) -> np.ndarray:
    """Return which of `count` answers are right: the share, at random places."""
    answers = np.arange(count) < round(share * count)
    return np.random.default_rng(seed).permutation(answers)


README = {"readme": "README.md"}
LINE = {"name": "ours", "title": "ours", "train": "task=stars", "seeds": [1, 2, 3]}


def row_of(page: str, title: str) -> list[str]:
    line = next(line for line in page.splitlines() if line.startswith(f"| {title} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def page_with(content: dict[str, Any], found: dict[str, list[dict[str, Any]]], waiting: list[str] | None = None) -> str:
    """Return the page of a plan. found: the records by the name of the line."""
    return page_of(plan_of(content), lambda _, line: found.get(line.name or line.of, []), lambda *_: waiting or [])


def test_a_line_has_the_deviation_of_its_seeds_and_the_interval_of_the_split() -> None:
    found = [record_of(seed, validation=right(0.5), test=right(share)) for seed, share in ((1, 0.50), (2, 0.60))]
    page = page_with(content_of([LINE]), {"ours": found})
    row = row_of(page, "ours")
    assert row[1:4] == ["`python src/train.py task=stars seed=1`", "1,234", "5,678"]
    assert row[5:] == ["55.0 ± 7.1% (2) [51.9, 58.1]", "1.5 min"]
    assert "Measured with commit `0123456`." in page
    assert "torch 9.9" in page


def test_a_line_in_two_tables_is_measured_once_and_macro_f1_has_no_interval_of_the_split() -> None:
    content = content_of([LINE])
    (section,) = content["sections"].values()
    section["tables"].append({"columns": [["test macro-F1", "test", "macro_f1"]], "lines": [LINE]})
    record = record_of(1, validation=right(0.5), test=right(0.5))
    record["evaluations"]["test"]["metrics"]["macro_f1"] = 0.4567
    page = page_with(content, {"ours": [record]}, ["command"])
    assert "| ours | `python src/train.py task=stars seed=1` | 1,234 | 5,678 | 45.7% (1) | 1.5 min |" in page
    assert page.count("`make results ONLY=task`") == 1


def test_a_baseline_has_no_seed_and_a_reference_is_that_of_its_record() -> None:
    lines = [
        {"name": "counted", "title": "counted", "baseline": "--task stars"},
        {"title": "always the largest class", "reference": "largest_class", "of": "counted"},
    ]
    page = page_with(content_of(lines), {"counted": [record_of(None, validation=right(0.5), test=right(0.5))]})
    assert row_of(page, "counted")[5].startswith("50.0% [")
    assert row_of(page, "always the largest class")[4:6] == ["–", "25.0%"]


def test_what_is_missing_says_why_and_waits_at_the_end() -> None:
    lines = [{"title": "theirs", "published": {"test accuracy": "49.9%", "seen": "38,500"}}, LINE]
    command = "python src/train.py task=stars seed=1"
    page = page_with(content_of(lines), {}, [command, "second"])
    assert "| theirs | – | not published | 38,500 | not published | 49.9% | – |" in page
    assert f"| ours | `{command}` |{' not measured |' * 5}" in page
    assert page.rstrip().endswith(f"- `make results ONLY=task`: ours, 2 runs: `{command}`")


def test_a_verdict_says_better_worse_or_undecided() -> None:
    names = ["ours", "much worse", "much better", "as good"]
    lines = [{**LINE, "name": name, "title": name} for name in names]
    compare = {"line": "ours", "column": "test accuracy", "title": "ours is"}
    found = {
        name: [record_of(seed, validation=right(0.5), test=right(share, seed=seed)) for seed in (1, 2, 3)]
        for name, share in zip(names, (0.6, 0.4, 0.8, 0.6), strict=True)
    }
    page = page_with(content_of(lines, compare=compare), found)
    verdicts = {name: row_of(page, name)[6] for name in names}
    assert verdicts["much worse"].startswith("better: +20.0 points [+")
    assert verdicts["much better"].startswith("worse: -20.0 points [-")
    assert verdicts["as good"].startswith("undecided: +0.0 points [")
    assert verdicts["ours"] == "–"


def test_the_test_of_two_lines_is_mcnemars_of_each_pair_of_seeds() -> None:
    first = {seed: right(0.60, seed=seed) for seed in (1, 2, 3)}
    second = {seed: right(0.56, seed=10 + seed) for seed in (1, 2)}
    ours, theirs = ([record_of(seed, test=each) for seed, each in answers.items()] for answers in (first, second))
    p = [mcnemar(first[seed], second[seed]) for seed in (1, 2)]
    assert comparisons.compare(ours, theirs, ACCURACY).p == comparisons.combined(p) == max(p)
    alone = [record_of(None, test=second[1])]
    p = [mcnemar(answers, second[1]) for answers in first.values()]
    assert comparisons.compare(ours, alone, ACCURACY).p == comparisons.combined(p) == min(1, 1.5 * sorted(p)[1])


def test_several_tests_in_a_table_are_corrected() -> None:
    verdicts = [comparisons.Verdict(SimpleNamespace(value=1), "points", p) for p in (0.03, 0.03)]
    assert [verdict.word for verdict in verdicts] == ["better", "better"]
    assert [verdict.word for verdict in comparisons.corrected(verdicts)] == ["undecided", "undecided"]


def test_the_page_says_which_lines_have_other_texts() -> None:
    lines = [LINE, LINE | {"name": "same", "title": "same"}, LINE | {"name": "apart", "title": "apart"}]
    content = content_of(lines, compare={"line": "ours", "column": "test accuracy", "title": "ours is"})
    found = {line["name"]: [record_of(1, validation=right(0.5), test=right(0.5))] for line in lines}
    found["apart"][0]["evaluations"]["test"]["units"]["key"] = "another split"
    page = page_with(content, found)
    assert row_of(page, "ours")[6] == "–"
    assert row_of(page, "same")[6].startswith("undecided")
    assert row_of(page, "apart")[6] == "other texts"


def test_perplexities_have_the_interval_and_the_test_of_the_blocks_of_the_text() -> None:
    random_losses = np.random.default_rng(1).gamma(2.0, size=(2, 10_000))
    first, second = random_losses[0], random_losses[0] + 0.1 + 0.05 * random_losses[1]
    found = []
    for losses in (first, second):
        units = records.units_of_losses(losses.astype(np.float32), "print", "validation")
        assert (len(units["losses"]), sum(units["tokens"])) == (100, 10_000)
        found.append([record_of(1, validation={"metrics": {"perplexity": np.exp(losses.mean())}, "units": units})])
    limits = comparisons.interval(found[0], PERPLEXITY)
    error = first.std() / np.sqrt(len(first))
    assert limits.value == pytest.approx(np.exp(first.mean()), rel=1e-3)
    assert limits.low == pytest.approx(np.exp(first.mean() - 1.96 * error), rel=0.02)
    assert limits.high == pytest.approx(np.exp(first.mean() + 1.96 * error), rel=0.02)
    verdict = comparisons.compare(*found, PERPLEXITY)
    assert (verdict.word, verdict.unit) == ("better", "%")
    assert verdict.benefit.value == pytest.approx(100 * (1 - np.exp(first.mean() - second.mean())), rel=1e-3)


def test_bleu_of_the_blocks_is_that_of_sacrebleu(tmp_path: Path) -> None:
    chosen = random.Random(3)
    words = ["ein", "eine", "Mann", "Frau", "Hund", "geht", "steht", "auf", "der", "Straße", "mit", "Ball", "."]
    rows = []
    for _ in range(230):
        reference = chosen.choices(words, k=chosen.randint(4, 12))
        close, far = (
            [word if chosen.random() < share else chosen.choice(words) for word in reference] for share in (0.9, 0.6)
        )
        rows.append([" ".join(text) for text in (reference, far, close[:-1])])
    with (tmp_path / "translations.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["reference", "translation", "translation_beam4"], *rows])
    metrics = {"metrics": {"test/bleu": 1.0}, "split": "test"}
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    units = records.of_folder(tmp_path)["units"]
    for place, metric in ((1, "bleu"), (2, "bleu_beam4")):
        expected = BLEU().corpus_score([row[place] for row in rows], [[row[0] for row in rows]]).score
        assert comparisons.bleu_of(np.array(units[metric], dtype=float).sum(axis=0)) == pytest.approx(expected)
        assert len(units[metric]) == 77
    record = record_of(1, test={"metrics": {"bleu": 1.0, "bleu_beam4": 1.0}, "units": units})
    beam = Column("test BLEU, beam", "test", "bleu_beam4")
    limits = comparisons.interval([record], beam)
    assert limits.low < limits.value < limits.high
    other = json.loads(json.dumps(record))
    other["evaluations"]["test"]["units"]["bleu_beam4"] = units["bleu"]
    assert comparisons.compare([record], [other], beam).word == "better"


def test_each_line_of_the_plan_names_what_exists() -> None:
    plan = read_plan(BENCHMARKS / "results.yaml")
    folder = ROOT / "conf" / "experiment"
    for row in plan.summary:
        section = plan.sections[row.section]
        settings = row.settings if "=" in row.settings else f"experiment={row.settings}"
        if row.folds:
            line = section.line(row.folds)
            trained = section.line(line.against) if line.against else line
            assert (trained.folds or "").startswith(f"{settings} folds=")
            continue
        assert section.line(row.line).train == f"{settings} threads=1"
        assert row.baseline is None or section.line(row.baseline).baseline is not None
    for section in plan.sections.values():
        named = [line.name for line in section.lines() if line.name]
        assert len(set(named)) == len(named), section.name
        for table in section.tables:
            titles = {column.title for column in table.columns}
            assert table.compare is None or (table.compare.column in titles and table.compare.line in named)
            for line in table.lines:
                assert set(line.published or {}) <= titles | {"parameters", "seen"}, line.title
                if line.evaluate is not None:
                    source, name = line.of.split("/")
                    assert plan.sections[source].line(name).train is not None
                for word in (line.train or "").split():
                    key, _, value = word.partition("=")
                    assert key != "experiment" or (folder / f"{value}.yaml").is_file(), word
                    assert key != "seed", "the seeds are those of the line"


def test_each_record_belongs_to_a_line_of_the_plan(tmp_path: Path) -> None:
    plan = read_plan(BENCHMARKS / "results.yaml")
    expected = {
        records.file_of(run, BENCHMARKS / "measured")
        for name, section in plan.sections.items()
        for line in section.lines()
        for run in runs.runs_of(plan, name, line, tmp_path)
    }
    assert set((BENCHMARKS / "measured").rglob("*.json")) <= expected


def test_readme_has_the_verdicts_once_all_rows_are_measured() -> None:
    lines = [
        {"name": "best", "title": "best", "train": "experiment=best/stars", "seeds": [1, 2, 3]},
        {"name": "tfidf", "title": "TF-IDF", "baseline": "--task stars"},
    ]
    compare = {"line": "best", "column": "test accuracy", "title": "the recipe is"}
    row = {"section": "task", "column": "test accuracy", "settings": "best/stars", "measure": "accuracy"}
    plan = plan_of(content_of(lines, compare=compare) | {"summary": [row | {"claim": "49.9%", "baseline": "tfidf"}]})
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    answers = {"best": right(0.6, seed=1)}
    found = {"best": [record_of(1, test=right(0.6, seed=1))]}
    assert readme_of(text, plan, lambda _, line: found.get(line.name, [])) == text
    found["tfidf"] = [record_of(None, test=answers["best"] & (np.arange(1000) % 4 > 0))]
    readme = readme_of(text, plan, lambda _, line: found[line.name])
    assert readme.startswith(f"before\n{BEGIN}\n\n| `experiment=` |")
    assert readme.endswith(f"|\n\n{END}\nafter\n")
    value = 100 * found["tfidf"][0]["evaluations"]["test"]["metrics"]["accuracy"]
    expected = f"| `best/stars` | accuracy | 49.9% | {value:.1f}% | 60.0% | better: {60 - value:+.1f} ± "
    assert expected in readme
    assert " points (1,000 texts, 1 seed) |" in readme


@pytest.mark.slow  # 20 s: it composes the settings of each line with a record
def test_each_record_has_the_present_settings_of_its_line(tmp_path: Path) -> None:
    """A record of other settings, such as those of an earlier recipe, must be removed and measured again."""
    register_schemas()
    plan = read_plan(BENCHMARKS / "results.yaml")
    stale = []
    for name, section in plan.sections.items():
        for line in section.lines():
            for run in runs.runs_of(plan, name, line, tmp_path):
                record = records.read_record(run, BENCHMARKS / "measured")
                if line.sweep is not None and record is not None:
                    stale += jobs_with_other_settings(run, record)
                if line.train is None or record is None:
                    continue
                with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
                    config = hydra.compose(CONFIG_NAME, overrides=run.typed)
                if record["run_key"] != run_key(config):
                    stale.append(str(records.file_of(run, BENCHMARKS / "measured")))
    assert stale == []


def jobs_with_other_settings(run: runs.Run, record: dict[str, Any]) -> list[str]:
    """Return the jobs of the record of a sweep that would be trained with other settings now."""
    stale = []
    for name, job in record["jobs"].items():
        varied = [each for each in job["overrides"] if each.startswith(("scale=", "trainer.max_steps=", "seed="))]
        with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            config = hydra.compose(CONFIG_NAME, overrides=[*run.typed, *varied, "data.source=local"])
        if job["run_key"] != run_key(config):
            stale.append(name)
    return stale


def test_each_number_of_the_findings_is_in_a_table_or_a_note() -> None:
    findings, _, rest = (ROOT / "RESULTS.md").read_text(encoding="utf-8").partition("| `experiment=` |")
    numbers = re.findall(r"[0-9]+\.[0-9]+", findings)
    assert len(numbers) > 15
    assert [number for number in numbers if not re.search(rf"(?<![0-9.]){re.escape(number)}(?![0-9])", rest)] == []


@pytest.mark.slow  # 10 s: it draws all bootstraps; the tests above check each part of the page
def test_the_page_is_that_of_the_records(tmp_path: Path) -> None:
    names = ("RESULTS.md", "README.md")
    shutil.copy(ROOT / "README.md", tmp_path)
    places = ["--page", str(tmp_path / "RESULTS.md"), "--readme", str(tmp_path / "README.md")]
    with patch.object(sys, "argv", ["results.py", "--table-only", *places]):
        results.main()
    for name in names:
        assert (tmp_path / name).read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8"), name


@pytest.mark.slow  # 2.9 s: trainings; the tests above check the records and the page
def test_a_plan_is_measured_once_and_continued(tmp_path, reviews_folder, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REVIEWS", str(reviews_folder))
    quick = "data.path=$REVIEWS task=stars model=tiny data.max_train_rows=97 trainer.max_steps=2"
    baseline = "--task stars --data.path $REVIEWS --data.max-train-rows 97 --other.path $REVIEWS"
    lines = [
        {"name": "tiny", "title": "tiny", "train": f"{quick} ++callbacks.confusion_matrix=null", "seeds": [1, 2]},
        {"name": "counted", "title": "TF-IDF", "baseline": baseline},
        {"title": "guessing", "reference": "chance", "of": "counted"},
    ]
    there = [{"name": "there", "title": "there", "of": "task/tiny", "evaluate": "--data.path $REVIEWS"}]
    compare = {"line": "counted", "column": "test accuracy", "title": "TF-IDF is"}
    content = content_of(lines, compare=compare)
    columns = [["accuracy there", "other", "accuracy"]]
    content["sections"]["elsewhere"] = content_of(there, columns=columns)["sections"]["task"]
    OmegaConf.save(OmegaConf.create(content), tmp_path / "plan.yaml")
    (tmp_path / "README.md").touch()

    def start(command: list[str], *, stdout: Any, **_: Any) -> Any:
        """Run a script of the plan in this process."""
        _, script, *arguments = command
        done = Scripts(tmp_path).run(Path(script).stem, *arguments)
        stdout.write(done.stdout + done.stderr)
        return done

    def measure(*options: str) -> str:
        places = {"plan": "plan.yaml", "folder": "runs", "page": "page.md", "measured": "measured"} | README
        where = [part for name, place in places.items() for part in (f"--{name}", str(tmp_path / place))]
        monkeypatch.setattr(sys, "argv", ["results.py", *where, *options])
        with captured() as (out, _):
            results.main()
        return out.getvalue()

    monkeypatch.setattr(runs, "subprocess", SimpleNamespace(run=start))
    with pytest.raises(SystemExit, match=r"^--only tsak: the sections are task, elsewhere$"):
        measure("--only", "tsak")
    assert "python src" not in measure("--no-train")
    first = measure("--only", "task", "--seeds", "1")
    assert (first.count("python src/train.py"), first.count("python src/baseline.py")) == (1, 1)
    page = (tmp_path / "page.md").read_text()
    assert "(1)" in row_of(page, "tiny")[5]
    assert "(1)" not in row_of(page, "TF-IDF")[5]
    assert row_of(page, "guessing")[5] == "20.0%"
    assert row_of(page, "tiny")[6].split()[0] in ("better:", "worse:", "undecided:")
    before = (tmp_path / "runs" / "task" / "tiny" / "seed-1" / "metrics.json").read_bytes()
    again = measure("--only", "task")
    assert again.count("python src/train.py") == 1, "only the second seed"
    assert "seed=2" in again
    assert (tmp_path / "runs" / "task" / "tiny" / "seed-1" / "metrics.json").read_bytes() == before
    assert "(2)" in row_of((tmp_path / "page.md").read_text(), "tiny")[5]
    measure("--only", "elsewhere", "--seeds", "1")
    page = (tmp_path / "page.md").read_text()
    assert page.rstrip().splitlines()[-1].startswith("- `make results ONLY=elsewhere`: there, 1 run: `python src/eval")
    counted = json.loads((tmp_path / "measured" / "task" / "counted.json").read_text())["evaluations"]
    assert counted["test"]["units"].keys() == {"key", "count", "correct"}
    (tmp_path / "runs" / "task" / "tiny" / "seed-2" / "metrics.json").unlink()
    assert "python src" not in measure("--only", "task"), "the records suffice"


def finished(tmp_path: Path, overrides: list[str], **data: str) -> runs.Run:
    """Return the first run of LINE, whose folder has a finished training."""
    run = runs.runs_of(plan_of(content_of([LINE])), "task", Line(**LINE), tmp_path)[0]
    run.folder.mkdir(parents=True)
    record = {"status": "finished", "overrides": overrides, "data": {"fingerprint": "f", "source": "local"} | data}
    (run.folder / "metrics.json").write_text(json.dumps(record))
    return run


def test_a_folder_with_another_command_is_not_taken(tmp_path: Path) -> None:
    run = finished(tmp_path, ["task=movies", "seed=1"])
    with pytest.raises(runs.MeasurementError, match=r"has a run of another command; remove it to measure python"):
        run.is_finished()


def test_numbers_of_generated_data_or_of_other_data_are_not_published(tmp_path: Path) -> None:
    run = finished(tmp_path, [], source="sample")
    with pytest.raises(runs.MeasurementError, match=r"was trained on generated data, .* set FIRSTLIGHT_DATA"):
        records.write_record(run, (), tmp_path / "measured")
    of_generated = replace(run, line=replace(run.line, generated=True))
    records.refuse_other_source(of_generated, {"source": "sample"})
    with pytest.raises(runs.MeasurementError, match=r"was trained on real data \(local\), .* generated: true"):
        records.refuse_other_source(of_generated, {"source": "local"})
    other = replace(run, seed=2, place=run.place.with_name("seed-2"))
    file = records.file_of(other, tmp_path / "measured")
    records._write({"command": other.command, "data": {"fingerprint": "g"}}, file)
    data = {"fingerprint": "f", "source": "local"}
    with pytest.raises(runs.MeasurementError, match=r"has other data than .*seed-2\.json"):
        records.refuse_other_data(run, data, tmp_path / "measured")
    records.refuse_other_data(run, data | {"fingerprint": "g"}, tmp_path / "measured")
