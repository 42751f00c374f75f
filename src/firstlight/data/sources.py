"""Sources of rows: local files, the Hub, or a sample in samples/, all with the same interface.

A data set of the Hugging Face Hub is stored as Parquet files, and read like a local folder.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from firstlight.data import cache
from firstlight.data.options import SourceKind
from firstlight.errors import RunError, UserError, is_disk_full
from firstlight.files import rows as row_files
from firstlight.files.lines import NO_LOOK_ALIKE, ending_of, look_alike, read_text
from firstlight.files.regular import regular
from firstlight.text.options import PAIR_SEPARATOR

log = logging.getLogger(__name__)

SAMPLES = Path(__file__).with_name("samples")
# Of each sample. A file that changes gets another version, so that caches are not reused.
VERSIONS = {"movies": 1.1, "entailment": 2, "choices": 1, "similarity": 1, "pairs": 3, "names": 1, "plays": 1}
GENERATED = {name: f"generated {name} {version}" for name, version in VERSIONS.items()}
GENERATED["reviews"] = "generated sample 1"
TEXT = "text"  # the split of a text that is not divided
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
DATA_VARIABLE = "FIRSTLIGHT_DATA"
ONLY_GENERATED = ("choices", "similarity")  # they replace no data set, and source=auto uses them without an address


@dataclass(frozen=True)
class Source:
    """Rows by split, with a fingerprint of their content.

    kind: local, hub or sample; where: a path, a Hub id with its revision, or the name and the version of the sample;
    files: the file of each split, or its folder of classes, or the file or folder of TEXT for a text that is not
    divided; layout: how these files are read.
    """

    kind: SourceKind
    where: str
    fingerprint: str
    files: dict[str, Path]
    layout: row_files.Layout = row_files.Layout()  # noqa: RUF009  (never changed)

    @property
    def splits(self) -> list[str]:
        return list(self.files)

    def rows(self, split: str, columns: Sequence[str]) -> Iterator[row_files.Row]:
        """Yield the rows of a split. Blank lines of a text file are left out."""
        rows = row_files.read_rows(self.files[split], columns, self.layout)
        is_text = row_files.is_plain_text(self.files[split])
        yield from (row for row in rows if not is_text or row.values[row_files.TEXT_COLUMN].strip())

    def lines(self) -> Iterator[str]:
        """Yield the lines of a text, with their line feeds. Between the files of a folder is one more."""
        for file in (files := row_files.text_files(self.files[TEXT])):
            yield from read_text(file, self.layout.encoding)
            if file != files[-1]:
                yield "\n"

    def texts(self, columns: Sequence[str], rows: Sequence[int]) -> list[str]:
        """Return the texts of some rows, read again, with ||| between those of several columns.

        rows: their numbers, counted through all splits.
        """
        return [f" {PAIR_SEPARATOR} ".join(texts) for texts in self.values(columns, rows)]

    def values(self, columns: Sequence[str], rows: Iterable[int]) -> list[tuple[str, ...]]:
        """Return the values of some rows in some columns, read again. rows: as in `texts`."""
        wanted = set(map(int, rows))
        stream = (row.values for split in self.splits for row in self.rows(split, columns))
        read = enumerate(islice(stream, max(wanted, default=-1) + 1))
        found = {number: tuple(values[column] for column in columns) for number, values in read if number in wanted}
        return [found[int(row)] for row in rows]

    def place(self, split: str, line: int) -> str:
        """Return the place of a row for an error message: file and line, or the file of a folder of classes."""
        if self.files[split].is_dir():
            return str(row_files.class_files(self.files[split])[line - 1])
        return f"{self.files[split]}:{line}"


def find_source(options: Any, *, sample: str = "reviews", only_split: str = "train") -> Source:
    """Return the source that the options name. Raises UserError.

    options: `TextOptions`, or others with the same fields; sample: the generated sample, one of GENERATED; only_split:
    the split of a single file.
    """
    if options.path is not None:
        return _from_path(options, options.path, only_split)

    def local(folder: Path) -> Source:
        return local_source(options, folder, row_files.dataset_files(folder))

    return named_source(options, "hub", sample, local, partial(_from_hub, cache_dir=Path(options.cache_dir)))


def named_source(
    options: Any, key: str, sample: str, local: Callable[[Path], Source], remote: Callable[[str], Source]
) -> Source:
    """Return the source of a data set that has a name: its folder, its address, or the generated sample.

    key: the option with the address, `hub` or `url`; local, remote: functions that return the source of a folder, and
    of an address. Raises UserError.
    """
    if options.source is SourceKind.sample:
        return _sample(sample)
    folder = local_folder(options.name) if options.source in (SourceKind.auto, SourceKind.local) else None
    if folder is not None:
        return local(folder)
    if options.source is SourceKind.local:
        problem = f"data.source=local: no folder {options.name} exists below ${DATA_VARIABLE} or data/"
        raise UserError(f"{problem}; set data.path")
    if not (address := getattr(options, key)):
        if options.source is SourceKind.auto and sample in ONLY_GENERATED:
            return _sample(sample)
        raise UserError(f"data.{key} is not set, so there is nothing to download; set data.path")
    try:
        return remote(address)
    except UnreachableError as error:
        server = "the Hub" if key == "hub" else address
        if options.source is SourceKind.hub:
            problem = f"data.source=hub: {server} does not answer ({error})"
            raise UserError(f"{problem}; try again, or set data.path") from error
        problem = f"The data {options.name} was not found below ${DATA_VARIABLE} or data/, and {server} does not answer"
        log.warning("%s. Using a GENERATED SAMPLE instead; its numbers say nothing about real data.", problem)
        return _sample(sample)


def check_path(path: str | None, source: SourceKind = SourceKind.local) -> None:
    """Raise UserError if a path is not a file, folder or Hub id, before anything heavy is imported.

    source: whether a Hub id is accepted, which `local` refuses.
    """
    if path is None:
        return
    if Path(path).exists():
        regular(Path(path))
        return
    if "://" in path:
        raise UserError(f"data.path={path} is a URL; download the file first, or set data.url or data.hub")
    if source is SourceKind.local or not HUB_ID.fullmatch(path) or ending_of(Path(path)) in row_files.READERS:
        remedy = look_alike(Path(path))
        if remedy == NO_LOOK_ALIKE and source is not SourceKind.local and path.isidentifier():
            remedy = f"; a data set of the Hub is named with its owner, as in data.path=owner/{path}"
        raise UserError(f"data.path={path}: the file or folder does not exist{remedy}")


def _from_path(options: Any, path: str, only_split: str) -> Source:
    check_path(path, options.source)
    local = Path(path)
    if options.source is SourceKind.hub or not local.exists():
        try:
            return _from_hub(path, Path(options.cache_dir))
        except UnreachableError as error:
            raise UserError(f"data.path={path} is not a local file or folder, and the Hub does not answer") from error
    files = row_files.dataset_files(local, only_split) if local.is_dir() else {only_split: local}
    return local_source(options, local, files)


def local_folder(name: str) -> Path | None:
    """Return the first folder of that name below $FIRSTLIGHT_DATA and data/, or None."""
    root = os.environ.get(DATA_VARIABLE)
    if root and not Path(root).is_dir():
        raise UserError(f"{DATA_VARIABLE}={root} is not a folder; correct it, or unset it")
    folders = (Path(parent, name) for parent in (root, "data") if parent)
    return next((folder for folder in folders if folder.is_dir()), None)


def local_source(options: Any, where: Path, files: dict[str, Path]) -> Source:
    """Return the source of local files. files: by split."""
    layout = row_files.Layout(options.separator, options.encoding)
    return Source(SourceKind.local, str(where), hash_of(files), files, layout)


def _from_hub(dataset_id: str, cache_dir: Path) -> Source:
    copy = mirror(dataset_id, cache_dir)
    files = row_files.dataset_files(copy)
    return Source(SourceKind.hub, f"{dataset_id}@{copy.name}", hash_of(files), files)


def _sample(name: str) -> Source:
    text = SAMPLES / f"{name}.txt.bz2"
    splits = {split: SAMPLES / name / f"{split}.jsonl.bz2" for split in dict.fromkeys(row_files.SPLITS.values())}
    files = {TEXT: text} if text.is_file() else splits
    fingerprint = hashlib.sha256(GENERATED[name].encode()).hexdigest()[:16]
    return Source(SourceKind.sample, GENERATED[name], fingerprint, files)


def hash_of(files: dict[str, Path]) -> str:
    """Return a fingerprint of the content, format and split of the files, or of the folders of texts."""
    digest = hashlib.sha256()
    for split, path in sorted(files.items()):
        digest.update((split + path.suffix.lower()).encode())
        for part in [*row_files.text_files(path), *row_files.class_files(path)] if path.is_dir() else [path]:
            if part != path:
                digest.update(str(part.relative_to(path)).encode())
            with regular(part).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def is_text_pair(path: Path, endings: tuple[str, str]) -> bool:
    """Return whether a path is the common part of two file names, such as corpus for corpus.en and corpus.de."""
    return all(language_file(path, ending).is_file() for ending in endings)


def language_file(stem: Path, ending: str) -> Path:
    return Path(f"{stem}.{ending}")


# --- the Hub ---

PROBE_SECONDS = 5.0


class UnreachableError(ConnectionError):
    """Raised if the Hub did not answer."""


def mirror(dataset_id: str, cache_dir: Path) -> Path:
    """Return a local copy of the newest revision of a data set, a folder that the revision names.

    It is downloaded unless the cache has it. Without a network, the newest undamaged revision in the cache is used.
    Raises UnreachableError if the cache has none, and UserError if the Hub has no such data set.
    """
    home = cache_dir / "hub" / dataset_id.replace("/", "--")
    try:
        revision = _newest_revision(dataset_id)
    except UnreachableError:
        for folder in sorted(home.glob("[!.]*/"), key=lambda folder: folder.stat().st_mtime, reverse=True):
            if problem := cache.damage(folder):
                log.warning("%s is damaged (%s); it is not used", folder, problem)
                continue
            log.warning("The Hub does not answer; using the cached copy of %s, revision %s", dataset_id, folder.name)
            return folder
        raise
    doing = f"Downloading {dataset_id}, revision {revision}, from the Hub"
    cache.provide(home / revision, lambda new: _download(dataset_id, revision, new), doing)
    return home / revision


def _newest_revision(dataset_id: str) -> str:
    """Return the newest revision, with a short timeout: `load_dataset` waits over 20 s without a network."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        revision = HfApi().dataset_info(dataset_id, timeout=PROBE_SECONDS).sha
    except GatedRepoError as error:
        raise UserError(f"{dataset_id} is gated on the Hub; accept its terms, then run `hf auth login`") from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise UserError(f"{dataset_id} is not a data set of the Hub; check data.path or data.hub") from error
    except Exception as error:
        if isinstance(error, HfHubHTTPError) and error.response.status_code == 401:
            raise UserError("the Hub refuses your token; run `hf auth login`, or unset HF_TOKEN") from error
        if not _is_network_error(error):
            raise
        raise UnreachableError(str(error)) from error
    assert revision is not None
    return revision


def _is_network_error(error: Exception) -> bool:
    """Return whether the network failed. The client of the Hub raises the errors of its HTTP library."""
    return isinstance(error, OSError) or any(base.__name__ == "TransportError" for base in type(error).__mro__)


def _download(dataset_id: str, revision: str, folder: Path) -> None:
    """Write each split as Parquet into a new folder of the cache."""
    from pyarrow import parquet

    # A separate cache, because `datasets` uses an older revision from its own cache if a download fails.
    splits = _load_dataset(dataset_id, revision, folder.with_name("datasets"))
    known = {row_files.SPLITS[name]: split for name, split in splits.items() if name in row_files.SPLITS}
    if not known:
        raise UserError(f"{dataset_id} has no split train, validation or test; its splits are {', '.join(splits)}")
    for name, split in known.items():
        parquet.write_table(split.data.table, folder / f"{name}.parquet")  # to_parquet aborts Python on a full disk


def _load_dataset(dataset_id: str, revision: str, cache_dir: Path) -> Any:
    """Return the splits of the repository. Raises RunError or UserError if it cannot be downloaded or read."""
    import datasets

    try:
        return datasets.load_dataset(dataset_id, revision=revision, cache_dir=str(cache_dir))
    except Exception as error:
        if is_disk_full(error):
            raise
        reason = f"{dataset_id} could not be downloaded from the Hub: {error.__cause__ or error}"
        if isinstance(error, datasets.exceptions.DatasetsError) or _is_network_error(error):
            raise RunError(reason) from error
        if isinstance(error, ValueError | RuntimeError):  # several configurations, or a loading script
            raise UserError(f"{reason}; download the files and set data.path") from error
        raise
