"""The cache of everything that is stored on disk: encoded texts and pairs, copies of the Hub, downloads."""

import errno
import fcntl
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from firstlight.data import cache, sources
from firstlight.data.encoding import encode
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.data.sources import Source, find_source
from firstlight.errors import RunError, UserError
from firstlight.generator import corpus
from firstlight.generator.corpus import encode_text, find_text
from firstlight.generator.options import CharacterOptions, Preparation
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.translator.corpus import encode_pairs
from firstlight.translator.options import PairOptions
from tests_support import contents, write_packed

WORDS = "one two three four five six seven eight nine ten eleven"
SRC = Path(__file__).parents[2] / "src"


# --- every cache, used twice ---


TEXTS = [" ".join(WORDS.split()[n % 7 :]) for n in range(23)]
ROWS = [{"text": text, "en": text, "de": text[::-1], "label": 0} for text in TEXTS]
SOURCE = Source(SourceKind.sample, "generated rows", "5eed", {"train": Path("rows.jsonl.bz2")})
WORD_OPTIONS = TokenizerOptions(kind=TokenizerKind.word, min_document_frequency=1)


def fill_reviews(cache_dir: Path) -> None:
    encode(SOURCE, ReviewOptions(cache_dir=str(cache_dir), tokenizer=WORD_OPTIONS))


def fill_pairs(cache_dir: Path) -> None:
    encode_pairs(SOURCE, PairOptions(cache_dir=str(cache_dir), tokenizer=WORD_OPTIONS))


def fill_text(cache_dir: Path) -> None:
    options = CharacterOptions(
        source=SourceKind.sample, preparation=Preparation.lines, name="names", cache_dir=str(cache_dir)
    )
    encode_text(find_text(options), options)


def fill_hub(cache_dir: Path) -> None:
    find_source(ReviewOptions(source=SourceKind.hub, hub="own/data", cache_dir=str(cache_dir)))


def download(cache_dir: Path) -> None:
    find_text(CharacterOptions(source=SourceKind.hub, name="mine", url="http://a.b/text", cache_dir=str(cache_dir)))


CACHES = [fill_reviews, fill_pairs, fill_text, fill_hub, download]


TABLE = SimpleNamespace(data=SimpleNamespace(table=pa.Table.from_pylist(ROWS * 100)))  # a split of `datasets`


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Replace the network, and use few names, so that the tests are fast."""
    monkeypatch.setattr(sources, "_newest_revision", lambda _: "5eed")
    monkeypatch.setattr(sources, "_load_dataset", lambda *_: {"train": TABLE, "test": TABLE})
    monkeypatch.setattr(corpus, "_fetch", lambda _: WORDS.encode())
    folder = tmp_path_factory.mktemp("samples")
    write_packed(folder / "rows.jsonl.bz2", "\n".join(map(json.dumps, ROWS)))
    write_packed(folder / "names.txt.bz2", "\n".join(WORDS.split()))
    monkeypatch.setattr(sources, "SAMPLES", folder)
    monkeypatch.chdir(folder)


def kept_in(cache_dir: Path) -> Path:
    """Return the only folder that a cache has created, at any depth."""
    [checksums] = cache_dir.rglob(cache.CHECKSUMS)
    return checksums.parent


@pytest.mark.parametrize("use", CACHES)
def test_what_is_whole_is_used_as_it_is_and_damage_is_noted_once_and_mended(use, tmp_path, caplog) -> None:
    use(tmp_path)
    first, times = contents(tmp_path), {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    (kept_in(tmp_path) / ".DS_Store").write_bytes(b"\0")  # file managers and network disks create hidden files
    use(tmp_path)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {path: path.stat().st_mtime_ns for path in times if path.is_file()}.items() <= times.items()
    folder = kept_in(tmp_path)
    for name in sorted(path.name for path in folder.iterdir() if path.name != ".DS_Store"):
        caplog.clear()
        flip_a_bit(folder / name)
        use(tmp_path)
        [warning] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert warning.startswith(f"{folder} is damaged (")
        assert warning.endswith("); it is written again")
        assert contents(tmp_path) == first
        assert list(folder.parent.iterdir()) == [folder]  # and no other file


# --- damage ---


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) * 2 // 3] ^= 0b100
    file.write_bytes(content)


def replace_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replace_by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-2]),
    "flipped": flip_a_bit,
    "folder": replace_by_a_folder,
    "pipe": replace_by_a_pipe,
}


def write_kept(folder: Path) -> Path:
    def fill(new: Path) -> None:
        (new / "text.txt").write_text("some text")
        cache.save_array(new / "ids.npy", np.arange(24, dtype=np.int32))

    cache.provide(folder / "kept", fill, "Making")
    return folder / "kept"


@pytest.mark.parametrize("damage", DAMAGES)
def test_any_damage_is_found(damage: str, tmp_path: Path, caplog: Any) -> None:
    folder = write_kept(tmp_path)
    first = contents(tmp_path)
    for name in sorted(path.name for path in folder.iterdir()):  # including the list of checksums
        caplog.clear()
        DAMAGES[damage](folder / name)
        write_kept(tmp_path)
        assert f"{folder} is damaged (" in caplog.text
        assert cache.damage(folder) is None
        assert contents(tmp_path) == first


@pytest.mark.parametrize("replace", ["file", "foreign file"])
def test_what_is_no_folder_of_the_cache_is_replaced(replace: str, tmp_path: Path, caplog: Any) -> None:
    folder = write_kept(tmp_path)
    first = contents(tmp_path)
    if replace == "foreign file":
        (folder / "validation.csv").write_text("text,label\nx,1\n")
    else:
        folder.rename(tmp_path.parent / f"{tmp_path.name}-away")
        folder.write_text("mine")
    write_kept(tmp_path)
    assert f"{folder} is damaged (" in caplog.text
    assert contents(tmp_path) == first


def test_without_a_network_a_damaged_copy_of_the_hub_is_not_used(tmp_path, monkeypatch, caplog) -> None:
    def unreachable(_: str) -> str:
        raise sources.UnreachableError("no network")

    fill_hub(tmp_path)
    older = kept_in(tmp_path)
    os.utime(older, (1, 1))
    monkeypatch.setattr(sources, "_newest_revision", lambda _: "6eed")
    fill_hub(tmp_path)
    monkeypatch.setattr(sources, "_newest_revision", unreachable)
    flip_a_bit(older.with_name("6eed") / "train.parquet")
    fill_hub(tmp_path)
    assert "6eed is damaged ('train.parquet' has changed since it was written); it is not used" in (caplog.text)
    (older / "test.parquet").unlink()
    with pytest.raises(UserError, match=r"data\.source=hub: the Hub does not answer \(no network\)"):
        fill_hub(tmp_path)


def test_the_list_of_checksums_is_that_of_sha256sum(tmp_path: Path) -> None:
    fill_pairs(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", cache.CHECKSUMS], cwd=kept_in(tmp_path), check=True)


# --- a full disk ---


@pytest.mark.parametrize("use", CACHES)
def test_a_full_disk_is_one_line_that_names_the_folder_and_the_remedy(use, tmp_path, monkeypatch) -> None:
    number = errno.EDQUOT if use is fill_text else errno.ENOSPC

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(RunError) as error:
            use(tmp_path)
    folder, reason, remedy = re.fullmatch(r"(.+?): the disk is full \((.+?)\); (.+)", str(error.value)).groups()
    assert tmp_path in Path(folder).parents
    assert reason == f"[Errno {number}] {os.strerror(number)}"
    assert re.fullmatch(r"free some space, or set (data\.)?cache_dir to a folder on another disk", remedy)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    use(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_array_that_does_not_fit_keeps_the_reason() -> None:
    """The error of numpy.save, "100000 requested and 0 written", has no errno."""
    with pytest.raises(OSError, match="No space left") as error:
        cache.save_array(Path("/dev/full"), np.zeros(100_000))
    assert error.value.errno == errno.ENOSPC


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_parquet_that_does_not_fit_keeps_the_reason(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as error:
        sources._download("own/data", "5eed", tmp_path)
    assert error.value.errno == errno.ENOSPC


def test_a_file_where_the_cache_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "encoded").write_text("mine")
    with pytest.raises(UserError, match=rf"^{tmp_path}/encoded is not a folder; remove it, or set .*cache_dir$"):
        fill_text(tmp_path)


# --- flushed, then renamed ---


def path_of(handle: int) -> Path:
    """Return the path of an open file. On macOS only fcntl returns it."""
    if sys.platform == "darwin":
        return Path(fcntl.fcntl(handle, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0").decode())
    return Path(os.readlink(f"/proc/self/fd/{handle}"))


def test_all_is_flushed_to_the_disk_before_the_folder_has_its_name(tmp_path, monkeypatch) -> None:
    events: list[str] = []
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda old, new: (events.append("rename"), rename(old, new)))
    monkeypatch.setattr(os, "fsync", lambda handle: events.append(path_of(handle).name))
    cache.provide(tmp_path / "kept", lambda new: [(new / name).write_text(name) for name in "ab"], "Making")
    assert events == ["a", "b", cache.CHECKSUMS, "content", "rename", tmp_path.name]


# --- several processes ---

FILL_AND_WAIT = """
import sys, time
from pathlib import Path
from firstlight.data import cache

def fill(folder):
    (folder / "half").write_text("half")
    print("filling", flush=True)
    time.sleep(100)

cache.provide(Path(sys.argv[1]), fill, "Filling")
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    def start(name: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", FILL_AND_WAIT, str(tmp_path / name)], stdout=subprocess.PIPE, text=True,
            env={"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert process.stdout.readline() == "filling\n"
        return process

    killed = start("killed")
    [left] = tmp_path.iterdir()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    os.utime(left, (0, 0))  # a new folder may not be locked yet
    living = start("living")  # it removes the folder of the killed process
    try:
        [writing] = tmp_path.iterdir()
        assert writing != left
        cache.provide(tmp_path / "kept", lambda new: (new / "file").write_text("whole"), "Making")
        assert sorted(tmp_path.iterdir()) == sorted([writing, tmp_path / "kept"])
        assert (writing / "content" / "half").read_text() == "half"
    finally:
        living.kill()
        living.communicate()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_first_of_two_processes_is_kept(is_damaged: bool, tmp_path: Path) -> None:
    if is_damaged:  # both repair the same folder
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "file").write_text("damaged")

    def fill(folder: Path) -> None:
        cache.provide(tmp_path / "kept", lambda new: (new / "file").write_text("first"), "Making")
        (folder / "file").write_text("second")

    cache.provide(tmp_path / "kept", fill, "Making")
    assert (tmp_path / "kept" / "file").read_text() == "first"
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]


def test_a_folder_that_is_taken_away_while_it_is_looked_at_is_no_error(tmp_path, monkeypatch) -> None:
    """Another process that repairs the folder has moved its copy to the target."""
    rename, refused = os.rename, iter([OSError(errno.ENOTEMPTY, "Directory not empty")])

    def refuse_once(old: Path, new: Path) -> None:
        for error in refused:
            raise error
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse_once)
    cache.provide(tmp_path / "kept", lambda new: (new / "file").write_text("whole"), "Making")
    assert (tmp_path / "kept" / "file").read_text() == "whole"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("data.path=x: mistake")])
def test_a_write_that_breaks_off_leaves_nothing(error: BaseException, tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise error

    with pytest.raises(type(error)):
        cache.provide(tmp_path / "kept", fill, "Making")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_made_again_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged folder is removed only when another one replaces it."""
    download(tmp_path)
    flip_a_bit(kept_in(tmp_path) / "text.txt")

    def unreachable(_: str) -> bytes:
        raise sources.UnreachableError("no network")

    monkeypatch.setattr(corpus, "_fetch", unreachable)
    with pytest.raises(UserError, match=r"does not answer \(no network\)"):
        download(tmp_path)
    assert (kept_in(tmp_path) / "text.txt").is_file()
    assert sources.hash_of({"text": kept_in(tmp_path) / "text.txt"})
