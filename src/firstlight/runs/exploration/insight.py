"""What a trained run makes of one text, as numbers: for figures, notebooks and the playground.

Every answer has `notes`, sentences for people: that a text was cut to the context, that a word is unknown.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.lit.writing import Writing
from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.bag_of_words import LogisticRegression
from firstlight.networks.weights import attention_weights
from firstlight.runs.load import Loaded
from firstlight.runs.loaded_classifier import LoadedClassifier
from firstlight.runs.loaded_generator import LoadedGenerator
from firstlight.runs.loaded_translator import LoadedTranslator
from firstlight.text.ragged import RaggedIds
from firstlight.text.sentence_tokenizers import BEGIN, BEGIN_ID, END
from firstlight.text.text_tokenizers import TextTokenizer, WordText, decode, first_id
from firstlight.text.tokenizers import CONTINUATION, UNKNOWN_ID

INTEGRATED_GRADIENTS = "integrated gradients"
GRADIENT_TIMES_INPUT = "gradient × input"
NO_WORD = "the text has no word that the network could read; write one"
STEPS = 64  # between the unknown words and the real ones
WINDOWS_AT_ONCE = 256
READABLE = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


class Attributions(NamedTuple):
    """What each word of a text adds to the log-odds of a class, compared with an unknown word in its place.

    words: as the network reads them, simplified; scores: (words,) in nats, above 0 where a word speaks for `label`;
    label, probability: the class that is asked about and what the network gives it; method: how it was computed.
    """

    words: list[str]
    scores: NDArray[np.float64]
    label: str
    probability: float
    method: str
    notes: list[str]


class NextTokens(NamedTuple):
    """What may follow a prompt, the likeliest first.

    prompt: as the network reads it; tokens: for people; probabilities: (count,), as a sampler draws at temperature 1.
    """

    prompt: str
    tokens: list[str]
    probabilities: NDArray[np.float64]
    notes: list[str]


class Surprise(NamedTuple):
    """How little a generator expected each piece of a text, given what stands before it.

    pieces: the text cut into tokens, characters where the run reads characters; bits: (pieces,), -log2 of the
    probability of each.
    """

    pieces: list[str]
    bits: NDArray[np.float64]
    notes: list[str]

    @property
    def bits_per_character(self) -> NDArray[np.float64]:
        """The bits of each piece, shared by its characters: (pieces,)."""
        return self.bits / np.array([max(len(piece), 1) for piece in self.pieces])


class AttentionMap(NamedTuple):
    """What one attention looked at, as in "block 1", "encoder block 1" or "decoder block 1, cross-attention".

    weights: (heads, queries, keys), rows summing to 1; queries, keys: the tokens, for people. The queries of
    cross-attention are what is written there, all others what is read.
    """

    name: str
    weights: NDArray[np.float32]
    queries: list[str]
    keys: list[str]


@dataclass(frozen=True)
class Attention:
    """The maps of every attention of a network, in the order of its blocks."""

    maps: list[AttentionMap]
    notes: list[str] = field(default_factory=list)


def attributions(
    run: LoadedClassifier, text: str, label: str | None = None, *, method: str | None = None
) -> Attributions:
    """What each word of a text says for a class: the predicted one, where none is named.

    method: integrated gradients (Sundararajan et al. 2017) where captum is installed, else gradient × input. The scores
    of the first sum to the difference between the log-odds of this text and of as many unknown words.
    Raises UserError for a text without words or a class that the run does not know.
    """
    found = run.tokenizer.split(text)
    if not found:
        raise UserError(NO_WORD)
    if label is not None and label not in run.class_names:
        raise UserError(f"the class {label!r} is not one of {', '.join(run.class_names)}")
    method = best_method() if method is None else method
    ids, kept, notes = read_review(run, found)
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.inference_mode():
        odds = _log_odds(run.network(ids, mask))[0]  # (classes,)
    chosen = int(odds.argmax()) if label is None else run.class_names.index(label)
    compute = _integrated_gradients if method == INTEGRATED_GRADIENTS else _gradient_times_input
    scores = compute(run.network, _word_layers(run.network), ids, chosen)  # (tokens,)
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
    """Integrated gradients where captum, which computes them, is installed."""
    return INTEGRATED_GRADIENTS if find_spec("captum") else GRADIENT_TIMES_INPUT


def next_tokens(run: LoadedGenerator, prompt: str, count: int = 15) -> NextTokens:
    """The likeliest tokens after a prompt, at most `count`. Raises UserError."""
    if count < 1:
        raise UserError(f"count={count} must be at least 1")
    read = run.read(prompt, Writing())
    with torch.inference_mode():
        logits = run.network(read.token_ids[:, -run.network.context_length :])[0, -1].double()  # (vocabulary,)
        logits[list(run.tokenizer.unwritten)] = -torch.inf
    probabilities, ids = logits.softmax(dim=0).topk(min(count, len(logits) - len(run.tokenizer.unwritten)))
    names = [readable(run.tokenizer, i, run.separator_id) for i in ids.tolist()]
    return NextTokens(read.text, names, probabilities.numpy(), read.notes)


def surprise(run: LoadedGenerator, text: str) -> Surprise:
    """How surprised a generator is by every token of a text, which it reads with as many before it as it can see.

    The first token follows what a text without a beginning begins after. Raises UserError for an empty text.
    """
    if not text.strip():
        raise UserError("the text is empty; write one")
    read = run.read(text, Writing())
    notes = [note for note in read.notes if "of which the network sees" not in note]  # all is read, in windows
    ids = read.token_ids[0]
    if run.separator_id is None:
        ids = torch.cat((torch.tensor([first_id(run.tokenizer, None)]), ids))
    decoder = run.tokenizer.stream()
    pieces = [decoder.write(i) for i in ids[1:].tolist()]
    if len(pieces) > run.network.context_length:
        notes.append(f"each of the {len(pieces)} tokens is given at most {run.network.context_length} before it")
    return Surprise(pieces, _bits(run, ids), notes)


def attention_of(run: Loaded, text: str) -> Attention:
    """What every attention of a run looks at in a text; a translator's, while it writes its own translation.

    A classifier's text is cut as in training, of a generator's the end is read, of a translator's the beginning.
    Raises UserError for a text that cannot be read, and for a network without attention.
    """
    if not has_attention(run.network):
        raise UserError(f"{run.folder.path} has no attention: its network is without; name another run")
    if not text.strip():
        raise UserError("the text is empty; write one")
    match run:
        case LoadedClassifier():
            found = run.tokenizer.split(text)
            if not found:
                raise UserError(NO_WORD)
            ids, kept, notes = read_review(run, found)
            tokens = _tokens_of(run, ids, found, kept)
            return Attention(_collect(run.network, (ids,), tokens, tokens), notes)
        case LoadedGenerator():
            read = run.read(text, Writing())
            seen = read.token_ids[:, -run.network.context_length :]
            tokens = [readable(run.tokenizer, i, run.separator_id) for i in seen[0].tolist()]
            return Attention(_collect(run.network, (seen,), tokens, tokens), read.notes)
        case LoadedTranslator():
            text, notes = shortened(run, text)
            written = run.write(text, beam_size=1)
            source = torch.from_numpy(run.read([text])[0].astype(np.int64))[None]  # (1, sources)
            target = torch.tensor([[BEGIN_ID, *written]])
            sources = run.tokenizers.source.readable(source[0].tolist())
            targets = [BEGIN, *run.tokenizers.target.readable(written)]
            return Attention(_collect(run.network, (source, target), sources, targets, [*targets[1:], END]), notes)


def shortened(run: LoadedTranslator, text: str) -> tuple[str, list[str]]:
    """As many words of a sentence as the run can read, with what there is to say."""
    words, limit = text.split(), run.network.context_length

    def length(count: int) -> int:
        return int(run.tokenizers.source.encode_batch([" ".join(words[:count])]).lengths[0])

    if length(len(words)) <= limit:
        return text, []
    low, high = 0, len(words)  # low words fit, high do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if length(middle) <= limit else (low, middle)
    sentence = " ".join(words[:low])
    if not low:  # one word is too long by itself
        sentence = words[0][:1]
        while len(sentence) < len(words[0]):
            longer = words[0][: len(sentence) + 1]
            if run.tokenizers.source.encode_batch([longer]).lengths[0] > limit:
                break
            sentence = longer
    return sentence, [
        f"the text has more than {limit} tokens, which is all that the run reads: cut after “{sentence[-30:]}”"
    ]


def has_attention(network: nn.Module) -> bool:
    """Whether any part of a network is an attention."""
    return any(isinstance(module, MultiHeadAttention) for module in network.modules())


def readable(tokenizer: TextTokenizer, token_id: int, separator_id: int | None = None) -> str:
    """A token of a generator as people can see it: a space as ␣, a new line as ⏎, the end of a document as [end]."""
    if token_id == separator_id:
        return "[end]"
    if isinstance(tokenizer, WordText):
        return tokenizer.words[token_id]
    return decode(tokenizer, [token_id]).translate(READABLE)


def read_review(run: LoadedClassifier, found: list[str]) -> tuple[Tensor, NDArray[np.int64], list[str]]:
    """The words of a review as the network is given them, cut as in training.

    Returns the ids, (1, tokens); of which word each is, (tokens,); and what there is to say.
    """
    ids = run.tokenizer.encode_batch(found)  # of each word
    word_of_token = np.repeat(np.arange(len(found)), ids.lengths)
    context_length = run.config["context_length"]
    every_place = RaggedIds(np.arange(len(word_of_token), dtype=np.int32), np.array([0, len(word_of_token)]))
    places = run.batch(every_place, np.array([0])).token_ids[0].numpy()  # (kept,)
    notes = []
    if len(word_of_token) > context_length:
        notes.append(f"the text has {len(word_of_token)} tokens, of which the network is given {context_length}")
    chosen = ids.ids[places].astype(np.int64)
    if unknown := int((chosen == UNKNOWN_ID).sum()):
        notes.append(f"unknown to the run, and read as [UNK]: {unknown} of {len(chosen)}")
    return torch.from_numpy(chosen)[None], word_of_token[places], notes


def _tokens_of(run: LoadedClassifier, ids: Tensor, found: list[str], kept: NDArray[np.int64]) -> list[str]:
    """Each token for people: whole words as they are, with unknown ones in brackets; else the pieces."""
    if run.tokenizer.kind == "word":
        known = (ids[0] != UNKNOWN_ID).tolist()
        return [found[i] if is_known else f"[{found[i]}]" for i, is_known in zip(kept, known, strict=True)]
    return [run.tokenizer.words[i].replace(CONTINUATION, "·") for i in ids[0].tolist()]


def _log_odds(logits: Tensor) -> Tensor:
    """Of every class against all others: (batch, outputs) -> (batch, classes); one output is a yes or no."""
    if logits.shape[1] == 1:
        return torch.cat((-logits, logits), dim=1)
    num_classes = logits.shape[1]
    own = torch.eye(num_classes, dtype=torch.bool)
    others = logits[:, None, :].expand(-1, num_classes, -1).masked_fill(own, -torch.inf)  # (batch, classes, classes)
    return logits - others.logsumexp(dim=2)


def _word_layers(network: Any) -> list[nn.Module]:
    """What turns a classifier's words into numbers, each of which says something for or against a class."""
    if isinstance(network, LogisticRegression):
        return [network.weights]
    evidence = getattr(network, "evidence", None)
    return [network.embedding] if evidence is None else [network.embedding, evidence]


def _integrated_gradients(network: nn.Module, layers: list[nn.Module], ids: Tensor, chosen: int) -> NDArray[np.float64]:
    """By captum, from unknown words to the real ones: (tokens,)."""
    from captum.attr import LayerIntegratedGradients

    with warnings.catch_warnings():  # neither layer depends on the other
        warnings.filterwarnings("ignore", message="Multiple layers provided")
        method: Any = LayerIntegratedGradients(lambda token_ids: _log_odds(network(token_ids))[:, chosen], layers)
    found = method.attribute(ids, baselines=torch.full_like(ids, UNKNOWN_ID), n_steps=STEPS)  # (1, tokens, ·) of each
    return sum(part.detach()[0].sum(dim=1).double().numpy() for part in found)


def _gradient_times_input(network: nn.Module, layers: list[nn.Module], ids: Tensor, chosen: int) -> NDArray[np.float64]:
    """The gradient at the text, times the way from unknown words to it: (tokens,)."""
    vectors: list[Tensor] = []

    def keep(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> Tensor:
        vectors.append(output.detach().requires_grad_())
        return vectors[-1]

    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        odds = _log_odds(network(ids))[0, chosen]
    finally:
        for hook in hooks:
            hook.remove()
    gradients = torch.autograd.grad(odds, vectors)  # (1, tokens, ·) of each layer
    scores = torch.zeros(ids.shape[1], dtype=torch.float64)
    with torch.no_grad():
        for layer, vector, gradient in zip(layers, vectors, gradients, strict=True):
            way = vector - layer(torch.full_like(ids, UNKNOWN_ID))
            scores += (gradient * way)[0].sum(dim=1)
    return scores.numpy()


@torch.inference_mode()
def _bits(run: LoadedGenerator, ids: Tensor) -> NDArray[np.float64]:
    """-log2 of the probability of every token but the first, given at most a context before it: (length - 1,)."""
    context_length = run.network.context_length
    head = run.network(ids[None, :-1][:, :context_length])[0]  # the first window predicts all its tokens at once
    logits = [head.double().log_softmax(dim=1).gather(1, ids[1 : len(head) + 1, None])[:, 0]]
    starts = range(1, len(ids) - context_length)
    for first in range(0, len(starts), WINDOWS_AT_ONCE):
        chosen = torch.tensor(starts[first : first + WINDOWS_AT_ONCE])
        windows = ids[chosen[:, None] + torch.arange(context_length)]  # (windows, context_length)
        last = run.network(windows)[:, -1].double().log_softmax(dim=1)
        logits.append(last.gather(1, ids[chosen + context_length][:, None])[:, 0])
    return -torch.cat(logits).numpy() / np.log(2)


def _collect(
    network: nn.Module, inputs: tuple[Tensor, ...], sources: list[str], targets: list[str], written: Sequence[str] = ()
) -> list[AttentionMap]:
    """Run a network on one text, (1, length) ids each side, and keep what its attentions looked at.

    sources, targets: the tokens that are read; written: what cross-attention writes at each target.
    """
    with torch.inference_mode(), attention_weights(network) as found:
        network(*inputs)
    maps = []
    for path, weights in found.items():
        stack, number, attention = path.split(".")[:3]
        is_cross = attention == "cross_attention"
        side = "" if stack == "blocks" else f"{stack} "
        name = f"{side}block {int(number) + 1}" + (", cross-attention" if is_cross else "")
        queries = sources if stack == "encoder" else written if is_cross else targets
        keys = sources if stack == "encoder" or is_cross else targets
        maps.append(AttentionMap(name, weights[0].float().numpy(), list(queries), keys))
    return maps
