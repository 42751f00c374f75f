"""Measure a baseline that counts: python src/baseline.py --task sentiment (--help lists everything)."""

from firstlight.runs.command import run  # first: it starts the clock

# isort: split
from firstlight.runs.baseline import main

if __name__ == "__main__":
    run(main)
