"""Data sets of the Hugging Face Hub, stored as Parquet files and read like a local folder."""

import logging
from pathlib import Path
from typing import Any

from firstlight.data import cache
from firstlight.errors import RunError, UserError, is_disk_full
from firstlight.files.rows import SPLITS

log = logging.getLogger(__name__)

PROBE_SECONDS = 5.0
UNAUTHORIZED = 401


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
    except HfHubHTTPError as error:
        if error.response.status_code == UNAUTHORIZED:
            raise UserError("the Hub refuses your token; run `hf auth login`, or unset HF_TOKEN") from error
        raise UnreachableError(str(error)) from error
    except Exception as error:
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
    known = {SPLITS[name]: split for name, split in splits.items() if name in SPLITS}
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
