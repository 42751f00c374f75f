"""Predict with a trained run: python src/predict.py latest --text "It works." (--help lists everything)."""

from firstlight.commands.frame import run
from firstlight.commands.predict import main

if __name__ == "__main__":
    run(main)
