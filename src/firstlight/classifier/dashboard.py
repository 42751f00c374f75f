"""Sections of the W&B workspace for classifiers."""

from typing import Any

from firstlight.kind.workspace import bars, confusion_matrix, curve, section, table


def sections() -> list[Any]:
    """Return the sections of tasks with classes, and with ordered classes such as stars."""
    import wandb_workspaces.reports.v2 as wr

    classifiers = section(
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
    ordered_classes = section(
        "Ordered classes",
        curve("Mean absolute error, validation", "val/mean_absolute_error"),
        bars("Mean absolute error, test", "test/mean_absolute_error"),
    )
    return [classifiers, ordered_classes]
