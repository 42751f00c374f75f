"""Functions that find and load a trained run. torch is imported when the first run is loaded."""

from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstlight.command_options import RunOptions
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_config
from firstlight.invocation import invocation
from firstlight.kind.kind import Kind
from firstlight.kind.registry import KINDS, OWN, kind_of_saved
from firstlight.runs.folder import EXPORTED_WEIGHTS, RunFolder
from firstlight.runs.named import TRAINED, find_run, has_checkpoint, is_checkpoint, is_export, is_searched, task_of
from firstlight.runs.summary import SAMPLE
from firstlight.spelling import option
from firstlight.terminal_text import note

if TYPE_CHECKING:
    from firstlight.kind.run import Run


def load(run: str | Path, *, checkpoint: str = "best", log_dir: str | Path = "logs") -> "Run":
    """Return a trained run, as described at `firstlight.load`. Raises UserError."""
    if is_checkpoint(run):  # written by a run, or by a Trainer in a notebook
        path = Path(run)
        folder = RunFolder(path.absolute().parents[1])
    elif is_export(run):
        folder, path = RunFolder(Path(run)), Path(run, EXPORTED_WEIGHTS)
    else:
        folder = find_run(str(run), Path(log_dir))
        path = checkpoint_of(folder, checkpoint)
    content = open_checkpoint(path)
    return kind_of_content(content, path).get("run").from_checkpoint(folder, path, content)


def opened(command: str, options: RunOptions) -> Any:
    """Return the run that the options of a command name, and note on standard error that its data was generated.

    Raises UserError for a wrong name, before torch is imported, and if the kind of the run requires another command.
    """
    name = options.run
    is_file = is_checkpoint(name) or is_export(name)
    loaded = load(name if is_file else run_for(command, name, options.log_dir).path, checkpoint=options.checkpoint)
    kind = KINDS[loaded.kind]
    if kind.command != command and any(each.command == command for each in KINDS.values()):
        other = invocation(kind.command)
        raise UserError(f"{name}: {loaded.folder.path} is a {kind.noun}; use `{other}`, or name another run")
    if loaded.data_source == SAMPLE and command != "evaluate":  # which says it with its results
        note("this run was trained on a GENERATED SAMPLE, not on real data")
    return loaded


def import_lightning() -> None:
    """Import Lightning in the quick way, unless a kind of the user may need what it leaves out."""
    if len(KINDS) == len(OWN):
        import firstlight.lit.light  # noqa: F401


def open_checkpoint(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint of any kind. Raises UserError, for example if its metadata is incomplete."""
    from firstlight.lit.checkpoint import read_checkpoint
    from firstlight.lit.metadata import check_content

    content = read_checkpoint(path)
    check_content(content, path, kind_of_content(content, path).reader().metadata_checks)
    return content


def kind_of_content(content: dict[str, Any], path: Path) -> Kind:
    """Return the kind of network of the content of a checkpoint. Raises UserError for an unknown kind."""
    from firstlight.lit.checkpoint import METADATA
    from firstlight.lit.metadata import kind_of

    name = kind_of(content[METADATA])
    if name not in KINDS:
        problem = f"{path}: network={name} must be one of {', '.join(KINDS)}"
        raise UserError(f"{problem}; use the version that wrote the checkpoint")
    return KINDS[name]


def checkpoint_of(folder: RunFolder, which: str) -> Path:
    """Return the path of a run's best or last checkpoint. A run without validation has only the last one."""
    if which not in ("best", "last"):
        raise UserError(f"checkpoint={which} must be best or last")
    if which == "last":
        return folder.last_checkpoint
    if folder.best_checkpoint.is_file():
        return folder.best_checkpoint
    if str(folder.read().get("checkpoint")).endswith(folder.best_checkpoint.name):
        last = option("checkpoint", "last")
        raise UserError(f"{folder.best_checkpoint} is missing; use the last one by {last}, or train again")
    return folder.last_checkpoint


def run_for(command: str, name: str, log_dir: Path) -> RunFolder:
    """Return the folder of the run that an argument of a command names.

    `latest` and `best` search the runs of the kinds that the command can use. A note on standard error says which run
    they have found. Raises UserError.
    """
    kinds = [kind for kind in KINDS.values() if kind.command == command] or list(KINDS.values())

    of_others: list[tuple[RunFolder, Kind]] = []

    def can_use(run: RunFolder) -> bool:
        kind = kind_of_run(run) if has_checkpoint(run) else None
        if kind is not None and kind not in kinds:
            of_others.append((run, kind))
        return has_checkpoint(run) and kind in (*kinds, None)

    nouns = " or ".join(kind.noun for kind in kinds).replace(" or ", ", ", len(kinds) - 2)
    wanted = TRAINED if len(kinds) == len(KINDS) else f"{TRAINED} of a {nouns}"
    try:
        run = find_run(name, log_dir, can_use, wanted)
    except UserError:
        for other, kind in of_others:
            if task_of(other) == name.partition(":")[2]:
                problem = f"{name}: {other.path} is a {kind.noun}"
                raise UserError(f"{problem}; use `{invocation(kind.command)}`, or name another run") from None
        raise
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


def options_for(run: "Run", method: str, options: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the options of a command that only some kinds have, as far as they were typed, by name.

    method: the name of the method of the run that is called with them, such as `measure`. Raises UserError for an
    option that it does not accept.
    """
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    for name in given.keys() - signature(getattr(run, method)).parameters.keys():
        option, noun = name.replace("_", "-"), KINDS[run.kind].noun
        raise UserError(f"--{option} does not apply to {run.path}, a {noun}; leave it out")
    return given
