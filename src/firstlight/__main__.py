"""The command `firstlight`, and `python -m firstlight`: the name of a sub-command, then its own arguments."""

import runpy
import sys
from importlib import import_module

from firstlight.commands.frame import USER_MISTAKE, fail, run  # first: it starts the clock

# isort: split
import firstlight
from firstlight.errors import UserError
from firstlight.terminal_text import say

COMMANDS = {
    "train": "train a model, or many with -m",
    "evaluate": "evaluate a trained run",
    "predict": "predict with a trained classifier or translator",
    "generate": "write text with a trained generator",
    "explore": "plot what a run has learned",
    "runs": "list runs, the newest first",
    "report": "compare runs and sweeps",
    "playground": "try trained runs in the browser",
    "baseline": "train a classical baseline (TF-IDF, n-grams) on the data of a task",
    "export": "write a run for transformers, ONNX or PyTorch",
    "dashboard": "write the W&B workspace, or push it",
    "check": "check a network of your own",
    "new": "create a project of your own",
}


def main() -> None:
    """Run the sub-command that the first argument names."""
    name, *arguments = sys.argv[1:] or ["help"]
    if name == "help" and arguments:
        name, arguments = arguments[0], ["--help"]
    if name in ("help", "-h", "--help"):
        say(help_text())
    elif name == "--version":
        say(f"firstlight {firstlight.__version__}")
    elif name == "--tyro-print-completion":
        run(lambda: print_completion(arguments))
    elif name in COMMANDS:
        sys.argv[1:] = arguments
        module = f"firstlight.commands.{name}"
        if name == "train":  # Lightning starts the other processes of a training by the name of the main module
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            run(import_module(module).main)
    else:
        fail(unknown(name), USER_MISTAKE)


def help_text() -> str:
    """Return the list of the sub-commands."""
    commands = "\n".join(f"  {name:<12}{summary}" for name, summary in COMMANDS.items())
    return f"""usage: firstlight COMMAND [ARGUMENTS]

Transformers from first principles, as experiments.

{commands}

  firstlight train task=sentiment model=small
  firstlight predict latest --text "It works."

`firstlight COMMAND --help` lists the arguments of a command, `firstlight --version` shows the version, and
`firstlight --tyro-print-completion bash` (or zsh) prints a script for the completion of commands and options."""


def print_completion(arguments: list[str]) -> None:
    """Print a script with which a shell completes the commands and their options. Raises UserError."""
    if arguments not in (["bash"], ["zsh"]):
        raise UserError(f"--tyro-print-completion {' '.join(arguments)}: must be bash or zsh; name one of them")
    from firstlight.command_options import write_completion  # imports tyro

    found = {name: import_module(f"firstlight.commands.{name}") for name in COMMANDS}
    classes = {name: getattr(module, f"{name.capitalize()}Options", None) for name, module in found.items()}
    write_completion({name: (summary, classes[name]) for name, summary in COMMANDS.items()}, arguments[0])


def unknown(name: str) -> str:
    """Return the message for a word that is no sub-command."""
    if "=" in name:
        return f"{name} is an argument of a command; did you mean `firstlight train {name}`?"
    from firstlight.choices import nearest

    meant = nearest(name, COMMANDS)
    hint = f"did you mean {meant}?" if meant else f"there are {', '.join(COMMANDS)}"
    return f"firstlight {name}: there is no such command; {hint}"


if __name__ == "__main__":
    main()
