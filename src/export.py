"""Write a trained run for other software: python src/export.py latest --to huggingface --output mine (see --help)."""

from firstlight.commands.export import main
from firstlight.commands.frame import run

if __name__ == "__main__":
    run(main)
