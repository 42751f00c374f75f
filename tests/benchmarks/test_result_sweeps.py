"""RESULTS.md: the record of a sweep over sizes and budgets, and what the page shows of it."""

import re
import sys
from pathlib import Path

import pytest

from firstlight.lab.reports import scaling_law
from firstlight.lab.reports.scaling_law import ScalingLaw
from firstlight.version import __version__
from run_folders import make_run
from tests_support import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from result_tables import records, runs, sweeps
from result_tables.page import page_of
from result_tables.plan import Line, plan_of, read_plan

from firstlight.lab.reports.scaling import final_point

LINE = {"name": "names", "title": "names", "sweep": "experiment=scaling/names threads=1", "hold_out": "332k"}
LAW = ScalingLaw(irreducible=1.7, size_factor=12, size_exponent=0.4, data_factor=800, data_exponent=0.6)
SIZES = {"2k": 2560, "9k": 9680, "37k": 37_888, "113k": 114_688, "332k": 335_136}


def test_folds_have_a_record_with_their_metrics_and_the_tables_of_the_report(tmp_path: Path) -> None:
    found = {"title": "films", "name": "films", "folds": "experiment=a folds=2 seed=1", "of": "--task movies --folds 2"}
    section = {"title": "Cross-validation", "unit": "texts", "tables": [{"lines": [found]}]}
    plan = plan_of({"findings": "", "reading": "", "protocol": "", "sections": {"folds": section}})
    line = plan.sections["folds"].lines()[0]
    [run] = runs.runs_of(plan, "folds", line, tmp_path)
    assert run.command == "python src/train.py -m experiment=a folds=2 seed=1"
    assert records.missing_runs(run, tmp_path / "measured") == 4
    for fold, model in ((0, "small"), (1, "small"), (0, "tfidf")):
        value = 0.5 + 0.1 * fold
        path = make_run(
            run.folder,
            f"{model}-{fold}",
            model=model,
            metrics={"val/accuracy": value, "test/accuracy": value},
            versions={"firstlight": __version__},
        )
        (path / "config.yaml").write_text(f"data: {{folds: 2, fold: {fold}}}")
    records.write_record(run, (), tmp_path / "measured")
    record = records.read_record(run, tmp_path / "measured")
    assert record is not None
    assert (records.missing_runs(run, tmp_path / "measured"), record["runs"][1]) == (1, ["small", 1, 1, 0.6])
    page = page_of(plan, lambda *_: [record], lambda *_: [run.command])
    assert f"films: `{run.command}` and `python src/baseline.py --task movies --folds 2`.\n\n1 of 4 runs wait." in page
    assert "| small | – | 2 | 1 | 55.00 ± 63.53% |" in page
    assert "tfidf is not pooled: these of its 2 folds are not finished: 1." in page


def test_a_baseline_alone_is_compared_with_the_folds_of_a_record_and_readme_has_the_verdict() -> None:
    films = {
        "title": "films",
        "name": "films",
        "folds": "experiment=a folds=4 seed=1,2",
        "of": "--task movies --folds 4",
    }
    alone = {
        "title": "alone",
        "name": "alone",
        "folds": "folds=4",
        "against": "films",
        "of": "--method nb-svm --folds 4",
    }
    section = {"title": "Cross-validation", "unit": "texts", "tables": [{"lines": [films, alone]}]}
    row = {"section": "folds", "folds": "alone", "column": "", "settings": "a", "measure": "accuracy", "claim": "–"}
    texts = {"findings": "", "reading": "", "protocol": ""}
    plan = plan_of(texts | {"sections": {"folds": section}, "summary": [row | {"baseline": "nb-svm"}]})
    common = {
        "commit": "0",
        "modified": False,
        "versions": {},
        "data": {"rows": {"train": 75, "test": 25}},
        "sentences": [],
    }
    networks = [["small", fold, seed, 0.7 + 0.01 * fold] for fold in range(4) for seed in (1, 2)]
    counted = [["nb-svm", fold, 1, 0.8 + 0.011 * fold] for fold in range(4)]
    headers = ["setting", "texts", "folds", "seeds", "test/accuracy"]
    found = {
        name: common | {"command": name, "runs": runs_of, "tables": [{"headers": headers, "rows": [row_of]}]}
        for name, runs_of, row_of in (
            (
                "films",
                [*networks, *[["tfidf", fold, 1, 0.5] for fold in range(4)]],
                ["small", "100", "4", "2", "71.50 ± 3.0%"],
            ),
            ("alone", counted, ["nb-svm", "100", "4", "–", "81.65 ± 3.0%"]),
        )
    }
    page = page_of(plan, lambda _, line: [found[line.name]], lambda *_: [])
    assert "| small | worse | nb-svm | -10.15 ± 0.31 points | – | " in page
    assert (
        "| `a` | accuracy | – | 81.65% (NB-SVM) | 71.50% | worse: -10.15 ± 0.31 points (100 texts, 2 seeds) |" in page
    )
    found["alone"]["runs"].pop()
    page = page_of(plan, lambda _, line: [found[line.name]], lambda *_: [])
    assert "1 of 4 runs wait." in page and "worse" not in page


def make_job(folder: Path, name: str) -> None:
    """Make the finished run of a job such as `scale-2k_trainer.max_steps-100`."""
    scale, _, steps = name.removeprefix("scale-").partition("_trainer.max_steps-")
    size = SIZES[scale]
    loss = float(LAW.loss(size, 1024 * int(steps)))
    make_run(
        folder,
        name,
        *(f"scale={scale}", f"trainer.max_steps={steps}"),
        task="names",
        optimized_metric="val/loss",
        metrics={"val/loss": loss},
        parameters=size,
        steps=int(steps),
        tokens=1024 * int(steps),
        seconds={"fit_processor": 6.0},
        versions={"torch": "9.9"},
        git={"commit": "0123456789", "modified": False},
        lines=[{"step": int(steps) - 1, "seconds": 1, "epoch": 0, "val/loss": loss}],
    )


def test_the_page_shows_the_fit_of_the_finished_jobs_and_names_those_that_wait(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(scaling_law, "DRAWS", 4)
    monkeypatch.setattr(sweeps, "IMAGES", tmp_path / "images")
    run = runs.Run(Line(**LINE), None, Path("scaling", "names"), tmp_path)
    jobs = list(sweeps.jobs_of(run.line))
    assert (len(jobs), jobs[0], jobs[-1]) == (20, "scale-2k_trainer.max_steps-100", "scale-332k_trainer.max_steps-800")
    with pytest.raises(runs.MeasurementError, match="has no finished job"):
        records.write_record(run, (), tmp_path)
    for name in jobs[:-1]:
        make_job(run.folder, name)
    records.write_record(run, (), tmp_path / "measured")
    assert records.missing_runs(run, tmp_path / "measured") == 1
    record = records.read_record(run, tmp_path / "measured")
    assert record["processor_minutes"] == 1.9
    sections = {"scaling": {"title": "Scaling", "unit": "letters", "tables": [{"lines": [LINE]}]}}
    plan = plan_of({"findings": "# Results", "reading": "Read.", "protocol": "A machine.", "sections": sections})
    page = page_of(plan, lambda *_: [record], lambda *_: [run.command])
    assert "1 of them wait: scale-332k_trainer.max_steps-800." in page
    assert "L(N, D) = 1.700 + 12 / N^0.400 + 800 / D^0.600, fitted to 19 runs" in page
    assert "Held out and predicted: 3 runs. The prediction is off by 0.00% on average" in page
    assert "| 332k, seed 1 | 335,136 | 102,000 | 2." in page
    assert "Measured with commit `0123456`." in page
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"scaling_fit.png"}


def test_the_losses_of_the_record_give_the_coefficients_on_the_page() -> None:
    plan = read_plan(ROOT / "benchmarks" / "results.yaml")
    line = plan.sections["scaling"].line("shakespeare")
    run = runs.runs_of(plan, "scaling", line, Path())[0]
    record = records.read_record(run, ROOT / "benchmarks" / "measured")
    if record is None:
        assert f"python src/train.py {line.sweep}" in (ROOT / "RESULTS.md").read_text(encoding="utf-8")
        return
    points = [final_point(row, sweeps.LOSS) for row in sweeps.rows_of(record)]
    numbers = zip(*((point.parameters, point.tokens, point.loss) for point in points), strict=True)
    law = scaling_law.fit_scaling_law(*numbers, draws=1).law
    shown = [float(each) for each in re.findall(r"[0-9.]+", record["shown"]["sentences"][0].partition(",")[2])[:5]]
    values = (law.irreducible, law.size_factor, law.size_exponent, law.data_factor, law.data_exponent)
    assert shown == pytest.approx(values, rel=0.01)
    assert record["shown"]["sentences"][0] in (ROOT / "RESULTS.md").read_text(encoding="utf-8")
