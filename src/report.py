"""Compare the runs and sweeps below a folder: python src/report.py logs --group-by model (--help lists everything)."""

from firstlight.commands.frame import run
from firstlight.commands.report import main

if __name__ == "__main__":
    run(main)
