"""Predict with a trained run: python src/predict.py latest --text "It works." (--help lists everything)."""

from firstlight.runs.command import run
from firstlight.runs.predict import main

if __name__ == "__main__":
    run(main)
