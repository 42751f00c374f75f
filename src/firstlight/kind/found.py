"""The run that a command's argument names, of a kind that the command can use. Imports no torch."""

from pathlib import Path

from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_config
from firstlight.kind.kind import Kind
from firstlight.kind.registry import KINDS, kind_of_saved
from firstlight.runs.folder import RunFolder
from firstlight.runs.named import TRAINED, find_run, has_checkpoint, is_checkpoint, is_searched, task_of
from firstlight.terminal_text import note


def located(command: str, run: str, log_dir: Path) -> str:
    """Return the path of the run that an argument of a command names; the path of a checkpoint is returned unchanged.

    Call it before torch is imported, which takes seconds, so that a wrong name is reported at once. Raises UserError.
    """
    return run if is_checkpoint(run) else str(run_for(command, run, log_dir).path)


def run_for(command: str, name: str, log_dir: Path) -> RunFolder:
    """Return the folder of the run that an argument of a command names.

    `latest` and `best` search the runs of the kinds that the command can use. A note on standard error says which run
    they have found. Raises UserError.
    """
    kinds = [kind for kind in KINDS.values() if kind.command == command] or list(KINDS.values())

    def can_use(run: RunFolder) -> bool:
        return has_checkpoint(run) and kind_of_run(run) in (*kinds, None)

    nouns = " or ".join(kind.noun for kind in kinds).replace(" or ", ", ", len(kinds) - 2)
    wanted = TRAINED if len(kinds) == len(KINDS) else f"{TRAINED} of a {nouns}"
    run = find_run(name, log_dir, can_use, wanted)
    if is_searched(name):
        note(f"{name} is {run.path} (task={task_of(run)})")
    return run


def kind_of_run(run: RunFolder) -> Kind | None:
    """Return the kind of network that a run has trained; None where its configuration does not tell."""
    try:
        model = read_config(run.config_file).get("model")
        return kind_of_saved(model) if isinstance(model, dict) else None
    except UserError:
        return None
