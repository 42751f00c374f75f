"""Panel of a classifier in the playground: the prediction for a review, and its explanation."""

from html import escape
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from firstlight.classifier.insight import attributions
from firstlight.classifier.network import Classifier
from firstlight.classifier.prediction import Prediction, predictions
from firstlight.classifier.run import ClassifierRun
from firstlight.data.options import Labels
from firstlight.errors import UserError
from firstlight.kind import markup
from firstlight.kind.attention import AttentionMap, has_attention
from firstlight.kind.panel import Inputs, Panel, beginning_of
from firstlight.text.options import PAIR_SEPARATOR
from firstlight.text.tokenizers import UNKNOWN_ID


class ClassifierPanel(Panel):
    """Panel that shows the classes, the attributions and the attention for a review.

    For multiple choice, it shows only the probabilities of the answers.
    """

    kind = "classifier"
    title = "Classify a review"
    network = Classifier
    run: ClassifierRun

    def examples(self) -> tuple[str, ...]:
        if self.run.choices is not None:
            count = self.run.choices.num_choices  # answers are repeated if there are too few
            texts = ([context, *(answers * count)[:count]] for context, *answers in self.texts("choices"))
            return tuple(f" {PAIR_SEPARATOR} ".join(each) for each in texts)
        return self.texts("pairs" if self.run.tokenizer.reads_pairs else "reviews")

    def page_data(self) -> dict[str, Any]:
        run = self.run
        return super().page_data() | {
            "truncation": run.truncation.name,
            "long_texts": run.long_texts.name,
            "class_names": run.class_names,
            "are_stars": self._are_stars,
            "num_choices": run.choices.num_choices if run.choices is not None else 0,
            "num_contexts": run.choices.num_contexts if run.choices is not None else 0,
        }

    def answer(self, asked: Inputs) -> str:
        """Return the classes, the attributions and the attention, as HTML.

        asked: text; label: the class to explain, by default the predicted one; map and head of the attention; quick=1:
        only the classes, since the explanation of a large network takes some tenths of a second.
        """
        text, notes = beginning_of(asked.text("text"))
        if self.run.choices is not None:
            return self._chosen(text, self.run.choices.num_choices) + markup.notes(notes)
        if self.run.tokenizer.reads_pairs and PAIR_SEPARATOR not in text:
            return markup.notice(f"Type two texts with {PAIR_SEPARATOR} between them.")
        found = self.run.words(text)
        if not found:
            empty = "Type a review. The prediction changes as you type."
            return markup.notice("The text has no word that the network can read." if text.strip() else empty)
        (prediction,) = predictions(torch.from_numpy(self.run.probabilities([text])), self.run.class_names)
        label = asked.text("label") if asked.text("label") in self.run.class_names else prediction.label
        classes = self._verdict(prediction) + markup.bars(prediction.probabilities, label)
        if asked.integer("quick", 0, 1):
            return classes
        why = attributions(self.run, text, label)
        ids, word_of_token, _ = self.run.read(found)
        unknown = word_of_token[(ids[0] == UNKNOWN_ID).numpy()].tolist()
        kept = np.unique(word_of_token).tolist()
        shaded = markup.shaded_words(found, kept, why.scores, unknown, why.label)
        legend = (
            f'<p class="legend"><span class="says">Contribution of each word: '
            f'<span class="key for">for</span> or <span class="key against">against</span> '
            f'<b>{escape(why.label)}</b>, by integrated gradients</span><span class="looks"></span></p>'
        )  # page.js also writes the attention of a word into it
        parts = [f'<div class="classes">{classes}</div>', legend]
        if has_attention(self.run.network):
            attention = self.run.attention(text)
            view = markup.View([of_words(each, word_of_token) for each in attention.maps], asked)
            parts += [f'<div class="text attention" {view.data()}>{shaded}</div>', view.choices()]
        else:
            parts.append(f'<div class="text">{shaded}</div>')
        return "".join([*parts, markup.notes(notes + why.notes)])

    def _chosen(self, text: str, num_choices: int) -> str:
        """Return the probability of each answer, as HTML."""
        answers = [answer.strip() for answer in text.split(PAIR_SEPARATOR)][-num_choices:]
        try:
            (shares,) = self.run.probabilities([text]).tolist()
        except UserError:
            return markup.notice(f"Type a context and {num_choices} answers with {PAIR_SEPARATOR} between them.")
        names = [f"{number}. {answer}" for number, answer in enumerate(answers, start=1)]
        named = dict(zip(names, shares, strict=True))
        best = max(named, key=named.__getitem__)
        return self._verdict(Prediction(best, named)) + markup.bars(named, best)

    @property
    def _are_stars(self) -> bool:
        return self.run.config["data"].get("labels") == Labels.stars.name

    def _verdict(self, prediction: Prediction) -> str:
        share = markup.percent(prediction.probabilities[prediction.label])
        verdict = f"<b>{escape(prediction.label)}</b> {escape(share)}"
        if self._are_stars:
            mean = sum(i * share for i, share in enumerate(prediction.probabilities.values(), start=1))
            verdict = f"{verdict}, {mean:.1f} stars on average"
        return f'<p class="verdict">{verdict}</p>'


def of_words(found: AttentionMap, word_of_token: NDArray[np.int64]) -> AttentionMap:
    """Return the attention between words: the mean over the tokens of a query, and the sum over those of a key."""
    numbers, place, counts = np.unique(word_of_token, return_inverse=True, return_counts=True)
    belongs = np.zeros((len(word_of_token), len(numbers)))  # (tokens, words)
    belongs[np.arange(len(word_of_token)), place] = 1
    weights = (belongs / counts).T @ found.weights @ belongs  # (heads, words, words)
    return AttentionMap(found.name, weights.astype(np.float32), [], [])
