"""Let a trained run write: python src/generate.py latest --prompt "ROMEO." --tokens 500 (--help lists everything)."""

from firstlight.commands.frame import run
from firstlight.commands.generate import main

if __name__ == "__main__":
    run(main)
