"""Every reader of files raises an error for a pipe, a socket or a device before it opens it."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstlight.commands import explore
from firstlight.data.options import ReviewOptions
from firstlight.data.sources import check_path, find_source, hash_of
from firstlight.errors import UserError
from firstlight.files.lines import read_lines, read_text
from firstlight.files.regular import SpecialFileError, regular
from firstlight.files.rows import read_rows
from firstlight.generator.corpus import find_text
from firstlight.generator.options import CharacterOptions
from firstlight.lab.reports.all_runs import gather
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.runs.folder import RunFolder, read_history
from firstlight.runs.foreign import kept_overrides
from firstlight.text.vectors import read_vectors
from run_folders import make_run

pytestmark = pytest.mark.timeout(60)  # a reader that opens a pipe waits forever

KINDS = {"pipe": "a named pipe", "socket": "a socket", "device": "a device"}


def make_special(path: Path, kind: str) -> Path:
    """Make a pipe, a socket, or a link to an endless device, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            os.chdir(path.parent)  # the path of a socket may have at most 107 bytes
            end.bind(path.name)
    else:
        path.symlink_to("/dev/zero")
    return path


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to the temporary folder, and back after the test."""
    monkeypatch.chdir(tmp_path)


READERS: dict[str, Callable[[Path], Any]] = {
    "a.csv": lambda path: next(read_rows(path)),
    "a.jsonl": lambda path: next(read_rows(path)),
    "a.parquet": lambda path: next(read_rows(path)),
    "a.txt": lambda path: next(read_text(path)),
    "lines": lambda path: next(read_lines(path)),
    "hashed.csv": lambda path: hash_of({"train": path}),
    "data.path of rows": lambda path: check_path(str(path), ReviewOptions().source),
    "data.path of a text": lambda path: check_path(str(path)),
    "source.csv": lambda path: find_source(ReviewOptions(path=str(path))),
    "folder/train.csv": lambda path: find_source(ReviewOptions(path=str(path.parent))),
    "source.txt": lambda path: find_text(CharacterOptions(path=str(path))),
    "folder/novel.txt": lambda path: find_text(CharacterOptions(path=str(path.parent))),
    "vectors": lambda path: read_vectors(path, ["good"], 2),
    "best.ckpt": read_checkpoint,
    "history.jsonl": read_history,
    "run/metrics.json": lambda path: RunFolder(path.parent).read(),
    "run/.lock": lambda path: RunFolder(path.parent).is_locked(),
    "run/.hydra/overrides.yaml": lambda path: kept_overrides(path, []),
    "run/config.yaml": lambda path: explore.config_of_network(RunFolder(path.parent)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = make_special(tmp_path / "reviews.csv", kind)
    with pytest.raises(SpecialFileError) as error:
        regular(path)
    remedy = "write its content to a file, and name that file"
    assert str(error.value) == f"{path} is {KINDS[kind]}, not a regular file; {remedy}"
    assert isinstance(error.value, UserError)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a system without /proc")
@pytest.mark.parametrize("name", ["/proc/self/mem", "/proc/self/environ", "link.csv"])
def test_a_file_of_the_kernel_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if not path.exists():
        path.symlink_to("/proc/self/mem")
    with pytest.raises(UserError, match="is a special file, not a regular file; write its content to a file"):
        check_path(str(path))
    with pytest.raises(UserError, match="is a special file"):
        next(read_rows(path))


def test_files_and_folders_pass_and_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link", "."):
        assert regular(tmp_path / name) == tmp_path / name
    with pytest.raises(FileNotFoundError):
        regular(tmp_path / "missing")


@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_a_pipe_in_one_line(name: str, tmp_path: Path) -> None:
    path = make_special(tmp_path / name, "pipe")
    with pytest.raises(UserError) as error:
        READERS[name](path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "status"), [("metrics.json", "unreadable"), ("confusion_matrix/validation.csv", "incomplete")]
)
def test_a_report_says_which_file_of_a_run_is_a_pipe(name: str, status: str, tmp_path: Path) -> None:
    make_special(make_run(tmp_path, "a") / name, "pipe")
    [run] = gather(tmp_path)
    assert run.status == status
    assert f"{name} is a named pipe, not a regular file" in run.why
