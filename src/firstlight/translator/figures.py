"""Figures of the attention of a translator."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from firstlight.data.tables import IGNORED
from firstlight.figures import plot_attention_heads
from firstlight.kind.attention import Attention, collect
from firstlight.kind.drawn import Drawn, NothingToDrawError
from firstlight.kind.exploration import MOST_ROWS, SPLIT, Exploration, first_drawable
from firstlight.kind.subject import Subject
from firstlight.kind.tokens import DrawnTokens, drawn_words
from firstlight.text.sentence_tokenizers import BEGIN, BEGIN_ID, END
from firstlight.translator import evaluation
from firstlight.translator.data import PairData
from firstlight.translator.run import LoadedTranslator, shortened


class TranslatorExploration(Exploration):
    """Exploration of a translator and its pairs of sentences."""

    run: LoadedTranslator
    data_type = PairData
    choice_note = "the sentence is from the validation split"
    attention_title = "Attention of each block during the translation"

    def open_data(self) -> PairData:
        return evaluation.open_data(self.run, self.changes, self.log_dir, only_split="train")

    def some_text(self, data: PairData) -> str:
        rows = data.rows(SPLIT)
        return data.texts(rows[[first_drawable(data.encoded.source.lengths[rows])]])[0][0]

    def made_up_text(self) -> tuple[str, str]:
        return "A man rides a bike.", "the text is made up"

    @staticmethod
    def attention(run: LoadedTranslator, text: str) -> Attention:  # type: ignore[override]
        text, notes = shortened(run, text)
        written = run.write(text, beam_size=1)
        source = torch.from_numpy(run.read([text])[0].astype(np.int64))[None]  # (1, sources)
        target = torch.tensor([[BEGIN_ID, *written]])
        sources = run.tokenizers.source.readable(source[0].tolist())
        targets = [BEGIN, *run.tokenizers.target.readable(written)]
        return Attention(collect(run.network, (source, target), sources, targets, [*targets[1:], END]), notes)

    def loss(self, data: PairData) -> Tensor:
        rows = data.rows(SPLIT)[:MOST_ROWS]
        if not len(rows):
            raise NothingToDrawError(f"{data.source.where} has no {SPLIT} rows")
        part = data.table(data.lookup()[rows])
        logits = self.run.network(*part.inputs)
        return F.cross_entropy(logits.flatten(0, 1), part.targets.flatten(), ignore_index=IGNORED)

    def tokens(self) -> DrawnTokens:
        target = self.run.tokenizers.target
        words = target.words[: self.run.network.embedding.num_embeddings]
        return drawn_words(words, lambda token_id: target.readable([token_id])[0] or words[token_id])

    @property
    def vocab_size(self) -> int:
        return self.run.tokenizers.target.vocab_size


def cross_attention(subject: Subject) -> Drawn:
    """Return the figure of the cross-attention of all heads of the last decoder block."""
    _, notes = subject.chosen_text()
    found = subject.attention
    part = [part for part in found.maps if "cross" in part.name][-1]
    title = part.name.capitalize()
    figure = plot_attention_heads(part.weights, part.queries, part.keys, title)
    for axes in figure.axes[: len(part.weights)]:
        axes.set_xlabel("source token")
        axes.set_ylabel("written token")
    return Drawn(figure, [*notes, *found.notes])
