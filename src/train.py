"""Train a model: python src/train.py task=sentiment model=small (--help lists every key and group)."""

from firstlight.runs.command import run
from firstlight.runs.launch import main

if __name__ == "__main__":
    run(main)
