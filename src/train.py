"""Train a model: python src/train.py task=sentiment model=small (--help lists every key and group)."""

from firstlight.runs import launch
from firstlight.runs.command import run

if __name__ == "__main__":
    run(launch.main)
