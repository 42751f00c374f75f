"""The size of the activations during training."""

from functools import partial
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.lit.running_mean import is_logging_step, log_training
from firstlight.networks.block import Block

PREFIX = "activations/"


class ActivationSizes(Callback):
    """Log the mean absolute output of the embedding, of each block and of the output layer in training.

    The metrics are named after the modules, such as `activations/blocks.0`. They are those of the forward pass of the
    last batch of a step, before its update. In networks of several widths, they show whether the activations grow with
    the width.

    Raises:
        UserError: If the network is compiled.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import ActivationSizes
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_steps=1, log_every_n_steps=1, callbacks=[ActivationSizes()])
        >>> trainer.fit(module, datamodule=data)
        >>> sorted(name for name in trainer.callback_metrics if name.startswith("activations/"))
        ['activations/blocks.0', 'activations/embedding', 'activations/head']
    """

    def __init__(self) -> None:
        self._sizes: dict[str, Tensor] = {}
        self._hooks: list[Any] = []

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if any(part._compiled_call_impl is not None for part in pl_module.modules()):
            raise UserError("callbacks=activation_sizes cannot read a compiled network; set compile=false")

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if every > 0 and (trainer.global_step + 1) % every == 0:  # hooks would slow the other steps and all sampling
            layers = layers_of(pl_module.network)  # type: ignore[arg-type]  # a Module
            self._hooks = [layer.register_forward_hook(partial(self._keep, name)) for name, layer in layers.items()]

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, self._sizes)

    def _keep(self, name: str, _layer: nn.Module, _inputs: Any, output: Tensor) -> None:
        self._sizes[f"{PREFIX}{name}"] = output.detach().abs().mean()


def layers_of(network: nn.Module) -> dict[str, nn.Module]:
    """Return the embedding, the blocks and the output layer of a network by their names."""
    blocks = {name: part for name, part in network.named_modules() if isinstance(part, Block)}
    layers = {"embedding": getattr(network, "embedding", None), **blocks, "head": getattr(network, "head", None)}
    return {name: part for name, part in layers.items() if isinstance(part, nn.Module)}
