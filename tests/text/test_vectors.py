from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from firstlight.errors import UserError
from firstlight.text.options import EigenMethod
from firstlight.text.ragged import RaggedIds
from firstlight.text.vectors import (
    cooccurrence,
    coverage,
    explained_variance,
    power_iteration,
    principal_components,
    read_vectors,
)

THE, CAT, SAT, ON, MAT = range(5)
THE_CAT = [THE, CAT, SAT, ON, THE, MAT]


def naive_counts(texts: list[list[int]], vocab_size: int, window: int, ignored: Sequence[int]) -> np.ndarray:
    counts = np.zeros((vocab_size, vocab_size))
    for text in texts:
        for here, one in enumerate(text):
            for there, other in enumerate(text):
                if here != there and abs(here - there) <= window and not {one, other} & set(ignored):
                    counts[one, other] += 1
    return counts


def counts_of(*texts: list[int], vocab_size: int = 5, window: int = 1, ignored: Sequence[int] = ()) -> np.ndarray:
    return cooccurrence(RaggedIds.from_rows(texts), vocab_size, window, ignored).toarray()


def standardized(counts: np.ndarray) -> np.ndarray:
    """Return the rows with mean 0 and standard deviation 1. A constant row becomes 0."""
    centered = counts - counts.mean(axis=1, keepdims=True)
    deviation = counts.std(axis=1, keepdims=True)
    return np.divide(centered, deviation, out=np.zeros_like(centered), where=deviation > 0)


def turned(vectors: np.ndarray) -> np.ndarray:
    """Return columns multiplied by 1 or -1, so that the largest entry of each is positive."""
    return np.stack([column * np.sign(column[np.abs(column).argmax()]) for column in vectors.T], axis=1)


def dense_components(counts: np.ndarray, dim: int) -> np.ndarray:
    rows = standardized(counts)
    _, eigenvectors = np.linalg.eigh(rows.T @ rows / len(rows))
    return rows @ turned(eigenvectors[:, ::-1][:, :dim])


@cache
def zipf_counts(vocab_size: int = 61, num_texts: int = 101, window: int = 2) -> csr_array:
    """Return the counts of texts with Zipf frequencies, in which each word is more likely after certain words."""
    generator = np.random.default_rng(7)
    frequency = 1 / np.arange(1, vocab_size + 1)
    follows = frequency * generator.gamma(0.5, size=(vocab_size, vocab_size))
    follows /= follows.sum(axis=1, keepdims=True)
    texts = []
    for _ in range(num_texts):
        text = [0]
        for _ in range(37):
            text.append(int(generator.choice(vocab_size, p=follows[text[-1]])))
        texts.append(text)
    return cooccurrence(RaggedIds.from_rows(texts), vocab_size, window)


# --- counted ---


@settings(deadline=None)
@given(
    texts=st.lists(st.lists(st.integers(0, 6), max_size=13), max_size=5),
    window=st.integers(1, 17),
    ignored=st.lists(st.integers(0, 6), max_size=2),
)
def test_the_counts_are_those_of_two_loops(texts, window, ignored):
    ours = counts_of(*texts, vocab_size=7, window=window, ignored=ignored)
    assert (ours == naive_counts(texts, 7, window, ignored)).all()


# --- reduced ---


@pytest.mark.parametrize("dim", [1, 5, 23])
def test_the_components_are_those_of_the_dense_covariance(dim):
    counts = zipf_counts()
    before = counts.toarray()
    for seed in (0, 3):
        vectors = principal_components(counts, dim, seed)
        assert vectors.shape == (61, dim)
        assert vectors.dtype == np.float32
        assert vectors == pytest.approx(dense_components(before, dim), abs=1e-4)
    assert (counts.toarray() == before).all()


def test_power_iteration_gives_the_word_vectors_of_lanczos():
    counts = zipf_counts()
    vectors = principal_components(counts, 7, method=EigenMethod.power)
    assert vectors == pytest.approx(principal_components(counts, 7), abs=1e-3)


def test_the_explained_variance_is_that_of_the_eigenvalues():
    counts = zipf_counts().toarray()
    counts[3] = 0
    rows = standardized(counts)
    eigenvalues = np.linalg.eigvalsh(rows.T @ rows)[::-1]
    for dim in (1, 7, 60):
        vectors = principal_components(csr_array(counts), dim)
        share = explained_variance(csr_array(counts), vectors)
        assert share == pytest.approx(eigenvalues[:dim].sum() / eigenvalues.sum(), rel=1e-5)
    assert explained_variance(csr_array((7, 7)), np.zeros((7, 3), np.float32)) == 0


def test_a_row_without_counts_or_with_equal_ones_becomes_zero():
    counts = zipf_counts().toarray()
    counts[3] = 0
    counts[5] = 0.1  # a row whose mean is not exact in binary
    vectors = principal_components(csr_array(counts), 11)
    assert np.flatnonzero(~vectors.any(axis=1)).tolist() == [3, 5]
    assert np.isfinite(vectors).all()


def test_the_same_counts_give_the_same_vectors_to_the_bit():
    counts = csr_array(np.eye(31))  # all eigenvalues but one are equal, so the eigenvectors are not unique
    one, same, other = (principal_components(counts, 3, seed) for seed in (5, 5, 7))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize("dim", [5, 7])
def test_as_many_components_as_words_are_refused(dim):
    counts = cooccurrence(RaggedIds.from_rows([THE_CAT]), 5)
    with pytest.raises(UserError, match=f"^model.dim={dim} is too large for a .* of 5 words; set model.dim below 5$"):
        principal_components(counts, dim)
    assert principal_components(counts, 4).shape == (5, 4)


def symmetric(eigenvalues: list[float]) -> np.ndarray:
    basis, _ = np.linalg.qr(np.random.default_rng(5).standard_normal((len(eigenvalues), len(eigenvalues))))
    return basis @ np.diag(eigenvalues) @ basis.T


def test_power_iteration_finds_the_eigenvalues_largest_in_size():
    matrix = symmetric([2, -7, 5, 1, 3])
    before = matrix.copy()
    eigenvalues, eigenvectors = power_iteration(matrix, 3)
    assert eigenvalues == pytest.approx([-7, 5, 3])
    assert eigenvectors.shape == (5, 3)
    assert matrix @ eigenvectors == pytest.approx(eigenvectors * eigenvalues, abs=1e-7)
    assert eigenvectors == pytest.approx(turned(eigenvectors))
    assert (matrix == before).all()


def test_power_iteration_finds_orthonormal_vectors_where_eigenvalues_are_equal_or_zero():
    matrix = symmetric([3, 3, 1, 0, 0])
    eigenvalues, eigenvectors = power_iteration(matrix, 5)
    assert eigenvalues == pytest.approx([3, 3, 1, 0, 0], abs=1e-8)
    assert eigenvectors.T @ eigenvectors == pytest.approx(np.eye(5), abs=1e-8)


def test_power_iteration_says_when_it_finds_nothing():
    with pytest.raises(UserError, match=r"component 2 does not converge; set it to lanczos"):
        power_iteration(np.diag([7.0, 1.0, -1.0]), 2, steps=101)


# --- read ---


def written(folder, content: str | bytes):
    path = folder / "vectors.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder, content: str | bytes, wanted: Sequence[str], dim: int = 3) -> dict[str, list[float]]:
    vectors = read_vectors(written(folder, content), wanted, dim)
    assert all(vector.shape == (dim,) and vector.dtype == np.float32 for vector in vectors.values())
    return {word: vector.tolist() for word, vector in vectors.items()}


def refused(folder, content: str | bytes, wanted: Sequence[str] = (), dim: int = 3) -> str:
    """Return the error message of reading a file, with FILE in place of its path."""
    path = written(folder, content)
    with pytest.raises(UserError) as caught:
        read_vectors(path, wanted, dim)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("the 0.5 -2 3e-1\n, 1 2 3\ncat 4 5 6\n", {"the": pytest.approx([0.5, -2, 0.3]), "cat": [4, 5, 6]}),
        ("2 3\n</s> 1 2 3 \ncat 4 5 6 \n", {"</s>": [1, 2, 3], "cat": [4, 5, 6]}),  # word2vec
        (". . . 1 2 3\na@b.c 4 5 6\n2008 7 8 9\n", {". . .": [1, 2, 3], "a@b.c": [4, 5, 6], "2008": [7, 8, 9]}),
        ("2 3\nat a@b.c 4 5 6\n2008 7 8 9\n", {"at a@b.c": [4, 5, 6], "2008": [7, 8, 9]}),
        ("2008 7 8 9\n", {"2008": [7, 8, 9]}),
        ("new york 7 8 9\n", {"new york": [7, 8, 9]}),
        *(
            (f"a{space}b 1 2 3\n{space} 4 5 6\n", {f"a{space}b": [1, 2, 3], space: [4, 5, 6]})
            for space in ("\u00a0", "\u0085", "\u2028", "\x1c", "\t")  # only a space separates
        ),
        ("cat 1 2 3\ncat 4 5 6\n", {"cat": [1, 2, 3]}),
        ("Cat 1 2 3\ncat 4 5 6\n", {"Cat": [1, 2, 3]}),
        ("\ufeff2 3\r\ncat 1 2 3\r\nmat 4 5 6\r\n", {"cat": [1, 2, 3], "mat": [4, 5, 6]}),
        ("cat 1 2 3\nmat 4 5 6", {"mat": [4, 5, 6]}),
    ],
)
def test_files_of_glove_and_word2vec_are_read_and_only_wanted_words_are_kept(tmp_path, content, expected):
    assert read(tmp_path, content, [*expected, ".", "new", "dog", "CAT"]) == expected


OTHER_FORM = "the line must have a word and 3 numbers, as model.dim=3, separated by single spaces; correct it"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "FILE:1: the file is empty; name a text file of GloVe or word2vec"),
        ("\ufeff", f"FILE:1: {OTHER_FORM}"),
        ("cat 1 2 3 4 5\n", "FILE has vectors of 5 numbers, but model.dim=3; set model.dim=5"),
        ("7 5\ncat 1 2 3 4 5\n", "FILE has vectors of 5 numbers, but model.dim=3; set model.dim=5"),
        (". . 1 2 3 4 5\n", "FILE has vectors of 5 numbers, but model.dim=3; set model.dim=5"),
        ("cat\t1\t2\t3\n", f"FILE:1: {OTHER_FORM}"),
        *(
            (f"cat 1 2 3\n{line}\nthe 4 5 6\n", f"FILE:2: {OTHER_FORM}")
            for line in ("mat 1 2", "", "mat 1 2 3 4", ". . 1 2 3 4", "mat  1 2 3")
        ),
        *(
            (f"cat 1 2 3\nmat 2 {number} 2\n", f"FILE:2: {number!r} is not a finite number; correct the line")
            for number in ("nan", "-inf", "1e39", "1,5", "x", "")
        ),
        (b"cat 1 2 3\nmat\0 1 2 3\n", "FILE:2: the line contains a NUL byte; save the file as UTF-8 text, unpacked"),
        *(
            (f"{promised} 3\n" + "cat 1 2 3\n" * lines, f"FILE:1: the header promises {promised} words, but the file")
            for promised, lines in ((3, 2), (1, 2), (2, 0))
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, content, problem):
    assert refused(tmp_path, content, ["mat"]).startswith(problem)


def test_coverage_counts_words_and_tokens():
    vocabulary = ["[PAD]", "[UNK]", "the", "cat", "zyzzyva"]
    ids = RaggedIds.from_rows([[2, 3, 2], [], [4, 1, 2, 3]])
    covered = coverage({"the": 1, "cat": 2, "[UNK]": 3, "dog": 4}, vocabulary, ids, ignored=[0, 1])
    assert covered == "2 of 3 words have a vector (71.4% of the training tokens)"
    assert coverage({"the"}, ["the"], RaggedIds.from_rows([])).startswith("1 of 1 words have a vector (0.0%")
