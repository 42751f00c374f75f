"""Post 3's sentence, "the cat sat on the mat", from its words to their vectors, computed by hand."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from firstlight.lab.explore.data import word_vectors
from firstlight.text.tokenizers import PAD_ID, UNKNOWN_ID, train_word_tokenizer
from firstlight.text.vectors import cooccurrence, power_iteration, principal_components

Numbers = NDArray[np.float64]

WORDS = ["cat", "mat", "on", "sat", "the"]  # each is in one text, hence in alphabetical order
NEIGHBORS = {
    "cat": {"the": 1, "sat": 1},
    "mat": {"the": 1},
    "on": {"sat": 1, "the": 1},
    "sat": {"cat": 1, "on": 1},
    "the": {"cat": 1, "on": 1, "mat": 1},
}
ROOT = math.sqrt(6)


def counted() -> csr_array:
    """Return the counts of the tokenizer's words: (5, 5)."""
    tokenizer = train_word_tokenizer(["The cat sat on the mat."])
    ids = tokenizer.encode_batch(["The cat sat on the mat."])
    assert tokenizer.words[2:] == WORDS
    counts = cooccurrence(ids, tokenizer.vocab_size)
    special = [PAD_ID, UNKNOWN_ID]
    assert not counts[special].sum()
    assert not counts[:, special].sum()
    return counts[2:, 2:]


def rows_by_hand() -> Numbers:
    """Return each row of the counts minus its mean, divided by its standard deviation.

    A row with two ones of five has the mean 2/5 and the variance 2/5 - 4/25 = 6/25, so 1 becomes (3/5) / (√6/5) = 3/√6
    and 0 becomes -2/√6. With three ones, they become 2/√6 and -3/√6. A row with a single one has the mean 1/5 and the
    variance 1/5 - 1/25 = 4/25, so 1 becomes 2 and 0 becomes -1/2.
    """
    one_and_zero = {1: (2, -1 / 2), 2: (3 / ROOT, -2 / ROOT), 3: (2 / ROOT, -3 / ROOT)}
    rows = []
    for word in WORDS:
        one, zero = one_and_zero[len(NEIGHBORS[word])]
        rows.append([one if other in NEIGHBORS[word] else zero for other in WORDS])
    return np.array(rows)


def post_components(rows: Numbers, dim: int) -> tuple[Numbers, Numbers]:
    """Return the components as in post 3: the covariance, v ← Av/‖Av‖, then A ← A - λvvᵀ."""
    covariance = rows.T @ rows / len(rows)
    eigenvalues, eigenvectors = [], []
    for _ in range(dim):
        vector = np.array([1.0, 2.0, 3.0, 5.0, 7.0])
        for _ in range(2_000):
            vector = covariance @ vector
            vector /= np.linalg.norm(vector)
        eigenvalues.append(vector @ covariance @ vector)
        eigenvectors.append(vector * np.sign(vector[np.abs(vector).argmax()]))
        covariance = covariance - eigenvalues[-1] * np.outer(vector, vector)
    return np.array(eigenvalues), np.stack(eigenvectors, axis=1)


def test_the_sentences_components_are_those_of_post_3s_own_loop() -> None:
    assert counted().toarray().tolist() == [[NEIGHBORS[word].get(other, 0) for other in WORDS] for word in WORDS]
    rows = rows_by_hand()
    assert rows.mean(axis=1) == pytest.approx(0)
    assert rows.std(axis=1) == pytest.approx(1)
    eigenvalues, eigenvectors = post_components(rows, 2)
    assert eigenvalues[0] > 1.5 * eigenvalues[1] > 0
    found_values, found_vectors = power_iteration(rows.T @ rows / 5, 2)
    assert found_values == pytest.approx(eigenvalues)
    assert found_vectors == pytest.approx(eigenvectors, abs=1e-6)
    assert principal_components(counted(), 2) == pytest.approx(rows @ eigenvectors, abs=1e-5)


def test_the_picture_has_the_words_at_their_first_two_components() -> None:
    tokenizer = train_word_tokenizer(["The cat sat on the mat."])
    ids = tokenizer.encode_batch(["The cat sat on the mat."])
    encoded = SimpleNamespace(tokenizer=tokenizer, select=ids.select, rows_of=lambda _: np.arange(1))
    subject: Any = SimpleNamespace(encoded=encoded, config={"vectors": {"method": "power"}})
    (axes,) = word_vectors(subject).figure.axes
    counts = cooccurrence(ids, tokenizer.vocab_size).toarray()
    deviation = counts.std(axis=1, keepdims=True)
    rows = (counts - counts.mean(axis=1, keepdims=True)) / np.where(deviation, deviation, 1)
    eigenvalues, eigenvectors = np.linalg.eigh(rows.T @ rows / len(rows))
    expected = np.abs(rows @ eigenvectors[:, [-1, -2]])[2:]  # without [PAD] and [UNK]
    (points,) = (np.array(line.get_data()).T for line in axes.lines)
    assert np.abs(points) == pytest.approx(expected, abs=1e-5)
    shares = eigenvalues[[-1, -2]] / eigenvalues.sum()
    assert axes.get_xlabel() == f"1st component ({shares[0]:.0%} of variance)"
    assert axes.get_ylabel() == f"2nd component ({shares[1]:.0%})"
    assert {text.get_text() for text in axes.texts} <= set(WORDS)
