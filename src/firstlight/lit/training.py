"""The base class of the LightningModules, with a network, its optimizer and its schedule."""

import inspect
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn

from firstlight.choices import refuse_unknown
from firstlight.data.table_data import TableData
from firstlight.errors import UserError, arguments_of
from firstlight.lit.checkpoint import METADATA, STAMP, read_checkpoint
from firstlight.lit.losses import Distillation, LossFunction
from firstlight.lit.metadata import Checks, check_content, kind_of, metadata_of, refuse_other_readings
from firstlight.lit.networks import build_network, network_of_checkpoint, plain
from firstlight.lit.optimizers import OptimizerFactory, build_optimizer, default_optimizer
from firstlight.lit.running_mean import TrainingLoss
from firstlight.lit.schedules import ScheduleFactory, default_schedule, total_steps
from firstlight.networks.config import TransformerConfig
from firstlight.text.saved_tokenizers import tokenizer_of_json


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
    and `test/loss`. All other metrics are callbacks. `val/loss` and `test/loss` are always the cross entropy, so that
    runs with different losses can be compared.

    Args:
        network: The network to train.
        optimizer: A function from the parameters to an optimizer, such as `functools.partial(torch.optim.AdamW,
            lr=1e-3)`. None uses AdamW with a learning rate of 1e-3. Weight decay applies only to matrices, not to
            biases, norms and embeddings.
        schedule: A function from the optimizer and the number of steps to a scheduler that is stepped after every
            step, such as `firstlight.lit.cosine`. None uses the default: a warm-up over a tenth
            of the steps, at most 100, and a cosine.
        loss: A function that the training minimizes in place of the cross entropy. It accepts logits (n, classes) and
            targets (n,), without padding, and returns the loss of each target (n,). None uses the cross entropy.

    Attributes:
        network: The network.
        metadata: The content of a checkpoint without the weights, in plain types and tensors: the options of the
            network, the tokenizer, the classes and the target encoding. None for a module that was not
            created by `for_data` or `load_from_checkpoint`.
        kind: The kind of network, such as `classifier`.

    Raises:
        TypeError: If `optimizer`, `schedule` or `loss` is not a function.

    Example:
        >>> import torch
        >>> from functools import partial
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
    metadata_checks: ClassVar[Checks]
    metadata: dict[str, Any] | None = None
    distillation: Distillation | None = None

    def __init__(
        self,
        network: nn.Module,
        optimizer: OptimizerFactory | None = None,
        schedule: ScheduleFactory | None = None,
        *,
        loss: LossFunction | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("optimizer", optimizer), ("schedule", schedule), ("loss", loss)):
            if value is not None and not callable(value):
                raise TypeError(f"{name}={value!r} must be a function, as in help(firstlight.lit.Training)")
        self.network = network
        self.loss = loss
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
            raise TypeError("lr applies to the default optimizer only; set the learning rate of your own optimizer")
        if not isinstance(data, cls.data_type):
            expected = cls.data_type.__name__
            raise TypeError(f"{cls.__name__} requires data of type {expected}, not {type(data).__name__}")
        data.ensure_setup()
        names = {field.name for field in fields(cls.config_type)}
        of_data = {"class_weights", "groups"}
        of_module = set(inspect.signature(cls).parameters) - {"network", "optimizer", "schedule"} - of_data
        refuse_unknown(options, names | of_module, f"{cls.__name__}.for_data")
        of_network = {name: options.pop(name) for name in names & options.keys()}
        for name in of_network if network is not None else ():
            raise TypeError(f"{name} applies to firstlight's network only; leave it out with your own network")
        config = None
        if network is None:
            config = cls.config_type(**{"context_length": data.options.context_length, **of_network})
            network = build_network(config, **data.network_sizes())
        if optimizer is None and lr is not None:
            optimizer = default_optimizer(lr)
        module = cls(network, optimizer, schedule, **data.module_options(), **options)
        described = {"model": plain(config) if config else None, "data": plain(data.options)}
        module.metadata = metadata_of(data, cls.kind, described)
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
        metadata = checkpoint[METADATA]
        if kind_of(metadata) != cls.kind:
            raise UserError(f"{checkpoint_path} holds a {kind_of(metadata)}, but {cls.__name__} trains a {cls.kind}")
        check_content(checkpoint, checkpoint_path, cls.metadata_checks)
        module = cls(network_of_checkpoint(checkpoint, checkpoint_path, cls.config_type, network), **options)
        module.metadata = metadata
        return module.to(map_location) if map_location is not None else module

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer in the metadata, which encodes and decodes the texts of the network.

        Raises:
            ValueError: If the module was not created by `for_data` or `load_from_checkpoint`.
        """
        if self.metadata is None:
            raise ValueError(f"the module has no tokenizer; create it with {type(self).__name__}.for_data(data)")
        return tokenizer_of_json(self.metadata["tokenizer"])

    def configure_callbacks(self) -> list[Callback]:
        """Return a `TrainingLoss` unless the trainer has one."""
        callbacks: list[Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        return [] if any(isinstance(each, TrainingLoss) for each in callbacks) else [TrainingLoss(every_epoch=True)]

    def on_train_start(self) -> None:
        """Raise UserError if the data has a different vocabulary or different classes than this module."""
        refuse_other_readings(self.metadata, self.trainer.train_dataloader)

    def on_validation_start(self) -> None:
        """Raise UserError if the data has a different vocabulary or different classes than this module."""
        refuse_other_readings(self.metadata, self.trainer.val_dataloaders)

    def on_test_start(self) -> None:
        """Raise UserError if the data has a different vocabulary or different classes than this module."""
        refuse_other_readings(self.metadata, self.trainer.test_dataloaders)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the metadata into the checkpoint."""
        if self.metadata is not None:
            checkpoint[METADATA] = self.metadata | STAMP

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

    def validation_step(self, batch: Any) -> dict[str, Tensor]:
        """Log `val/loss`, and return the outputs of `measure`."""
        return self._evaluate(batch, "val")

    def test_step(self, batch: Any) -> dict[str, Tensor]:
        """Log `test/loss`, and return the outputs of `measure`."""
        return self._evaluate(batch, "test")

    def _evaluate(self, batch: Any, stage: str) -> dict[str, Tensor]:
        outputs, weight = self.measure(batch)
        # The weight is a float, because Lightning averages integers over processes to an integer.
        options: Any = {"batch_size": float(weight), "on_epoch": True, "prog_bar": True, "sync_dist": True}
        self.log(f"{stage}/loss", outputs["loss"], **options)
        return outputs

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Return the optimizer and its schedule, which is updated at every step."""
        with arguments_of("optimizer"):
            optimizer = build_optimizer(self.network, self.optimizer_factory)
        with arguments_of("schedule"):
            scheduler = self.schedule_factory(optimizer, total_steps(self.trainer))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
