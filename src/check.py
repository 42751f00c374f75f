"""Check a network of your own: python src/check.py birds.network:MyNetwork task=birds (--help lists everything)."""

from firstlight.commands.check import main
from firstlight.commands.frame import run

if __name__ == "__main__":
    run(main)
