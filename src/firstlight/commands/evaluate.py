"""`evaluate`: the metrics of a trained run on any split or on other data."""

from pathlib import Path

from firstlight.command_options import parse
from firstlight.kind import evaluation
from firstlight.kind.evaluation import EvaluateOptions
from firstlight.kind.load import load, located
from firstlight.terminal_text import only_json


def main() -> None:
    """Parse the command line and evaluate."""
    options = parse(EvaluateOptions, "evaluate")
    with only_json(wanted=options.json):
        evaluate(options)


def evaluate(options: EvaluateOptions) -> Path:
    """Evaluate a split, write and print the results, and return their folder."""
    path = located("evaluate", options.run, options.log_dir)
    return evaluation.evaluate(load(path, checkpoint=options.checkpoint), options)
