"""Fragments of the page as HTML. All texts of users and networks are escaped."""

import base64
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.figures import style
from firstlight.kind.attention import AttentionMap
from firstlight.kind.panel import Inputs

FOR, AGAINST = style.BLUE, style.VERMILION
DEEPEST = 0.5  # largest opacity of a color at which text is readable in light and dark
SMALL_SCORE = 0.5  # nats; a text with smaller scores only has pale colors
MOST_CLASSES = 10  # classes with a bar, the most probable ones
LEGEND = (  # of words with attention; page.js writes into it
    '<p class="legend"><span class="says">Point at a word, or move to it with Tab and the arrow keys, to see its '
    "attention.</span>"
    '<span class="looks"></span></p>'
)
MOST_UNREAD = 30  # consecutive words outside the context that are shown


def notice(message: str) -> str:
    """Return a message in place of an answer."""
    return f'<p class="notice">{escape(message)}</p>'


def notes(messages: Iterable[str]) -> str:
    """Return the notes below an answer, without duplicates."""
    return "".join(f'<p class="note">{escape(message)}</p>' for message in dict.fromkeys(messages))


def percent(share: float) -> str:
    """Return a share as text, such as 7.3%. Only exact values give 0% or 100%."""
    text = f"{100 * share:.1f}%"
    if text == "100.0%" and share < 1:
        return ">99.9%"
    return "<0.1%" if text == "0.0%" and share > 0 else text


def bars(shares: dict[str, float], chosen: str) -> str:
    """Return a bar for each of the most probable classes. Each bar is a button that requests an explanation."""
    names = list(shares)
    if len(names) > MOST_CLASSES:
        names = sorted(names, key=lambda name: -shares[name])[:MOST_CLASSES]
    parts = [
        f'<button type="button" class="bar" data-label="{escape(name)}" aria-pressed="{str(name == chosen).lower()}">'
        f'<span class="name">{escape(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100 * shares[name]:.2f}%"></span></span>'
        f'<span class="share">{escape(percent(shares[name]))}</span></button>'
        for name in names
    ]
    return f'<div class="bars">{"".join(parts)}</div>'


def shade(score: float, largest: float) -> str:
    """Return the background color of a word: blue if its score is positive, vermilion if it is negative."""
    strength = min(abs(score) / max(largest, SMALL_SCORE), 1.0) * DEEPEST
    return f"{FOR if score > 0 else AGAINST}{round(255 * strength):02x}"


def shaded_words(
    words: Sequence[str], kept: Sequence[int], scores: NDArray[np.float64], unknown: Iterable[int], label: str
) -> str:
    """Return a text with a background color for each word that the network reads. Other words are gray.

    kept: indices of the words that the network reads, in order. scores: (kept,). unknown: indices of words that are not
    in the vocabulary.
    """
    place = {number: i for i, number in enumerate(kept)}
    unknown = set(unknown)
    largest = float(np.abs(scores).max(initial=0.0))
    parts: list[str] = []
    for is_read, numbers in groupby(range(len(words)), place.__contains__):
        if not is_read:
            parts.append(_unread([words[number] for number in numbers]))
            continue
        for number in numbers:
            i, word, strange = place[number], escape(words[number]), number in unknown
            says = "not in the vocabulary" if strange else f"{scores[i]:+.2f} for {label}"
            parts.append(
                f'<span class="word{" unknown" if strange else ""}" data-row="{i}" data-column="{i}" '
                f'style="--shade:{shade(float(scores[i]), largest)}" title="{escape(says)}">{word}</span>'
            )
    return " ".join(parts)


def _unread(words: list[str]) -> str:
    more = f" … and {len(words) - MOST_UNREAD:,} more" if len(words) > MOST_UNREAD else ""
    shown = escape(" ".join(words[:MOST_UNREAD]) + more)
    return f'<span class="unread" title="the network does not read these words">{shown}</span>'


def tokens(names: Sequence[str], *sides: str) -> str:
    """Return tokens as HTML. sides: `row` for queries, `column` for keys of the attention."""
    shown = []
    for i, name in enumerate(names):
        places = " ".join(f'data-{side}="{i}"' for side in sides)
        shown.append(f'<span class="word" {places}>{escape(name) or "·"}</span>')
    return " ".join(shown)


def encoded(weights: NDArray[Any]) -> str:
    """Return (rows, columns) weights for page.js, as base64 with one byte for each weight."""
    return base64.b64encode(np.rint(255 * weights.clip(0, 1)).astype(np.uint8).tobytes()).decode()


class View:
    """Choice of the attention that is shown: one map, by default the last, and one head or the mean of all heads."""

    def __init__(self, maps: Sequence[AttentionMap], asked: Inputs) -> None:
        assert maps
        self.names = [each.name for each in maps]
        last = len(maps) - 1
        self.map = min(asked.integer("map", 0, 1000, last) or 0, last)
        self.shown = maps[self.map]
        num_heads = len(self.shown.weights)
        head = asked.integer("head", 0, 1000)
        self.head = head if head is not None and head < num_heads else None
        self.weights = self.shown.weights.mean(axis=0) if self.head is None else self.shown.weights[self.head]
        heads = [("", "mean of all heads"), *((str(i), f"head {i + 1}") for i in range(num_heads))]
        self._heads = heads if num_heads > 1 else heads[:1]

    def data(self) -> str:
        """Return the attributes of an HTML element with the weights for page.js."""
        return f'data-weights="{encoded(self.weights)}" data-columns="{self.weights.shape[1]}"'

    def choices(self) -> str:
        """Return two fields for the choice. page.js sends a new request when they change."""
        maps = _select("map", [(str(i), name) for i, name in enumerate(self.names)], str(self.map))
        heads = _select("head", self._heads, "" if self.head is None else str(self.head))
        return f'<p class="view">Attention on hover: <label>{maps}</label> <label>{heads}</label></p>'


def _select(name: str, options: Iterable[tuple[str, str]], chosen: str) -> str:
    shown = (
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in options
    )
    return f'<select name="{name}" aria-label="{name}">{"".join(shown)}</select>'
