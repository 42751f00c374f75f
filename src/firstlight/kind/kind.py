"""Interface of a kind of network. Imports no torch, so that the user's mistakes are reported quickly.

To add a kind, read this module first, then the package `firstlight.masked` and its line in `registry.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Protocol

from omegaconf import DictConfig


@dataclass(frozen=True)
class Drawing:
    """Figure of `explore`.

    name: the name for --figures. function: a reference, `module:name`, to the function that accepts a `Subject` and
    returns a `Drawn`. needs: the required traits of the run or task, such as the name of a kind (`traits_of` in
    lab/explore/catalog.py lists the traits). caption: describes the figure and what to look for.
    """

    name: str
    function: str
    needs: frozenset[str]
    caption: str


def drawing(name: str, module: str, needs: str, caption: str) -> Drawing:
    """Return the figure `name`, drawn by the function of this name in a module. needs: traits, separated by spaces."""
    return Drawing(name, f"{module}:{name}", frozenset(needs.split()), caption)


class Metrics(Protocol):
    """Function that returns the names of the metrics of every validation, without `val/`, for a whole config."""

    def __call__(self, config: DictConfig) -> tuple[str, ...]: ...


class Example(Protocol):
    """Function that returns options of a command that applies a run, for a whole config."""

    def __call__(self, config: DictConfig) -> str: ...


@dataclass(frozen=True)
class Kind:
    """Properties of one kind of network. Each kind is the `KIND` of a package in `firstlight.kind`.

    Objects that need torch are given as references, `module:name`. `get` imports them.

    Attributes:
        name: The name in code, configuration, checkpoints and schemas, and of the package in `firstlight`.
        noun: The noun for a run of this kind in messages.
        model: The schema of `model`: a dataclass with the options of the network. The names of the options identify the
            kind of a saved run, so no two kinds have the same names.
        schema: More nodes for conf/, such as those of `data`, by their name in the group `schema`. A node of `data` has
            a static method `check(config)`, which raises UserError for data that cannot be found or does not fit the
            network.
        metrics: Function that returns the names of the metrics of every validation.
        metric_callbacks: References to the callbacks that measure them. They are added to runs without them.
        always_looks_back: Whether the network has causal attention even without model.causal.
        has_any_length: Whether a batch contains texts, padded to the longest, so that torch.compile must not specialize
            on one length. Otherwise a batch contains windows of one length.
        command: The command that applies a run: `predict` or `generate`.
        example: Function that returns options of that command, for the next steps at the end of a training.
        evaluation_options: The options of `OF_SOME_KINDS` in kind/evaluation.py that apply to this kind.
        prediction_options: The options of commands/predict.py that apply to this kind.
        training: A reference to the LightningModule, a subclass of `firstlight.lit.Training`.
        tokenizers: References to the supported tokenizers.
        loaded: A reference to the function `(OfAllRuns, card, tokenizer, reader) -> LoadedRun` (kind/loaded.py), which
            returns the run of a checkpoint.
        evaluate: A reference to the function `(LoadedRun, EvaluateOptions) -> Path` (kind/evaluation.py), which
            evaluates a run and returns the folder of the results.
        predictor: A reference to the subclass of `Predictor` (kind/predictor.py) that implements `predict`. None if
            the command is `generate`.
        exploration: A reference to the subclass of `Exploration` (kind/exploration.py), which provides the data for
            the figures of all kinds.
        panel: A reference to the subclass of `Panel` (kind/panels/panel.py) for the playground. The file panel.html in
            the package of the kind is the form above the panels.
        panel_title: The heading above the runs of this kind in the playground.
        dashboard: A reference to the function that returns additional sections of the W&B workspace. None if there are
            no additional sections.
        baselines: `_target_` of the data -> name of its baseline and a reference to the function
            `(data, metric, folder) -> Fitted` (kind/baseline.py).
        lesson: A reference to the function `(Named, data, DistillationOptions) -> Lesson` (kind/teachers.py), which
            returns the teacher of a training.
        teachers: Names of the teachers that are not runs.
        drawings: Figures that only this kind has, as returned by `drawing`.
    """

    name: str
    noun: str
    model: type
    metrics: Metrics
    metric_callbacks: tuple[str, ...]
    has_any_length: bool
    command: str
    example: Example
    training: str
    tokenizers: tuple[str, ...]
    loaded: str
    evaluate: str
    exploration: str
    panel: str
    panel_title: str
    lesson: str
    predictor: str | None = None
    always_looks_back: bool = False
    dashboard: str | None = None
    schema: Mapping[str, type] = field(default_factory=dict)
    evaluation_options: tuple[str, ...] = ()
    prediction_options: tuple[str, ...] = ()
    baselines: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    teachers: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = ()


def get(reference: str) -> Any:
    """Import and return the object of a reference, `module:name`."""
    return resolve_name(reference)
