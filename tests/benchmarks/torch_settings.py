"""A callback for src/train.py and the benchmarks that writes the global settings of torch in a training."""

import json
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback

OF_BACKENDS = (
    *("cuda.matmul.fp32_precision", "cuda.matmul.allow_bf16_reduced_precision_reduction", "cudnn.enabled"),
    *("cudnn.benchmark", "cudnn.deterministic", "cudnn.fp32_precision", "mkldnn.enabled", "mkldnn.fp32_precision"),
)


def torch_settings() -> dict[str, Any]:
    """Return the settings of this process by name."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "num_threads": torch.get_num_threads(),
        "num_interop_threads": torch.get_num_interop_threads(),
        "deterministic": torch.get_deterministic_debug_mode(),
        "fill_uninitialized_memory": torch.utils.deterministic.fill_uninitialized_memory,
        "default_dtype": str(torch.get_default_dtype()),
        "default_device": str(torch.get_default_device()),
        "anomaly_detection": torch.is_anomaly_enabled(),
        **{f"backends.{name}": attrgetter(name)(torch.backends) for name in OF_BACKENDS},
    }


class Settings(Callback):
    """Callback that appends a line of JSON to a file at the first step of a training."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == 0:
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(torch_settings()) + "\n")
