"""Figures of the predictions of a masked language model."""

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from firstlight.figures.fillings import plot_fillings
from firstlight.kind.attention import Attention, collect
from firstlight.kind.drawn import Drawn, NothingToDrawError
from firstlight.kind.exploration import MOST_ROWS, SPLIT, Exploration, first_drawable
from firstlight.kind.subject import Subject
from firstlight.kind.tokens import DrawnTokens, drawn_words
from firstlight.masked import evaluation
from firstlight.masked.data import MaskedReviewData
from firstlight.masked.mask_token import MASK
from firstlight.masked.run import LoadedMasked
from firstlight.text.tokenizers import CONTINUATION

LONGEST_TEXT = 12  # words of a text that is chosen automatically


class MaskedExploration(Exploration):
    """Exploration of a masked language model and its texts."""

    run: LoadedMasked
    data_type = MaskedReviewData
    choice_note = "the text is from the validation split, with its longest word masked"

    def open_data(self) -> MaskedReviewData:
        return evaluation.open_data(self.run, self.changes, self.log_dir, only_split="train")

    def some_text(self, data: MaskedReviewData) -> str:
        rows = data.rows(SPLIT)
        row = rows[[first_drawable(data.encoded.ids.lengths[rows])]]
        (text,) = data.source.texts(data.options.text_columns, row.tolist())
        words = data.tokenizer.split(text)[:LONGEST_TEXT]
        longest = int(np.argmax([len(word) for word in words]))
        return " ".join([*words[:longest], MASK, *words[longest + 1 :]])

    def made_up_text(self) -> tuple[str, str]:
        return f"It {MASK} after a week and nobody answered.", "the text is made up"

    @staticmethod
    def attention(run: LoadedMasked, text: str) -> Attention:  # type: ignore[override]
        batch = run.batch(text)
        tokens = readable_tokens(run, batch.token_ids[0].tolist())
        return Attention(collect(run.network, (batch.token_ids, batch.padding_mask), tokens, tokens))

    def loss(self, data: MaskedReviewData) -> Tensor:
        rows = data.rows(SPLIT)[:MOST_ROWS]
        if not len(rows):
            raise NothingToDrawError(f"{data.source.where} has no {SPLIT} rows")
        batch = data.table(data.lookup()[rows])
        return F.cross_entropy(self.run.network(*batch.inputs), batch.targets)

    def tokens(self) -> DrawnTokens:
        words = self.run.tokenizer.words
        return drawn_words(words, lambda token_id: readable_tokens(self.run, [token_id])[0])


def readable_tokens(run: LoadedMasked, ids: list[int]) -> list[str]:
    """Return the readable names of tokens: words of the vocabulary, and [MASK]."""
    words = [*run.tokenizer.words, MASK]
    return [words[token_id].replace(CONTINUATION, "·") for token_id in ids]


NUM_WORDS = 10  # for each [MASK]


def fillings(subject: Subject) -> Drawn:
    """Return the figure of the most probable words for each [MASK]."""
    text, notes = subject.chosen_text()
    found = subject.of_text(text, lambda chosen: subject.run.fill_in(chosen, NUM_WORDS))
    words = [[filling.word for filling in of_mask] for of_mask in found.fillings]
    shares = np.array([[filling.probability for filling in of_mask] for of_mask in found.fillings])
    return Drawn(plot_fillings(text, words, shares), notes)
