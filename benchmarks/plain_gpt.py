"""GPT-2 in plain PyTorch, with the training loop that usually goes with it: what loop.py --against gpt compares with.

One matrix for queries, keys and values, causal attention by torch, GELU, LayerNorm with biases, learned positions, tied
embeddings; batches stacked from random places of an array, the rate set by hand, gradients clipped, the loss read every
ten steps, and AdamW fused on a GPU alone, as in nanoGPT's train.py.
"""

import math
import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from omegaconf import DictConfig
from torch import Tensor, nn

GPT_2 = [  # the same network in our words
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
]


class Layer(nn.Module):
    """Attention and a perceptron, each behind its norm."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query_key_value, self.projection = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.expand, self.contract = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, dim = hidden.shape
        parts = self.query_key_value(self.norm_1(hidden)).split(dim, dim=2)
        query, key, value = (part.view(batch, length, self.num_heads, -1).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.projection(attended.transpose(1, 2).contiguous().view(batch, length, dim))
        return hidden + self.contract(F.gelu(self.expand(self.norm_2(hidden))))


class GPT(nn.Module):
    """A GPT-2 of any size."""

    def __init__(self, vocab_size: int, context_length: int, dim: int, num_heads: int, num_layers: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, dim), nn.Embedding(context_length, dim)
        self.layers = nn.ModuleList(Layer(dim, num_heads) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, token_ids: Tensor, targets: Tensor) -> Tensor:
        """The loss."""
        places = torch.arange(token_ids.shape[1])
        hidden = self.tokens(token_ids) + self.positions(places)
        for layer in self.layers:
            hidden = layer(hidden)
        logits = self.head(self.norm(hidden))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


class PlainGPTLoop:
    """The loop around it, on the same text."""

    def __init__(self, data: Any, ours: nn.Module, config: DictConfig) -> None:
        model = config.model
        self.text: np.ndarray = data.table.flat.numpy()
        self.context_length, self.batch_size = config.context_length, config.data.batch_size
        self.network = GPT(
            data.tokenizer.vocab_size, config.context_length, model.dim, model.num_heads, model.num_layers
        )
        theirs, mine = (sum(p.numel() for p in network.parameters()) for network in (self.network, ours))
        assert theirs == mine, f"{theirs} parameters against {mine}"
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3, betas=(0.9, 0.99))
        self.steps = 0

    def run(self, batches: list[Any]) -> float:
        """As many steps as there are batches; returns the seconds."""
        started_at = time.perf_counter()
        for _ in batches:
            for group in self.optimizer.param_groups:
                group["lr"] = 1e-3 * (1 + math.cos(math.pi * min(self.steps / 10_000, 1))) / 2
            loss = self.network(*self.batch())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.steps += 1
            if self.steps % 10 == 0:
                loss.item()
        return time.perf_counter() - started_at

    def batch(self) -> tuple[Tensor, Tensor]:
        """Random windows, one after the other."""
        starts = torch.randint(len(self.text) - self.context_length, (self.batch_size,)).tolist()
        windows = [torch.from_numpy(self.text[i : i + self.context_length + 1].astype(np.int64)) for i in starts]
        return torch.stack([window[:-1] for window in windows]), torch.stack([window[1:] for window in windows])
