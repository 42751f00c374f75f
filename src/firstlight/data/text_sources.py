"""Sources of a text for a generator: a local file, the web, or a sample in samples/."""

import hashlib
import re
import urllib.error
import urllib.request
from http.client import HTTPException, InvalidURL
from pathlib import Path

from firstlight.data import cache, hub
from firstlight.data.corpus_options import CharacterOptions, Preparation
from firstlight.data.options import SourceKind
from firstlight.data.sources import TEXT, Source, check_path, hash_of, local_source, named_source
from firstlight.errors import RunError, UserError
from firstlight.files.lines import read_text

PATIENCE = 5.0  # seconds to wait for the next byte
AGENT = {"User-Agent": "firstlight"}


def find_text(options: CharacterOptions) -> Source:
    """Return the source that the options name. Raises UserError."""
    if options.path is not None:
        check_path(options.path)
        return _local(Path(options.path))
    sample = "names" if options.preparation is Preparation.lines else "plays"
    return named_source(options, "url", sample, _local, lambda url: _download(url, options))


def _local(path: Path) -> Source:
    file = _only_text_in(path) if path.is_dir() else path
    next(read_text(file), None)  # raises UserError early if the file cannot be read
    return local_source(file, {TEXT: file})


def _only_text_in(folder: Path) -> Path:
    files = sorted(folder.glob("*.txt"))
    if len(files) != 1:
        found = ", ".join(file.name for file in files[:5]) or "none"
        raise UserError(f"{folder} must have one .txt file, but has {found}; set data.path to a file")
    return files[0]


def _download(url: str, options: CharacterOptions) -> Source:
    """Return the file at a URL, which is downloaded once and stored in the cache."""
    folder = Path(options.cache_dir) / "downloads" / f"{options.name}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    path = folder / "text.txt"
    cache.provide(folder, lambda new: new.joinpath(path.name).write_bytes(_fetch(url)), f"Downloading {url}")
    return Source(SourceKind.hub, url, hash_of({TEXT: path}), {TEXT: path})


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
        raise hub.UnreachableError(str(error)) from error
    if not content:
        raise RunError(f"data.url={url} is an empty file; set data.url, or data.path")
    return content
