"""`firstlight generate`, as src/generate.py."""

from firstlight.runs.command import run
from firstlight.runs.generate import main

if __name__ == "__main__":
    run(main)
