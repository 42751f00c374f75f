"""Every key of the configuration is described once, and conf/schema.json, --help and the documentation say the same."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from firstlight.config.described import Leaf, key_reference, schema_text, sentence_of
from firstlight.config.keys import SCHEMA_FILE, SECTIONS, Key, as_typed, keys
from tests_support import ROOT

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
FILES = sorted(path for path in (ROOT / "conf").rglob("*.yaml") if path.parent.name not in ("wandb_sweep", "local"))
HAS_TYPE = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def problems(value: Any, schema: dict[str, Any], place: str) -> list[str]:
    """What a value has against the parts of JSON Schema that conf/schema.json uses."""
    if "$ref" in schema:
        return problems(value, SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")], place)
    if "anyOf" in schema and all(problems(value, each, place) for each in schema["anyOf"]):
        return [f"{place}: {value!r} fits none of {schema['anyOf']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place}: {value!r} is not one of {schema['enum']}"]
    if "pattern" in schema and not re.search(schema["pattern"], str(value)):
        return [f"{place}: {value!r} does not match {schema['pattern']}"]
    kinds = schema.get("type", list(HAS_TYPE))
    if not any(HAS_TYPE[kind](value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return [f"{place}: {value!r} is not of type {kinds}"]
    found = []
    for name, child in value.items() if isinstance(value, dict) else ():
        known = schema.get("properties", {})
        if name not in known and schema.get("additionalProperties") is False:
            found.append(f"{place}.{name}: not a key")
        found += problems(child, known.get(name, {}), f"{place}.{name}")
    return found


def schema_of(path: Path, text: str) -> dict[str, Any]:
    """The schema of a file: of the root, of the section that its package names, or of its group."""
    package = re.search(r"# @package (\S+)", text)
    name = package[1] if package else path.relative_to(ROOT / "conf").parts[0]
    return SCHEMA if name == "_global_" or path.name == "train.yaml" else SCHEMA["definitions"].get(name, {})


def test_the_schema_file_is_what_the_docstrings_say() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run: make schema"


def test_a_key_without_a_sentence_is_an_error() -> None:
    class Undescribed:
        width: int

    with pytest.raises(LookupError, match=r"model.width: no docstring of Undescribed describes it; add one"):
        sentence_of(Leaf("model.width", Undescribed, "width", 3))


def test_the_schema_accepts_every_file_of_the_configuration() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in FILES}
    assert len(texts) > 80
    found = [
        problems(yaml.load(text, yaml.CSafeLoader), schema_of(path, text), str(path)) for path, text in texts.items()
    ]
    assert [each for each in found if each] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("dropuot: 0.1", "task.dropuot: not a key"),
        ("dropout: high", "task.dropout: 'high' fits none of"),
        ("model: {norm: before}", "task.model.norm: 'before' fits none of"),
        ("model: {dimension: 3}", "task.model.dimension: not a key"),
        ("tokenizer: {max_size: 1.5}", "task.tokenizer.max_size: 1.5 fits none of"),
        ("tags: demo", "task.tags: 'demo' fits none of"),
    ],
)
def test_the_schema_refuses_a_mistake(text: str, problem: str) -> None:
    (found,) = problems(yaml.safe_load(text), SCHEMA, "task")
    assert found.startswith(problem)


def test_a_sentence_is_short_and_complete() -> None:
    sentences = {variant.sentence: key.name for key in keys() for variant in key.variants}
    assert {key.section for key in keys()} == set(SECTIONS)
    assert [each for each in sentences.items() if not re.fullmatch(r"[A-Z][^\n]{10,230}\.", each[0])] == []


def key(name: str) -> Key:
    (found,) = (each for each in keys() if each.name == name)
    return found


def test_a_key_has_its_type_its_choices_and_its_default_for_each_task() -> None:
    norm = key("model.norm")
    assert (norm.choices, norm.default_text) == (("post", "pre", "none"), "pre")
    epochs = key("trainer.max_epochs")
    assert epochs.type == "integer or null"
    assert (epochs.variant("names").default, epochs.variant("stars").default) == (30, 4)  # type: ignore[union-attr]
    assert "30 (names)" in epochs.default_text
    assert key("model.pooling").variant("names") is None, "a generator has none"
    assert key("model.dim").variant("translation").sizes["large"] == 512  # type: ignore[union-attr]
    assert key("optimizer.momentum").default_text == "0.95 (translation, optimizer=muon); 0.0 (optimizer=sgd)"
    assert key("callbacks.translations.num_samples").default_text == "5"
    assert key("schedule.decay_fraction").default_text == "0.2 (schedule=warmup_stable_decay)"
    assert "UTF-8" in key("data.path").variant("text").sentence  # type: ignore[union-attr]


def test_what_the_user_does_not_set_is_not_a_key() -> None:
    names = {key.name for key in keys()}
    assert {"dropout", "data.path", "model._target_"} <= names
    assert not names & {"model.dropout", "data.seed", "data.tokenizer", "optimizer._target_", "optimizer._partial_"}


def test_a_value_is_shown_as_it_is_typed() -> None:
    shown = {None: "null", True: "true", 0.003: "0.003", "": '""', "word": "word"}
    assert {value: as_typed(value) for value in shown} == shown
    assert as_typed([0.9, 0.98]) == "[0.9,0.98]"


def test_the_key_reference_has_a_row_for_every_key() -> None:
    reference = key_reference()
    assert all(reference.count(f"| `{key.name}` |") == 1 for key in keys())
    assert "| `tokenizer.kind` | word or subword or char |" in reference
    assert "<metric>" not in reference, "which Markdown would read as HTML"
