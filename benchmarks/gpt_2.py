"""The network of plain_gpt.py as overrides of firstlight's configuration, and a text file for plain_gpt.py."""

from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf
from plain_gpt import Settings

GPT_2 = [  # the network, and the optimizer and schedule of plain_gpt.Settings
    "task=shakespeare",
    "model.norm=pre",
    "model.norm_kind=layer",
    "model.final_norm=true",
    "model.positions=learned",
    "model.activation=gelu",
    "model.attention_bias=true",
    "model.output_bias=true",
    "model.tie_embeddings=true",
    "model.head_bias=false",
    "model.zero_init=false",
    "model.embedding_std=0.02",
    "optimizer.lr=1e-3",
    "optimizer.weight_decay=0.1",
    "schedule.final_fraction=0.1",
]


def plain_settings(run: Path, data: Any, steps: int) -> Settings:
    """Return the settings with which plain_gpt.py trains the network of a run on the run's training text.

    run: the run's folder, to which the text is written as a file of ids; data: the run's data module.
    """
    text = run / "train.bin"
    data.ids(data.stream("train")).astype(np.uint16).tofile(text)
    config: Any = OmegaConf.load(run / "config.yaml")
    return Settings(
        text=text,
        vocab_size=data.tokenizer.vocab_size,
        dim=config.model.dim,
        num_heads=config.model.num_heads,
        num_layers=config.model.num_layers,
        context_length=config.context_length,
        batch_size=config.data.batch_size,
        steps=steps,
    )
