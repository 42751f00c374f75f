"""The base class of the LightningModules, with a network, its optimizer and its schedule."""

import inspect
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import torch
from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from firstlight.choices import refuse_unknown
from firstlight.data.table_data import TableData
from firstlight.errors import UserError, arguments_of
from firstlight.lit.cards import Checks, check_content, kind_of
from firstlight.lit.checkpoint import CARD, STAMP, read_checkpoint
from firstlight.lit.distillation import Distillation
from firstlight.lit.networks import build_network, plain
from firstlight.lit.optimizers import OptimizerFactory, build_optimizer
from firstlight.lit.running_mean import TrainingLoss
from firstlight.lit.saved_networks import network_of_checkpoint
from firstlight.lit.schedules import ScheduleFactory, cosine, total_steps
from firstlight.networks.config import TransformerConfig
from firstlight.text.saved_tokenizers import tokenizer_of_json

LONGEST_WARMUP = 100  # steps


def default_optimizer(lr: float = 1e-3) -> OptimizerFactory:
    """Return AdamW as in conf/optimizer/adamw.yaml, but not fused, which not every device and precision supports."""
    return partial(torch.optim.AdamW, lr=lr, betas=(0.9, 0.98), weight_decay=0.01)


def default_schedule(optimizer: Optimizer, total_steps: int) -> LRScheduler:
    """Return a cosine schedule with a warm-up over a tenth of the steps, at most 100."""
    return cosine(optimizer, total_steps, warmup_steps=min(LONGEST_WARMUP, total_steps // 10))


class Measured(NamedTuple):
    """The results of an evaluation step.

    Attributes:
        outputs: The mean `loss` of the batch, and what the callbacks of metrics read.
        weight: The weight of the batch in means: its number of texts or tokens.
    """

    outputs: dict[str, Tensor]
    weight: int


class Training(LightningModule):
    """The base class of the LightningModules of firstlight: a network, its optimizer and its schedule.

    Subclasses such as `Classification`, `Generation` and `Translation` add the loss. They log `train/loss`, `val/loss`
    and `test/loss`. All other metrics are callbacks.

    Args:
        network: The network to train.
        optimizer: A function from the parameters to an optimizer, such as `functools.partial(torch.optim.AdamW,
            lr=1e-3)`. None uses AdamW with a learning rate of 1e-3. Weight decay applies only to matrices, not to
            biases, norms and embeddings.
        schedule: A function from the optimizer and the number of steps to a scheduler that is stepped after every
            step, such as `firstlight.lit.cosine`. None uses the default: a warm-up over a tenth
            of the steps, at most 100, and a cosine.

    Attributes:
        network: The network.
        card: The content of a checkpoint without the weights, in plain types and tensors: the options of the network,
            the tokenizer, the classes and the counted evidence. None for a module that was not created by `for_data` or
            `load_from_checkpoint`.
        kind: The kind of network, such as `classifier`.

    Raises:
        TypeError: If `optimizer` or `schedule` is not a function.

    Example:
        >>> import torch
        >>> from functools import cached_property, partial
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification, Training, linear
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> sgd = partial(torch.optim.SGD, lr=0.1, momentum=0.9)
        >>> module = Classification.for_data(data, dim=8, num_heads=2, optimizer=sgd, schedule=linear)
        >>> isinstance(module, Training), module.kind
        (True, 'classifier')
    """

    kind: ClassVar[str]
    config_type: ClassVar[type[TransformerConfig]]  # the options of its network
    data_type: ClassVar[type[TableData]]  # the type of data module for for_data
    card_checks: ClassVar[Checks]
    card: dict[str, Any] | None = None
    distillation: Distillation | None = None

    def __init__(
        self, network: nn.Module, optimizer: OptimizerFactory | None = None, schedule: ScheduleFactory | None = None
    ) -> None:
        super().__init__()
        given: dict[str, Any] = {"optimizer": optimizer, "schedule": schedule}
        for name, value in given.items():
            if value is not None and not callable(value):
                shown = repr(value) if isinstance(value, str) else f"an object of type {type(value).__name__}"
                raise TypeError(
                    f"{name}={shown} must be a function, such as functools.partial(torch.optim.AdamW, lr=1e-3)"
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
        """Return a module whose network fits the vocabulary and the classes of a data module.

        Args:
            data: The data module. It is prepared and set up if necessary.
            network: Your own network. None builds a network of firstlight.
            optimizer: As in the constructor.
            schedule: As in the constructor.
            lr: The learning rate of the default optimizer.
            **options: Options of the network, such as `dim`, `num_heads`, `num_layers` and `dropout`, which are the
                fields of `config_type`, such as `ClassifierConfig` in `firstlight.networks`. Options of the
                constructor, such as `label_smoothing`, are also accepted.

        Raises:
            TypeError: If an option does not exist.
            ValueError: If an option has an impossible value. The message lists the choices.

        Example:
            >>> import torch
            >>> from firstlight.data import ReviewData
            >>> from firstlight.lit import Classification
            >>> data = ReviewData(path="reviews.csv", labels="stars", context_length=20)
            >>> module = Classification.for_data(data, dim=8, num_heads=2, pooling="mean", label_smoothing=0.1, lr=3e-3)
            >>> module(torch.tensor([[5, 2, 7]])).shape
            torch.Size([1, 5])
        """
        if lr is not None and optimizer is not None:
            raise TypeError(
                "lr applies to the default optimizer only; set the learning rate of your own optimizer instead"
            )
        if not isinstance(data, cls.data_type):
            expected = cls.data_type.__name__
            raise TypeError(f"{cls.__name__} requires data of type {expected}, not {type(data).__name__}")
        data.ensure_setup()
        of_network, of_module = cls._divided(options, has_network=network is not None)
        config = None
        if network is None:
            config = cls.config_type(**{"context_length": data.options.context_length, **of_network})
            network = build_network(config, **data.network_sizes())
        if optimizer is None and lr is not None:
            optimizer = default_optimizer(lr)
        module = cls(network, optimizer, schedule, **data.module_options(), **of_module)
        module.card = card_of(data, cls.kind, {"model": plain(config) if config else None, "data": plain(data.options)})
        return module

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]  # Lightning's method has no argument network
        cls,
        checkpoint_path: str | Path,
        map_location: Any = "cpu",
        *,
        network: nn.Module | None = None,
        weights_only: bool = True,
        **options: Any,
    ) -> Self:
        """Return the module of a checkpoint of `src/train.py`, or of a Trainer with a module created by `for_data`.

        Args:
            checkpoint_path: A local file.
            map_location: The device of the module, as in `torch.load`.
            network: Your own network, if the module was trained with one. Its weights are replaced.
            weights_only: Must be True, since loading other types could run code from the file.
            **options: Options of the constructor.

        Raises:
            UserError: If the file is missing, damaged or not a checkpoint of firstlight, or has another kind of
                network.
            ValueError: If `weights_only` is False.

        Example:
            >>> import lightning as L
            >>> import torch
            >>> from firstlight.data import ReviewData
            >>> from firstlight.lit import Classification
            >>> data = ReviewData(path="reviews.csv", labels="binary")
            >>> module = Classification.for_data(data, dim=8, num_heads=2)
            >>> trainer = L.Trainer(max_steps=1)
            >>> trainer.fit(module, datamodule=data)
            >>> trainer.save_checkpoint("trained.ckpt")
            >>> again = Classification.load_from_checkpoint("trained.ckpt")
            >>> token_ids = torch.tensor([[5, 2, 7]])
            >>> torch.equal(again.eval()(token_ids), module.eval()(token_ids))
            True
        """
        if not weights_only:
            raise ValueError("weights_only=False would run code from the file; checkpoints of firstlight never need it")
        checkpoint = read_checkpoint(checkpoint_path, map_location)
        card = checkpoint[CARD]
        if kind_of(card) != cls.kind:
            raise UserError(f"{checkpoint_path} holds a {kind_of(card)}, but {cls.__name__} trains a {cls.kind}")
        check_content(checkpoint, checkpoint_path, cls.card_checks)
        module = cls(network_of_checkpoint(checkpoint, checkpoint_path, cls.config_type, network), **options)
        module.card = card
        return module.to(map_location) if map_location is not None else module

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer in the card, which encodes and decodes the texts of the network.

        Raises:
            ValueError: If the module was not created by `for_data` or `load_from_checkpoint`.
        """
        if self.card is None:
            raise ValueError(f"the module has no tokenizer; create it with {type(self).__name__}.for_data(data)")
        return tokenizer_of_json(self.card["tokenizer"])

    def configure_callbacks(self) -> list[Callback]:
        """Return a `TrainingLoss` unless the trainer has one."""
        callbacks: list[Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        return [] if any(isinstance(each, TrainingLoss) for each in callbacks) else [TrainingLoss(every_epoch=True)]

    def on_train_start(self) -> None:
        """Raise UserError if the data has a different vocabulary or different classes than this module."""
        self._refuse_other_readings(self.trainer.train_dataloader)

    def on_validation_start(self) -> None:
        """Raise UserError if the data has a different vocabulary or different classes than this module."""
        self._refuse_other_readings(self.trainer.val_dataloaders)

    def on_test_start(self) -> None:
        """Raise UserError if the data has a different vocabulary or different classes than this module."""
        self._refuse_other_readings(self.trainer.test_dataloaders)

    def on_predict_start(self) -> None:
        """Raise UserError if the data has a different vocabulary or different classes than this module."""
        self._refuse_other_readings(self.trainer.predict_dataloaders)

    def _refuse_other_readings(self, loaders: Any) -> None:
        """Raise UserError if the data module of a loader has a different vocabulary or different classes."""
        for loader in loaders if isinstance(loaders, list | tuple) else [loaders]:
            reading = getattr(loader, "reading", None)
            if reading is None or self.card is None:
                continue
            other = [name for name, value in reading().items() if not _is_same(value, self.card.get(name))]
            if other:
                what = "vocabulary" if "tokenizer" in other[0] else other[0].replace("_", " ")
                raise UserError(
                    f"the data does not have the {what} that the network was trained with; "
                    "call data.use_vocabulary_of(module) right after creating the data module"
                )

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the card into the checkpoint."""
        if self.card is not None:
            checkpoint[CARD] = self.card | STAMP

    @staticmethod
    def target_logits(network: nn.Module, batch: Any) -> Tensor:
        """Return the logits of all targets of a batch, (targets, classes). They exclude padding.

        A teacher uses it, too. Its network has the vocabulary or the classes of this one.
        """
        raise NotImplementedError

    def distilled(self, loss: Tensor, logits: Tensor, batch: Any) -> Tensor:
        """Return the training loss with the divergence from the teacher, or unchanged without a teacher.

        loss: a scalar; logits: those of all targets of the batch, (targets, classes).
        """
        return loss if self.distillation is None else self.distillation.loss(loss, logits, batch)

    def measure(self, batch: Any) -> Measured:
        """Return the loss of a batch and what metrics need. It logs nothing."""
        raise NotImplementedError

    def evaluate(self, batch: Any, stage: str) -> dict[str, Tensor]:
        """Measure a batch and log its loss. Return the outputs. stage: `val` or `test`."""
        outputs, weight = self.measure(batch)
        self.log_loss(stage, outputs["loss"], weight)
        return outputs

    def log_loss(self, stage: str, loss: Tensor, count: int) -> None:
        """Log the loss of a batch as part of the mean over an evaluation.

        Args:
            stage: `val` or `test`.
            loss: The mean loss of the batch, a scalar.
            count: The weight of the batch: its number of texts or tokens.
        """
        # The weight is a float, because Lightning averages integers over processes to an integer.
        self.log(f"{stage}/loss", loss, batch_size=float(count), on_epoch=True, prog_bar=True, sync_dist=True)  # type: ignore[arg-type]

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Return the optimizer and its schedule, which is updated at every step."""
        with arguments_of("optimizer"):
            optimizer = build_optimizer(self.network, self.optimizer_factory)
        with arguments_of("schedule"):
            scheduler = self.schedule_factory(optimizer, total_steps(self.trainer))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    @classmethod
    def _divided(cls, options: Mapping[str, Any], *, has_network: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options of the network and those of this class. Raises TypeError for an unknown option."""
        of_network = {field.name for field in fields(cls.config_type)}
        of_module = set(inspect.signature(cls).parameters) - {"network", "optimizer", "schedule", "class_weights"}
        refuse_unknown(options, of_network | of_module, f"{cls.__name__}.for_data")
        for name in options:
            if has_network and name in of_network:
                raise TypeError(f"{name} applies to firstlight's network only; leave it out with your own network")
        own = {name: value for name, value in options.items() if name in of_module}
        return {name: value for name, value in options.items() if name in of_network}, own


def _is_same(value: Any, other: Any) -> bool:
    """Return whether two values of cards are equal. Of two tables, the tensors with common names are compared."""
    if isinstance(value, dict) and isinstance(other, dict):
        return all(torch.equal(value[name].cpu(), other[name].cpu()) for name in value.keys() & other.keys())
    return bool(value == other)


def card_of(data: TableData, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the card of a checkpoint: plain types and tensors with which the run can be read without its data.

    config: `model`, the options of the network, None for a network of the user; `data`, those of the data module.
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
