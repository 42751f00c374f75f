"""Train a GPT-2 in plain PyTorch, as nanoGPT's train.py does. The benchmarks compare firstlight with this program.

    python benchmarks/plain_gpt.py train.bin --vocab-size 71 --record record.json

The program imports torch and numpy, and no part of firstlight. `against.py` compares it with src/train.py, and
`loop.py --against gpt` uses its class. It trains as nanoGPT does on a CPU. Batches are stacked windows from random
positions of a memory-mapped file. One matrix computes queries, keys and values. The output layer shares the
embedding's weights. AdamW is not fused, and decays only matrices and embeddings. Gradients are clipped at a norm of 1.
The loop sets the learning rate, a cosine after a warm-up, and reads the loss at every log line.
"""

import argparse
import json
import math
import time
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Settings:
    """Settings of a training. text: a file of token ids, each an unsigned integer of 16 bits."""

    text: Path
    vocab_size: int
    dim: int = 128
    num_heads: int = 4
    num_layers: int = 4
    context_length: int = 64
    batch_size: int = 12
    steps: int = 2000
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    warmup_steps: int = 100
    weight_decay: float = 0.1
    max_norm: float = 1.0
    log_interval: int = 10
    seed: int = 1337


class Layer(nn.Module):
    """Attention and a perceptron, each after a norm."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query_key_value, self.projection = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.expand, self.contract = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the residual stream after this layer. hidden: (batch, length, dim)."""
        batch, length, dim = hidden.shape
        parts = self.query_key_value(self.norm_1(hidden)).split(dim, dim=2)
        query, key, value = (part.view(batch, length, self.num_heads, -1).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.projection(attended.transpose(1, 2).contiguous().view(batch, length, dim))
        return hidden + self.contract(F.gelu(self.expand(self.norm_2(hidden))))


class GPT(nn.Module):
    """A GPT-2 of any size, with biases."""

    def __init__(self, vocab_size: int, context_length: int, dim: int, num_heads: int, num_layers: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, dim), nn.Embedding(context_length, dim)
        self.layers = nn.ModuleList(Layer(dim, num_heads) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.ndim == 2:
                ends_a_residual_path = name.endswith(("projection.weight", "contract.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * num_layers) if ends_a_residual_path else 0.02)

    def forward(self, token_ids: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy. token_ids and targets: (batch, length) int."""
        hidden = self.tokens(token_ids) + self.positions(torch.arange(token_ids.shape[1]))
        for layer in self.layers:
            hidden = layer(hidden)
        logits = self.head(self.norm(hidden))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class Training:
    """A network, its optimizer, and the loop around them.

    losses: the losses of the steps at which the loop logs.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        sizes = (settings.vocab_size, settings.context_length, settings.dim, settings.num_heads, settings.num_layers)
        self.network = GPT(*sizes)
        matrices = [parameter for parameter in self.network.parameters() if parameter.ndim >= 2]
        vectors = [parameter for parameter in self.network.parameters() if parameter.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.99))
        self.steps = 0
        self.losses: list[float] = []
        self.next_batch = self.batch()

    @property
    def num_parameters(self) -> int:
        """Return the number of weights. Shared weights count once."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def run(self, steps: int, *, is_logged: bool = True) -> None:
        """Train for a number of steps."""
        for _ in range(steps):
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate()
            loss = self.network(*self.next_batch)
            self.next_batch = self.batch()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.max_norm)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            if self.steps % self.settings.log_interval == 0:
                self.losses.append(loss.item())
                if is_logged:
                    print(f"step {self.steps}: loss {self.losses[-1]:.4f}")
            self.steps += 1

    def learning_rate(self) -> float:
        """Return the learning rate of the next step."""
        settings = self.settings
        if self.steps < settings.warmup_steps:
            return settings.learning_rate * (self.steps + 1) / (settings.warmup_steps + 1)
        progress = (self.steps - settings.warmup_steps) / max(settings.steps - settings.warmup_steps, 1)
        share = 0.5 * (1 + math.cos(math.pi * min(progress, 1)))
        return settings.final_learning_rate + share * (settings.learning_rate - settings.final_learning_rate)

    def batch(self) -> tuple[Tensor, Tensor]:
        """Return random windows and their next tokens, both (batch, length) int64."""
        length = self.settings.context_length
        text = np.memmap(self.settings.text, dtype=np.uint16, mode="r")
        starts = torch.randint(len(text) - length, (self.settings.batch_size,))
        token_ids = torch.stack([torch.from_numpy(text[i : i + length].astype(np.int64)) for i in starts])
        targets = torch.stack([torch.from_numpy(text[i + 1 : i + 1 + length].astype(np.int64)) for i in starts])
        return token_ids, targets


def main() -> None:
    """Train, and write a record: steps, parameters, threads, processor and wall seconds of the loop, loss."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("text", type=Path, help="a file of token ids, each an unsigned integer of 16 bits")
    parser.add_argument("--vocab-size", type=int, required=True)
    for field in fields(Settings):
        if field.default is not MISSING:
            parser.add_argument(flag(field.name), type=type(field.default), default=field.default, help="%(default)s")
    parser.add_argument("--threads", type=int, default=None, help="CPU threads of torch; default: all cores")
    parser.add_argument("--record", type=Path, default=None, help="the file for the record, as JSON")
    options = vars(parser.parse_args())
    threads, record = options.pop("threads"), options.pop("record")
    if threads is not None:
        torch.set_num_threads(threads)
    training = Training(Settings(**options))
    print(f"{training.num_parameters:,} parameters")
    wall, processor = time.perf_counter(), time.process_time()
    training.run(training.settings.steps)
    measured = {
        "steps": training.steps,
        "parameters": training.num_parameters,
        "threads": torch.get_num_threads(),
        "processor_seconds": time.process_time() - processor,
        "wall_seconds": time.perf_counter() - wall,
        "loss": float(np.mean(training.losses[-5:])),
    }
    print(f"{measured['steps']} steps in {measured['wall_seconds']:.1f} s, loss {measured['loss']:.4f}")
    if record is not None:
        record.write_text(json.dumps(measured) + "\n", encoding="utf-8")


def flag(name: str) -> str:
    """Return the flag of a name: --vocab-size for vocab_size."""
    return "--" + name.replace("_", "-")


if __name__ == "__main__":
    main()
