"""`evaluate`: the metrics of a trained run on any split or on other data."""

from pathlib import Path

from firstlight.command_options import parse
from firstlight.commands.frame import run_module
from firstlight.errors import UserError
from firstlight.kind.evaluation import OF_SOME_KINDS, EvaluateOptions
from firstlight.kind.found import located
from firstlight.kind.kind import get
from firstlight.kind.registry import KINDS, kinds_with


def main() -> None:
    """Parse the command line and evaluate."""
    evaluate(parse(EvaluateOptions, "evaluate"))


def evaluate(options: EvaluateOptions) -> Path:
    """Evaluate a split, write and print the results, and return their folder."""
    path = located("evaluate", options.run, options.log_dir)
    from firstlight.kind.load import load

    run = load(path, checkpoint=options.checkpoint)
    kind = KINDS[run.kind]
    for name in OF_SOME_KINDS:
        if getattr(options, name) is not None and name not in kind.evaluation_options:
            raise UserError(f"--{name.replace('_', '-')} applies to {kinds_with(name)}; leave it out")
    folder: Path = get(kind.evaluate)(run, options)
    return folder


if __name__ == "__main__":
    run_module(__spec__.name)
