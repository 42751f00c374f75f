"""`firstlight explore`, as src/explore.py."""

from firstlight.runs.command import run
from firstlight.runs.explore import main

if __name__ == "__main__":
    run(main)
