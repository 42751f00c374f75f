"""The settings that a run was started with, from its command line. Imports nothing heavy."""

import json
import re
from typing import Any

from firstlight.runs.identity import FREE_OPTIONS, NOT_PART_OF_A_RUN
from firstlight.runs.summary import Value
from firstlight.spelling import QUOTING

GROUPS_THAT_CHANGE_NOTHING = ("trainer", "local")  # their choices, such as trainer=cpu, do not change the results
WHERE_DATA_IS = "data.source"  # a report has a column for it


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
    if text.lower() in ("", "null", "~"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if len(text) > 4000:  # Python reads no integer of 5,000 digits
        return text
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, flags=re.IGNORECASE):
        return float(text)
    return text
