"""The metrics that a configuration measures in validation. Imports nothing heavy."""

from collections.abc import Iterable

from omegaconf import DictConfig, OmegaConf

from firstlight.choices import nearest
from firstlight.errors import UserError
from firstlight.kind.registry import KINDS
from firstlight.runs.trials import MEASURES

MEASURED_BY = {  # in addition to the metrics of each kind of network
    "firstlight.callbacks.token_metrics.LastPosition": ("last_position_loss",),
    "firstlight.translator.translations.Translations": ("bleu", "chrf"),
}
OURS = ("firstlight.", "lightning.")


def known_metrics(config: DictConfig) -> list[str] | None:
    """Return the metrics of validation, sorted; None if a class of the user may measure others."""
    nodes = [config.module, *(config.callbacks or {}).values()]
    targets = [str(node.get("_target_")) for node in nodes if node]
    if not all(target.startswith(OURS) for target in targets):
        return None
    kind = next((kind for kind in KINDS.values() if OmegaConf.get_type(config.model) is kind.model), None)
    if kind is None:
        return None
    optional = {name for target in targets for name in MEASURED_BY.get(target, ())}
    names = {*kind.metrics(config), *optional}
    return sorted(f"val/{name}" for name in names)


def check_objectives(config: DictConfig, objectives: Iterable[str]) -> None:
    """Raise UserError for an objective of a search that no run has."""
    for name in objectives:
        if name not in MEASURES:
            _check_measured(config, "hydra.sweeper.objectives", name, MEASURES)


def check_metric(config: DictConfig) -> None:
    """Raise UserError if validation does not measure optimized_metric."""
    _check_measured(config, "optimized_metric", config.optimized_metric)


def _check_measured(config: DictConfig, key: str, name: str, others: Iterable[str] = ()) -> None:
    """Raise UserError for a metric that validation does not measure. others: further values that the key may have."""
    known = known_metrics(config)
    if name not in (known or ()) and not (known is None and name.startswith("val/")):
        there_are = [*others, *(known or ["any metric of validation, such as val/loss"])]
        guess = f"did you mean {key}={meant}? There" if (meant := nearest(name, there_are)) else "there"
        problem = f"{key}={name} is not measured in validation, by which runs are compared"
        raise UserError(f"{problem}; {guess} are {', '.join(there_are)}")
