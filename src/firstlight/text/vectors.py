"""Word vectors: from counts in texts, reduced to principal components, or from a file."""

from collections.abc import Collection, Iterator, Sequence
from inspect import signature
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, eigsh

from firstlight.errors import UserError
from firstlight.files.lines import read_lines
from firstlight.text.options import EigenMethod
from firstlight.text.ragged import RaggedIds

CONSTANT = 1e-12  # a row with a smaller ratio of variance to mean square varies only by rounding
TOLERANCE = 1e-9  # relative, of the eigenvalues
ENOUGH = 1e-8  # relative to the largest eigenvalue, the residual of an eigenvector in power iteration
TIED = 1e-6  # relative; entries this close to the largest one count as equal to it
LARGEST = float(np.finfo(np.float32).max)


# --- counted ---


def cooccurrence(ids: RaggedIds, vocab_size: int, window: int = 1, ignored: Sequence[int] = ()) -> csr_array:
    """Return how often each pair of words occurs at a distance of at most `window` words (post 3: movie sentiment).

    Pairs are counted within each text. The matrix is symmetric. In "very very", each word is a neighbor of the other,
    so the pair counts twice.

    Args:
        ids: the token ids of the texts.
        vocab_size: number of token ids.
        window: the largest distance, in words, at least 1.
        ignored: ids that are not counted, such as that of [UNK]. They keep their positions, so the words before and
            after an ignored word have a distance of 2.

    Returns:
        (vocab_size, vocab_size) float64, a sparse array.

    Example:
        >>> from firstlight.text import cooccurrence, train_word_tokenizer
        >>> tokenizer = train_word_tokenizer(["the cat sat on the mat"])
        >>> ids = tokenizer.encode_batch(["the cat sat on the mat"])
        >>> counts = cooccurrence(ids, tokenizer.vocab_size)
        >>> row = counts.toarray()[tokenizer.words.index("the")].astype(int)
        >>> dict(zip(tokenizer.words, row.tolist()))
        {'[PAD]': 0, '[UNK]': 0, 'cat': 1, 'mat': 1, 'on': 1, 'sat': 0, 'the': 0}
    """
    assert window >= 1, f"window={window}"
    tokens = ids.ids
    text_of = np.repeat(np.arange(len(ids), dtype=np.int32), ids.lengths)
    counted = ~np.isin(tokens, ignored)
    after = csr_array((vocab_size, vocab_size), dtype=np.float64)
    for apart in range(1, window + 1):
        pairs = (text_of[:-apart] == text_of[apart:]) & counted[:-apart] & counted[apart:]
        left, right = tokens[:-apart][pairs], tokens[apart:][pairs]
        after = after + coo_array((np.ones(len(left)), (left, right)), shape=after.shape).tocsr()
    return (after + after.T).tocsr()


def principal_components(
    counts: csr_array, dim: int, seed: int = 0, method: EigenMethod = EigenMethod.lanczos
) -> NDArray[np.float32]:
    """Return word vectors: the rows of a co-occurrence matrix, projected onto principal components.

    This is the method of post 3 (movie sentiment). The matrix X has the rows of the counts, each centered and divided
    by its population standard deviation. A constant row, such as one without counts, becomes zero. The components are
    the eigenvectors of XᵀX / n with the largest eigenvalues, in descending order. The entry of a component with the
    largest absolute value is positive. Classical PCA centers columns, but this method centers rows, so the first
    component may be close to the mean row. The eigenvectors are computed without a dense (n, n) matrix.

    Args:
        counts: (n, n) sparse array, as `cooccurrence` returns it.
        dim: number of components, from 1 to n - 1.
        seed: seed of the start vector.
        method: Lanczos' method, or power iteration with deflation as in post 3 (film reviews).

    Returns:
        (n, dim) float32.

    Raises:
        UserError: if `dim` is not below n, or power iteration does not converge.

    Example:
        >>> from firstlight.text import cooccurrence, principal_components, train_word_tokenizer
        >>> tokenizer = train_word_tokenizer(["the cat sat on the mat"])
        >>> ids = tokenizer.encode_batch(["the cat sat on the mat"])
        >>> principal_components(cooccurrence(ids, tokenizer.vocab_size), dim=2).shape
        (7, 2)
    """
    assert dim >= 1, f"dim={dim}"
    size = counts.shape[0]
    if dim >= size:
        raise UserError(f"model.dim={dim} is too large for a vocabulary of {size} words; set model.dim below {size}")
    rows, shift = _standardized(counts)

    def project(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows @ vectors - np.multiply.outer(shift, vectors.sum(axis=0))

    def covariance(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        projected = project(vector.ravel())
        return (rows.T @ projected - shift @ projected) / size

    if not rows.count_nonzero():
        return np.zeros((size, dim), np.float32)  # Lanczos' method requires a nonzero matrix
    operator = LinearOperator((size, size), matvec=covariance, dtype=np.float64)
    if method is EigenMethod.power:
        return project(power_iteration(operator, dim, tolerance=ENOUGH, seed=seed)[1]).astype(np.float32)
    generator = np.random.default_rng(seed)
    start = generator.standard_normal(size)
    restart = {"rng": generator} if "rng" in signature(eigsh).parameters else {}  # SciPy before 1.17: a fixed generator
    eigenvalues, eigenvectors = eigsh(operator, dim, which="LA", v0=start, tol=TOLERANCE, **restart)
    falling = np.argsort(-eigenvalues)
    return project(_signed(eigenvectors[:, falling])).astype(np.float32)


def _standardized(counts: csr_array) -> tuple[csr_array, NDArray[np.float64]]:
    """Return R, (n, n), and s, (n,). R - s 1ᵀ has the standardized rows of the counts, and 0 for constant rows."""
    size = counts.shape[1]
    sums, squares = counts.sum(axis=1), counts.multiply(counts).sum(axis=1)
    variance = (size * squares - sums**2) / size**2  # this form is exact for counts
    varies = variance > CONSTANT * squares / size
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)
    return (diags_array(scale) @ counts).tocsr(), scale * sums / size


def explained_variance(counts: csr_array, vectors: NDArray[np.float32]) -> float:
    """Return the share of the variance of the standardized rows that the vectors keep, from 0 to 1.

    counts: (n, n) sparse array; vectors: (n, dim) float32, as `principal_components` returns them. The variance is the
    mean square of the rows, which is 1 for each entry of a row that varies. Returns 0 if no row varies.
    """
    rows, _ = _standardized(counts)
    total = np.count_nonzero(rows.sum(axis=1)) * counts.shape[1]
    return float((vectors.astype(np.float64) ** 2).sum() / total) if total else 0.0


def power_iteration(
    matrix: NDArray[np.float64] | LinearOperator,
    dim: int,
    *,
    steps: int = 100_000,
    tolerance: float = 1e-10,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the eigenvalues of a symmetric (n, n) matrix with the largest absolute values, and their vectors.

    Returns arrays of shapes (dim,) and (n, dim). Iterates v ← Av / ‖Av‖ until ‖Av - λv‖ is at most tolerance · |λ₁|,
    and then continues with the deflated matrix A - λvvᵀ (post 3, film reviews). The largest entry of a vector is
    positive. Raises UserError if `steps` are not enough, as for eigenvalues 1 and -1.
    """
    size = matrix.shape[0]
    assert 1 <= dim <= size, f"dim={dim} of a matrix of {size} rows"
    generator = np.random.default_rng(seed)
    eigenvalues, eigenvectors = np.zeros(dim), np.zeros((size, dim))
    for number in range(dim):
        found, values = eigenvectors[:, :number], eigenvalues[:number]
        start: NDArray[np.float64] = generator.standard_normal((size,))
        start = start - found @ (found.T @ start)  # a deflated matrix of zeros does not change the start
        vector: NDArray[np.float64] = start / np.linalg.norm(start)
        for _ in range(steps):
            image = matrix @ vector - found @ (values * (found.T @ vector))
            eigenvalue = float(vector @ image)
            largest = abs(float(values[0])) if number else abs(eigenvalue)
            if np.linalg.norm(image - eigenvalue * vector) <= tolerance * largest:
                break
            vector = image / np.linalg.norm(image)
        else:
            raise UserError(f"vectors.method=power: component {number + 1} does not converge; set it to lanczos")
        eigenvalues[number], eigenvectors[:, number] = eigenvalue, vector
    return eigenvalues, _signed(eigenvectors)


def _signed(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns multiplied by 1 or -1, so that the first of the largest entries of each is positive: (n, dim)."""
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= (1 - TIED) * sizes.max(axis=0), axis=0)
    return vectors * np.sign(vectors[first, np.arange(vectors.shape[1])])


# --- read ---


def read_vectors(path: Path, wanted: Collection[str], dim: int) -> dict[str, NDArray[np.float32]]:
    r"""Return the vectors of the wanted words from a text file in the format of GloVe or word2vec.

    Each line has a word and its numbers, separated by single spaces. The last `dim` fields are the numbers, so a word
    may contain spaces. The header of word2vec, "count dim", is optional. Words are compared exactly. If a word is on
    two lines, the first line is used. The file is read line by line, and every line is checked.

    Args:
        path: the file, in UTF-8.
        wanted: words to look for.
        dim: size of the vectors.

    Returns:
        A dict from each word that the file has to its vector, (dim,) float32.

    Raises:
        UserError: if a line cannot be read; the message names the file and the line.

    References: Pennington et al. 2014 (GloVe), Mikolov et al. 2013 (word2vec).

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from firstlight.text import read_vectors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "vectors.txt"
        ...     _ = path.write_text("good 0.5 1.0\nbad -0.5 0.25\n")
        ...     read_vectors(path, ["good", "missing"], dim=2)
        {'good': array([0.5, 1. ], dtype=float32)}
    """
    missing = set(wanted)
    found: dict[str, NDArray[np.float32]] = {}
    for place, word, numbers in _entries(path, dim):
        if word in missing:
            for number in numbers:
                if not _is_number(number):
                    raise UserError(f"{place}: {number!r} is not a finite number; correct the line")
            found[word] = np.array(list(map(float, numbers)), dtype=np.float32)
            missing.remove(word)
    return found


def coverage(vectors: Collection[str], vocabulary: Sequence[str], ids: RaggedIds, ignored: Sequence[int] = ()) -> str:
    """Return how many words of a vocabulary (id → word) have a vector, and their share of the tokens, in one sentence.

    An ignored id, such as that of [UNK], does not count as a word, and its tokens have no vector.
    """
    is_word = ~np.isin(np.arange(len(vocabulary)), ignored)
    has_vector = np.array([word in vectors for word in vocabulary], np.bool_) & is_word
    share = float(has_vector[ids.ids].mean()) if len(ids.ids) else 0.0
    return f"{has_vector.sum():,} of {is_word.sum():,} words have a vector ({share:.1%} of the training tokens)"


def _entries(path: Path, dim: int) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the place, the word and the numbers (as texts) of each line. Raises UserError for a line of another form.

    A word may contain spaces. Only the word of a line with one space more than numbers may end in a number.
    """
    promised, count = None, 0
    for number, line in read_lines(path):
        place, fields = f"{path}:{number}", line.rstrip(" \r\n").split(" ")
        if number == 1:
            is_header = len(fields) == 2 and all(map(str.isdecimal, fields))
            width = int(fields[1]) if is_header else _width(fields, dim)
            if width not in (0, dim):
                raise UserError(f"{path} has vectors of {width} numbers, but model.dim={dim}; set model.dim={width}")
            if is_header:
                promised = int(fields[0])
                continue
        word, numbers = fields[:-dim], fields[-dim:]
        if not word or (len(word) > 1 and (not word[-1] or _is_number(word[-1]))):
            problem = f"the line must have a word and {dim} numbers, as model.dim={dim}, separated by single spaces"
            raise UserError(f"{place}: {problem}; correct it")
        yield place, " ".join(word), numbers
        count += 1
    if promised is not None and count != promised:
        raise UserError(f"{path}:1: the header promises {promised} words, but the file has {count}; download it again")
    if not count:
        raise UserError(f"{path}:1: the file is empty; name a text file of GloVe or word2vec")


def _width(fields: list[str], dim: int) -> int:
    """Return the number of numbers at the end of a line. Of `dim` fields after a word, all count as numbers."""
    if len(fields) == dim + 1:
        return dim
    return next((place for place, field in enumerate(reversed(fields[1:])) if not _is_number(field)), len(fields) - 1)


def _is_number(field: str) -> bool:
    """Return whether the field is a number that is finite as a float32."""
    try:
        return abs(float(field)) <= LARGEST
    except ValueError:
        return False
