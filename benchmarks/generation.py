"""Writing with a cache of keys and values against recomputing the whole context for every token.

    python benchmarks/generation.py [--tokens 1000] [--dim 128] [--layers 4] [--context-length 256] [--batch-size 1]

Both sides write the same number of tokens with the same untrained network, alternately; prints tokens/s and the ratio.
"""

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from firstlight.decoding.generate import Window, generate
from firstlight.decoding.sampling import Sampling
from firstlight.networks.config import GeneratorConfig, Positions
from firstlight.networks.generator import Generator


@dataclass
class Options:
    """What to compare."""

    tokens: int = 1000
    dim: int = 128
    heads: int = 4
    layers: int = 4
    context_length: int = 256
    vocab_size: int = 72
    batch_size: int = 1
    positions: Positions = Positions.rotary
    pairs: int = 5
    """How often each side writes."""
    threads: int = 1
    """CPU threads of torch."""


def main() -> None:
    """Measure and print."""
    options = tyro.cli(Options)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    config = GeneratorConfig(
        dim=options.dim,
        num_heads=options.heads,
        num_layers=options.layers,
        context_length=options.context_length,
        positions=options.positions,
    )
    network = Generator(config, options.vocab_size).eval()
    prompt = torch.zeros(options.batch_size, 1, dtype=torch.long)
    ratios = []
    print(f"{'pair':>4} {'cached tokens/s':>16} {'recomputed tokens/s':>20} {'ratio':>6}")
    for pair in range(1, options.pairs + 1):
        cached = seconds(lambda: cached_text(network, prompt, options.tokens))
        recomputed = seconds(lambda: recomputed_text(network, prompt, options.tokens))
        ratios.append(recomputed / cached)
        count = options.tokens * options.batch_size
        print(f"{pair:>4} {count / cached:>16,.0f} {count / recomputed:>20,.0f} {ratios[-1]:>6.1f}")
    print(f"median ratio {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")


def cached_text(network: Generator, prompt: Tensor, tokens: int) -> None:
    """What src/generate.py does by default."""
    sampling = Sampling()
    for _ in generate(network, prompt, tokens, sampling.choose, window=Window.half):
        pass


@torch.inference_mode()
def recomputed_text(network: Generator, prompt: Tensor, tokens: int) -> None:
    """The last tokens of the context anew for every token."""
    sampling, text = Sampling(), prompt
    for _ in range(tokens):
        logits = network(text[:, -network.context_length :])[:, -1]
        text = torch.cat((text, sampling.choose(logits)[:, None]), dim=1)


def seconds(work: object) -> float:
    """How long it takes."""
    assert callable(work)
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at


if __name__ == "__main__":
    main()
