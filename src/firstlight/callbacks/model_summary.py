"""The table of the model's modules, with the same number of parameters as the end of the run."""

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import RichModelSummary
from rich.table import Table
from torch import nn

from firstlight.console import terminal
from firstlight.networks.size import num_parameters


class ModelSummary(RichModelSummary):
    """Print Lightning's table of the modules when the training begins, and below it the exact number of parameters.

    Lightning's table has the weights alone. The number below it is that of `metrics.json`: the weights that are trained
    and, with `ReviewData(target_encoding=True)`, the numbers that are counted in the training texts.

    Args:
        max_depth: How many levels of nested modules are listed. 0 prints nothing.

    Example:
        >>> from firstlight.callbacks import ModelSummary
        >>> from torch import nn
        >>> ModelSummary.size(nn.Linear(7, 5))
        'Parameters: 40, all of them trained'
    """

    def __init__(self, max_depth: int = 1) -> None:
        super().__init__(max_depth)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_fit_start(trainer, pl_module)
        if trainer.is_global_zero and self._max_depth:
            counted = getattr(trainer.datamodule, "num_counted", 0)  # type: ignore[attr-defined]
            terminal().print(self.size(pl_module, counted), soft_wrap=True)

    @staticmethod
    def summarize(summary_data: list[tuple[str, list[str]]], *_: Any, **__: Any) -> None:
        """Print the table of the modules, without the arithmetic that Lightning counts only for an example input."""
        columns = {name: values for name, values in summary_data if name != "FLOPs"}
        table = Table()
        for name in columns:
            table.add_column(name.strip(), justify="right" if name.startswith("Params") else "left")
        for row in zip(*columns.values(), strict=True):
            table.add_row(*row)
        terminal().print(table, soft_wrap=False)

    @staticmethod
    def size(module: nn.Module, num_counted: int = 0) -> str:
        """Return the number of parameters of a module in one line.

        num_counted: the number of values that were counted in the training texts, which belong to the parameters.
        """
        trained = num_parameters(module, trained_only=True)
        frozen = num_parameters(module) - trained
        if not num_counted and not frozen:
            return f"Parameters: {trained:,}, all of them trained"
        counted = f", {num_counted:,} counted from the training texts" if num_counted else ""
        left_out = f"; {frozen:,} that are not trained are left out" if frozen else ""
        return f"Parameters: {trained + num_counted:,}, {trained:,} trained{counted}{left_out}"
