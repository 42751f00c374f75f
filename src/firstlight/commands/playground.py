"""`firstlight playground`, as src/playground.py."""

from firstlight.runs.command import run
from firstlight.runs.playground import main

if __name__ == "__main__":
    run(main)
