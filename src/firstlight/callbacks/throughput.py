"""The speed of a training."""

import time
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.callbacks.publish import named_batch
from firstlight.lit.running_mean import is_logging_step, log_training


class Throughput(Callback):
    """Log `train/tokens_per_second` and `train/examples_per_second`.

    Padding and the time of validation are not counted.

    Attributes:
        tokens: The number of training tokens so far.
        examples: The number of training texts, windows or pairs so far.
        seconds: The time of the training without validation.
        tokens_per_second: The mean over the complete training. None before the first step.
        processor_seconds: The processor time of `Trainer.fit` in this process and its threads, validation included.

    In a resumed run, all attributes include the time before the interruption.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import Throughput
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> throughput = Throughput()
        >>> trainer = L.Trainer(max_steps=1, callbacks=[throughput])
        >>> trainer.fit(module, datamodule=data)
        >>> throughput.examples
        32
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tokens = 0
        self.examples = 0
        self._logged = (0.0, 0, 0)
        self._resumed_at = 0.0
        self._processor_before = 0.0
        self._processor_start: float | None = None

    @property
    def processor_seconds(self) -> float:
        """The processor time of `Trainer.fit` so far, in seconds."""
        if self._processor_start is None:
            return self._processor_before
        return self._processor_before + time.process_time() - self._processor_start

    @property
    def tokens_per_second(self) -> float | None:
        """The mean over the complete training. None before the first step."""
        return self.tokens / self.seconds if self.seconds else None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._resumed_at = time.perf_counter()  # a run that is resumed within an epoch has no start of an epoch
        self._processor_start = time.process_time()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._processor_before, self._processor_start = self.processor_seconds, None

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._resumed_at = time.perf_counter()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._resumed_at = time.perf_counter()

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        now = time.perf_counter()
        self.seconds += now - self._resumed_at
        self._resumed_at = now
        batch = named_batch(batch)
        self.tokens += batch.num_tokens * trainer.world_size
        self.examples += len(batch.token_ids) * trainer.world_size
        if is_logging_step(trainer, batch_idx):
            seconds, tokens, examples = self._logged
            elapsed = max(self.seconds - seconds, 1e-9)
            rates = {
                "train/tokens_per_second": torch.tensor((self.tokens - tokens) / elapsed),
                "train/examples_per_second": torch.tensor((self.examples - examples) / elapsed),
            }
            log_training(trainer, pl_module, rates)
            self._logged = (self.seconds, self.tokens, self.examples)

    def count_elsewhere(self, tokens: int, examples: int, seconds: float, processor: float) -> None:
        """Count the work of steps that another trainer ran. seconds, processor: the time here that does not count."""
        self.tokens, self.examples = self.tokens + tokens, self.examples + examples
        self._resumed_at += seconds
        self._processor_start = (self._processor_start or 0.0) + processor

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("seconds", "tokens", "examples", "processor_seconds")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.seconds, self.tokens, self.examples = (state_dict[name] for name in ("seconds", "tokens", "examples"))
        self._processor_before = state_dict["processor_seconds"]
        self._logged = (self.seconds, self.tokens, self.examples)
