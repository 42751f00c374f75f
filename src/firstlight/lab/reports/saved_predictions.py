"""The saved predictions of the runs below a folder, each read once. Imports NumPy only if one is read."""

from pathlib import Path
from typing import TYPE_CHECKING

from firstlight.runs.summary import Run

if TYPE_CHECKING:
    from firstlight.runs.predictions import Predictions


class SavedPredictions:
    """A function that returns the saved predictions of a run; None if it has none, or damaged ones.

    missing: the number of runs without them. damaged: the damage of the others, by the folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.missing = 0
        self.damaged: dict[str, str] = {}
        self._known: dict[str, Predictions | None] = {}

    def __call__(self, run: Run) -> "Predictions | None":
        if run.folder not in self._known:
            self._known[run.folder] = self._read(run)
        return self._known[run.folder]

    def _read(self, run: Run) -> "Predictions | None":
        from firstlight.runs.predictions import EVALUATED, VALIDATION, UnreadablePredictions, read_predictions

        try:
            found = read_predictions(self.folder / run.folder / VALIDATION)
            if found is None:
                found = read_predictions(self.folder / run.folder / EVALUATED)
        except UnreadablePredictions as error:
            self.damaged[run.folder] = str(error)
            return None
        self.missing += found is None and not run.is_baseline
        return found
