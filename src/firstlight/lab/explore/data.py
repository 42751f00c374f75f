"""Figures of training data."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from firstlight.data.row_options import longest
from firstlight.data.store import SPLITS
from firstlight.figures import plot_coverage, plot_embeddings, plot_label_counts, plot_lengths, plot_table
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.registry import kind_of_saved
from firstlight.kind.subject import Subject
from firstlight.kind.tokens import drawn_words
from firstlight.lab.explore.catalog import form_of
from firstlight.text.normalize import words
from firstlight.text.options import EigenMethod
from firstlight.text.statistics import as_texts, text_statistics
from firstlight.text.text_tokenizers import CharacterTokenizer, decode
from firstlight.text.tokenizers import UNKNOWN_ID
from firstlight.text.vectors import cooccurrence, explained_variance, principal_components

MOST_CLASSES = 40
MOST_WORDS = 120  # words in the figure of word vectors; opinions are first
PASSAGES = re.compile(r"\n\s*\n")


def lengths(subject: Subject) -> Drawn:
    """Return the figure of the lengths of texts in tokens and in characters, and of the share that fits the context."""
    encoded = subject.encoded
    rows = encoded.rows_of("train")
    num_tokens = longest(encoded.lengths[rows])
    characters = np.array([len(text) for text in subject.texts(rows)])
    unit = "words" if encoded.tokenizer.kind == "word" else "subwords"
    is_cut = not kind_of_saved(subject.config["model"]).model.reads_windows
    figure = plot_lengths(
        {f"{unit} in a text": num_tokens, "characters in a text": characters},
        num_tokens <= subject.context_length if is_cut else None,
        title=f"Lengths of {len(rows):,} training texts",
        limit=f"the context of {subject.context_length} {unit}",
    )
    return Drawn(figure)


def pair_lengths(subject: Subject) -> Drawn:
    """Return the figure of the lengths of source and target sentences."""
    data = subject.data
    rows = data.encoded.rows_of("train")
    source, target = data.encoded.source.lengths[rows], data.encoded.target.lengths[rows] + 1
    names = data.options.source_column, data.options.target_column
    figure = plot_lengths(
        {f"tokens of a source ({names[0]})": source, f"tokens of a target ({names[1]}) with end mark": target},
        np.maximum(source, target) <= subject.context_length,
        title=f"Lengths of the sentences of {len(rows):,} training pairs",
        limit=f"the context of {subject.context_length} tokens on both sides",
        count="pairs",
    )
    return Drawn(figure)


def labels(subject: Subject) -> Drawn:
    """Return the figure of the number of rows with each label."""
    encoded = subject.encoded
    num_labels = len(encoded.label_names)
    counts = [np.bincount(encoded.labels[encoded.rows_of(split)], minlength=num_labels) for split in SPLITS]
    there = [i for i, values in enumerate(counts) if values.sum()]
    table = np.array([counts[i] for i in there])
    names, notes = encoded.label_names, []
    if num_labels > MOST_CLASSES:
        most = np.sort(np.argsort(-table.sum(axis=0), kind="stable")[:MOST_CLASSES])
        table, names = table[:, most], [names[i] for i in most]
        notes.append(f"the figure shows the {MOST_CLASSES} most frequent of {num_labels} classes")
    return Drawn(plot_label_counts(table, [SPLITS[i] for i in there], names), notes)


def statistics(subject: Subject) -> Drawn:
    """Return the table of the statistics of the complete text, which is read from the source again."""
    data = subject.data
    rows = as_texts(text_statistics(data.complete_text()))
    return Drawn(plot_table(rows, title=f"Statistics of {Path(data.source.where).name}"))


def passages(subject: Subject) -> Drawn:
    """Return the figure of the lengths of documents, or of passages between blank lines."""
    data = subject.data
    are_characters = isinstance(data.tokenizer, CharacterTokenizer)
    if data.options.preparation.name == "lines":
        ends = np.flatnonzero(data.ids(data.stream("train")) == data.separator_id)
        found, unit, one = np.diff(ends) - 1, "characters" if are_characters else "tokens", "document"
    else:
        pieces = [piece for piece in PASSAGES.split(training_text(subject).strip("\n")) if piece]
        found, unit, one = np.array([len(piece) for piece in pieces]), "characters", "passage"
    count = f"{one}s"
    figure = plot_lengths(
        {f"{unit} in a {one}": found},
        found <= subject.context_length if are_characters else None,
        title=f"Lengths of {len(found):,} training {count}",
        limit=f"a context of {subject.context_length} characters",
        count=count,
        beyond="is longer",
    )
    return Drawn(figure)


def vocabulary(subject: Subject) -> Drawn:
    """Return the figure of the coverage of the text against the size of the vocabulary."""
    if form_of(subject.config["data"]) == "reviews":
        encoded, choices = subject.encoded, subject.data.options.choices
        rows, tokenizer = encoded.rows_of("train"), encoded.tokenizer
        texts = subject.texts(rows)
        read = texts if choices is None else choices.pairs(texts)
        found = _counts(word for text in read for word in tokenizer.words_of(text) if word not in tokenizer.marks)
        known = float((encoded.select(rows).ids != UNKNOWN_ID).mean())
        size = tokenizer.vocab_size - len(tokenizer.no_words)
        chosen = {"texts of training": (size, known)} if tokenizer.kind == "word" else {}
        return Drawn(plot_coverage({"texts of training": found}, chosen))
    return Drawn(plot_coverage({"words of the training text": _counts(words(training_text(subject)))}))


def word_vectors(subject: Subject) -> Drawn:
    """Return the figure of co-occurrence vectors of the training texts, in their first two principal components."""
    encoded = subject.encoded
    tokenizer = encoded.tokenizer
    if tokenizer.kind != "word":
        raise NothingToDrawError("the figure requires words; train with tokenizer=word")
    options = subject.config.get("vectors") or {}
    window = int(options.get("window", 1))
    ids = encoded.select(encoded.rows_of("train"))
    counts = cooccurrence(ids, tokenizer.vocab_size, window, tokenizer.no_words)
    points = principal_components(counts, 2, method=EigenMethod[options.get("method", EigenMethod.lanczos.name)])
    shares = [explained_variance(counts, points[:, [axis]]) for axis in range(2)]
    chosen, names, groups, group_names, notes = drawn_words(tokenizer.words, lambda i: tokenizer.words[i])
    kept = [place for place, i in enumerate(chosen) if points[i].any()][:MOST_WORDS]
    if not kept:
        raise NothingToDrawError("no two words of the training texts are next to each other")
    panel = "co-occurrence vectors, PCA"
    axis_labels = {panel: (f"1st component ({shares[0]:.0%} of variance)", f"2nd component ({shares[1]:.0%})")}
    title = f"Words by the words next to them, in {len(ids):,} training texts"
    places, tokens, own = zip(*((points[chosen[i]], names[i], groups[i]) for i in kept), strict=True)
    panels = {panel: np.array(places)}
    figure = plot_embeddings(panels, tokens, own, group_names, axis_labels=axis_labels, columns=1, title=title)
    return Drawn(figure, notes)


def training_text(subject: Subject) -> str:
    """Return the training split of a text."""
    data = subject.data
    return decode(data.tokenizer, data.ids(data.stream("train")).tolist())


def _counts(found: Iterable[str]) -> NDArray[np.int64]:
    return np.array([*Counter(found).values()], dtype=np.int64)
