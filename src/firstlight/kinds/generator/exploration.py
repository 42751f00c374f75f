"""Exploration of a generator."""

import torch
import torch.nn.functional as F
from torch import Tensor

from firstlight.data.streams import StreamData
from firstlight.data.windows import EveryWindow, WindowBatch
from firstlight.kinds.attention import Attention, collect
from firstlight.kinds.drawn import NothingToDrawError
from firstlight.kinds.exploration import MOST_ROWS, SPLIT, Exploration
from firstlight.kinds.generator import evaluation
from firstlight.kinds.generator.loaded import LoadedGenerator
from firstlight.kinds.tokens import DrawnTokens, drawn_characters, drawn_words
from firstlight.lit.writing import Writing
from firstlight.text.readable import readable
from firstlight.text.text_tokenizers import CharacterTokenizer, decode

LONGEST_PASSAGE = 1200  # tokens of the validation split that are read to choose a text


class GeneratorExploration(Exploration):
    """Exploration of a generator and its text."""

    run: LoadedGenerator
    data_type = StreamData
    choice_note = "the text is the beginning of the validation split"

    def open_data(self) -> StreamData:
        return evaluation.open_data(self.run, self.changes, self.log_dir)

    def some_text(self, data: StreamData) -> str:
        ids = data.ids(data.stream(SPLIT), LONGEST_PASSAGE)
        separator = decode(data.tokenizer, [data.separator_id]) if data.separator_id is not None else ""
        text = decode(data.tokenizer, ids.tolist()).removeprefix(separator)
        _, blank_line, rest = text.partition("\n\n")
        return rest if blank_line and len(rest) > len(text) / 2 else text  # start at the beginning of a passage

    def made_up_text(self) -> tuple[str, str]:
        return self.run.generate(tokens=self.run.network.context_length, seed=0), "the text is written by the run"

    def seen(self, text: str) -> str:
        tokenizer, has_separator = self.run.tokenizer, self.run.separator_id is not None
        ids = tokenizer.encode_batch([text])[0][: self.run.network.context_length - has_separator]
        return decode(tokenizer, ids.tolist())

    @staticmethod
    def attention(run: LoadedGenerator, text: str) -> Attention:  # type: ignore[override]
        read = run.read(text, Writing())
        seen = read.token_ids[:, -run.network.context_length :]
        tokens = [readable(run.tokenizer, i, run.separator_id) for i in seen[0].tolist()]
        notes, loops = list(read.notes), run.config["model"].get("num_loops") or 1
        if loops > 1:
            notes.append(f"the blocks are applied {loops} times; the weights are those of the last time")
        return Attention(collect(run.network, (seen,), tokens, tokens), notes)

    def loss(self, data: StreamData) -> Tensor:
        windows = EveryWindow(data.stream(SPLIT), self.run.network.context_length, MOST_ROWS)
        places = next(iter(windows), None)
        if places is None:
            raise NothingToDrawError(f"{data.source.where}: the {SPLIT} split is shorter than the context")
        batch = data.table(WindowBatch(torch.from_numpy(places)))
        return F.cross_entropy(self.run.network(batch.token_ids).flatten(0, 1), batch.targets.flatten())

    def tokens(self) -> DrawnTokens:
        tokenizer = self.run.tokenizer
        if isinstance(tokenizer, CharacterTokenizer):
            return drawn_characters(tokenizer, self._readable)
        return drawn_words(tokenizer.words[: self.run.network.embedding.num_embeddings], self._readable)

    def _readable(self, token_id: int) -> str:
        return readable(self.run.tokenizer, token_id, self.run.separator_id)
