"""Score models on pairs of texts that a word or the order decides: python benchmarks/contrasts.py RUN… (--help).

`contrasts.csv` has the pairs. The two texts of a pair have opposite labels and differ in a few words or in the order of
the words. A model that overlooks the difference gives both the same label: 50% of the texts and none of the pairs are
right. docs/data.md describes the pairs.
"""

import json
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import firstlight  # noqa: E402
from firstlight.commands.frame import run  # noqa: E402
from firstlight.data.labels import SENTIMENTS  # noqa: E402
from firstlight.errors import UserError  # noqa: E402
from firstlight.lab.reports.significance import Estimate, paired_bootstrap  # noqa: E402

FILE = ROOT / "benchmarks" / "contrasts.csv"
COLUMNS = ("pair", "category", "domain", "text", "label")
MEASURES = ("texts", "pairs")
ALL = "all"
DRAWS = 2000  # of a bootstrap
NOT_SETTINGS = ("seed=", "threads=", "resume=")  # overrides in which the seeds of a model may differ


@dataclass
class Options:
    """Score runs and baselines that predict negative or positive on the pairs of contrasts.csv."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Folders of runs. Runs that differ only in their seed are one model, and their means are shown."""
    baseline: tuple[str, ...] = ()
    """Baselines to fit: a task, with options of baseline.py, such as "movies --max-words 10000"."""
    json: bool = False
    """Print JSON with all numbers in place of the tables."""


@dataclass(frozen=True)
class Contrasts:
    """Pairs of texts with opposite labels.

    texts, labels: (2 · pairs,) the texts and their classes, the two of a pair one after the other. categories,
    domains: (pairs,).
    """

    texts: list[str]
    labels: NDArray[np.int64]
    categories: list[str]
    domains: list[str]

    def groups(self) -> dict[str, NDArray[np.bool_]]:
        """Return which pairs belong to each group, (pairs,): all, the domains and the categories."""
        found = {ALL: np.ones(len(self.categories), dtype=bool)}
        for names in (self.domains, self.categories):
            found |= {name: np.array(names) == name for name in dict.fromkeys(names)}
        return found


@dataclass(frozen=True)
class Model:
    """A model and its answers. hits: (runs, pairs, 2) bool, whether each run labels each text of each pair right."""

    name: str
    hits: NDArray[np.bool_]

    def shares(self, measure: str) -> NDArray[np.float64]:
        """Return the mean over the runs for each pair, (pairs,): the share of right texts, or of right pairs."""
        return (self.hits.mean(axis=2) if measure == "texts" else self.hits.all(axis=2)).mean(axis=0)


def main() -> None:
    """Print the scores of all models, and the differences between the first and each other model."""
    options = tyro.cli(Options)
    contrasts = read_contrasts(FILE)
    models = [
        *models_of_runs(options.runs, contrasts),
        *(model_of_baseline(each, contrasts) for each in options.baseline),
    ]
    if not models:
        raise UserError("name at least one run or --baseline")
    found = report_of(models, contrasts)
    print(json.dumps(found, indent=1) if options.json else tables_of(found))


def read_contrasts(file: Path) -> Contrasts:
    """Return the pairs of a file. Raises UserError if two rows that belong together are not next to each other."""
    import pandas as pd  # type: ignore[import-untyped]

    rows = pd.read_csv(file, keep_default_na=False)
    first, second = rows[::2].reset_index(), rows[1::2].reset_index()
    if tuple(rows.columns) != COLUMNS or len(first) != len(second):
        raise UserError(f"{file}: the columns must be {', '.join(COLUMNS)}, with two rows for each pair")
    for column in ("pair", "category", "domain"):
        if (wrong := first[column] != second[column]).any():
            raise UserError(f"{file}:{2 * int(wrong.argmax()) + 3}: {column} differs from that of the line before")
    labels = rows["label"].to_numpy(dtype=np.int64)
    return Contrasts(list(rows["text"]), labels, list(first["category"]), list(first["domain"]))


def models_of_runs(folders: Sequence[str], contrasts: Contrasts) -> list[Model]:
    """Return the models of run folders. Runs with the same settings except the seed are one model."""
    hits: dict[str, list[NDArray[np.bool_]]] = {}
    for folder in folders:
        loaded: Any = firstlight.load(folder)
        if tuple(getattr(loaded, "class_names", ())) != SENTIMENTS:
            raise UserError(f"{folder}: its classes are not {' and '.join(SENTIMENTS)}; name another run")
        overrides = [each for each in loaded.record["overrides"] if not each.startswith(NOT_SETTINGS)]
        predicted = loaded.probabilities(contrasts.texts).argmax(axis=1)
        hits.setdefault(" ".join(overrides) or folder, []).append(hits_of(predicted, contrasts))
    return [Model(name, np.stack(each)) for name, each in hits.items()]


def model_of_baseline(typed: str, contrasts: Contrasts) -> Model:
    """Fit a baseline as `baseline.py --task <typed>` does, and return its answers. Its output goes to stderr."""
    from firstlight.commands.baseline import BaselineOptions, measure_baseline
    from firstlight.runs.predictions import read_predictions

    with tempfile.TemporaryDirectory() as logs, redirect_stdout(sys.stderr):
        other = ["--other.path", str(FILE), "--log-dir", logs]
        folder = measure_baseline(tyro.cli(BaselineOptions, args=["--task", *shlex.split(typed), *other]))
        found = read_predictions(folder / "predictions" / "other.npz")
    predicted, targets = (None, None) if found is None else (found.predicted, found.targets)
    if predicted is None or targets is None or not np.array_equal(targets, contrasts.labels):
        raise UserError(f"--baseline {typed}: it does not predict {' or '.join(SENTIMENTS)}; name another task")
    return Model(f"baseline {typed}", hits_of(predicted, contrasts)[None])


def hits_of(predicted: NDArray[np.int64], contrasts: Contrasts) -> NDArray[np.bool_]:
    """Return whether each text is labeled right, (pairs, 2). predicted: (2 · pairs,) the classes of the texts."""
    return (predicted == contrasts.labels).reshape(-1, 2)


def report_of(models: Sequence[Model], contrasts: Contrasts) -> dict[str, Any]:
    """Return the scores of models by group, and the differences between the first model and each other.

    The intervals of accuracies of texts, and those of differences, are bootstraps over the pairs, because the two texts
    of a pair are not independent. The interval of an accuracy of pairs is Wilson's.
    """
    groups = contrasts.groups()
    return {
        "groups": {name: int(members.sum()) for name, members in groups.items()},
        "models": [
            {"name": model.name, "runs": len(model.hits)}
            | {
                each: {name: asdict(score(model, each, members)) for name, members in groups.items()}
                for each in MEASURES
            }
            for model in models
        ],
        "differences": [
            {"first": models[0].name, "second": other.name}
            | {
                each: {name: difference(models[0], other, each, members) for name, members in groups.items()}
                for each in MEASURES
            }
            for other in models[1:]
        ],
    }


def score(model: Model, measure: str, members: NDArray[np.bool_]) -> Estimate:
    """Return the mean over runs and pairs, with its 95% interval. members: (pairs,) the pairs to score."""
    shares = model.shares(measure)[members]
    if measure == "texts":
        return paired_bootstrap(shares, np.zeros_like(shares), draws=DRAWS).estimate
    from scipy.stats import binomtest

    limits = binomtest(round(float(shares.sum())), len(shares)).proportion_ci(method="wilson")
    return Estimate(float(shares.mean()), float(limits.low), float(limits.high), len(shares))


def difference(first: Model, second: Model, measure: str, members: NDArray[np.bool_]) -> dict[str, float]:
    """Return the mean of first − second over pairs, its 95% interval and the p-value of no difference."""
    found = paired_bootstrap(first.shares(measure)[members], second.shares(measure)[members], draws=DRAWS)
    return asdict(found.estimate) | {"p": found.p}


def tables_of(found: Mapping[str, Any]) -> str:
    """Return the report as tables in Markdown."""
    models = found["models"]
    head = ["", "pairs", *(f"{model['name']} ({model['runs']}): {measure}" for model in models for measure in MEASURES)]
    rows = [head, ["---"] * len(head)]
    for name, count in found["groups"].items():
        rows.append([name, str(count), *(percent(model[each][name]) for model in models for each in MEASURES)])
    titles = [f"{found['models'][0]['name']} minus", *(f"{each}, points" for each in MEASURES)]
    others = [titles, ["---"] * len(titles)] if found["differences"] else []
    for each in found["differences"]:
        others.append([each["second"], *(points(each[measure][ALL]) for measure in MEASURES)])
    tables = ["\n".join(f"| {' | '.join(row)} |" for row in table) for table in (rows, others)]
    return "\n\n".join(filter(None, tables))


def percent(estimate: Mapping[str, float]) -> str:
    """Return an accuracy such as 54.2% [51.8, 56.6]."""
    value, low, high = (f"{100 * estimate[key]:.1f}" for key in ("value", "low", "high"))
    return f"{value}% [{low}, {high}]"


def points(estimate: Mapping[str, float]) -> str:
    """Return a difference such as +2.1 [-0.3, +4.5], p = 0.08."""
    value, low, high = (f"{100 * estimate[key]:+.1f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}], p = {estimate['p']:.2g}"


if __name__ == "__main__":
    run(main)
