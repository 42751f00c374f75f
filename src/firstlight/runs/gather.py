"""A run as a row of a report, gathered from the files of its folder, which may be damaged. Imports nothing heavy."""

import csv
import io
import json
import math
import re
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.files.regular import regular
from firstlight.invocation import invocation
from firstlight.runs.folder import MOMENT, RunFolder, parsed_history
from firstlight.runs.identity import FREE_OPTIONS, NOT_PART_OF_A_RUN
from firstlight.runs.summary import COUNTED, KEYS, Confusion, Curve, Run, Value
from firstlight.spelling import QUOTING

POINTS_PER_CURVE = 200
LONGEST_TEXT = 4_000  # characters of a sample or a reason
MOST_ENTRIES, MOST_CHARACTERS = 1_000, 50_000  # of the metrics or overrides of a run
MOST_BYTES = 2**26  # of a history or a confusion matrix
LARGEST = 2**1000  # the limit of integers in a record, which a float can hold
INCOMPLETE, UNREADABLE = "incomplete", "unreadable"
NUMBERS = {  # fields of a run that are values of the record, and their types
    **dict.fromkeys(("parameters", "steps", "total_steps", "tokens"), (int,)),
    **dict.fromkeys(("flops", "tokens_per_second"), (int, float)),
    **dict.fromkeys(("optimized_metric", "optimized_mode", "host"), (str,)),
}
GROUPS_THAT_CHANGE_NOTHING = ("trainer", "local")  # their choices, such as trainer=cpu, do not change the results
LINKED = (  # from the page of a report
    *("config.yaml", "metrics.json", "history.jsonl", "train.log", "figures/figures.html"),
    *("confusion_matrix", "reviews", "samples", "evaluate", "checkpoints"),
)
WORDS = {"": None, "null": None, "~": None, "true": True, "false": False}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
OVERRIDE = re.compile("~?[^=~]+=|~[^=~]")  # its beginning
WHERE_DATA_IS = "data.source"  # a report has a column for it


def read_run(folder: RunFolder, name: str, most: int = POINTS_PER_CURVE) -> Run:
    """Return the row of a run. most: the number of points of its curves; 0: read only its record and its notes.

    A damaged folder raises no error: the row says what is damaged.
    """
    try:
        record = folder.read(may_be_later=True)
        run = run_of(name, record)
        curves, damages, texts, confusion = dict[str, Curve](), list[str](), None, None
        if most:
            curves, damages = read_curves(folder.history_file, most, must_have_lines=bool(run.steps))
            try:
                texts = newest_texts(folder.path / "samples")
                confusion = read_confusion(folder.path / "confusion_matrix" / "validation.csv")
            except (OSError, UserError) as error:
                damages.append(str(error))
        status, why = judged(folder, record, damages)
    except (OSError, UserError) as error:
        if is_starting(folder):
            return Run(name, "running", why="it is starting")
        return Run(name, UNREADABLE, why=_within(folder, str(error)))
    files = [name for name in LINKED if (folder.path / name).exists()]
    run = replace(run, status=status, why=_within(folder, why), **folder.notes())
    return replace(run, curves=curves, texts=texts, confusion=confusion, files=files)


def _within(folder: RunFolder, message: str) -> str:
    """Return a message that names the files of a run without the path of its folder, which the report shows."""
    return message.replace(f"{folder.path}/", "")


def judged(folder: RunFolder, record: dict[str, Any], damages: list[str]) -> tuple[str, str]:
    """Return the status of a run, and why it is not counted; "" for a run that is counted."""
    match folder.status_of(record):
        case "finished":
            return (INCOMPLETE, "; ".join(damages)) if damages else (COUNTED, "")
        case "failed" | "pruned" as status:
            unknown = "it failed and gives no reason" if status == "failed" else "a pruner stopped it"
            return status, " ".join(str(record.get("reason") or unknown)[:LONGEST_TEXT].split())
        case "interrupted":
            killed = "it was killed while it ran: its record says running, and no process trains it"
            stopped = f"it was interrupted after {record.get('steps') or 0} steps"
            return "interrupted", killed if record["status"] == "running" else stopped
        case "running":
            return "running", "it is still running"
    return UNREADABLE, f"metrics.json: status={record['status']!r} is not the status of a run"


def is_starting(folder: RunFolder) -> bool:
    """Return whether a run without a record has begun less than a minute ago, which it needs for its imports."""
    with suppress(FileNotFoundError):
        return time.time() - (folder.path / ".hydra").stat().st_mtime < 60 and not folder.metrics_file.exists()
    return False


def run_of(name: str, record: dict[str, Any]) -> Run:
    """Return the row of a record without its curves. Raises UserError if a value is missing or has another type."""

    def part(key: str, *types: type, of: dict[str, Any] = record) -> Any:
        return checked(f"metrics.json: {key}", of.get(key), *types)

    if not record.get("task") or "status" not in record:
        raise UserError("metrics.json is not the record of a run: it has no task and status")
    overrides = part("overrides", list) or []
    if not all(isinstance(override, str) and OVERRIDE.match(override) for override in overrides):
        raise UserError(f"metrics.json: overrides is {str(overrides)[:40]!r}, of which not all are key=value or ~key")
    data = part("data", dict) or {}
    sizes = part("rows", dict, of=data) or part("tokens", dict, of=data) or {}
    typed = dict(filter(None, map(key_and_value, overrides)))
    numbers: dict[str, Any] = {key: part(key, *types) for key, types in NUMBERS.items()}
    return Run(
        name,
        str(part("status", str)),
        keys=typed | {key: plain_value(part(key, str, int, float)) for key in KEYS},
        is_baseline="chosen" in record,
        command="" if "chosen" in record else _command(overrides),
        source=part("source", str, of=data),
        data_path=part("path", str, of=data),
        fingerprint=part("fingerprint", str, of=data),
        sizes={split: size for split, size in sizes.items() if type(size) is int},
        is_of_classes=isinstance(data.get("classes"), list),
        metrics=metrics_of(record),
        tags=[str(tag) for tag in part("tags", list) or ()],
        fit_seconds=part("fit", int, float, of=part("seconds", dict) or {}),
        **numbers,
    )


def _command(overrides: Sequence[str]) -> str:
    """Return the command that repeats a run, for the shell."""
    kept = [override for override in overrides if not override.startswith("sweep.")]
    return f"{invocation('train')} {shlex.join(kept)}".rstrip()


def checked(name: str, value: Any, *types: type) -> Any:
    """Return a value of a run, or None if it is missing.

    Raises UserError if it has another type, or so many entries, characters or digits that a report would take minutes.
    """
    entries = value if isinstance(value, list | dict) else [value]
    length = sum(len(entry) for entry in entries if isinstance(entry, str))
    if len(entries) > MOST_ENTRIES or length > MOST_CHARACTERS:
        has = f"{len(entries):,} entries and {length:,} characters"
        raise UserError(f"{name}: {has} are more than the {MOST_ENTRIES:,} and {MOST_CHARACTERS:,} that a report reads")
    is_endless = isinstance(value, int) and abs(value) >= LARGEST
    if value is not None and (is_endless or isinstance(value, bool) or not isinstance(value, types)):
        why = "too large" if is_endless else f"of type {type(value).__name__}"
        raise UserError(f"{name} is {str(value)[:40]!r}, {why}")
    return value


def metrics_of(record: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of a record by name. Raises UserError for a value that is not a number."""
    metrics = checked("metrics.json: metrics", record.get("metrics"), dict) or {}
    numbers = {name: checked(f"metrics.json: {name}", value, int, float) for name, value in metrics.items()}
    return {name: float(value) for name, value in numbers.items() if value is not None}


def key_and_value(override: str) -> tuple[str, Value] | None:
    """Return the key and the value of an override; None if it does not change what the run computes."""
    is_removal = override.startswith("~")
    key, _, text = override.lstrip("+~").partition("=")
    group = re.split(r"[./@]", key)[0]
    if group in NOT_PART_OF_A_RUN or key in (*GROUPS_THAT_CHANGE_NOTHING, WHERE_DATA_IS):
        return None
    if key.partition(".")[2] in FREE_OPTIONS.get(group, ()):
        return None
    return key, "removed" if is_removal else value_typed(text)


def value_typed(text: str) -> Value:
    """Return the value of an override, whichever quotes or backslashes it was typed with."""
    if not QUOTING.search(text) and not text.startswith(("[", "{")):
        return plain_value(text)
    from firstlight.runs.overrides import parsed_value  # imports Hydra, which few values require

    value = parsed_value(text)
    if isinstance(value, list | dict):
        return plain_value(value)  # so that ['a', 'b'] equals [a,b]
    return value if isinstance(value, str) and value != text else plain_value(text)


def plain_value(value: Any) -> Value:
    """Return a value as a number or a word, so that 1e-3 equals 0.001, and 'a' equals a."""
    if isinstance(value, bool | int | float | None):
        return value
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str)
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if len(text) > 4000 or not NUMBER.fullmatch(text):  # Python reads no integer of 5,000 digits
        return text
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def read_curves(path: Path, most: int, *, must_have_lines: bool) -> tuple[dict[str, Curve], list[str]]:
    """Return the thinned curves of a history, and what is wrong with the file.

    The complete lines of a history are read whose last line is cut short.
    """
    try:
        content = regular(path, MOST_BYTES).read_bytes()
        curves = curves_of(parsed_history(path, content), most)
    except FileNotFoundError:
        return {}, []  # the record is complete without a history
    except (OSError, UserError) as error:
        return {}, [str(error)]
    except (TypeError, ValueError, OverflowError) as error:
        return {}, [f"{path.name}: a metric is not a number ({error})"]
    if not content.strip():
        return {}, [f"{path.name} is empty"] if must_have_lines else []
    last = len(content.splitlines())
    return curves, [] if content.endswith(b"\n") else [f"{path.name}: line {last}, the last, is cut short"]


def curves_of(lines: list[dict[str, Any]], most: int) -> dict[str, Curve]:
    """Return a curve of at most so many points for each metric.

    Raises TypeError, ValueError or OverflowError for a metric that is not a number.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for line in sorted(lines, key=lambda line: (int(line["step"]), float(line["seconds"]))):
        for name in line:
            if name not in MOMENT:
                found.setdefault(name, []).append(line)
    curves = {}
    for name, same in checked("history.jsonl: metrics", found, dict).items():
        points = thinned(same, most)
        steps, seconds = [int(line["step"]) for line in points], [float(line["seconds"]) for line in points]
        curves[name] = Curve(steps, seconds, [math.nan if line[name] is None else float(line[name]) for line in points])
    return curves


def thinned(values: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many of the values, evenly spaced, with the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(index * (len(values) - 1) / (most - 1))] for index in range(most)]


def read_confusion(path: Path) -> Confusion | None:
    """Return the table that classifier/metrics.py wrote; None if it is missing.

    Raises UserError if it is damaged, and OSError.
    """
    if not path.exists():
        return None
    content = regular(path, MOST_BYTES).read_bytes()
    try:
        text = content.decode("utf-8")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        counts = {(row["true"], row["predicted"]): int(row["count"]) for row in rows}
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is cut short or broken ({type(error).__name__}: {error})") from error
    classes = list(dict.fromkeys(true for true, _ in counts))
    is_square = classes and counts.keys() == {(true, predicted) for true in classes for predicted in classes}
    if not is_square or not text.endswith("\n"):
        raise UserError(f"{path} is cut short: it has {len(counts)} complete cells of {len(classes)} true classes")
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
