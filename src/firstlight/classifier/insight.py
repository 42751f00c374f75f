"""Attributions of a classifier: the contribution of each word of a text to the prediction."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firstlight.classifier.bag_of_words import LogisticRegression
from firstlight.classifier.run import NO_WORD, ClassifierRun
from firstlight.errors import UserError
from firstlight.text.tokenizers import EXTRACT_ID, START_ID, UNKNOWN_ID

Network = Callable[[Tensor], Tensor]  # from token ids, (batch, length), to logits
INTEGRATED_GRADIENTS = "integrated gradients"
GRADIENT_TIMES_INPUT = "gradient × input"
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


def attributions(run: ClassifierRun, text: str, label: str | None = None, *, method: str | None = None) -> Attributions:
    """Return the contribution of each word of a text to a class, by default the predicted class.

    method: by default integrated gradients (Sundararajan et al. 2017) if captum is installed, otherwise gradient ×
    input. The sum of the scores of integrated gradients is the difference of the log-odds between this text and the
    same number of unknown words. Raises UserError for a text without words or an unknown class.
    """
    found = run.words(text)
    if not found:
        raise UserError(NO_WORD)
    if label is not None and label not in run.class_names:
        raise UserError(f"the class {label!r} must be one of {', '.join(run.class_names)}")
    method = best_method() if method is None else method
    ids, kept, notes = run.read(found)
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


def best_method() -> str:
    """Return integrated gradients if captum, which computes them, is installed; otherwise gradient × input."""
    return INTEGRATED_GRADIENTS if find_spec("captum") else GRADIENT_TIMES_INPUT


def _baseline(ids: Tensor, run: ClassifierRun) -> Tensor:
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


def _word_layers(run: ClassifierRun) -> list[nn.Module]:
    """Return the first layers of a classifier, which map token ids to vectors or weights."""
    network: Any = run.network
    if isinstance(network, LogisticRegression):
        return [network.weights]
    return [network.embedding] if run.target_encoding is None else [network.embedding, run.target_encoding]


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
