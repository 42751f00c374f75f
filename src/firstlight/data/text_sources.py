"""Sources of a text for a generator: a local file, the web, or a sample in samples/."""

import hashlib
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException, InvalidURL
from pathlib import Path

from firstlight.data import cache
from firstlight.data.options import CharacterOptions, Preparation, SourceKind
from firstlight.data.sources import (
    GENERATED,
    SAMPLE_WARNING,
    SAMPLES,
    check_path,
    folder_of,
    hash_of,
    read_sample,
    sample_fingerprint,
)
from firstlight.errors import RunError, UserError
from firstlight.files.rows import read_text

log = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds to wait for the next byte
AGENT = {"User-Agent": "firstlight"}


@dataclass(frozen=True)
class TextSource:
    """A text file. kind: local, hub (from the web) or sample."""

    kind: SourceKind
    where: str
    fingerprint: str
    path: Path

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text, with their line feeds."""
        return iter(read_sample(self.path)) if self.kind is SourceKind.sample else read_text(self.path)


class UnreachableError(ConnectionError):
    """Raised if the web server did not answer."""


def find_text(options: CharacterOptions) -> TextSource:
    """Return the source that the options name. Raises UserError."""
    if options.path is not None:
        check_path(options.path)
        return _local(Path(options.path))
    if options.source is SourceKind.sample:
        return _sample(options.preparation)
    assert options.name is not None
    if (folder := folder_of(options.name, options.source)) is not None:
        return _local(folder)
    if options.url is None:
        raise UserError("data.url is not set, so there is nothing to download; set data.path to a text file")
    try:
        return _download(options.url, options.name, Path(options.cache_dir))
    except UnreachableError as error:
        if options.source is SourceKind.hub:
            raise UserError(f"data.source=hub: {options.url} does not answer ({error}); set data.path") from error
        log.warning(SAMPLE_WARNING, options.name, options.url)
        return _sample(options.preparation)


def _local(path: Path) -> TextSource:
    file = _only_text_in(path) if path.is_dir() else path
    next(read_text(file), None)  # raises UserError early if the file cannot be read
    return TextSource(SourceKind.local, str(file), hash_of({"text": file}), file)


def _only_text_in(folder: Path) -> Path:
    files = sorted(folder.glob("*.txt"))
    if len(files) != 1:
        found = ", ".join(file.name for file in files[:5]) or "none"
        raise UserError(f"{folder} must have one .txt file, but has {found}; set data.path to a file")
    return files[0]


def _download(url: str, name: str, cache_dir: Path) -> TextSource:
    """Return the file at a URL, which is downloaded once and stored in the cache."""
    folder = cache_dir / "downloads" / f"{name}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    path = folder / "text.txt"
    cache.provide(folder, lambda new: new.joinpath(path.name).write_bytes(_fetch(url)), f"Downloading {url}")
    return TextSource(SourceKind.hub, url, hash_of({"text": path}), path)


def _fetch(url: str) -> bytes:
    """Return the bytes at a URL. Raises UnreachableError without an answer, RunError for an incomplete one."""
    if not re.match(r"https?://[^/\s]+", url):
        raise UserError(f"data.url={url} must begin with https:// or http:// and a host; a local file is data.path")
    try:
        request = urllib.request.Request(url, headers=AGENT)  # noqa: S310  (checked above)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            content: bytes = answer.read()
    except urllib.error.HTTPError as error:
        raise RunError(f"data.url={url} answers {error.code} {error.reason}; set data.url, or data.path") from error
    except (InvalidURL, ValueError) as error:
        raise UserError(f"data.url={url} is not a URL ({error}); correct it") from error
    except HTTPException as error:
        raise RunError(
            f"data.url={url}: the download was interrupted ({error}); try again, or set data.path"
        ) from error
    except OSError as error:  # unknown host, no route, or timeout
        raise UnreachableError(str(error)) from error
    if not content:
        raise RunError(f"data.url={url} is an empty file; set data.url, or data.path")
    return content


def _sample(preparation: Preparation) -> TextSource:
    name = "names" if preparation is Preparation.lines else "plays"
    return TextSource(SourceKind.sample, GENERATED[name], sample_fingerprint(name), SAMPLES / f"{name}.txt.bz2")
