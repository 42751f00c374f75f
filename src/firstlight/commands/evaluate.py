"""`firstlight evaluate`, as src/evaluate.py."""

from firstlight.runs.command import run
from firstlight.runs.evaluate import main

if __name__ == "__main__":
    run(main)
