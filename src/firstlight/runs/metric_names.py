"""Which metrics a configuration measures in validation, known before anything runs. Imports nothing heavy."""

from omegaconf import DictConfig, OmegaConf

from firstlight.config import MODEL_NODES, CharacterDataNode
from firstlight.data.options import Labels
from firstlight.errors import UserError

ALWAYS = {  # by the network, whatever callbacks there are
    "classifier": ("loss", "accuracy", "macro_f1", "mean_absolute_error"),
    "generator": ("loss", "accuracy", "perplexity", "bits_per_character"),
    "encoder_decoder": ("loss", "accuracy", "perplexity"),
}
MEASURED_BY = {
    "firstlight.callbacks.token_metrics.BitsPerCharacter": ("bits_per_character",),
    "firstlight.callbacks.token_metrics.LastPosition": ("last_position_loss",),
    "firstlight.callbacks.translations.Translations": ("bleu", "chrf"),
}
OURS = ("firstlight.", "lightning.")


def known_metrics(config: DictConfig) -> list[str] | None:
    """The metrics of validation, sorted; None where a class of the user's own may measure others."""
    nodes = [config.module, *(config.callbacks or {}).values()]
    targets = [str(node.get("_target_")) for node in nodes if node]
    if not all(target.startswith(OURS) for target in targets):
        return None
    kind = next((name for name, node in MODEL_NODES.items() if OmegaConf.get_type(config.model) is node), None)
    if kind is None:
        return None
    names = {*ALWAYS[kind], *(name for target in targets for name in MEASURED_BY.get(target, ()))}
    if kind == "classifier" and config.data.get("labels") is not Labels.stars:
        names.discard("mean_absolute_error")
    if OmegaConf.get_type(config.data) is not CharacterDataNode:  # among words, [UNK] stands for no certain characters
        names.discard("bits_per_character")
    return sorted(f"val/{name}" for name in names)


def check_metric(config: DictConfig) -> None:
    """Raise UserError if optimized_metric is nothing that validation measures."""
    metric, known = config.optimized_metric, known_metrics(config)
    if known is None and not metric.startswith("val/"):
        raise UserError(f"optimized_metric={metric} must be a metric of validation, such as val/loss")
    if known is not None and metric not in known:
        raise UserError(
            f"optimized_metric={metric} is not measured in validation, by which runs are compared; "
            f"there are {', '.join(known)}"
        )
