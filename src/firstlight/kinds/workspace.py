"""Panels of the W&B workspace, below one name each. Needs the extra `dashboard`."""

from typing import Any

STEP = "trainer/global_step"  # the step of training; W&B's own counts what was logged
CONFUSION_MATRIX = "wandb/confusion_matrix/v1"  # W&B's own chart


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
