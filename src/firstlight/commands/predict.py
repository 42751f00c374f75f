"""`firstlight predict`, as src/predict.py."""

from firstlight.runs.command import run
from firstlight.runs.predict import main

if __name__ == "__main__":
    run(main)
