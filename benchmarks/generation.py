"""Compare generation with a cache of keys and values, and without: the context is recomputed for every token.

    python benchmarks/generation.py [--tokens 1000] [--dim 128] [--layers 4] [--context-length 256] [--batch-size 1]

Both sides write the same number of tokens with the same untrained network, in turns. The script prints tokens per
second and their ratio.
"""

import statistics
from dataclasses import dataclass

import torch
import tyro
from measure import by_turns, ratio, show, versions
from torch import Tensor

from firstlight.decoding.generate import Sampling, for_inference, generate
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.variants import Positions


@dataclass
class Options:
    """Options of the comparison."""

    tokens: int = 1000
    dim: int = 128
    heads: int = 4
    layers: int = 4
    context_length: int = 256
    vocab_size: int = 72
    batch_size: int = 1
    positions: Positions = Positions.rotary
    pairs: int = 5
    """Number of texts that each side writes."""
    threads: int = 1
    """Number of CPU threads of torch."""


def main() -> None:
    """Measure, and print the results."""
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
    times = by_turns(
        {
            "cached": lambda: cached_text(network, prompt, options.tokens),
            "recomputed": lambda: recomputed_text(network, prompt, options.tokens),
        },
        options.pairs,
    )
    count = options.tokens * options.batch_size
    rows = [(name, f"{count / statistics.median(each):,.0f}") for name, each in times.items()]
    print(versions(options.threads))
    show(
        f"{options.tokens:,} tokens, dim {options.dim}, {options.layers} blocks, context {options.context_length}",
        ["", "tokens/s"],
        [*rows, ("ratio", ratio(times["recomputed"], times["cached"]))],
    )


def cached_text(network: Generator, prompt: Tensor, tokens: int) -> None:
    """Generate with a cache, as src/generate.py does by default."""
    sampling = Sampling()
    for _ in generate(network, prompt, tokens, sampling.choose):
        pass


@torch.inference_mode()
def recomputed_text(network: Generator, prompt: Tensor, tokens: int) -> None:
    """Generate with the complete context read again for every token."""
    network, sampling, text = for_inference(network), Sampling(), prompt
    for _ in range(tokens):
        logits = network(text[:, -network.context_length :])[:, -1]
        text = torch.cat((text, sampling.choose(logits)[:, None]), dim=1)


if __name__ == "__main__":
    main()
