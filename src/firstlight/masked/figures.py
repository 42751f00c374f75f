"""Figures of the predictions of a masked language model."""

import numpy as np

from firstlight.figures import plot_fillings
from firstlight.kind.kind import Drawn
from firstlight.kind.subject import Subject

NUM_WORDS = 10  # for each [MASK]


def fillings(subject: Subject) -> Drawn:
    """Return the figure of the most probable words for each [MASK]."""
    text, notes = subject.chosen_text()
    found = subject.of_text(text, lambda chosen: subject.run.fill_in(chosen, NUM_WORDS))
    words = [[filling.word for filling in of_mask] for of_mask in found.fillings]
    shares = np.array([[filling.probability for filling in of_mask] for of_mask in found.fillings])
    return Drawn(plot_fillings(text, words, shares), notes)
