"""`firstlight dashboard`, as src/dashboard.py."""

from firstlight.runs.command import run
from firstlight.runs.dashboard import main

if __name__ == "__main__":
    run(main)
