"""What a kind of network returns for a teacher of its training."""

from dataclasses import dataclass, field
from typing import Any

from firstlight.lit.distillation import Teacher


@dataclass(frozen=True)
class Lesson:
    """A teacher for one data module.

    teacher: the function that predicts a batch. fingerprint: a hash of everything that its predictions depend on.
    facts: what the record says about it in addition, such as its accuracy on the training rows.
    """

    teacher: Teacher
    fingerprint: str
    facts: dict[str, Any] = field(default_factory=dict)
