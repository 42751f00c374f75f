"""Trained generators: what can be done with a run, and its figures' texts and tensors."""

from collections.abc import Iterator
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.data.cache import save_array
from firstlight.data.tables import TokenBatch
from firstlight.data.windows import EveryWindow, Stream, WindowBatch, overlapping_windows
from firstlight.errors import UserError
from firstlight.generator.lstm import CarriedState
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.generator.writing import Writer, Writing, cut_note
from firstlight.kind.attention import Attention, collect
from firstlight.kind.kind import WHOLE, Measurement, NothingToDrawError
from firstlight.kind.run import MOST_ROWS, SPLIT, Run
from firstlight.kind.tokens import DrawnTokens, drawn_characters, drawn_words
from firstlight.lazy import later
from firstlight.lit.metadata import Checks, of_type
from firstlight.text.text_tokenizers import CharacterTokenizer, PieceDecoder, decode, first_id, readable
from firstlight.text.tokenizers import TextTokenizer

if TYPE_CHECKING:
    from firstlight.generator.data import StreamData

LOSSES = "losses.npy"  # the loss of each token after the first, in nats: (tokens - 1,) float32
WINDOWS_AT_ONCE = 256
LONGEST_PASSAGE = 1200  # tokens of the validation split that are read to choose a text


class NextTokens(NamedTuple):
    """Most likely tokens after a prompt, in descending order of probability.

    prompt: the prompt as the network reads it. tokens: readable names. probabilities: (count,), at temperature 1.
    """

    prompt: str
    tokens: list[str]
    probabilities: NDArray[np.float64]
    notes: list[str]


class Surprise(NamedTuple):
    """Surprise of each piece of a text, given the text before it.

    pieces: the tokens of the text, or its characters if the run reads characters. bits: (pieces,), -log2 of the
    probability of each piece.
    """

    pieces: list[str]
    bits: NDArray[np.float64]
    notes: list[str]

    @property
    def bits_per_character(self) -> NDArray[np.float64]:
        """The bits of each piece, divided by its number of characters: (pieces,)."""
        return self.bits / np.array([max(len(piece), 1) for piece in self.pieces])


class GeneratorRun(Run, Writer):
    """Trained generator, which continues a text.

    It has the attributes of every run (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(token_ids)` accepts (batch, length) ids and returns logits (batch, length, vocabulary).

    Attributes:
        tokenizer: the tokenizer; `tokenizer.words` is the vocabulary.
        separator_id: the id of the separator between documents; None for a run that was trained on one text.

    >>> run = firstlight.load("latest")
    >>> run.generate("ROMEO.", tokens=200, temperature=0.8, seed=1)
    """

    kind = "generator"
    config_type = GeneratorConfig
    metadata_checks: ClassVar[Checks] = {"separator_id": of_type(int, NoneType)}
    tokenizer_types = (TextTokenizer,)
    metric_callbacks = later(
        "firstlight.generator.metrics.BitsPerCharacter",
        "firstlight.callbacks.token_metrics.Perplexity",
        "firstlight.callbacks.token_metrics.TokenAccuracy",
    )
    evaluates_whole_texts = True
    choice_note = "the text is the beginning of the validation split"
    made_up_note = "the text is written by the run"

    network: Generator
    tokenizer: TextTokenizer

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        is_of_plays = self.config["data"].get("preparation") == "plays"
        separator_id = self.metadata["separator_id"]
        Writer.__init__(self, self.network, self.tokenizer, separator_id, is_of_plays=is_of_plays)

    def known_documents(self) -> set[str]:
        """Return the short documents of the training data, such as names. The set is empty for a run of one text.

        >>> len(run.known_documents())
        """
        path = self.folder.known_documents_file
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
        return {" ".join(line.split()) for line in lines if line.strip()}

    def next_tokens(self, prompt: str, count: int = 15) -> NextTokens:
        """Return the `count` most likely tokens after a prompt. Raises UserError if `count` is below 1.

        >>> run.next_tokens("ROMEO.", count=5).probabilities
        """
        if count < 1:
            raise UserError(f"count={count} must be at least 1")
        read, unwritten = self.read(prompt, Writing()), list(self.tokenizer.unwritten)
        with torch.inference_mode():
            logits = self.network(read.token_ids[:, -self.network.context_length :])[0, -1].double()  # (vocabulary,)
            logits[unwritten] = -torch.inf
        probabilities, ids = logits.softmax(dim=0).topk(min(count, len(logits) - len(unwritten)))
        return NextTokens(read.text, list(map(self.readable, ids.tolist())), probabilities.numpy(), read.notes)

    def surprise(self, text: str) -> Surprise:
        """Return the surprise of every token of a text, given as many tokens before it as the context allows.

        The first token is predicted from the token that starts every text. Raises UserError for an empty text.

        >>> run.surprise("It was late.").bits.mean()
        """
        if not text.strip():
            raise UserError("the text is empty; pass a text with at least one word")
        read, context_length = self.read(text, Writing()), self.network.context_length
        ids = read.token_ids[0]
        cut = cut_note(len(ids), context_length)  # does not apply: windows read the whole text
        notes = [note for note in read.notes if note != cut]
        if self.separator_id is None:
            ids = torch.cat((torch.tensor([first_id(self.tokenizer, None)]), ids))
        decoder = PieceDecoder()
        pieces = [decoder.decode(self.tokenizer.pieces[i]) for i in ids[1:].tolist()]
        if len(pieces) > context_length:
            notes.append(f"each of the {len(pieces)} tokens is predicted from at most {context_length} before it")
        return Surprise(pieces, self._bits(ids), notes)

    @torch.inference_mode()
    def _bits(self, ids: Tensor) -> NDArray[np.float64]:
        """Return -log2 of the probability of every token except the first, (length - 1,), given the context before."""
        found = []
        every_token = Stream(range(len(ids)))
        for places, num_new in overlapping_windows(every_token, self.network.context_length, 1, WINDOWS_AT_ONCE):
            windows = ids[torch.from_numpy(places)]  # (windows, length + 1)
            shares = self.network(windows[:, :-1])[:, -num_new:].double().log_softmax(dim=2)
            found.append(shares.gather(2, windows[:, -num_new:, None]).flatten())
        return -torch.cat(found).numpy() / np.log(2)

    # --- evaluate ---

    def _data_type(self) -> "type[StreamData]":
        from firstlight.generator.data import CharacterData, ReviewTextData  # and Lightning

        return CharacterData if "preparation" in self.config["data"] else ReviewTextData

    def measure(
        self, data: "StreamData", split: str, *, context_length: int | None = None, stride: int | None = None
    ) -> Measurement:
        from firstlight.callbacks import LastPosition, Perplexity, TokenAccuracy  # and Lightning
        from firstlight.callbacks.token_metrics import TokenMetric, measure_tokens
        from firstlight.generator.metrics import BitsPerCharacter, EachLoss, UnknownShare

        is_stateful = data.stateful_window is not None and context_length is None and stride is None
        context_length = self.seen(context_length)
        stream = data.stream() if split == WHOLE else data.stream(split)
        if len(stream) < 2:
            remedy = "use more text" if split == WHOLE else "choose another --split"
            raise UserError(f"{data.source.where}: the {split} split has fewer than 2 tokens; {remedy}")
        stride = context_length if stride is None else stride
        if not 1 <= stride <= context_length:
            raise UserError(f"--stride {stride} must lie between 1 and {context_length}, the length of a window")
        bits, last, losses = BitsPerCharacter(), LastPosition(), EachLoss()
        counts = data.tokenizer.characters_per_token()
        bits.counts, last.context_length = None if counts is None else torch.from_numpy(counts), context_length
        metrics: list[TokenMetric] = [Perplexity(), TokenAccuracy(), bits, losses]
        if stride == context_length and not is_stateful:  # otherwise a window may have another number of new targets
            metrics.append(last)
        if data.tokenizer.unknown_id is not None:
            metrics.append(UnknownShare(data.tokenizer.unknown_id))
        carried = CarriedState()

        def logits(batch: TokenBatch) -> Tensor:
            return carried.logits(self.network, batch)[:, -batch.targets.shape[1] :]

        batches = data.text_loader(stream) if is_stateful else _batches(data, stream, context_length, stride)
        found = measure_tokens(self, batches, metrics, logits)
        num_predicted = len(losses.all())
        note = f"{num_predicted:,} tokens predicted, in windows of {context_length} that do not overlap"
        if is_stateful:
            note = f"{num_predicted:,} tokens predicted, each from all tokens before it"
        elif stride < context_length:
            first, least = min(context_length, num_predicted), context_length - stride + 1
            note = f"{num_predicted:,} tokens predicted, all but the first {first} from {least} tokens or more"
        size = {"tokens": len(stream), "predicted": num_predicted}
        contents = "The metrics and the loss of each token"
        return Measurement(found, size, (note,), lambda folder: save_array(folder / LOSSES, losses.all()), contents)

    # --- explore ---

    def some_text(self, data: "StreamData") -> str:
        ids = data.ids(data.stream(SPLIT), LONGEST_PASSAGE)
        separator = decode(data.tokenizer, [data.separator_id]) if data.separator_id is not None else ""
        text = decode(data.tokenizer, ids.tolist()).removeprefix(separator)
        _, blank_line, rest = text.partition("\n\n")
        return rest if blank_line and len(rest) > len(text) / 2 else text  # start at the beginning of a passage

    def made_up_text(self) -> str:
        return self.generate(tokens=self.network.context_length, seed=0)

    def beginning(self, text: str) -> str:
        has_separator = self.separator_id is not None
        ids = self.tokenizer.encode_batch([text])[0][: self.network.context_length - has_separator]
        return decode(self.tokenizer, ids.tolist())

    def _attention(self, text: str) -> Attention:
        read = self.read(text, Writing())
        seen = read.token_ids[:, -self.network.context_length :]
        tokens = [self.readable(token_id) for token_id in seen[0].tolist()]
        notes, loops = list(read.notes), self.config["model"].get("num_loops") or 1
        if loops > 1:
            notes.append(f"the blocks are applied {loops} times; the weights are those of the last time")
        return Attention(collect(self.network, (seen,), tokens, tokens), notes)

    def _batch(self, data: "StreamData") -> tuple[tuple[Any, ...], Tensor]:
        windows = EveryWindow(data.stream(SPLIT), self.network.context_length, MOST_ROWS)
        places = next(iter(windows), None)
        if places is None:
            raise NothingToDrawError(f"{data.source.where}: the {SPLIT} split is shorter than the context")
        batch = data.table(WindowBatch(torch.from_numpy(places)))
        return (batch.token_ids,), batch.targets

    def tokens(self) -> DrawnTokens:
        if isinstance(self.tokenizer, CharacterTokenizer):
            return drawn_characters(self.tokenizer, self.readable)
        return drawn_words(self.tokenizer.words[: self.network.embedding.num_embeddings], self.readable)

    def readable(self, token_id: int) -> str:
        """Return the readable name of a token.

        >>> run.readable(3)
        """
        return readable(self.tokenizer, token_id, self.separator_id)


def _batches(data: "StreamData", stream: Stream, context_length: int, stride: int) -> Iterator[TokenBatch]:
    """Yield the windows of a stream, which start `stride` tokens apart, with only the new targets of each."""
    for places, num_new in overlapping_windows(stream, context_length, stride, data.options.evaluation_batch_size):
        batch = data.table(WindowBatch(torch.from_numpy(places)))
        yield batch._replace(targets=batch.targets[:, -num_new:])
