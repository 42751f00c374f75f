"""Compare the runs and sweeps below a folder: python src/report.py logs --group-by model (--help lists everything)."""

from firstlight.runs.command import run
from firstlight.runs.report import main

if __name__ == "__main__":
    run(main)
