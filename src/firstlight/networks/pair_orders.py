"""The other order of pairs of texts."""

import torch
from torch import Tensor

DELIMITER_ID = 3  # the token between two texts, [DELIMITER] of `firstlight.text.Tokenizer`


def places_of_other_order(token_ids: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the place of each token of the pairs with their texts exchanged: (batch, length) int.

    token_ids: (batch, length), each row a mark, the first text, the delimiter, the second text, and a mark.
    padding_mask: (batch, length). The marks and the padding keep their places, except for the delimiter.
    """
    columns = torch.arange(token_ids.shape[1], device=token_ids.device)  # (length,)
    delimiters = (token_ids == DELIMITER_ID).int().argmax(dim=1, keepdim=True)  # (batch, 1)
    lengths = padding_mask.sum(dim=1, keepdim=True)  # (batch, 1)
    new_delimiters = lengths - delimiters - 1  # the second text has as many tokens, with the mark before it
    places = torch.where(columns < new_delimiters, columns + delimiters, columns - new_delimiters)
    places = torch.where(columns == new_delimiters, delimiters, places)
    is_fixed = (columns == 0) | (columns >= lengths - 1)
    return torch.where(is_fixed, columns, places)
