"""The options of reviews with masked words. This module imports nothing heavy."""

from dataclasses import dataclass

from firstlight.data.options import ReviewOptions
from firstlight.spelling import declare


@dataclass
class MaskedReviewOptions(ReviewOptions):
    """Options of reviews with masked words for a masked language model."""

    mask_fraction: float = 0.15
    """The share of the tokens of a text to predict, between 0 and 1. At least one token is predicted."""
    mask_token_share: float = 0.8
    """The share of the tokens to predict that are replaced by [MASK], from 0 to 1."""
    random_token_share: float = 0.1
    """The share of the tokens to predict that are replaced by a random token, from 0 to 1. The rest are unchanged."""

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
