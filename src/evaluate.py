"""Evaluate a trained run: python src/evaluate.py latest --split validation (--help lists everything)."""

from firstlight.commands.evaluate import main
from firstlight.commands.frame import run

if __name__ == "__main__":
    run(main)
