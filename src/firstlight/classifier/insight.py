"""Attributions of a classifier: the contribution of each word of a text to the prediction."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firstlight.classifier.bag_of_words import LogisticRegression
from firstlight.classifier.run import LoadedClassifier
from firstlight.errors import UserError
from firstlight.kind.predictor import Predictor
from firstlight.terminal_text import note, write_out
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import CONTINUATION, EXTRACT_ID, PAIR_MARKS, START_ID, UNKNOWN_ID, Text

Network = Callable[[Tensor], Tensor]  # from token ids, (batch, length), to logits
INTEGRATED_GRADIENTS = "integrated gradients"
GRADIENT_TIMES_INPUT = "gradient × input"
NO_WORD = "the text has no word that the network can read; pass a text with at least one word"
STEPS = 64  # interpolation steps of integrated gradients


class Attributions(NamedTuple):
    """Contribution of each word of a text to the log-odds of a class, compared with an unknown word in its place.

    words: the words after normalization. scores: (words,) in nats, positive for words that support `label`. label: the
    explained class. probability: its probability. method: name of the method.
    """

    words: list[str]
    scores: NDArray[np.float64]
    label: str
    probability: float
    method: str
    notes: list[str]


def attributions(
    run: LoadedClassifier, text: str, label: str | None = None, *, method: str | None = None
) -> Attributions:
    """Return the contribution of each word of a text to a class, by default the predicted class.

    method: by default integrated gradients (Sundararajan et al. 2017) if captum is installed, otherwise gradient ×
    input. The sum of the scores of integrated gradients is the difference of the log-odds between this text and the
    same number of unknown words. Raises UserError for a text without words or an unknown class.
    """
    found = words_of(run, text)
    if not found:
        raise UserError(NO_WORD)
    if label is not None and label not in run.class_names:
        raise UserError(f"the class {label!r} must be one of {', '.join(run.class_names)}")
    method = best_method() if method is None else method
    ids, kept, notes = read_review(run, found)
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.inference_mode():
        odds = _log_odds(run.network(*run.inputs(ids, mask)))[0]  # (classes,)
    chosen = int(odds.argmax()) if label is None else run.class_names.index(label)
    compute = _integrated_gradients if method == INTEGRATED_GRADIENTS else _gradient_times_input
    baseline = _baseline(ids, run)
    scores = compute(lambda token_ids: run.network(*run.inputs(token_ids)), _word_layers(run), ids, baseline, chosen)
    word_scores = np.zeros(len(found))
    np.add.at(word_scores, kept, scores)
    read = np.unique(kept)
    return Attributions(
        [found[i] for i in read],
        word_scores[read],
        run.class_names[chosen],
        float(odds[chosen].sigmoid()),
        method,
        notes,
    )


def words_of(run: LoadedClassifier, text: str) -> list[str]:
    """Return the words of a text after normalization, for a pair with the marks between them; [] without a word."""
    found = run.tokenizer.words_of(text)
    return [] if set(found) <= set(PAIR_MARKS) else found


def best_method() -> str:
    """Return integrated gradients if captum, which computes them, is installed; otherwise gradient × input."""
    return INTEGRATED_GRADIENTS if find_spec("captum") else GRADIENT_TIMES_INPUT


def read_review(run: LoadedClassifier, found: list[str]) -> tuple[Tensor, NDArray[np.int64], list[str]]:
    """Return the words of a review as the network reads them, cut as in training.

    Returns the token ids, (1, tokens); the index of the word of each token, (tokens,); and notes for the user.
    """
    ids = run.tokenizer.encode_words(found)
    word_of_token = np.repeat(np.arange(len(found)), ids.lengths)
    context_length = run.config["context_length"]
    places = run.places(RaggedIds(ids.ids, np.array([0, len(ids.ids)])))  # (kept,)
    notes = []
    if len(word_of_token) > context_length:
        notes.append(f"the text has {len(word_of_token)} tokens; the network reads {context_length} of them")
    chosen = ids.ids[places].astype(np.int64)
    if unknown := int((chosen == UNKNOWN_ID).sum()):
        notes.append(f"not in the vocabulary and read as [UNK]: {unknown} of {len(chosen)}")
    return torch.from_numpy(chosen)[None], word_of_token[places], notes


def readable_tokens(run: LoadedClassifier, ids: Tensor, found: list[str], kept: NDArray[np.int64]) -> list[str]:
    """Return the readable name of each token: the word, in brackets if it is unknown, or the piece of a word."""
    if run.tokenizer.kind == "word":
        known = (ids[0] != UNKNOWN_ID).tolist()
        return [found[i] if is_known else f"[{found[i]}]" for i, is_known in zip(kept, known, strict=True)]
    return [run.tokenizer.words[i].replace(CONTINUATION, "·") for i in ids[0].tolist()]


def _baseline(ids: Tensor, run: LoadedClassifier) -> Tensor:
    """Return an unknown word in the place of each token except the marks of a pair. ids: (1, tokens)."""
    unknown = torch.full_like(ids, UNKNOWN_ID)
    if not run.tokenizer.reads_pairs:
        return unknown
    is_mark = (ids >= START_ID) & (ids <= EXTRACT_ID)
    return torch.where(is_mark, ids, unknown)


def _log_odds(logits: Tensor) -> Tensor:
    """Return the log-odds of each class: (batch, outputs) -> (batch, classes). One output stands for two classes."""
    if logits.shape[1] == 1:
        return torch.cat((-logits, logits), dim=1)
    num_classes = logits.shape[1]
    own = torch.eye(num_classes, dtype=torch.bool)
    others = logits[:, None, :].expand(-1, num_classes, -1).masked_fill(own, -torch.inf)  # (batch, classes, classes)
    return logits - others.logsumexp(dim=2)


def _word_layers(run: LoadedClassifier) -> list[nn.Module]:
    """Return the first layers of a classifier, which map token ids to vectors or weights."""
    network: Any = run.network
    if isinstance(network, LogisticRegression):
        return [network.weights]
    return [network.embedding] if run.evidence is None else [network.embedding, run.evidence]


def _integrated_gradients(
    network: Network, layers: list[nn.Module], ids: Tensor, baseline: Tensor, chosen: int
) -> NDArray[np.float64]:
    """Return integrated gradients, computed by captum with unknown words as the baseline: (tokens,)."""
    from captum.attr import LayerIntegratedGradients

    with warnings.catch_warnings():  # the warning does not apply, since the layers are independent
        warnings.filterwarnings("ignore", message="Multiple layers provided")
        method: Any = LayerIntegratedGradients(lambda token_ids: _log_odds(network(token_ids))[:, chosen], layers)
    found = method.attribute(ids, baselines=baseline, n_steps=STEPS)  # (1, tokens, ·) per layer
    return sum(part.detach()[0].sum(dim=1).double().numpy() for part in found)


def _gradient_times_input(
    network: Network, layers: list[nn.Module], ids: Tensor, baseline: Tensor, chosen: int
) -> NDArray[np.float64]:
    """Return the gradient at the text times the difference between the text and unknown words: (tokens,)."""
    vectors: dict[nn.Module, Tensor] = {}

    def keep(layer: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> Tensor:
        vectors[layer] = output.detach().requires_grad_()
        return vectors[layer]

    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        odds = _log_odds(network(ids))[0, chosen]
    finally:
        for hook in hooks:
            hook.remove()
    gradients = torch.autograd.grad(odds, [vectors[layer] for layer in layers])  # (1, tokens, ·) per layer
    scores = torch.zeros(ids.shape[1], dtype=torch.float64)
    with torch.no_grad():
        for layer, gradient in zip(layers, gradients, strict=True):
            way = vectors[layer] - layer(baseline)
            scores += (gradient * way)[0].sum(dim=1)
    return scores.numpy()


class ClassPredictor(Predictor):
    """Predictor of the class of each text, with the probabilities of all classes."""

    run: LoadedClassifier

    def show(self, texts: list[str]) -> None:
        for text, prediction in zip(texts, self.run.predict_many(texts), strict=True):
            if not words_of(self.run, text):
                note("the text has no word; this is the prediction for an empty text")
            shares = "  ".join(f"{name} {share:.3f}" for name, share in prediction.probabilities.items())
            write_out(f"{prediction.label}  ({shares})")

    @property
    def trained_columns(self) -> list[str]:
        return [*super().trained_columns, *(self.run.config["data"].get("choice_columns") or ())]

    @property
    def columns(self) -> list[str]:
        return ["label", *(f"probability_{name}" for name in self.run.class_names)]

    def rows(self, texts: Iterable[Text]) -> Iterator[list[Any]]:
        return ([each.label, *each.probabilities.values()] for each in self.run.predict_many(texts))
