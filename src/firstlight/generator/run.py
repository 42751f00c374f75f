"""Trained generators that write text without their data set."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from firstlight.generator.network import Generator
from firstlight.generator.writing import Prompt, Writer, Writing
from firstlight.kind.loaded import LoadedRun, OfAllRuns
from firstlight.text.text_tokenizers import TextTokenizer, writer_of


@dataclass(frozen=True, repr=False, eq=False)
class LoadedGenerator(LoadedRun):
    """Trained generator, which continues a text.

    It has the attributes of every loaded run (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(token_ids)` accepts (batch, length) ids and returns logits (batch, length, vocabulary).

    Attributes:
        tokenizer: the tokenizer; `tokenizer.words` is the vocabulary.
        separator_id: the id of the separator between documents; None for a run that was trained on one text.

    >>> run = firstlight.load("latest")
    >>> run.generate("ROMEO.", tokens=200, temperature=0.8, seed=1)
    """

    kind: ClassVar[str] = "generator"

    network: Generator
    tokenizer: TextTokenizer
    separator_id: int | None

    def _facts(self) -> dict[str, str]:
        return {"vocabulary": f"{self.tokenizer.vocab_size:,} tokens, context length {self.network.context_length}"}

    def generate(self, prompt: str = "", **writing: Any) -> str:
        """Return the prompt and the text that the network writes after it.

        The keywords are the fields of `Writing`:
            tokens: maximum number of tokens to write, 500 by default. A run of documents, such as names, stops at the
                end of the document.
            temperature: values below 1 sharpen the distribution of the next token, values above 1 flatten it.
            top_k: sample only from the k most probable tokens.
            top_p: sample only from the most probable tokens that together reach the probability p.
            greedy: always choose the most probable token.
            seed: the same seed gives the same text. By default, each call gives another text.
            window: what the network reads when the text is longer than the context. `half`, the default, drops half of
                the context when it is full. `slide` drops one token at a time, which is slower.
            context_length: number of tokens that the network reads, if fewer than in training.

        Raises UserError for a value that is out of range.

        >>> run.generate("ROMEO.", tokens=200, temperature=0.8, seed=1)
        """
        return self.generate_many(prompt, 1, **writing)[0]

    def generate_many(self, prompt: str = "", num_samples: int = 1, **writing: Any) -> list[str]:
        """Return several continuations of one prompt, computed in one batch. The keywords are those of `generate`.

        >>> run.generate_many("ROMEO.", 3, tokens=50, seed=1)
        """
        return self.writer.generate_many(prompt, num_samples, **writing)

    def read(self, prompt: str, writing: Writing) -> Prompt:
        """Return a prompt as the network reads it, with the same preparation as the training text.

        Its `token_ids` have the shape (1, length). Its `notes` list changes and unknown characters. Raises UserError
        for a prompt that is not valid Unicode.

        >>> from firstlight.generator.writing import Writing
        >>> run.read("ROMEO.", Writing()).token_ids.shape
        """
        return self.writer.read(prompt, writing)

    def stream(
        self,
        prompt: Prompt,
        num_samples: int,
        writing: Writing,
        watch: Callable[[Tensor, Tensor], object] | None = None,
    ) -> Iterator[list[str]]:
        """Yield the new piece of text of each sample after each token. Stop when all samples have ended.

        watch: function that is called for each token with the logits, (samples, vocabulary), and the sampled ids,
            (samples,).
        Raises UserError for a value that is out of range.

        >>> from firstlight.generator.writing import Writing
        >>> writing = Writing(tokens=50, seed=1)
        >>> for (piece,) in run.stream(run.read("ROMEO.", writing), 1, writing):
        ...     print(piece, end="")
        """
        return self.writer.stream(prompt, num_samples, writing, watch)

    def seen(self, asked: int | None) -> int:
        """Return the number of tokens that the network reads: `asked`, or its context length by default.

        Raises UserError if `asked` is greater than the context length.

        >>> run.seen(None)
        """
        return self.writer.seen(asked)

    @property
    def writer(self) -> Writer:
        """The network with its tokenizer, as `generate` uses it.

        >>> run.writer.generate_many("ROMEO.", tokens=50)
        """
        is_of_plays = self.config["data"].get("preparation") == "plays"
        return Writer(self.network, self.tokenizer, self.separator_id, is_of_plays)

    def known_documents(self) -> set[str]:
        """Return the short documents of the training data, such as names. The set is empty for a run of one text.

        >>> len(run.known_documents())
        """
        path = self.folder.known_documents_file
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
        return {" ".join(line.split()) for line in lines if line.strip()}


def from_card(of_all: OfAllRuns, card: dict[str, Any], tokenizer: Any, reader: Any) -> LoadedGenerator:  # noqa: ARG001
    """Return the run of a checkpoint. card: the card of the checkpoint; reader: the tokenizer of the inputs."""
    return LoadedGenerator(*of_all, writer_of(tokenizer), card["separator_id"])
