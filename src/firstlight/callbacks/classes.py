"""The classes that a classifier predicts, from the data module or from the module's card."""

from typing import NamedTuple, Self

from lightning.pytorch import LightningModule, Trainer

from firstlight.callbacks.publish import data_if_any
from firstlight.data.options import Labels
from firstlight.errors import UserError


class Classes(NamedTuple):
    """The names of the classes, and whether they are ordered: an error of one star is smaller than one of two."""

    names: list[str]
    are_ordered: bool

    @classmethod
    def of(cls, trainer: Trainer, pl_module: LightningModule) -> Self | None:
        """Return the classes that the data module or the module's card names, or None if neither names them."""
        data = data_if_any(trainer)
        if data is not None:
            if not hasattr(data, "class_names"):
                raise UserError(
                    f"Accuracy and ConfusionMatrix require data with classes, such as ReviewData, not "
                    f"{type(data).__name__}; remove the callback"
                )
            return cls(list(data.class_names), data.has_ordered_classes)
        card = getattr(pl_module, "card", None) or {}
        if not card.get("class_names"):
            return None
        labels = card["config"].get("data", {}).get("labels")
        return cls(list(card["class_names"]), labels == Labels.stars.name)

    @classmethod
    def numbered(cls, count: int) -> Self:
        """Return classes whose names are their numbers, from 0."""
        return cls([str(i) for i in range(count)], are_ordered=False)
