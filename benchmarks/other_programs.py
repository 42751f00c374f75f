"""Train a network of the size of plain_gpt.py's with other libraries. `against.py` compares with these programs.

    python benchmarks/other_programs.py encoder train.bin --vocab-size 71 --record record.json
    python benchmarks/other_programs.py trainer train.bin --vocab-size 71 --record record.json

`encoder` is the loop of plain_gpt.py around `torch.nn.TransformerEncoder`. `trainer` is Hugging Face's Trainer with its
GPT-2, and requires transformers and accelerate. The other arguments are those of plain_gpt.py.
"""

import sys
import tempfile
from typing import Any

import numpy as np
import plain_gpt
import torch
import torch.nn.functional as F
from plain_gpt import Settings, Training
from torch import Tensor, nn


class EncoderNetwork(nn.Module):
    """A decoder made of `torch.nn.TransformerEncoder` with norms before its layers and a causal mask."""

    def __init__(self, vocab_size: int, context_length: int, dim: int, num_heads: int, num_layers: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, dim), nn.Embedding(context_length, dim)
        options: Any = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        layer = nn.TransformerEncoderLayer(dim, num_heads, 4 * dim, **options)
        self.layers = nn.TransformerEncoder(layer, num_layers, nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, token_ids: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy. token_ids and targets: (batch, length) int."""
        length = token_ids.shape[1]
        hidden = self.tokens(token_ids) + self.positions(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        logits = self.head(self.layers(hidden, mask=mask, is_causal=True))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class Windows(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Random windows of a text, each the input and the labels of a model of transformers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.text = np.memmap(settings.text, dtype=np.uint16, mode="r")
        self.starts = torch.randint(len(self.text) - settings.context_length, (len(self),))

    def __len__(self) -> int:
        return self.settings.steps * self.settings.batch_size

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        start = int(self.starts[index])
        ids = torch.from_numpy(self.text[start : start + self.settings.context_length].astype(np.int64))
        return {"input_ids": ids, "labels": ids}


class TrainerTraining:
    """A training with Hugging Face's Trainer, with the interface of `plain_gpt.Training`."""

    def __init__(self, settings: Settings) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

        torch.manual_seed(settings.seed)
        sizes: Any = {"vocab_size": settings.vocab_size, "n_positions": settings.context_length}
        sizes |= {"n_embd": settings.dim, "n_head": settings.num_heads, "n_layer": settings.num_layers}
        no_dropout: Any = {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}
        self.settings, self.network = settings, GPT2LMHeadModel(GPT2Config(**sizes, **no_dropout))
        arguments = TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            max_steps=settings.steps,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            max_grad_norm=settings.max_norm,
            lr_scheduler_type="cosine",
            warmup_steps=settings.warmup_steps,
            logging_steps=settings.log_interval,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
        )
        self.trainer = Trainer(self.network, arguments, train_dataset=Windows(settings))
        self.num_parameters = sum(parameter.numel() for parameter in self.network.parameters())
        self.steps, self.losses = 0, [float("nan")]

    def run(self, steps: int) -> None:
        """Train for the number of steps of the settings."""
        self.trainer.train()
        self.losses = [line["loss"] for line in self.trainer.state.log_history if "loss" in line] or self.losses
        self.steps = steps


PROGRAMS: dict[str, Any] = {"encoder": Training, "trainer": TrainerTraining}


def main() -> None:
    """Run the program of plain_gpt.py with another network or another loop."""
    if len(sys.argv) < 2 or sys.argv[1] not in PROGRAMS:
        print(__doc__)
        sys.exit(0 if {"-h", "--help"} & set(sys.argv) else 2)
    name = sys.argv.pop(1)
    plain_gpt.GPT = EncoderNetwork  # type: ignore[assignment, misc]  # the class that `Training` builds
    plain_gpt.Training = PROGRAMS[name]  # type: ignore[misc]
    plain_gpt.main()


if __name__ == "__main__":
    main()
