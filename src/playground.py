"""Try trained runs in the browser: python src/playground.py latest (--help lists everything)."""

from firstlight.runs.command import run
from firstlight.runs.playground import main

if __name__ == "__main__":
    run(main)
