"""What the program asks of a kind of network. Imports no torch, so that mistakes are answered at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Protocol

from omegaconf import DictConfig


@dataclass(frozen=True)
class Drawing:
    """A figure as typed after --figures.

    name: of the figure; function: `module:name` of what draws it, given a `Subject`; needs: the traits that the run or
    task must have (explore/catalog.py lists them); caption: what to look for.
    """

    name: str
    function: str
    needs: frozenset[str]
    caption: str


def drawing(name: str, module: str, needs: str, caption: str) -> Drawing:
    """Return the figure `name`, which the function of this name in a module draws. needs: traits, in one string."""
    return Drawing(name, f"{module}:{name}", frozenset(needs.split()), caption)


class Metrics(Protocol):
    """Which metrics the validation of a configuration measures, whatever its callbacks are."""

    def __call__(self, config: DictConfig) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Kind:
    """All that the program knows about one kind of network. Each is the `KIND` of a package in `firstlight.kinds`.

    What needs torch is named by a reference, `module:name`; `get` imports it.

    Attributes:
        name: The word for it in code, configuration and checkpoints.
        noun: The word for a run of it in messages.
        model: The schema of `model`: a dataclass with the options of the network. No other kind has the same options.
        schema: Further nodes that conf/ names, such as those of `data`, by their name in the group `schema`.
        metrics: Which metrics validation always measures.
        metric_callbacks: References to the callbacks that measure them; a run without them gets them.
        always_looks_back: Whether there is an attention that looks at earlier tokens only, without model.causal.
        has_any_length: Whether batches differ in length, so that torch.compile must not specialize on one.
        command: The command that applies a run: `predict` or `generate`.
        example: Options of that command, for the next steps at the end of a training.
        evaluation_options: Options of `evaluate` besides those of all kinds.
        prediction_options: Likewise of `predict`.
        training: A reference to the LightningModule, a subclass of `firstlight.lit.Training`.
        tokenizers: References to the tokenizers by which such a network can read.
        loaded: A reference to the function that makes a loaded run: `kinds/<kind>/loaded.py`.
        evaluate: A reference to the function `(run, options) -> folder` behind `evaluate`.
        predictor: A reference to the class behind `predict`: `kinds/predictor.py`. None for `generate`.
        exploration: A reference to the class that answers what figures ask of a run: `kinds/exploration.py`.
        panel: A reference to the class of the playground's panel: `kinds/panels/panel.py`.
        panel_title: The heading above the runs of this kind in the playground.
        dashboard: A reference to the function that returns its sections of the W&B workspace. None where the
            sections of all runs show what it logs.
        baselines: The baseline for each class of data, by its `_target_`: its name and a reference to its `fit`.
        drawings: Figures that only this kind has.
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
