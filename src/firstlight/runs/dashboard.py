"""The project's W&B workspace as code: which panels it has, written as JSON and, if asked, pushed."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstlight.errors import RunError, UserError
from firstlight.invocation import install_command, parse
from firstlight.runs.folder import write_atomically
from firstlight.runs.weights_and_biases import has_key
from firstlight.terminal_text import say

STEP = "trainer/global_step"  # the step of training; W&B's own counts what was logged
COMPARED = {"task": "task", "model": "model_name", "dropout": "dropout", "context length": "context_length"}
CONFUSION_MATRIX = "wandb/confusion_matrix/v1"  # W&B's own chart


@dataclass
class DashboardOptions:
    """Write the W&B workspace of all runs as JSON, which needs no network; with --push, put it on W&B too."""

    push: bool = False
    """Save it on W&B as a view of its own, which needs a key. Each push makes another one."""
    project: str = "firstlight"
    """That of logger.wandb.project."""
    entity: str | None = None
    """Whose project: a user or a team. Default: yours."""
    output: Path | None = None
    """Where the JSON goes; by default dashboard.json in --log-dir."""
    log_dir: Path = Path("logs")
    """Where the runs are."""


def main() -> None:
    """Parse the command line, write the workspace and, if asked, push it."""
    options = parse(DashboardOptions, "dashboard")
    if not options.project.strip():
        raise UserError("--project is empty; name the project that the runs are logged to")
    workspace = build(options.project, options.entity or "")
    path = options.output or options.log_dir / "dashboard.json"
    if path.is_dir():
        raise UserError(f"--output {path} is a folder; name a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, as_json(workspace))
    panels = sum(len(section.panels) for section in workspace.sections)
    say(f"wrote {path}: {len(workspace.sections)} sections, {panels} panels")
    if options.push:
        say(f"W&B: pushed to {push(workspace)}")
    else:
        say("--push puts it on W&B")


def build(project: str, entity: str) -> Any:
    """The workspace. Raises UserError without the extra."""
    try:
        import wandb_workspaces.workspaces as ws
    except ImportError as error:
        raise UserError(f"the dashboard needs wandb-workspaces: {install_command('dashboard')}") from error

    sections = [comparison(), all_runs(), classifiers(), ordered_classes(), generators(), characters(), translators()]
    for section in sections:
        for number, panel in enumerate(section.panels):  # the library's ids are random: the same file every time
            panel._id = hashlib.sha256(f"{section.name} {number}".encode()).hexdigest()[:12]
    columns = [f"config:{name}.value" for name in COMPARED.values()] + ["summary:val/loss", "summary:val/accuracy"]
    return ws.Workspace(
        name="firstlight",
        entity=entity,
        project=project,
        sections=sections,
        settings=ws.WorkspaceSettings(x_axis=STEP, max_runs=50),
        runset_settings=ws.RunsetSettings(pinned_columns=columns),
        auto_generate_panels=False,
    )


def as_json(workspace: Any) -> str:
    """What is pushed, so that two versions of it can be compared."""
    model = workspace._to_model()
    return json.dumps(model.model_dump(mode="json", by_alias=True, exclude_none=True), indent=2) + "\n"


def push(workspace: Any) -> str:
    """Save it on W&B; returns its address. Raises UserError without a key, RunError if W&B does not take it."""
    if not has_key():
        raise UserError("--push needs a key: run `wandb login`, or set WANDB_API_KEY")
    import wandb

    try:
        workspace.entity = workspace.entity or wandb.Api(timeout=20).default_entity
        workspace.save()
    except Exception as error:  # whatever the library, its client or the server complains of
        raise RunError(f"--push: W&B did not take it ({type(error).__name__}: {error})") from error
    return workspace.url


# --- the sections ---


def comparison() -> Any:
    """What made the difference, over all runs."""
    import wandb_workspaces.reports.v2 as wr

    axes = [wr.ParallelCoordinatesPlotColumn(wr.Config(name), display_name=title) for title, name in COMPARED.items()]
    axes += [wr.ParallelCoordinatesPlotColumn(wr.SummaryMetric(name)) for name in ("val/accuracy", "val/loss")]
    return section(
        "Comparison",
        wr.ParallelCoordinatesPlot(columns=axes, title="What was chosen, and what came of it"),
        wr.ParameterImportancePlot(with_respect_to="val/loss"),
        wr.ParameterImportancePlot(with_respect_to="val/accuracy"),
        wr.ScatterPlot(title="Size", x=wr.SummaryMetric("parameters"), y=wr.SummaryMetric("val/loss"), log_x=True),
        wr.RunComparer(diff_only="split"),
    )


def all_runs() -> Any:
    """What every run logs."""
    import wandb_workspaces.reports.v2 as wr

    return section(
        "All runs",
        curve("Loss, validation", "val/loss"),
        curve("Loss, training", "train/loss"),
        curve("Accuracy, validation", "val/accuracy"),
        curve("Accuracy, training", "train/accuracy"),
        curve("Tokens per second", "train/tokens_per_second"),
        wr.LinePlot(title="Learning rate", x=STEP, metric_regex="^lr-"),  # named after the optimizer
    )


def classifiers() -> Any:
    """Of tasks with classes."""
    import wandb_workspaces.reports.v2 as wr

    return section(
        "Classifiers",
        curve("Macro F1, validation", "val/macro_f1"),
        confusion_matrix("val", "validation"),
        confusion_matrix("test", "test"),
        wr.MediaBrowser(title="Confusion matrix, validation", media_keys=["val/confusion_matrix"], num_columns=1),
        wr.MediaBrowser(title="Confusion matrix, test", media_keys=["test/confusion_matrix"], num_columns=1),
        bars("Test", "test/accuracy", "test/macro_f1"),
        table("val/confusion_matrix_table"),
        table("test/confusion_matrix_table"),
        table("test/reviews"),
    )


def ordered_classes() -> Any:
    """Of tasks such as stars, where a mistake can be large or small."""
    return section(
        "Ordered classes",
        curve("Mean absolute error, validation", "val/mean_absolute_error"),
        bars("Mean absolute error, test", "test/mean_absolute_error"),
    )


def generators() -> Any:
    """Of tasks that continue a text. Where a text has no test split, the panel of the test is empty."""
    return section(
        "Generators",
        curve("Perplexity, validation", "val/perplexity", log_y=True),
        curve("Perplexity, training", "train/perplexity", log_y=True),
        curve("Loss of the last position, validation", "val/last_position_loss"),
        bars("What counting achieves", *(f"reference/{name}_perplexity" for name in ("uniform", "unigram", "bigram"))),
        bars("Test", "test/perplexity", "test/accuracy", "test/last_position_loss"),
        table("val/samples"),
    )


def characters() -> Any:
    """Of those whose tokens are certain characters, by which vocabularies of any size compare."""
    return section(
        "Generators of characters",
        curve("Bits per character, validation", "val/bits_per_character"),
        bars("Bits per character, test", "test/bits_per_character"),
    )


def translators() -> Any:
    """Of tasks that translate."""
    return section(
        "Translators",
        curve("BLEU, validation", "val/bleu"),
        curve("chrF, validation", "val/chrf"),
        curve("Perplexity, validation", "val/perplexity", log_y=True),
        curve("Perplexity, training", "train/perplexity", log_y=True),
        bars("BLEU, test", "test/bleu", "test/bleu_beam4"),
        bars("chrF, test", "test/chrf", "test/chrf_beam4"),
        table("val/translations"),
        table("test/translations"),
    )


# --- their panels ---


def section(name: str, *panels: Any) -> Any:
    """Panels below one name."""
    import wandb_workspaces.workspaces as ws

    return ws.Section(name=name, panels=list(panels), is_open=True)


def curve(title: str, metric: str, **options: Any) -> Any:
    """A metric over the steps of training."""
    import wandb_workspaces.reports.v2 as wr

    return wr.LinePlot(title=title, x=STEP, y=[metric], **options)


def bars(title: str, *metrics: str) -> Any:
    """The last value of some metrics, for each run."""
    import wandb_workspaces.reports.v2 as wr

    return wr.BarPlot(title=title, metrics=list(metrics))


def table(name: str) -> Any:
    """The last table of that name, of each run."""
    import wandb_workspaces.reports.v2 as wr

    return wr.WeavePanelSummaryTable(table_name=name)


def confusion_matrix(stage: str, title: str) -> Any:
    """W&B's own interactive chart, of the table that the run logs for it."""
    import wandb_workspaces.reports.v2 as wr

    return wr.CustomChart(
        query={"summaryTable": {"tableKey": f"{stage}/confusion_matrix_chart_table"}},
        chart_name=CONFUSION_MATRIX,
        chart_fields={name: name for name in ("Actual", "Predicted", "nPredictions")},
        chart_strings={"title": f"Confusion matrix, {title}"},
    )
