"""The metrics that a configuration measures in validation. Imports nothing heavy."""

from collections.abc import Collection

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


def check_objectives(config: DictConfig, objectives: Collection[str]) -> None:
    """Raise UserError for an objective of a search that no run has."""
    known = known_metrics(config)
    for name in objectives:
        if name in MEASURES or name in (known or ()) or (known is None and name.startswith("val/")):
            continue
        there_are = ", ".join([*MEASURES, *(known or ["any metric of validation, such as val/loss"])])
        raise UserError(
            f"hydra.sweeper.objectives: {name} is not a metric or a measure of a run; there are {there_are}"
        )


def check_metric(config: DictConfig) -> None:
    """Raise UserError if validation does not measure optimized_metric."""
    metric, known = config.optimized_metric, known_metrics(config)
    if known is None and not metric.startswith("val/"):
        raise UserError(f"optimized_metric={metric} must be a metric of validation, such as val/loss")
    if known is not None and metric not in known:
        meant = nearest(metric, known)
        guess = f"did you mean optimized_metric={meant}? There are" if meant else "there are"
        raise UserError(
            f"optimized_metric={metric} is not measured in validation, by which runs are compared; "
            f"{guess} {', '.join(known)}"
        )
