"""Panel of a classifier in the playground: the prediction for a review, and its explanation."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.classifier.insight import attributions
from firstlight.classifier.network import Classifier
from firstlight.classifier.run import ClassifierRun
from firstlight.data.options import Labels
from firstlight.errors import UserError
from firstlight.kind.attention import AttentionMap, has_attention
from firstlight.kind.panel import Answer, Inputs, Panel, beginning_of, view_of
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

    def answer(self, asked: Inputs) -> Answer:
        """Return the classes, the attributions and the attention.

        asked: text; label: the class to explain, by default the predicted one; map and head of the attention; quick=1:
        only the classes, since the explanation of a large network takes some tenths of a second.
        """
        text, notes = beginning_of(asked.text("text"))
        if self.run.choices is not None:
            return self._chosen(text, self.run.choices.num_choices) | {"notes": notes}
        if self.run.tokenizer.reads_pairs and PAIR_SEPARATOR not in text:
            return {"notice": f"Type two texts with {PAIR_SEPARATOR} between them."}
        found = self.run.words(text)
        if not found:
            empty = "Type a review. The prediction changes as you type."
            return {"notice": "The text has no word that the network can read." if text.strip() else empty}
        names, (shares,) = self.run.class_names, self.run.probabilities([text])
        label = asked.text("label") if asked.text("label") in names else names[int(shares.argmax())]
        classes = {"names": names, "shares": shares.tolist(), "label": label, "are_stars": self._are_stars}
        if asked.integer("quick", 0, 1):
            return {"classes": classes}
        why = attributions(self.run, text, label)
        ids, word_of_token, _ = self.run.read(found)
        unknown = word_of_token[(ids[0] == UNKNOWN_ID).numpy()].tolist()
        words = {"words": found, "read": np.unique(word_of_token).tolist(), "scores": why.scores.tolist()}
        words |= {"unknown": unknown, "label": label, "method": "by integrated gradients"}
        answer = {"classes": classes, "words": words, "notes": notes + why.notes}
        if has_attention(self.run.network):
            answer["view"] = view_of([of_words(each, word_of_token) for each in self.run.attention(text).maps], asked)
        return answer

    def _chosen(self, text: str, num_choices: int) -> Answer:
        """Return the probability of each answer."""
        answers = [answer.strip() for answer in text.split(PAIR_SEPARATOR)][-num_choices:]
        try:
            (shares,) = self.run.probabilities([text])
        except UserError:
            return {"notice": f"Type a context and {num_choices} answers with {PAIR_SEPARATOR} between them."}
        names = [f"{number}. {answer}" for number, answer in enumerate(answers, start=1)]
        return {"classes": {"names": names, "shares": shares.tolist(), "label": names[int(shares.argmax())]}}

    @property
    def _are_stars(self) -> bool:
        return self.run.config["data"].get("labels") == Labels.stars.name


def of_words(found: AttentionMap, word_of_token: NDArray[np.int64]) -> AttentionMap:
    """Return the attention between words: the mean over the tokens of a query, and the sum over those of a key."""
    numbers, place, counts = np.unique(word_of_token, return_inverse=True, return_counts=True)
    belongs = np.zeros((len(word_of_token), len(numbers)))  # (tokens, words)
    belongs[np.arange(len(word_of_token)), place] = 1
    weights = (belongs / counts).T @ found.weights @ belongs  # (heads, words, words)
    return AttentionMap(found.name, weights.astype(np.float32), [], [])
