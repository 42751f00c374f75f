import re
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
    Coverage,
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


def standardised(counts: np.ndarray) -> np.ndarray:
    """Return the rows with mean 0 and standard deviation 1. A constant row becomes 0."""
    centred = counts - counts.mean(axis=1, keepdims=True)
    deviation = counts.std(axis=1, keepdims=True)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)


def turned(vectors: np.ndarray) -> np.ndarray:
    """Return columns multiplied by 1 or -1, so that the largest entry of each is positive."""
    return np.stack([column * np.sign(column[np.abs(column).argmax()]) for column in vectors.T], axis=1)


def dense_components(counts: np.ndarray, dim: int) -> np.ndarray:
    rows = standardised(counts)
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


def test_the_cat_sat_on_the_mat():
    counts = cooccurrence(RaggedIds.from_rows([THE_CAT]), 5)
    assert isinstance(counts, csr_array)
    assert counts.dtype == np.float64
    assert counts.toarray().tolist() == [
        [0, 1, 0, 1, 1],  # the ↔ cat, on, mat
        [1, 0, 1, 0, 0],  # cat ↔ the, sat
        [0, 1, 0, 1, 0],  # sat ↔ cat, on
        [1, 0, 1, 0, 0],  # on ↔ sat, the
        [1, 0, 0, 0, 0],  # mat ↔ the
    ]


def test_a_window_of_two_counts_the_words_two_places_apart_too():
    assert counts_of(THE_CAT, window=2).tolist() == [
        [0, 1, 2, 1, 1],
        [1, 0, 1, 1, 0],
        [2, 1, 0, 1, 0],
        [1, 1, 1, 0, 1],
        [1, 0, 0, 1, 0],
    ]


@pytest.mark.parametrize("window", [1, 2, 7])
def test_words_of_two_texts_are_never_neighbours(window):
    together = counts_of([THE, CAT], [SAT], [], [ON, MAT], window=window)
    assert np.argwhere(together).tolist() == [[THE, CAT], [CAT, THE], [ON, MAT], [MAT, ON]]


def test_a_word_beside_itself_is_seen_from_both_sides():
    assert counts_of([CAT, CAT])[CAT, CAT] == 2


def test_an_ignored_word_neither_has_nor_gives_counts_and_keeps_its_place():
    text = [CAT, THE, SAT, ON]
    assert np.argwhere(counts_of(text, ignored=[THE])).tolist() == [[SAT, ON], [ON, SAT]]  # no cat next to sat
    assert counts_of(text, window=2, ignored=[THE])[CAT].tolist() == [0, 0, 1, 0, 0]  # at a distance of 2


@settings(deadline=None)
@given(
    texts=st.lists(st.lists(st.integers(0, 6), max_size=13), max_size=5),
    window=st.integers(1, 17),
    ignored=st.lists(st.integers(0, 6), max_size=2),
)
def test_the_counts_are_those_of_two_loops(texts, window, ignored):
    ours = counts_of(*texts, vocab_size=7, window=window, ignored=ignored)
    assert (ours == naive_counts(texts, 7, window, ignored)).all()


def test_ids_of_one_byte_are_counted_like_any_other():
    ids = np.random.default_rng(3).integers(0, 256, size=1009)
    offsets = np.array([0, 503, 1009])
    narrow, wide = (cooccurrence(RaggedIds(ids.astype(kind), offsets), 256) for kind in (np.uint8, np.int64))
    assert (narrow.toarray() == wide.toarray()).all()


# --- reduced ---


def test_a_case_by_hand():
    """The rows (1, 0, 0), (0, 1, 0), (0, 0, 0) become (2, -1, -1) / √2, (-1, 2, -1) / √2 and zeros."""
    counts = csr_array(np.diag([1.0, 1.0, 0.0]))
    vectors = principal_components(counts, 2)
    # the eigenvectors are (1, -1, 0) / √2, eigenvalue 9/2 · 2/3, and (1, 1, -2) / √6, eigenvalue 3/2 · 2/3
    assert vectors == pytest.approx(np.array([[1.5, -np.sqrt(0.75)], [-1.5, -np.sqrt(0.75)], [0, 0]]), abs=1e-6)


@pytest.mark.parametrize("dim", [1, 5, 23])
def test_the_components_are_those_of_the_dense_covariance(dim):
    counts = zipf_counts()
    vectors = principal_components(counts, dim)
    assert vectors.shape == (61, dim)
    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(dense_components(counts.toarray(), dim), abs=1e-4)


def test_power_iteration_finds_the_components_of_the_library():
    counts = zipf_counts()
    rows = standardised(counts.toarray())
    eigenvalues, eigenvectors = power_iteration(rows.T @ rows / len(rows), 7)
    vectors = principal_components(counts, 7)
    assert vectors == pytest.approx(rows @ eigenvectors, abs=1e-4)
    assert (vectors.astype(np.float64) ** 2).sum(axis=0) / len(rows) == pytest.approx(eigenvalues)


def test_power_iteration_gives_the_word_vectors_of_lanczos():
    counts = zipf_counts()
    vectors = principal_components(counts, 7, method=EigenMethod.power)
    assert vectors == pytest.approx(principal_components(counts, 7), abs=1e-3)


def test_the_explained_variance_is_that_of_the_eigenvalues():
    counts = zipf_counts().toarray()
    counts[3] = 0
    rows = standardised(counts)
    eigenvalues = np.linalg.eigvalsh(rows.T @ rows)[::-1]
    for dim in (1, 7, 60):
        vectors = principal_components(csr_array(counts), dim)
        share = explained_variance(csr_array(counts), vectors)
        assert share == pytest.approx(eigenvalues[:dim].sum() / eigenvalues.sum(), rel=1e-5)
    assert explained_variance(csr_array((7, 7)), np.zeros((7, 3), np.float32)) == 0


def test_the_components_come_in_order_of_falling_variance():
    variance = (principal_components(zipf_counts(), 13) ** 2).sum(axis=0)
    assert (np.diff(variance) < 0).all()


def test_a_row_without_counts_or_with_equal_ones_becomes_zero():
    counts = zipf_counts().toarray()
    counts[3] = 0
    counts[5] = 0.1  # a row whose mean is not exact in binary
    vectors = principal_components(csr_array(counts), 11)
    assert np.flatnonzero(~vectors.any(axis=1)).tolist() == [3, 5]
    assert np.isfinite(vectors).all()


def test_a_row_counted_a_hundred_times_as_often_has_the_same_vector():
    counts = zipf_counts().toarray()
    often = counts.copy()
    often[17] *= 100
    assert principal_components(csr_array(often), 5) == pytest.approx(
        principal_components(csr_array(counts), 5), abs=1e-5
    )


@pytest.mark.parametrize("count", [0, 1])
def test_words_that_all_stand_beside_the_same_words_equally_often_become_zeros(count):
    assert not principal_components(csr_array(np.full((7, 7), float(count))), 3).any()


def test_more_components_than_there_are_directions_are_zero_and_the_same_every_time():
    counts = np.zeros((31, 31))
    counts[2, 3] = counts[3, 2] = counts[5, 7] = counts[7, 5] = 1  # only four words have counts
    vectors = principal_components(csr_array(counts), 11)
    assert np.isfinite(vectors).all()
    assert (np.abs(vectors[:, :4]).max(axis=0) > 1).all()
    assert np.abs(vectors[:, 4:]).max() < 1e-5
    assert (vectors == principal_components(csr_array(counts), 11)).all()


def test_the_same_counts_give_the_same_vectors_to_the_bit():
    counts = csr_array(np.eye(31))  # all eigenvalues but one are equal, so the eigenvectors are not unique
    one, same, other = (principal_components(counts, 3, seed) for seed in (5, 5, 7))
    assert (one == same).all()
    assert (one != other).any()


def test_another_seed_gives_the_same_components():
    counts = zipf_counts()
    one, other = (principal_components(counts, 7, seed) for seed in (0, 3))
    assert one == pytest.approx(other, abs=1e-4)


def test_the_counts_are_left_as_they_were():
    counts = zipf_counts()
    before = counts.toarray()
    principal_components(counts, 3)
    assert (counts.toarray() == before).all()


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
    with pytest.raises(UserError, match=r"component 2 does not converge in 101 steps; set vectors\.method=lanczos"):
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


def test_glove_is_read_and_only_wanted_words_are_kept(tmp_path):
    content = "the 0.5 -2 3e-1\n, 1 2 3\ncat 4 5 6\n"
    assert read(tmp_path, content, {"cat", "the", "dog"}) == {
        "the": pytest.approx([0.5, -2, 0.3]),
        "cat": [4, 5, 6],
    }


def test_word2vec_has_a_header_and_a_space_at_the_end_of_each_line(tmp_path):
    assert read(tmp_path, "2 3\n</s> 1 2 3 \ncat 4 5 6 \n", ["</s>", "cat"]) == {"</s>": [1, 2, 3], "cat": [4, 5, 6]}


@pytest.mark.parametrize("first", ["", "cat 1 2 3\n", "4 3\n"])
def test_a_word_may_hold_spaces_or_be_a_number(tmp_path, first):
    content = first + ". . . 1 2 3\nat name@domain.com 4 5 6\n2008 7 8 9\n" + "mat 0 0 0\n" * (first == "4 3\n")
    assert read(tmp_path, content, [". . .", ".", "at", "at name@domain.com", "2008"]) == {
        ". . .": [1, 2, 3],
        "at name@domain.com": [4, 5, 6],
        "2008": [7, 8, 9],
    }


def test_a_number_as_the_first_word_is_no_number_of_its_vector(tmp_path):
    assert read(tmp_path, "2008 7 8 9\n", ["2008"]) == {"2008": [7, 8, 9]}


def test_a_first_word_of_two_is_told_from_its_numbers(tmp_path):
    assert read(tmp_path, "new york 7 8 9\n", ["new york", "new"]) == {"new york": [7, 8, 9]}


@pytest.mark.parametrize("space", ["\u00a0", "\u0085", "\u2028", "\x1c", "\t"])
def test_other_spaces_are_letters(tmp_path, space):
    word = f"a{space}b"
    content = f"{word} 1 2 3\n{space} 4 5 6\n"
    assert read(tmp_path, content, [word, space]) == {word: [1, 2, 3], space: [4, 5, 6]}


def test_of_a_word_on_two_lines_the_first_counts(tmp_path):
    assert read(tmp_path, "cat 1 2 3\ncat 4 5 6\n", ["cat"]) == {"cat": [1, 2, 3]}


def test_words_are_compared_exactly(tmp_path):
    assert read(tmp_path, "Cat 1 2 3\ncat 4 5 6\n", ["Cat", "CAT"]) == {"Cat": [1, 2, 3]}


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_it(tmp_path):
    assert read(tmp_path, "\ufeff2 3\r\ncat 1 2 3\r\nmat 4 5 6\r\n", ["cat", "mat"]) == {
        "cat": [1, 2, 3],
        "mat": [4, 5, 6],
    }


def test_the_last_line_needs_no_end(tmp_path):
    assert read(tmp_path, "cat 1 2 3\nmat 4 5 6", ["mat"]) == {"mat": [4, 5, 6]}


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "glove.txt"
    with pytest.raises(UserError, match=f"^{re.escape(str(path))}: No such file or directory; check the name"):
        read_vectors(path, ["cat"], 3)
    with pytest.raises(UserError, match="is a folder; name a file in it"):
        read_vectors(tmp_path, ["cat"], 3)


@pytest.mark.parametrize("content", ["", "\n", "\ufeff"])
def test_an_empty_file_is_refused(tmp_path, content):
    assert (
        refused(tmp_path, content) == "FILE:1: the line has no word and vector; name a text file of GloVe or word2vec"
    )


@pytest.mark.parametrize("content", ["cat 1 2 3 4 5\n", "7 5\ncat 1 2 3 4 5\n", ". . 1 2 3 4 5\n", "2008 1 2 3 4 5\n"])
def test_vectors_of_another_width_name_the_width_to_set(tmp_path, content):
    assert refused(tmp_path, content) == "FILE has vectors of 5 numbers, but model.dim=3; set model.dim=5"


@pytest.mark.parametrize("content", ["a line of prose\n", "cat\t1\t2\t3\n", "cat\n"])
def test_a_first_line_without_numbers_is_refused(tmp_path, content):
    message = "FILE:1: the line has no numbers after a word; write a word and its vector, separated by single spaces"
    assert refused(tmp_path, content, dim=5) == message


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mat 1 2", 2),
        ("mat", 0),
        ("", 0),
        ("mat 1 2 3 4", 4),
        (". . 1 2 3 4", 4),
        ("mat  1 2 3", 3),
    ],
)
@pytest.mark.parametrize("wanted", [[], ["mat"]])
def test_a_line_of_the_wrong_width_is_refused_wanted_or_not(tmp_path, line, found, wanted):
    message = refused(tmp_path, f"cat 1 2 3\n{line}\nthe 4 5 6\n", wanted)
    assert message == f"FILE:2: the line has {found} numbers after the word, but earlier lines have 3; correct it"


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e39", "-1e39", "1,5", "x", ""])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_finite_number_is_refused_where_its_word_is_wanted(tmp_path, number, place):
    numbers = ["2", "2", "2"]
    numbers[place] = number
    message = refused(tmp_path, f"cat 1 2 3\nmat {' '.join(numbers)}\n", ["mat"])
    assert message == f"FILE:2: {number!r} is not a finite number; correct the line"


def test_the_numbers_of_the_first_line_are_read_too(tmp_path):
    assert refused(tmp_path, "cat 1 x 3\n", ["cat"]) == "FILE:1: 'x' is not a finite number; correct the line"


def test_broken_utf_8_is_refused(tmp_path):
    message = refused(tmp_path, b"cat 1 2 3\ncaf\xe9 1 2 3\n")
    assert message == "FILE:2: byte 0xe9 is not UTF-8; save the file as UTF-8 text, unpacked"
    message = refused(tmp_path, b"cat 1 2 3\nmat\0 1 2 3\n")
    assert message == "FILE:2: the line contains a NUL byte; save the file as UTF-8 text, unpacked"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"2 3\ncat " + np.array([2, 3, 0.5], np.float32).tobytes() + b"\n", "FILE:2: the line contains a NUL byte"),
        (b"2 3\ncat " + np.full(3, 0.123, np.float32).tobytes() + b"\n", "FILE:2: byte 0xe7 is not UTF-8"),
        (b"\x1f\x8b\x08\x08packed", "FILE:1: byte 0x8b is not UTF-8"),
        (b"PK\x03\x04\x14\0\0", "FILE:1: the line contains a NUL byte"),
    ],
)
def test_a_binary_file_is_told_to_be_converted(tmp_path, content, problem):
    assert refused(tmp_path, content) == f"{problem}; save the file as UTF-8 text, unpacked"


@pytest.mark.parametrize(("promised", "lines"), [(3, 2), (1, 2), (2, 0)])
def test_a_file_that_is_not_as_long_as_its_header_says_is_refused(tmp_path, promised, lines):
    assert refused(tmp_path, f"{promised} 3\n" + "cat 1 2 3\n" * lines) == (
        f"FILE:1: the header promises {promised} words, but the file has {lines}; "
        "download it again, or correct the header"
    )


def test_coverage_counts_words_and_tokens():
    vocabulary = ["[PAD]", "[UNK]", "the", "cat", "zyzzyva"]
    ids = RaggedIds.from_rows([[2, 3, 2], [], [4, 1, 2, 3]])
    covered = coverage({"the": 1, "cat": 2, "[UNK]": 3, "dog": 4}, vocabulary, ids, ignored=[0, 1])
    assert covered == Coverage(2, 3, pytest.approx(5 / 7))
    assert str(covered) == "2 of 3 words have a vector (71.4% of the training tokens)"


def test_coverage_of_no_text_is_zero():
    assert coverage({"the"}, ["the"], RaggedIds.from_rows([])) == Coverage(1, 1, 0)


def test_a_large_coverage_is_easy_to_read():
    assert str(Coverage(2113, 6998, 0.941)) == "2,113 of 6,998 words have a vector (94.1% of the training tokens)"
