"""What the training loss needs of the groups of rows."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from firstlight.choices import listed
from firstlight.errors import UserError


class GroupTerms(NamedTuple):
    """Groups of rows in the training loss.

    numbers: the group of each row of the data, (rows,), int, 0 for rows that are not in training. log_priors:
    log P(class | group) with add-one smoothing, (groups, classes). weights: the weight of each group, (groups,), or
    None.
    """

    numbers: Tensor
    log_priors: Tensor
    weights: Tensor | None


def group_terms(data: Any) -> GroupTerms:
    """Return the groups of the training rows. data: a `ReviewData`. Raises UserError for the weight of no group."""
    rows, weights = data.rows("train"), data.options.group_weights
    names, groups = np.unique(data.groups(rows), return_inverse=True)
    for name in (weights or {}).keys() - set(names.tolist()):
        problem = f"data.group_weights: {name} is not a group of the training rows"
        raise UserError(f"{problem}; the groups are {listed(names.tolist(), most=20)}")
    counts = np.ones((len(names), data.num_classes))
    np.add.at(counts, (groups, data.targets[rows]), 1)
    numbers = np.zeros(len(data.targets), np.int64)
    numbers[rows] = groups
    log_priors = torch.from_numpy(np.log(counts / counts.sum(axis=1, keepdims=True))).float()
    of_groups = None if weights is None else torch.tensor([float(weights.get(name, 1)) for name in names.tolist()])
    return GroupTerms(torch.from_numpy(numbers), log_priors, of_groups)
