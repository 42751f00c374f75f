"""Interface of a kind of network, and what its runs and baselines return to the commands: measurements and figures.

Imports no torch, so that the user's mistakes are reported quickly.

A kind is a package. Its modules have fixed names, by which the program finds them:

| module | what the program uses |
|---|---|
| `kind.py` | `KIND`, a `Kind`; imports no torch |
| `run.py` | the subclass of `Run` (kind/run.py), or of `PredictingRun` if the command of the kind is `predict` |
| `module.py` | the LightningModule, a subclass of `firstlight.lit.Training` |
| `panel.py`, `panel.html` | the subclass of `Panel` (kind/panel.py) for the playground, and the form above it |
| `figures.py` | a function of a `Subject` (kind/subject.py) for each figure of the kind, which returns a `Drawn` |
| `figures.yaml` | the name, the caption and the needs of each figure (lab/explore/catalog.py) |
| `baseline.py` | `fit(data, metric, folder)`, which returns a `Fitted`; only if `baseline` is set |
| `dashboard.yaml` | more sections of the W&B workspace (commands/dashboard.py), if there are some |

The classes have the attribute `kind`, the name of the kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from omegaconf import II, DictConfig

from firstlight.data.sources import check_path
from firstlight.errors import UserError
from firstlight.kind.data_changes import DataChanges
from firstlight.networks.config import TransformerConfig
from firstlight.runs.folder import lower_is_better
from firstlight.terminal_text import say
from firstlight.text.options import TokenizerOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHOLE = "whole"  # name of the split if all of another text is evaluated


@dataclass(frozen=True)
class Kind:
    """Properties of one kind of network, which are used before torch is imported. All others belong to its classes.

    Attributes:
        name: The name in code, configuration, checkpoints and schemas.
        noun: The noun for a run of this kind in messages.
        model: The schema of `model`: a dataclass with the options of the network, in the module of the `KIND`. The
            names of the options identify the kind of a saved run, so no two kinds have the same names.
        schema: More nodes for conf/, such as those of `data`, by their name in the group `schema`. A node of `data` has
            a static method `check(config)` (`DataNode`), which raises UserError for data that cannot be found
            or does not fit the network.
        metrics: Function that returns the names of the metrics of every validation, without `val/`, for a whole config.
        command: The command that applies a run: `predict` or `generate`.
        example: Function that returns options of that command for a whole config, which the end of a training shows.
        baseline: The name of the baseline; None if there is none.
        cross_entropy: Whether the loss is the cross entropy of the classes of the data, or without classes of the
            tokens. Only for such a kind the loss that is expected at initialization is shown.
    """

    name: str
    noun: str
    model: type[TransformerConfig]
    schema: Mapping[str, Any]
    metrics: Callable[[DictConfig], tuple[str, ...]]
    command: str
    example: Callable[[DictConfig], str]
    baseline: str | None = None
    cross_entropy: bool = False

    @property
    def package(self) -> str:
        """The package of the kind, such as `firstlight.masked`."""
        return self.model.__module__.rpartition(".")[0]

    def has(self, module: str) -> bool:
        """Return whether the package has a module, such as `baseline`."""
        return find_spec(f"{self.package}.{module}") is not None

    def get(self, module: str) -> Any:
        """Import a module of the package, and return its class of this kind, such as the run of `run`."""
        found = import_module(f"{self.package}.{module}")
        own = (value for value in vars(found).values() if getattr(value, "__module__", None) == found.__name__)
        return next(value for value in own if isinstance(value, type) and getattr(value, "kind", None) == self.name)

    def reader(self) -> Any:
        """Return the class with `config_type` and `metadata_checks`: the run, else the LightningModule.

        Without the LightningModule a run is read without importing Lightning.
        """
        run = self.get("run")
        return run if hasattr(run, "metadata_checks") else self.get("module")

    def function(self, module: str, name: str) -> Callable[..., Any]:
        """Import a module of the package, and return a function of it, such as `fit` of `baseline`."""
        return getattr(import_module(f"{self.package}.{module}"), name)


@dataclass
class ModelNode:
    """Options of `model` that are keys at the top level. This must be the first base class of a schema."""

    dropout: float = II("dropout")
    context_length: int = II("context_length")


@dataclass
class DataNode:
    """Options of `data` that are keys at the top level. This must be the first base class of a schema."""

    tokenizer: TokenizerOptions = II("tokenizer")  # noqa: RUF009  (an interpolation is a string)
    context_length: int = II("context_length")
    seed: int = II("seed")
    cache_dir: str = II("paths.cache_dir")

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found, or does not fit the network. config: the whole."""
        check_path(config.data.path, config.data.source)


class Measurement(NamedTuple):
    """Results of a run for one split.

    metrics: metrics by name. size: how much was measured, for metrics.json. notes: notes on the results, which are
    printed. write: function that writes more files into a folder. contents: name of all files of the results.
    per_class: precision, recall and F1 of each class of a classifier, as rows of a table that is printed.
    per_group: accuracy of each group of `data.group_column`, in the same form.
    """

    metrics: dict[str, float]
    size: dict[str, Any]
    notes: tuple[str, ...] = ()
    write: Callable[[Path], None] | None = None
    contents: str = "The metrics"
    per_class: Sequence[Mapping[str, Any]] = ()
    per_group: Sequence[Mapping[str, Any]] = ()


class NothingToDrawError(UserError):
    """Error of a figure without content, such as a figure of data that is not on this machine."""


class Drawn(NamedTuple):
    """Figure with notes for the user, such as that the text was cut or chosen automatically."""

    figure: "Figure"
    notes: list[str] = []  # noqa: RUF012  (never changed)


Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Fitted:
    """Baseline with a chosen candidate.

    parameters: number of weights or counts. name: what is chosen. chosen: its value. tried: validation metrics of all
    candidates. test: function that measures the test split, which is not read before. references: function that returns
    the metrics of simpler models by their name, such as `largest_class`. other: function from the options of the task's
    data, their changes and the folder of the cache to the metrics of other data; None if the kind of the data has no
    such function.
    """

    parameters: int
    name: str
    chosen: float
    tried: Mapping[Any, dict[str, float]]
    test: Callable[[], dict[str, float]]
    references: Callable[[], dict[str, dict[str, float]]] = dict
    other: Callable[[dict[str, Any], DataChanges, Path], dict[str, float]] | None = None

    @property
    def validation(self) -> dict[str, float]:
        """The validation metrics of the chosen candidate."""
        return self.tried[self.chosen]


def best_of(tried: Mapping[Choice, dict[str, float]], metric: str) -> Choice:
    """Return the choice with the best validation metric, and of equal ones that with the lowest loss.

    Raises UserError for an unknown metric.
    """
    measured = next(iter(tried.values()))
    if metric not in measured:
        raise UserError(f"optimized_metric={metric}: the baseline does not measure it; use {', '.join(measured)}")
    sign = 1 if lower_is_better(metric) else -1
    return min(tried, key=lambda choice: (sign * tried[choice][metric], tried[choice]["val/loss"]))


def say_choice(name: str, choice: float, metrics: dict[str, float]) -> None:
    """Print the metrics of a candidate on one line."""
    say(f"{name}={choice:g}: {', '.join(f'{metric} {value:.4f}' for metric, value in metrics.items())}", flush=True)
