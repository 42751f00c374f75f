"""Write the W&B workspace, or push it: python src/dashboard.py --push (--help lists everything)."""

from firstlight.runs.command import run
from firstlight.runs.dashboard import main

if __name__ == "__main__":
    run(main)
