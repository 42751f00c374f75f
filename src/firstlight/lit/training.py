"""What every LightningModule here shares: a network, and how it is optimized."""

import inspect
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from firstlight.choices import refuse_unknown
from firstlight.data.table_data import TableData
from firstlight.errors import arguments_of
from firstlight.lit.checkpoint import CARD, FORMAT, read_checkpoint
from firstlight.lit.counted_evidence import count_evidence
from firstlight.lit.networks import CONFIGS, build_network, network_of_card, plain
from firstlight.lit.optimizers import OptimizerFactory, build_optimizer
from firstlight.lit.schedules import ScheduleFactory, cosine, total_steps
from firstlight.lit.training_loss import TrainingLoss

LONGEST_WARMUP = 100  # steps


def default_optimizer(lr: float = 1e-3) -> OptimizerFactory:
    """AdamW as in conf/optimizer/adamw.yaml, without fused steps, which not every device and precision has."""
    return partial(torch.optim.AdamW, lr=lr, betas=(0.9, 0.98), weight_decay=0.01)


def default_schedule(optimizer: Optimizer, total_steps: int) -> LRScheduler:
    """Half a cosine down to zero, after a warm-up of a tenth of the steps, at most 100."""
    return cosine(optimizer, total_steps, warmup_steps=min(LONGEST_WARMUP, total_steps // 10))


class Training(LightningModule):
    """A network, its optimizer and its schedule. A subclass says what the loss is; metrics are callbacks.

    `card` holds, in plain types, what a reader of a checkpoint needs besides the weights: the network's options, the
    tokenizer, the classes. It is None for a module that was built around a network by hand.
    """

    kind: ClassVar[str]  # what a checkpoint calls its network
    card: dict[str, Any] | None = None

    def __init__(
        self, network: nn.Module, optimizer: OptimizerFactory | None = None, schedule: ScheduleFactory | None = None
    ) -> None:
        """optimizer: from the parameters to an optimizer, such as `functools.partial(torch.optim.AdamW, lr=1e-3)`.

        schedule: from the optimizer and the number of steps to a scheduler that is stepped after every step, such as
        `firstlight.lit.cosine`. Both have defaults: AdamW at 1e-3, and a cosine with a warm-up.
        """
        super().__init__()
        for name, factory in (("optimizer", optimizer), ("schedule", schedule)):
            if factory is not None and not callable(factory):
                raise TypeError(
                    f"{name}={factory!r} must be a function, such as functools.partial(torch.optim.AdamW, lr=1e-3)"
                )
        self.network = network
        self.optimizer_factory = default_optimizer() if optimizer is None else optimizer
        self.schedule_factory = default_schedule if schedule is None else schedule

    @classmethod
    def for_data(
        cls,
        data: TableData,
        *,
        network: nn.Module | None = None,
        optimizer: OptimizerFactory | None = None,
        schedule: ScheduleFactory | None = None,
        lr: float | None = None,
        **options: Any,
    ) -> Self:
        """The module for a data module, with a network whose vocabulary and classes are those of the data.

        data: prepared and set up here, if that has not been done; network: your own, in place of ours; optimizer,
        schedule: as in the constructor; lr: the rate of the default optimizer; options: of the network, such as dim,
        num_heads, num_layers, dropout (the fields of its config in `firstlight.networks`), and of this class.

        Raises TypeError for an option that neither has, ValueError for a value that makes no network.
        """
        if lr is not None and optimizer is not None:
            raise TypeError("lr is the rate of the default optimizer; give the rate to your own optimizer instead")
        data.prepare_data()
        data.setup("fit")
        of_network, of_module = cls._divided(options, has_network=network is not None)
        config = None
        if network is None:
            config = CONFIGS[cls.kind](**{"context_length": data.options.context_length, **of_network})
            network = network_for(config, data)
        if optimizer is None and lr is not None:
            optimizer = default_optimizer(lr)
        module = cls(network, optimizer, schedule, **data.module_options(), **of_module)
        module.card = card_of(data, cls.kind, {"model": plain(config) if config else None, "data": plain(data.options)})
        return module

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]  # Lightning's takes no network
        cls,
        checkpoint_path: str | Path,
        map_location: Any = "cpu",
        *,
        network: nn.Module | None = None,
        weights_only: bool = True,
        **options: Any,
    ) -> Self:
        """The module of a checkpoint: of `python src/train.py`, or of a Trainer that trained a module of `for_data`.

        checkpoint_path: a local file; map_location: as in `torch.load`; network: your own, where the checkpoint holds
        one; weights_only: must stay True, since a pickle can run any code; options: of the constructor.

        Raises UserError for a file that is missing, damaged or of another kind.
        """
        if not weights_only:
            raise ValueError("weights_only=False would run code from the file; checkpoints of firstlight never need it")
        checkpoint = read_checkpoint(checkpoint_path, map_location)
        card = checkpoint[CARD]
        if card.get("network", "classifier") != cls.kind:
            raise ValueError(f"{checkpoint_path} holds a {card['network']}, and {cls.__name__} trains a {cls.kind}")
        module = cls(network_of_card(card) if network is None else network, **options)
        weights = {name: weight for name, weight in checkpoint["state_dict"].items() if name.startswith("network.")}
        module.load_state_dict(weights)
        module.card = {key: value for key, value in card.items() if key != "format"}
        return module.to(map_location) if map_location is not None else module

    def configure_callbacks(self) -> list[Callback]:
        """What logs `train/loss`, where the trainer has none yet."""
        callbacks: list[Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        return [] if any(isinstance(each, TrainingLoss) for each in callbacks) else [TrainingLoss(every_epoch=True)]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the card into the checkpoint."""
        if self.card is not None:
            checkpoint[CARD] = {"format": FORMAT, **self.card}

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

    @classmethod
    def _divided(cls, options: Mapping[str, Any], *, has_network: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Which options are the network's, and which are this class's. Raises TypeError for any other."""
        of_network = {field.name for field in fields(CONFIGS[cls.kind])}
        of_module = set(inspect.signature(cls).parameters) - {"network", "optimizer", "schedule", "class_weights"}
        refuse_unknown(options, of_network | of_module, f"{cls.__name__}.for_data")
        for name in options:
            if has_network and name in of_network:
                raise TypeError(f"{name} is an option of firstlight's network; your own network has its own")
        own = {name: value for name, value in options.items() if name in of_module}
        return {name: value for name, value in options.items() if name in of_network}, own


def network_for(config: Any, data: TableData) -> nn.Module:
    """The network of a config for some data, with what `model.evidence` counts in the training texts."""
    network = build_network(config, **data.network_sizes())
    count_evidence(network, data)
    return network


def card_of(data: TableData, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint holds besides weights: plain types, enough to read the run without its data.

    config: `model`, the network's options, None for a network that is not ours; `data`, those of the data module.
    """
    return {
        "task": None,
        "config": {"context_length": data.options.context_length, **config},
        "network": kind,
        "tokenizer": data.tokenizer.to_json(),
        **data.card(),
        "data_source": data.source.kind.value,
        "data_fingerprint": data.source.fingerprint,
    }
