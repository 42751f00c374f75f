"""`firstlight report`, as src/report.py."""

from firstlight.runs.command import run
from firstlight.runs.report import main

if __name__ == "__main__":
    run(main)
