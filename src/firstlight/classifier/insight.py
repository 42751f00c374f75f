"""Attributions of a classifier: the contribution of each word of a text to the prediction."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firstlight.classifier.network import LogisticRegression
from firstlight.classifier.run import NO_WORD, ClassifierRun
from firstlight.errors import UserError
from firstlight.lit.losses import log_odds
from firstlight.text.tokenizers import UNKNOWN_ID

STEPS = 64  # interpolation steps of integrated gradients


class Attributions(NamedTuple):
    """Contribution of each word of a text to the log-odds of a class, compared with an unknown word in its place.

    words: the words after normalization. scores: (words,) in nats, positive for words that support `label`. label: the
    explained class. probability: its probability. notes: notes for the user.
    """

    words: list[str]
    scores: NDArray[np.float64]
    label: str
    probability: float
    notes: list[str]


def attributions(run: ClassifierRun, text: str, label: str | None = None) -> Attributions:
    """Return the contribution of each word of a text to a class.

    The contributions are integrated gradients (Sundararajan et al. 2017). Their sum is the difference of the log-odds
    between this text and the same number of unknown words. label: one of the classes of the run; None for the predicted
    one. Raises UserError for a text without words.
    """
    found = run.words(text)
    if not found:
        raise UserError(NO_WORD)
    ids, kept, notes = run.read(found)
    with torch.inference_mode():
        odds = log_odds(run.network(*run.inputs(ids)))[0]  # (classes,)
    chosen = int(odds.argmax()) if label is None else run.class_names.index(label)
    scores = np.zeros(len(found))
    np.add.at(scores, kept, _integrated_gradients(run, ids, chosen))
    read = np.unique(kept)
    words = [found[i] for i in read]
    return Attributions(words, scores[read], run.class_names[chosen], float(odds[chosen].sigmoid()), notes)


def _baseline(ids: Tensor, run: ClassifierRun) -> Tensor:
    """Return an unknown word in the place of each token except the marks. ids: (1, tokens)."""
    is_mark = torch.isin(ids, torch.tensor(run.tokenizer.no_words))
    return torch.where(is_mark, ids, UNKNOWN_ID)


def _word_layers(run: ClassifierRun) -> list[nn.Module]:
    """Return the first layers of a classifier, which map token ids to vectors or weights."""
    network: Any = run.network
    if isinstance(network, LogisticRegression):
        return [network.weights]
    return [network.embedding] if run.target_encoding is None else [network.embedding, run.target_encoding]


def _integrated_gradients(run: ClassifierRun, ids: Tensor, chosen: int) -> NDArray[np.float64]:
    """Return the mean gradient between unknown words and a text, times their difference: (tokens,). ids: (1, tokens).

    The mean is an integral by Gauss–Legendre quadrature. All its points are one batch, after the unknown words.
    """
    points, of_points = np.polynomial.legendre.leggauss(STEPS)  # from -1 to 1
    shares = torch.from_numpy(np.append(0, (points + 1) / 2)).float()  # (STEPS + 1,)
    weights = torch.from_numpy(np.append(0, of_points / 2)).float()
    vectors: list[Tensor] = []
    ways: list[Tensor] = []

    def interpolate(_layer: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        output = output.detach()  # (STEPS + 1, tokens, ·)
        ways.append(output[-1] - output[0])
        vectors.append((output[0] + shares[:, None, None] * ways[-1]).requires_grad_())
        return vectors[-1]

    hooks = [layer.register_forward_hook(interpolate) for layer in _word_layers(run)]
    try:
        batch = torch.cat((_baseline(ids, run), ids.expand(STEPS, -1)))
        odds = log_odds(run.network(*run.inputs(batch)))[:, chosen]
    finally:
        for hook in hooks:
            hook.remove()
    gradients = torch.autograd.grad((odds * weights).sum(), vectors)
    parts = [(gradient.sum(dim=0) * way).sum(dim=1) for gradient, way in zip(gradients, ways, strict=True)]
    return torch.stack(parts).sum(dim=0).double().numpy()
