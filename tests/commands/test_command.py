"""Exit codes: 0, 2 for a mistake, 1 for a crash, 128 + signal when interrupted."""

import contextlib
import errno
import logging
import os
import signal
import sys

import pytest

from firstlight.commands.frame import run
from firstlight.errors import Interrupted, RunError, UserError
from firstlight.terminal_text import say


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UserError("seed=-1 must be\nat least 0"), 2, "error: seed=-1 must be at least 0\n"),
        (RunError("the loss is nan"), 1, "error: the loss is nan\n"),
        (MemoryError(), 1, "error: the memory is used up (MemoryError: ); use smaller batches or a smaller model\n"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 1, "error: the memory is used up"),
        (OSError(errno.ENOSPC, "No space left on device", "last.ckpt"), 1, "the disk is full"),
        (OSError(errno.EFBIG, "File too large"), 1, "a file is too large"),
        (OSError(errno.EROFS, "Read-only file system", "/run"), 2, "/run: Read-only file system; name another place"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (Interrupted(signal.SIGTERM), 143, ""),
        (Interrupted(signal.SIGINT), 130, ""),
    ],
)
def test_each_end_has_its_exit_code(error, code, message, capsys) -> None:
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        run(main)
    assert ended.value.code == code
    line = capsys.readouterr().err
    assert message in line
    assert line.count("\n") == (1 if message else 0)


def test_a_very_long_message_keeps_its_beginning_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise UserError(
            f"data.csv:1: the column 'text' does not exist; the columns are {'x' * 100_000}; check the name"
        )

    with pytest.raises(SystemExit):
        run(main)
    line = capsys.readouterr().err
    assert line.startswith("error: data.csv:1: the column 'text' does not exist; the columns are x")
    assert line.endswith("x; check the name\n")
    assert len(line) < 2100


def test_matplotlib_does_not_warn_of_fonts_that_no_figure_uses() -> None:
    run(lambda: None)
    assert not logging.getLogger("matplotlib.font_manager").isEnabledFor(logging.WARNING)


def test_a_current_folder_that_was_removed_is_reported_in_one_line(tmp_path, capsys) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with contextlib.chdir(folder), pytest.raises(SystemExit) as ended:
        folder.rmdir()
        try:
            run(lambda: None)
        finally:
            folder.mkdir()
            os.chdir(folder)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: the current folder was removed; change to another folder\n"


def test_closed_streams_are_opened_as_the_null_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    run(lambda: say("to nobody"))
    streams = (sys.stdin, sys.stdout, sys.stderr)
    assert [stream.name for stream in streams] == [os.devnull] * 3
    for stream in streams:
        stream.close()


def test_a_bug_of_ours_keeps_its_traceback() -> None:
    def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main)


def test_only_the_first_signal_raises_an_error_so_that_the_end_is_recorded() -> None:
    from firstlight.callbacks.stop_signals import signals_raise, signals_restored

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    for number in (signal.SIGTERM, signal.SIGHUP):
        with signals_restored():
            with pytest.raises(Interrupted) as error, signals_raise():
                signal.raise_signal(number)
            assert error.value.code == 128 + number
            signal.raise_signal(number)  # while the record is written
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before


def test_a_signal_is_known_behind_what_lightning_makes_of_it() -> None:
    from lightning.pytorch.utilities.exceptions import SIGTERMException

    from firstlight.callbacks.stop_signals import signal_behind

    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise SystemExit(1)  # noqa: B904  (as Lightning does it)
    except SystemExit as error:
        assert signal_behind(error) == signal.SIGINT
    assert signal_behind(SIGTERMException()) == signal.SIGTERM
    assert signal_behind(Interrupted(signal.SIGTERM)) == signal.SIGTERM
    assert signal_behind(SystemExit(1)) is None
    assert signal_behind(ValueError("a bug")) is None
