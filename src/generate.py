"""Let a trained run write: python src/generate.py latest --prompt "ROMEO." --tokens 500 (--help lists everything)."""

from firstlight.runs.command import run
from firstlight.runs.generate import main

if __name__ == "__main__":
    run(main)
