"""What the generators without a key-value cache share: the embedding, and the refusal of a cache."""

from typing import Any

from torch import nn

from firstlight.networks.config import GeneratorConfig


class UncachedGenerator(nn.Module):
    """Base class of generators that read the context again for each token that they generate.

    `model._target_` chooses one of them. It has the arguments and the result of a `Generator`.

    Args:
        config: options of the network; most have no effect.
        vocab_size: number of token ids.
        width: size of the vector of a token.

    Shape:
        - token_ids: (batch, length) int
        - output: (batch, length, vocab_size) logits
    """

    is_causal = False  # so that a generation uses no cache

    def __init__(self, config: GeneratorConfig, vocab_size: int, width: int) -> None:
        super().__init__()
        self.context_length, self.vocab_size = config.context_length, vocab_size
        self.embedding = nn.Embedding(vocab_size, width)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)

    def new_cache(self) -> Any:
        """Raise ValueError, because the network has no cache."""
        raise ValueError(f"{type(self).__name__} has no cache; call it without one")
