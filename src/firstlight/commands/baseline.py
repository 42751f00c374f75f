"""`firstlight baseline`, as src/baseline.py."""

from firstlight.runs.command import run  # first: it starts the clock

# isort: split
from firstlight.runs.baseline import main

if __name__ == "__main__":
    run(main)
