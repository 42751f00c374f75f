"""`firstlight train`, as src/train.py."""

from firstlight.runs.command import run  # first: it starts the clock

# isort: split
from firstlight.runs.launch import main

if __name__ == "__main__":
    run(main)
