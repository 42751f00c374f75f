"""Panels of the W&B workspace. Requires the extra `dashboard`."""

from typing import Any

STEP = "trainer/global_step"  # the training step; W&B's own step counts log calls
CONFUSION_MATRIX = "wandb/confusion_matrix/v1"  # name of a chart of W&B


def section(name: str, *panels: Any) -> Any:
    """Return a section with panels."""
    import wandb_workspaces.workspaces as ws

    return ws.Section(name=name, panels=list(panels), is_open=True)


def curve(title: str, metric: str, **options: Any) -> Any:
    """Return a panel with a metric over the training steps."""
    import wandb_workspaces.reports.v2 as wr

    return wr.LinePlot(title=title, x=STEP, y=[metric], **options)


def bars(title: str, *metrics: str) -> Any:
    """Return a panel with the last values of metrics for each run."""
    import wandb_workspaces.reports.v2 as wr

    return wr.BarPlot(title=title, metrics=list(metrics))


def table(name: str) -> Any:
    """Return a panel with the last table of a name for each run."""
    import wandb_workspaces.reports.v2 as wr

    return wr.WeavePanelSummaryTable(table_name=name)


def confusion_matrix(stage: str, title: str) -> Any:
    """Return a panel with W&B's interactive confusion matrix. The run logs the table for it."""
    import wandb_workspaces.reports.v2 as wr

    return wr.CustomChart(
        query={"summaryTable": {"tableKey": f"{stage}/confusion_matrix_chart_table"}},
        chart_name=CONFUSION_MATRIX,
        chart_fields={name: name for name in ("Actual", "Predicted", "nPredictions")},
        chart_strings={"title": f"Confusion matrix, {title}"},
    )
