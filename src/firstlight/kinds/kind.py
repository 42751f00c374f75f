"""What the program asks of a kind of network. Imports no torch, so that mistakes are answered at once.

Read this first to add a kind, then `kinds/masked`, which was added by new files and one line of `registry.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Protocol

from omegaconf import DictConfig


@dataclass(frozen=True)
class Drawing:
    """A figure of `explore`.

    name: as it is typed after --figures; function: a reference, `module:name`, to the function that takes a `Subject`
    and returns a `Drawn`; needs: the traits that the run or task must have (`traits_of` in explore/catalog.py lists
    them; the name of a kind is one); caption: what to look for.
    """

    name: str
    function: str
    needs: frozenset[str]
    caption: str


def drawing(name: str, module: str, needs: str, caption: str) -> Drawing:
    """Return the figure `name`, which the function of this name in a module draws. needs: traits, in one string."""
    return Drawing(name, f"{module}:{name}", frozenset(needs.split()), caption)


class Metrics(Protocol):
    """A function that returns the metrics that validation always measures, without `val/`. config: the whole one."""

    def __call__(self, config: DictConfig) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Kind:
    """All that the program knows about one kind of network. Each is the `KIND` of a package in `firstlight.kinds`.

    What needs torch is named by a reference, `module:name`; `get` imports it.

    Attributes:
        name: The word for it in code, configuration and checkpoints; also the name of its package and its schema.
        noun: The word for a run of it in messages.
        model: The schema of `model`: a dataclass with the options of the network. No other kind has the same names of
            options, since a run's kind is found by them.
        schema: Further nodes that conf/ names, such as those of `data`, by their name in the group `schema`. A static
            method `check(config)` of a node of `data` refuses data that cannot be found or does not fit the network.
        metrics: Returns the metrics that validation always measures.
        metric_callbacks: References to the callbacks that measure them; a run without them gets them.
        always_looks_back: Whether there is an attention that looks at earlier tokens only, without model.causal.
        has_any_length: Whether a batch holds texts, padded to the longest, so that torch.compile must not specialize
            on one length. Else it holds windows of one length.
        command: The command that applies a run: `predict` or `generate`.
        example: Options of that command, for the next steps at the end of a training.
        evaluation_options: Which of `OF_SOME_KINDS` in kinds/evaluation.py the evaluation takes.
        prediction_options: Likewise of commands/predict.py.
        training: A reference to the LightningModule, a subclass of `firstlight.lit.Training`.
        tokenizers: References to the tokenizers by which such a network can read.
        loaded: A reference to the function `(OfAllRuns, card, tokenizer, reader) -> LoadedRun` (kinds/loaded.py), which
            makes a run of a checkpoint's card.
        evaluate: A reference to the function `(LoadedRun, EvaluateOptions) -> Path` (kinds/evaluation.py), which
            measures a run and returns the folder of the results.
        predictor: A reference to the subclass of `Predictor` (kinds/predictor.py) behind `predict`. None for
            `generate`.
        exploration: A reference to the subclass of `Exploration` (kinds/exploration.py), which answers what the figures
            of all kinds ask of a run.
        panel: A reference to the subclass of `Panel` (kinds/panels/panel.py) for the playground. The form above it is
            the file panel.html of the kind's package.
        panel_title: The heading above the runs of this kind in the playground.
        dashboard: A reference to the function that returns its sections of the W&B workspace. None where the
            sections of all runs show what it logs.
        baselines: The baseline for each class of data, by its `_target_`: its name and a reference to the function
            `(data, metric, folder) -> Fitted` (kinds/baseline.py).
        drawings: Figures that only this kind has, as `drawing` makes them.
    """

    name: str
    noun: str
    model: type
    metrics: Metrics
    metric_callbacks: tuple[str, ...]
    has_any_length: bool
    command: str
    example: str
    training: str
    tokenizers: tuple[str, ...]
    loaded: str
    evaluate: str
    exploration: str
    panel: str
    panel_title: str
    predictor: str | None = None
    always_looks_back: bool = False
    dashboard: str | None = None
    schema: Mapping[str, type] = field(default_factory=dict)
    evaluation_options: tuple[str, ...] = ()
    prediction_options: tuple[str, ...] = ()
    baselines: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    drawings: tuple[Drawing, ...] = ()


def get(reference: str) -> Any:
    """Import and return what a reference, `module:name`, stands for."""
    return resolve_name(reference)
