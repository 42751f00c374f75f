"""The options of texts with masked words. This module imports nothing heavy."""

from dataclasses import dataclass

from firstlight.data.options import WholeTextOptions
from firstlight.spelling import declare


@dataclass
class MaskedReviewOptions(WholeTextOptions):
    """Options of texts with masked words for a masked language model."""

    mask_fraction: float = 0.15
    """Share of the tokens of a text that the network has to predict; at least one token in each text."""
    mask_token_share: float = 0.8
    """Share of the predicted tokens that are replaced by [MASK]; the rest are kept or replaced at random."""
    random_token_share: float = 0.1
    """Share of the predicted tokens that are replaced by a random token."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.mask_fraction < 1:
            raise ValueError(f"data.mask_fraction={self.mask_fraction} must lie between 0 and 1")
        for name in ("mask_token_share", "random_token_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.{name}={getattr(self, name)} must be at least 0 and at most 1")
        if self.mask_token_share + self.random_token_share > 1 + 1e-9:
            raise ValueError(
                f"data.mask_token_share={self.mask_token_share} and data.random_token_share={self.random_token_share} "
                "together exceed 1; lower one of them"
            )


declare("data", MaskedReviewOptions)
