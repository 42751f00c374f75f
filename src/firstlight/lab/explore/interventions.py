"""Figures of interventions: what the parts of a network do, on one text, on a split, and over a training."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight import figures
from firstlight.figures import style
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.load import load
from firstlight.kind.subject import Subject
from firstlight.lab.reports.significance import mean_interval
from firstlight.lit.losses import log_odds, two_logits
from firstlight.networks import interventions
from firstlight.networks.instrument import activation_names, run_with_cache
from firstlight.text.tokenizers import UNKNOWN_ID

MOST_TOKENS = 14  # columns of a figure of one text; the last ones are drawn
MASK = "[MASK]"
TEXTS, LONGEST_HALF = 32, 25  # random texts for the scores of heads, and the tokens that are repeated
UNITS, TEXTS_OF_UNIT, AROUND = 6, 4, 7  # units, passages of each, and tokens before and after the most exciting one
SCORES = ("induction", "previous_token", "duplicate_token")
Scores = dict[str, NDArray[np.float64]]  # (blocks, heads) each


@dataclass(frozen=True)
class Reading:
    """A text as a network reads it.

    inputs: the arguments of the network, with a batch of one text. tokens: the names of the first one. columns: the
    names of the tokens at which the network answers; [] for a classifier. place: the index of the answer among them.
    """

    run: Any
    inputs: tuple[Any, ...]
    tokens: list[str]
    columns: list[str]
    place: int
    notes: list[str]

    def score(self, answer: int) -> Callable[[Tensor], Tensor]:
        """Return a function that returns the log-odds of an answer, (texts,), for the output of the network."""
        return lambda output: log_odds(self.logits(output).double())[:, answer]

    def logits(self, output: Tensor) -> Tensor:
        """Return the logits of the answer, (texts, answers). A single logit of two classes becomes their difference."""
        return two_logits(output if output.ndim == 2 else output[:, self.place])

    def name(self, answer: int) -> str:
        """Return the name of an answer: a class or a token."""
        return token_name(self.run, answer) if self.columns else str(self.run.class_names[answer])


@contextmanager
def refusals_shown() -> Iterator[None]:
    """Show why a network cannot be examined in place of a figure: turn its ValueError into NothingToDrawError."""
    try:
        yield
    except ValueError as error:
        raise NothingToDrawError(str(error)) from error


def token_name(run: Any, token_id: int) -> str:
    """Return the readable name of a token that a run reads or writes."""
    if hasattr(run, "readable"):
        return str(run.readable(token_id))
    words = run.tokenizer.words
    if hasattr(run.tokenizer, "readable"):
        return str(run.tokenizer.readable([token_id])[0] or words[token_id])
    return MASK if token_id == len(words) else str(words[token_id])


def read(run: Any, text: str) -> Reading:
    """Return a text as the network of a run reads it for its figure of attention."""
    seen: list[tuple[Any, ...]] = []
    handle = run.network.register_forward_pre_hook(lambda _network, inputs: seen.append(inputs))
    try:
        found = run.attention(text)
    finally:
        handle.remove()
    inputs = seen[-1]
    own = [part for part in found.maps if "cross" not in part.name]
    tokens, answered = own[0].queries, own[-1].queries
    with torch.no_grad():
        is_classifier = run.network(*inputs).ndim == 2
    place = answered.index(MASK) if MASK in answered else 0 if "encoder" in own[0].name else len(answered) - 1
    return Reading(run, inputs, tokens, [] if is_classifier else answered, place, found.notes)


def _reading(subject: Subject) -> Reading:
    """Return the text of the figures, and refuse a network without named activations."""

    def find() -> Reading:
        text, notes = subject.chosen_text()
        with refusals_shown():
            activation_names(subject.run.network)
        chosen = text if subject.text is not None else subject.run.beginning(text)
        found = subject.of_text(chosen, lambda each: read(subject.run, each))
        found.notes[:0] = notes
        return found

    return subject.part("reading", find)


@torch.no_grad()
def _answer(subject: Subject) -> tuple[Reading, int, str]:
    """Return the text of the figures, the most probable answer of the network, and its name with the place."""
    reading = _reading(subject)
    answer = int(reading.logits(reading.run.network(*reading.inputs))[0].argmax())
    place = reading.columns[reading.place] if reading.columns else ""
    where = f" {'for' if place == MASK else 'after'} “{place}”" if place else ""
    return reading, answer, f"“{reading.name(answer)}”{where}"


def logit_lens(subject: Subject) -> Drawn:
    """Return the figure of the answers after each block."""
    reading = _reading(subject)
    lens = interventions.logit_lens(reading.run.network, *reading.inputs)
    rows = ["input", *(f"block {number}" for number in range(1, len(lens)))]
    if reading.columns:
        columns = reading.columns[-MOST_TOKENS:]
        best = [logits[0, -len(columns) :].softmax(dim=-1).max(dim=-1) for logits in lens.values()]
        texts = {"": [[reading.name(int(answer)) for answer in answers] for _, answers in best]}
        shares = np.array([values.numpy() for values, _ in best])
    else:
        columns, texts = reading.run.class_names, None
        shares = np.array([reading.logits(logits)[0].softmax(dim=0).numpy() for logits in lens.values()])
    title = "Answers if the blocks above are left out"
    figure = figures.plot_block_grid({"": shares}, rows, columns, title=title, label="probability", texts=texts)
    return Drawn(figure, reading.notes)


def occlusion(subject: Subject) -> Drawn:
    """Return the figure of the change of the answer if one token is replaced."""
    reading, answer, name = _answer(subject)
    unknown = getattr(reading.run.tokenizer, "unknown_id", UNKNOWN_ID)
    filler = 0 if unknown is None else unknown
    network, score = reading.run.network, reading.score(answer)
    falls = interventions.occlusion(network, *reading.inputs, score=score, filler=filler)
    title = f"Change of the answer {name} without each token"
    figure = figures.plot_colored_words(reading.tokens, falls.numpy(), title=title, label="fall of the log-odds (nats)")
    return Drawn(figure, reading.notes)


def logit_attribution(subject: Subject) -> Drawn:
    """Return the figure of the contributions of heads and feed-forward layers to the logit of the answer."""
    reading, answer, name = _answer(subject)

    def score(output: Tensor) -> Tensor:
        logits = reading.logits(output)[0]
        return logits[answer] - logits[1 - answer] if len(logits) == 2 else logits[answer]

    with refusals_shown():
        found = interventions.direct_logit_attribution(reading.run.network, *reading.inputs, score=score)
    total = sum(found.values())
    names, values = [_readable(part) for part in found], np.array([*found.values()])
    title = f"Parts of the logit of {name}, which is {total:.2f}"
    figure = figures.plot_contributions(names, values, title=title, label="contribution to the logit")
    return Drawn(figure, reading.notes)


def _readable(part: str) -> str:
    """Return a name such as "block 1, head 2" for `blocks.0.attn.1`."""
    stack, _, rest = part.partition(".")
    number, _, layer = rest.partition(".")
    if not number:
        return part
    block = f"{stack.removesuffix('s') if stack == 'blocks' else f'{stack} block'} {int(number) + 1}"
    kind, _, head = layer.partition(".")
    names = {"": "", "mlp": ", feed-forward", "attn": ", head", "cross_attn": ", cross-attention head"}
    return f"{block}{names[kind]}" + (f" {int(head) + 1}" if head else "")


def ablation(subject: Subject) -> Drawn:
    """Return the figure of the change of the loss without each head, feed-forward layer and block."""
    run = subject.run
    inputs, losses = run.texts_with_losses(subject.data)
    with refusals_shown():
        changes = interventions.mean_ablation(run.network, *inputs, losses=losses)
    found = [mean_interval(change.tolist()) for change in changes.values()]
    means, intervals = np.array([each.value for each in found]), np.array([(each.low, each.high) for each in found])
    title = f"Loss of {found[0].count} validation texts without one part"
    names = [_readable(part) for part in changes]
    return Drawn(figures.plot_contributions(names, means, intervals, title=title, label="change of the loss (nats)"))


def patching(subject: Subject) -> Drawn:
    """Return the figure of the vectors that carry the answer from one text to another."""
    reading, answer, name = _answer(subject)
    notes = list(reading.notes)
    ids = reading.inputs[0]
    if subject.against is None:
        if ids.shape[1] < 3:
            raise NothingToDrawError("the text has fewer than 3 tokens; choose a longer one by --text")
        middle = ids.shape[1] // 2
        other = ids.clone()
        other[0, middle] = ids[0, middle - 1]
        notes.append(f"the other text repeats “{reading.tokens[middle - 1]}” in place of “{reading.tokens[middle]}”")
    else:
        other = read(reading.run, subject.against).inputs[0]
        notes.append("the other text is that of --against")
    others = (other, *reading.inputs[1:])
    with refusals_shown():
        network, score = reading.run.network, reading.score(answer)
        shares = interventions.activation_patching(network, reading.inputs, others, score=score)
    stack = "encoder" if any(each.startswith("encoder") for each in shares) else "blocks"
    found = np.array([values.numpy() for part, values in shares.items() if part.startswith(stack)])
    rows = [f"before {_readable(part.removesuffix('.hook_resid_pre'))}" for part in shares if part.startswith(stack)]
    title, label = f"Where the answer {name} comes from", "share of the effect"
    figure = figures.plot_block_grid({"": found}, rows, reading.tokens, title=title, label=label, limits=(-1.0, 1.0))
    return Drawn(figure, notes)


def scores_of_heads(run: Any) -> Scores:
    """Return the scores of the heads of a generator on random tokens: (blocks, heads) each, by their names."""
    words = [i for i in range(run.tokenizer.vocab_size) if i not in run.tokenizer.unwritten and i != run.separator_id]
    count = min(LONGEST_HALF, run.network.context_length // 2)
    if count < 2:
        raise NothingToDrawError("the context is shorter than 4 tokens, and the figure repeats at least 2")
    chosen = torch.randint(len(words), (TEXTS, count), generator=torch.Generator().manual_seed(0))
    with refusals_shown():
        found = interventions.head_scores(run.network, torch.tensor(words)[chosen].repeat(1, 2))
    return {name: values.double().numpy() for name, values in found.items()}


def matched(scores: Scores, reference: Scores) -> Scores:
    """Return the scores of the heads of another run, each at the place of the head of the reference with its role.

    The heads of two seeds have no common order. They are paired so that the squared differences of all scores have the
    smallest sum (`scipy.optimize.linear_sum_assignment`). scores, reference: as `scores_of_heads` returns them.
    """
    from scipy.optimize import linear_sum_assignment

    ours, theirs = (np.stack([each[name].ravel() for name in SCORES], axis=1) for each in (reference, scores))
    _, order = linear_sum_assignment(((ours[:, None] - theirs) ** 2).sum(axis=2))
    return {name: values.ravel()[order].reshape(values.shape) for name, values in scores.items()}


def head_scores(subject: Subject) -> Drawn:
    """Return the figure of the scores of all heads, of one run, or also their means over several runs."""
    own, *others = map(scores_of_heads, (subject.run, *subject.others))
    blocks, heads = own["induction"].shape
    if any(each["induction"].shape != (blocks, heads) for each in others):
        raise NothingToDrawError("the runs of --compare have other numbers of blocks or heads")
    panels, texts = {}, {}
    every = [own, *(matched(each, own) for each in others)]
    for name in SCORES:
        shown = name.replace("_", " ")
        panels[shown] = own[name]
        texts[shown] = [[f"{value:.2f}" for value in row] for row in own[name]]
        if others:
            mean = f"{shown}, mean of {len(every)} runs"
            scores = np.stack([each[name] for each in every], 2).tolist()  # (blocks, heads, runs)
            found = [[mean_interval(each) for each in row] for row in scores]
            panels[mean] = np.array([[each.value for each in row] for row in found])
            texts[mean] = [[f"{each.value:.2f} ± {each.half_width:.2f}" for each in row] for row in found]
    rows, columns = [f"block {i + 1}" for i in range(blocks)], [f"head {i + 1}" for i in range(heads)]
    title, label = "Attention of each head on repeated random tokens", "mean attention weight"
    return Drawn(figures.plot_block_grid(panels, rows, columns, title=title, label=label, texts=texts))


def head_development(subject: Subject) -> Drawn:
    """Return the figure of the scores of heads over the training, with a line for each run that kept checkpoints."""
    if len(subject.run.folder.kept_checkpoints) < 2:
        raise NothingToDrawError("the run kept no checkpoints; train with callbacks.checkpoint.keep_every=100")
    curves = []
    for run in (subject.run, *subject.others):
        kept = run.folder.kept_checkpoints
        found = [scores_of_heads(load(str(path))) for path in kept.values()]
        for name, color in zip(SCORES if found else (), style.PALETTE, strict=False):
            block, head = np.unravel_index(found[-1][name].argmax(), found[-1][name].shape)
            which = " of each run" if subject.others else f": block {block + 1}, head {head + 1}"
            label = name.replace("_", " ") + which
            values = np.array([scores[name][block, head] for scores in found])
            curves.append(figures.Curve(label, np.array([*kept]), values, color))
    return Drawn(figures.plot_curves({"mean attention weight": curves}, title="When heads took their roles"))


@torch.no_grad()
def exciting_texts(subject: Subject) -> Drawn:
    """Return the figure of the passages in which units of the last feed-forward layer are most active."""
    run = subject.run
    inputs, _ = run.texts_with_losses(subject.data)
    with refusals_shown():
        names = [name for name in activation_names(run.network) if name.endswith("mlp.hook_post")]
    if not names:
        raise NothingToDrawError("the network has no feed-forward layers with hidden units")
    _, cache = run_with_cache(run.network, *inputs, names_filter=names[-1])
    ids = (inputs[1] if names[-1].startswith("decoder") else inputs[0]).flatten(0, -2)  # of all answers
    masks = [each.flatten(0, -2) for each in inputs if isinstance(each, Tensor) and each.dtype is torch.bool]
    real = masks[-1] if masks else torch.ones_like(ids, dtype=torch.bool)
    values = cache[names[-1]][: len(ids)].masked_fill(~real[..., None], 0.0)  # of both orders, the first
    highest, places = values.max(dim=1)  # (texts, units)
    excited = highest.topk(min(TEXTS_OF_UNIT, len(highest)), dim=0).values.mean(dim=0)  # (units,)
    units = excited / (highest.mean(dim=0).abs() + 1e-6)
    found: dict[str, list[tuple[list[str], NDArray[np.float32]]]] = {}
    gap = "" if hasattr(run, "readable") else " "  # between words

    def passage(text: int, unit: int) -> tuple[list[str], NDArray[np.float32]]:
        """Return the names and the activations of the tokens around the most exciting one of a text."""
        place = int(places[text, unit])
        part = slice(max(place - AROUND, 0), min(place + AROUND + 1, int(real[text].sum())))
        return [token_name(run, i) + gap for i in ids[text, part].tolist()], values[text, part, unit].numpy()

    for unit in units.topk(min(UNITS, len(units))).indices.tolist():
        best = highest[:, unit].topk(min(TEXTS_OF_UNIT, len(highest))).indices.tolist()
        found[f"unit {unit + 1}"] = [passage(i, unit) for i in best]
    title = f"Passages that excite units of {_readable(names[-1].removesuffix('.hook_post'))}"
    return Drawn(figures.plot_exciting_texts(found, title=title))
