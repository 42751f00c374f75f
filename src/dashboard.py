"""Write the W&B workspace, or push it: python src/dashboard.py --push (--help lists everything)."""

from firstlight.commands.dashboard import main
from firstlight.commands.frame import run

if __name__ == "__main__":
    run(main)
