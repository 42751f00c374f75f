"""Compare generation with a cache of keys and values, and without: the context is recomputed for every token.

    python benchmarks/generation.py [--tokens 1000] [--dim 128] [--layers 4] [--context-length 256] [--batch-size 1]
    python benchmarks/generation.py --nanogpt FOLDER

All sides write the same number of tokens with an untrained network of the same size, in turns. The script prints tokens
per second of processor time, and the ratios to recomputing. `--nanogpt` names a clone of github.com/karpathy/nanoGPT,
whose own `generate` is then the one that the others are compared with.
"""

import statistics
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import tyro
from measure import ratio, show, versions
from torch import Tensor

from firstlight.decoding.generate import Sampling, Window, for_inference, generate
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
    nanogpt: Path | None = None
    """A folder with nanoGPT's model.py."""


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
    works = {
        "recomputed": lambda: recomputed_text(network, prompt, options.tokens),
        "half": lambda: cached_text(network, prompt, options.tokens, "half"),
        "roll": lambda: cached_text(network, prompt, options.tokens, "roll"),
        "slide": lambda: cached_text(network, prompt, options.tokens, "slide"),
    }
    if options.nanogpt is not None:
        works = {"nanoGPT": partial(nanogpt_text, plain_network(options), prompt, options.tokens)} | works
    first, *_ = works
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(options.pairs):
        for name, work in works.items():
            started_at = time.process_time()
            work()
            times[name].append(time.process_time() - started_at)
    count = options.tokens * options.batch_size
    rows = [
        (name, f"{count / statistics.median(each):,.0f}", ratio(times[first], each)) for name, each in times.items()
    ]
    print(versions(options.threads))
    show(
        f"{options.tokens:,} tokens, dim {options.dim}, {options.layers} blocks, context {options.context_length}",
        ["", "tokens per processor second", f"/ {first}"],
        rows,
    )


def cached_text(network: Generator, prompt: Tensor, tokens: int, window: Window) -> None:
    """Generate with a cache, as src/generate.py does. window: as in `generate`."""
    sampling = Sampling()
    for _ in generate(network, prompt, tokens, sampling.choose, window=window):
        pass


def plain_network(options: Options) -> Any:
    """Return nanoGPT's network of the same size."""
    sys.path.insert(0, str(options.nanogpt))
    from model import GPT, GPTConfig  # type: ignore[import-not-found]

    sizes = {"n_layer": options.layers, "n_head": options.heads, "n_embd": options.dim, "bias": False, "dropout": 0.0}
    return GPT(GPTConfig(block_size=options.context_length, vocab_size=options.vocab_size, **sizes)).eval()


def nanogpt_text(network: Any, prompt: Tensor, tokens: int) -> None:
    """Generate with nanoGPT's own function."""
    with torch.no_grad():
        network.generate(prompt, tokens)


@torch.inference_mode()
def recomputed_text(network: Generator, prompt: Tensor, tokens: int) -> None:
    """Generate with the complete context read again for every token."""
    network, sampling, text = for_inference(network), Sampling(), prompt
    for _ in range(tokens):
        logits = network(text[:, -network.context_length :])[:, -1]
        text = torch.cat((text, sampling.choose(logits)[:, None]), dim=1)


if __name__ == "__main__":
    main()
