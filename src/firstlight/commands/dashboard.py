"""The W&B workspace of the project as code: its panels are written as JSON, and with --push sent to W&B."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from firstlight.command_options import parse
from firstlight.errors import RunError, UserError
from firstlight.files.atomic import write_atomically
from firstlight.files.plain_yaml import read_yaml
from firstlight.invocation import install_command
from firstlight.kind.registry import KINDS
from firstlight.terminal_text import say

STEP = "trainer/global_step"  # the training step; W&B's own step counts log calls
PINNED = [  # columns of the table of runs
    *(f"config:{name}.value" for name in ("task", "model_name", "dropout", "context_length")),
    *("summary:val/loss", "summary:val/accuracy"),
]


@dataclass
class DashboardOptions:
    """Write the W&B workspace of all runs as JSON, which requires no network. With --push, also send it to W&B.

    Args:
        push: Save the workspace on W&B as a new view, which requires a key. Each push creates another view.
        project: The W&B project: the value of logger.wandb.project.
        entity: The user or team that owns the project. Default: you.
        output: The JSON file. Default: dashboard.json in --log-dir.
        log_dir: The folder of the runs.
    """

    push: bool = False
    project: str = "firstlight"
    entity: str | None = None
    output: Path | None = None
    log_dir: Path = Path("logs")


def main() -> None:
    """Parse the command line, write the workspace, and with --push send it to W&B."""
    options = parse(DashboardOptions, "dashboard")
    workspace = build(options.project, options.entity or "")
    path = options.output or options.log_dir / "dashboard.json"
    if path.is_dir():
        raise UserError(f"--output {path} is a folder; name a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    as_data = workspace._to_model().model_dump(mode="json", by_alias=True, exclude_none=True)
    write_atomically(path, json.dumps(as_data, indent=2) + "\n")  # lines, in which two versions can be compared
    panels = sum(len(section.panels) for section in workspace.sections)
    say(f"wrote {path}: {len(workspace.sections)} sections, {panels} panels")
    say(f"W&B: pushed to {push(workspace)}" if options.push else "to send it to W&B, add --push")


def build(project: str, entity: str) -> Any:
    """Return the workspace. Raises UserError without the extra."""
    try:
        import wandb_workspaces.workspaces as ws
    except ImportError as error:
        raise UserError(f"the dashboard requires wandb-workspaces: {install_command('dashboard')}") from error

    packages = ["firstlight.commands", *(kind.package for kind in KINDS.values())]
    sections = [each for package in packages for each in described(package)]
    for each in sections:
        for number, panel in enumerate(each.panels):  # replaces random ids, so that the file is always the same
            panel._id = hashlib.sha256(f"{each.name} {number}".encode()).hexdigest()[:12]
    return ws.Workspace(
        name="firstlight",
        entity=entity,
        project=project,
        sections=sections,
        settings=ws.WorkspaceSettings(x_axis=STEP, max_runs=50),
        runset_settings=ws.RunsetSettings(pinned_columns=PINNED),
        auto_generate_panels=False,
    )


def push(workspace: Any) -> str:
    """Save the workspace on W&B and return its address.

    Raises UserError without a key, and RunError if W&B refuses it.
    """
    from firstlight.runs.wandb_logger import has_key  # imports Lightning

    if not has_key():
        raise UserError("--push requires a key: run `wandb login`, or set WANDB_API_KEY")
    import wandb

    try:
        workspace.entity = workspace.entity or wandb.Api(timeout=20).default_entity
        workspace.save()
    except Exception as error:  # any error of the library, its client or the server
        raise RunError(f"--push: W&B refused the workspace ({type(error).__name__}: {error})") from error
    return workspace.url


def described(package: str) -> Iterator[Any]:
    """Yield the sections in dashboard.yaml of a package: by name, a list of W&B's panels with their arguments.

    The x axis of a LinePlot is the training step, unless it is given.
    """
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws

    path, defaults = Path(str(files(package))) / "dashboard.yaml", {"LinePlot": {"x": STEP}}
    for name, panels in (read_yaml(path) if path.is_file() else {}).items():
        named = ((form, options) for each in panels for form, options in each.items())
        made = [getattr(wr, form)(**defaults.get(form, {}) | options) for form, options in named]
        yield ws.Section(name=name, panels=made, is_open=True)
