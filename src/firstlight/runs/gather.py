"""A run as a row of a report, gathered from the files of its folder, which may be damaged. Imports nothing heavy."""

import csv
import io
import json
import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.files.regular import regular
from firstlight.runs.folder import MOMENT, MOST_BYTES_OF_A_RECORD, RunFolder, check_version
from firstlight.runs.settings import key_and_value, plain_value
from firstlight.runs.summary import COUNTED, KEYS, Confusion, Curve, Run
from firstlight.runs.trials import MAXIMIZE, MINIMIZE

log = logging.getLogger(__name__)

POINTS_PER_CURVE = 200
IN_NUMBERS = b"0123456789+-.eE"
LONGEST_TEXT = 4_000  # characters of a sample or a reason
MOST_ENTRIES, MOST_CHARACTERS = 1_000, 50_000  # of the metrics or overrides of a run
MOST_BYTES = 2**28  # of a history or a confusion matrix
LARGEST = 2**1000  # the limit of integers in a record, which a float can hold
INCOMPLETE, UNREADABLE = "incomplete", "unreadable"


class Damaged(UserError):  # noqa: N818 (the run is damaged; the report does not fail)
    """A file of a run is incomplete or broken. The message names the file and the damage."""


def read_run(folder: RunFolder, name: str, most: int = POINTS_PER_CURVE) -> Run:
    """Return the row of a run. most: the number of points of its curves.

    A damaged folder raises no error: the row says what is damaged.
    """
    try:
        record = read_record(folder)
        run = run_of(name, record)
    except UserError as error:
        is_new = is_starting(folder)
        return Run(name, "running" if is_new else UNREADABLE, why="it is starting" if is_new else str(error))
    damages: list[str] = []
    curves, damage = read_curves(folder.history_file, most, must_have_lines=bool(run.steps))
    damages += [damage] if damage else []
    texts, confusion = None, None
    try:
        texts = newest_texts(folder.path / "samples")
    except OSError as error:
        damages.append(f"samples/ cannot be read ({error})")
    try:
        confusion = read_confusion(folder.path / "confusion_matrix" / "validation.csv")
    except UserError as error:
        damages.append(str(error))
    status, why = judged(folder, record, damages)
    return replace(run, status=status, why=why, curves=curves, texts=texts, confusion=confusion)


def judged(folder: RunFolder, record: dict[str, Any], damages: list[str]) -> tuple[str, str]:
    """Return the status of a run, and why it is not counted; "" for a run that is counted."""
    match record["status"]:
        case "finished":
            return (INCOMPLETE, "; ".join(damages)) if damages else (COUNTED, "")
        case "failed" | "pruned" as status:
            unknown = "it failed and gives no reason" if status == "failed" else "a pruner stopped it"
            return status, " ".join(str(record.get("reason") or unknown)[:LONGEST_TEXT].split())
        case "interrupted":
            return "interrupted", f"it was interrupted after {record.get('steps') or 0} steps"
        case "running" if is_trained_now(folder):
            return "running", "it is still running"
        case "running":
            return INCOMPLETE, "it was killed while it ran: its record says running, and no process trains it"
    return UNREADABLE, f"metrics.json: status={record['status']!r} is not the status of a run"


def is_starting(folder: RunFolder) -> bool:
    """Return whether a run without a record has begun less than a minute ago, which it needs for its imports."""
    with suppress(FileNotFoundError):
        return time.time() - (folder.path / ".hydra").stat().st_mtime < 60 and not folder.metrics_file.exists()
    return False


def is_trained_now(folder: RunFolder) -> bool:
    """Return whether a process trains the run. Where this cannot be read, the answer is no, with a warning."""
    try:
        return folder.is_locked()
    except OSError as error:
        log.warning("%s: cannot check whether the run is still running (%s)", folder.path, error)
        return False


def read_record(folder: RunFolder) -> dict[str, Any]:
    """Return the content of metrics.json. Raises Damaged, also for a file of another program or an earlier version."""
    try:
        record = json.loads(regular(folder.metrics_file, MOST_BYTES_OF_A_RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Damaged("metrics.json is missing: the run ended before it was written") from None
    except OSError as error:
        raise Damaged(f"metrics.json cannot be read ({error})") from error
    except (ValueError, RecursionError) as error:
        raise Damaged(f"metrics.json is cut short or broken ({error})") from error
    if not isinstance(record, dict) or not record.get("task") or "status" not in record:
        raise Damaged("metrics.json is not the record of a run: it has no task and status")
    check_version(record, folder.metrics_file.name, may_be_later=True)
    return record


def run_of(name: str, record: dict[str, Any]) -> Run:
    """Return the row of a record without its curves. Raises Damaged if a value has another type."""

    def part(key: str, *types: type, of: dict[str, Any] = record) -> Any:
        return checked(f"metrics.json: {key}", of.get(key), *types)

    overrides = part("overrides", list) or []
    if not all(isinstance(override, str) for override in overrides):
        raise Damaged(f"metrics.json: overrides is {str(overrides)[:40]!r}, of which not all are texts")
    data, objectives = part("data", dict) or {}, part("objectives", dict) or {}
    for metric, goal in objectives.items():
        if goal not in (MINIMIZE, MAXIMIZE):
            raise Damaged(f"metrics.json: the direction of {metric[:40]} is {str(goal)[:40]!r}")
    sizes = part("rows", dict, of=data) or part("tokens", dict, of=data) or {}
    typed = dict(filter(None, map(key_and_value, overrides)))
    return Run(
        name,
        str(part("status", str)),
        keys=typed | {key: plain_value(part(key, str, int, float)) for key in KEYS},
        is_baseline="chosen" in record,
        source=part("source", str, of=data) or _source_typed(overrides),
        fingerprint=part("fingerprint", str, of=data),
        sizes={split: size for split, size in sizes.items() if type(size) is int},
        is_of_classes=isinstance(data.get("classes"), list),
        optimized_metric=part("optimized_metric", str),
        optimized_mode=part("optimized_mode", str),
        objectives=objectives,
        metrics=metrics_of(record),
        parameters=part("parameters", int),
        embedding_parameters=part("embedding_parameters", int),
        steps=part("steps", int),
        tokens=part("tokens", int),
        flops=part("flops", int, float),
        tokens_per_second=part("tokens_per_second", int, float),
        fit_seconds=part("fit", int, float, of=part("seconds", dict) or {}),
    )


def checked(name: str, value: Any, *types: type) -> Any:
    """Return a value of a run, or None if it is missing.

    Raises Damaged if it has another type, or so many entries, characters or digits that a report would take minutes.
    """
    entries = value if isinstance(value, list | dict) else [value]
    length = sum(len(entry) for entry in entries if isinstance(entry, str))
    if len(entries) > MOST_ENTRIES or length > MOST_CHARACTERS:
        has = f"{len(entries):,} entries and {length:,} characters"
        raise Damaged(f"{name}: {has} are more than the {MOST_ENTRIES:,} and {MOST_CHARACTERS:,} that a report reads")
    is_endless = isinstance(value, int) and abs(value) >= LARGEST
    if value is not None and (is_endless or isinstance(value, bool) or not isinstance(value, types)):
        why = "too large" if is_endless else f"of type {type(value).__name__}"
        raise Damaged(f"{name} is {str(value)[:40]!r}, {why}")
    return value


def metrics_of(record: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of a record by name. Raises Damaged for a value that is not a number."""
    metrics = checked("metrics.json: metrics", record.get("metrics"), dict) or {}
    numbers = {name: checked(f"metrics.json: {name}", value, int, float) for name, value in metrics.items()}
    return {name: float(value) for name, value in numbers.items() if value is not None}


def _source_typed(overrides: list[Any]) -> str | None:
    """Return the source of the data that the command line of a run sets; None if it sets none."""
    forced = [str(each).partition("=")[2] for each in overrides if str(each).lstrip("+").startswith("data.source=")]
    return forced[-1] if forced and forced[-1] != "auto" else None


def read_curves(path: Path, most: int, *, must_have_lines: bool) -> tuple[dict[str, Curve], str | None]:
    """Return the thinned curves of a history, and what is wrong with the file. Its complete lines are always read."""
    try:
        content = regular(path, MOST_BYTES).read_bytes()
    except FileNotFoundError:
        return {}, None  # the record is complete without a history
    except OSError as error:
        return {}, f"{path.name} cannot be read ({error})"
    if not content.strip():
        return {}, f"{path.name} is empty" if must_have_lines else None
    lines, damage = _whole_lines(content)
    try:
        return curves_of(_parsed(lines, most), most), damage and f"{path.name}: {damage}"
    except UserError as error:
        return {}, str(error)
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        broken = next((number for number, line in enumerate(lines, start=1) if not _is_moment(line)), None)
        where = f"line {broken} is broken" if broken else f"a metric is not a number ({error})"
        return {}, f"{path.name}: {where}"


def _whole_lines(content: bytes) -> tuple[list[bytes], str | None]:
    """Return the lines before the first incomplete one, and a message about that one."""
    lines = content.splitlines()
    if not content.endswith(b"\n"):
        return lines[:-1], f"line {len(lines)}, the last, is cut short"
    for number, line in enumerate(lines, start=1):
        if line.strip() and not (line.startswith(b"{") and line.endswith(b"}")):
            return lines[: number - 1], f"line {number} is cut short"
    return lines, None


def _parsed(lines: list[bytes], most: int) -> list[dict[str, Any]]:
    """Return at most so many parsed lines for each set of metrics. To parse a complete long history takes seconds."""
    alike: dict[bytes, list[bytes]] = {}
    for line in filter(bytes.strip, lines):
        alike.setdefault(line.translate(None, IN_NUMBERS), []).append(line)
    sets = checked("history.jsonl: sets of metrics", alike, dict).values()
    return [line for same in sets for line in json.loads(b"[" + b",".join(thinned(same, most)) + b"]")]


def _is_moment(line: bytes) -> bool:
    try:
        _moment(json.loads(line))
    except (TypeError, KeyError, ValueError, OverflowError):
        return False
    return True


def curves_of(lines: list[dict[str, Any]], most: int) -> dict[str, Curve]:
    """Return a curve of at most so many points for each metric.

    Raises TypeError, KeyError, ValueError or OverflowError for a line that is not from a history.
    """
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines:
        alike.setdefault(tuple(line), []).append(line)
    holding: dict[str, list[list[dict[str, Any]]]] = {}
    for names, same in alike.items():
        for name in names:
            holding.setdefault(name, []).append(same)
    curves = {}
    for name, parts in checked("history.jsonl: metrics", holding, dict).items():
        if name not in MOMENT:
            where = parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts), key=_moment)
            curves[name] = _curve(name, thinned(where, most))
    return curves


def _moment(line: dict[str, Any]) -> tuple[int, float]:
    return int(line["step"]), float(line["seconds"])


def _curve(name: str, lines: list[dict[str, Any]]) -> Curve:
    steps, seconds = [int(line["step"]) for line in lines], [float(line["seconds"]) for line in lines]
    return Curve(steps, seconds, [math.nan if line[name] is None else float(line[name]) for line in lines])


def thinned(values: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many of the values, evenly spaced, with the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(index * (len(values) - 1) / (most - 1))] for index in range(most)]


def read_confusion(path: Path) -> Confusion | None:
    """Return the table that classifier/confusion_matrix.py wrote; None if it is missing. Raises Damaged."""
    name = f"{path.parent.name}/{path.name}"
    try:
        text = regular(path, MOST_BYTES).read_bytes().decode("utf-8")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        counts = {(row["true"], row["predicted"]): int(row["count"]) for row in rows}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"{name} cannot be read ({error})") from error
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{name} is cut short or broken ({type(error).__name__}: {error})") from error
    classes = list(dict.fromkeys(true for true, _ in counts))
    is_square = classes and counts.keys() == {(true, predicted) for true in classes for predicted in classes}
    if not is_square or not text.endswith("\n"):
        raise Damaged(f"{name} is cut short: it has {len(counts)} complete cells of {len(classes)} true classes")
    return Confusion(classes, [[counts[true, predicted] for predicted in classes] for true in classes])


def newest_texts(folder: Path) -> str | None:
    """Return the last sample that a generator or translator wrote, shortened; None if it wrote none."""
    run = folder.parent.resolve()  # a link may lead to a private file outside the run
    files = [file for file in sorted(folder.glob("[0-9]*.txt")) if file.resolve().is_relative_to(run)]  # by their step
    if not files:
        return None
    with regular(files[-1]).open(encoding="utf-8", errors="replace") as file:
        text = file.read(2 * LONGEST_TEXT).strip("\n")
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
