"""What every LightningModule here shares: a network, and how it is optimized."""

from lightning.pytorch import LightningModule
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn

from firstlight.errors import arguments_of
from firstlight.lit.optimizers import OptimizerFactory, build_optimizer
from firstlight.lit.schedules import ScheduleFactory, total_steps


class Training(LightningModule):
    """A network, its optimizer and its schedule; a subclass says what the loss is. Metrics are callbacks."""

    def __init__(self, network: nn.Module, optimizer: OptimizerFactory, schedule: ScheduleFactory) -> None:
        super().__init__()
        self.network = network
        self.optimizer_factory, self.schedule_factory = optimizer, schedule

    def log_loss(self, stage: str, loss: Tensor, count: int) -> None:
        """Log the mean of an evaluation, in which this batch's loss counts `count` times.

        As a float: between processes Lightning averages whole numbers to a whole number.
        """
        self.log(f"{stage}/loss", loss, batch_size=float(count), on_epoch=True, prog_bar=True, sync_dist=True)  # type: ignore[arg-type]

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """The optimizer, and its schedule stepped at every step."""
        with arguments_of("optimizer"):
            optimizer = build_optimizer(self.network, self.optimizer_factory)
        with arguments_of("schedule"):
            scheduler = self.schedule_factory(optimizer, total_steps(self.trainer))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
