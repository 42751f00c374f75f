"""List the runs below a folder: python src/runs.py --task names (--help lists everything)."""

from firstlight.commands.frame import run
from firstlight.commands.runs import main

if __name__ == "__main__":
    run(main)
