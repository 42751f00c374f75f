"""Where the jobs of a sweep on Slurm are, as its command has last seen them."""

import json
from pathlib import Path
from typing import NamedTuple

from firstlight.errors import UserError
from firstlight.files.regular import regular

FOLDER = ".slurm"  # in the folder of a sweep: what the command knows of its jobs
STATES = f"{FOLDER}/states.json"  # in the folder of a sweep: the task, the state and the nodes by the name of a job
WAITS = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")


class Place(NamedTuple):
    """Where a job is: the number of its task in Slurm, the state of the task, and its nodes; "" if unknown."""

    task: str
    state: str
    nodes: str

    def status(self, status: str) -> str:
        """Return the status of the job, which waits for Slurm or not. status: that of its folder."""
        waits = {"waiting": "pending", "interrupted": "requeued"} if self.state in WAITS else {}
        return waits.get(status, status)

    def __str__(self) -> str:
        return f"{self.nodes} (Slurm {self.task})".lstrip() if self.task else ""


NOWHERE = Place("", "", "")


def places_in(sweep: Path) -> dict[str, Place]:
    """Return the places of the jobs of a sweep by the names of their folders; {} for a sweep that is not on Slurm."""
    file = sweep / STATES
    try:
        found = json.loads(regular(file).read_text(encoding="utf-8"))
        return {str(name): Place(*map(str, place)) for name, place in found.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{file} is broken ({error}); delete it, and start the sweep again") from error
