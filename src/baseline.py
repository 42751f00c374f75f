"""Measure a baseline that counts: python src/baseline.py --task sentiment (--help lists everything)."""

from firstlight.commands.frame import run  # first: it starts the clock

# isort: split
from firstlight.commands.baseline import main

if __name__ == "__main__":
    run(main)
