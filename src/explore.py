"""Draw what a trained run has learned: python src/explore.py latest --figures attention (--help lists everything)."""

from firstlight.runs.command import run
from firstlight.runs.explore import main

if __name__ == "__main__":
    run(main)
