"""Plot what a trained run has learned: python src/explore.py latest --figures attention (--help lists everything)."""

from firstlight.commands.explore import main
from firstlight.commands.frame import run

if __name__ == "__main__":
    run(main)
