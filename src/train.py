"""Train a model: python src/train.py task=sentiment model=small (--help lists every key and group)."""

from firstlight.commands.frame import run
from firstlight.commands.train import main

if __name__ == "__main__":
    run(main)
