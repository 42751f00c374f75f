"""Try trained runs in the browser: python src/playground.py latest (--help lists everything)."""

from firstlight.commands.frame import run
from firstlight.commands.playground import main

if __name__ == "__main__":
    run(main)
