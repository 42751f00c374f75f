"""A trained generator as an object, without its data set."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from firstlight.lit.writing import Prompt, Writer, Writing
from firstlight.networks.generator import Generator
from firstlight.runs.folder import RunFolder
from firstlight.text.text_tokenizers import TextTokenizer


@dataclass(frozen=True, repr=False)
class LoadedGenerator:
    """A trained generator with its vocabulary."""

    folder: RunFolder
    network: Generator
    config: dict[str, Any]
    data_source: str
    data_fingerprint: str
    tokenizer: TextTokenizer
    separator_id: int | None

    def __repr__(self) -> str:
        return f"LoadedGenerator({str(self.folder.path)!r})"

    def generate(self, prompt: str = "", **writing: Any) -> str:
        """The prompt and what the network writes after it. writing: the fields of Writing. Raises UserError."""
        return self.generate_many(prompt, 1, **writing)[0]

    def generate_many(self, prompt: str = "", num_samples: int = 1, **writing: Any) -> list[str]:
        """Several continuations of one prompt, written at once."""
        return self.writer.generate_many(prompt, num_samples, **writing)

    def read(self, prompt: str, writing: Writing) -> Prompt:
        """A prompt, prepared as the training text was, with what there is to say of it. Raises UserError."""
        return self.writer.read(prompt, writing)

    def stream(
        self,
        prompt: Prompt,
        num_samples: int,
        writing: Writing,
        watch: Callable[[Tensor, Tensor], object] | None = None,
    ) -> Iterator[list[str]]:
        """The next piece of each sample, token by token, until all have ended. As `Writer.stream`."""
        return self.writer.stream(prompt, num_samples, writing, watch)

    def seen(self, asked: int | None) -> int:
        """How many tokens are seen: all that the network can, or as many as are asked for. Raises UserError."""
        return self.writer.seen(asked)

    @property
    def writer(self) -> Writer:
        """The network with what it reads and writes text with."""
        is_of_plays = self.config["data"].get("preparation") == "plays"
        return Writer(self.network, self.tokenizer, self.separator_id, is_of_plays)

    def known_documents(self) -> set[str]:
        """The short documents that the run was trained on, where it kept them."""
        path = self.folder.known_documents_file
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        return {" ".join(line.split()) for line in lines if line.strip()}
