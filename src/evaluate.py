"""Evaluate a trained run: python src/evaluate.py latest --split validation (--help lists everything)."""

from firstlight.runs.command import run
from firstlight.runs.evaluate import main

if __name__ == "__main__":
    run(main)
