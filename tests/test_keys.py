"""Every key of the configuration is described once, for --help, the documentation and the JSON Schema of editors."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from firstlight.config.keys import SECTIONS, keys_of, parameter, schema_of, summary
from firstlight.config.reference import all_keys, json_schema, key_reference
from tests_support import ROOT

SCHEMA = json_schema()
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
    """What a value has against the parts of JSON Schema that the schema uses."""
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


def of_file(path: Path, text: str) -> dict[str, Any]:
    """The schema of a file: of the root, of the section that its package names, or of its group."""
    package = re.search(r"# @package (\S+)", text)
    name = package[1] if package else path.relative_to(ROOT / "conf").parts[0]
    return SCHEMA if name == "_global_" or path.name == "train.yaml" else SCHEMA["definitions"].get(name, {})


def test_a_key_without_a_sentence_is_an_error() -> None:
    @dataclass
    class Undescribed:
        width: int = 3

    with pytest.raises(LookupError, match=r"model.width: no docstring of Undescribed describes it; add one"):
        list(keys_of(OmegaConf.structured(Undescribed), "model."))


def test_the_schema_accepts_every_file_of_the_configuration() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in FILES}
    assert len(texts) > 80
    found = [
        problems(yaml.load(text, yaml.CSafeLoader), of_file(path, text), str(path)) for path, text in texts.items()
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
    sentences = {key.sentence: name for name, places in all_keys().items() for key in places.values()}
    assert {key.section for places in all_keys().values() for key in places.values()} == set(SECTIONS)
    assert [each for each in sentences.items() if each[0] and not re.fullmatch(r"[^\n]{10,250}\.", each[0])] == []


def test_every_argument_that_conf_gives_to_our_own_classes_is_described() -> None:
    foreign = ("logger.wandb.", "logger.tensorboard.", "logger.csv.")
    names = {name for name, places in all_keys().items() if not all(key.sentence for key in places.values())}
    assert [name for name in names if not name.startswith(foreign)] == []


def test_a_key_has_its_type_and_its_default_for_each_task() -> None:
    epochs = all_keys()["epochs"]
    assert epochs["names"].type == "integer"
    assert (epochs["names"].value, epochs["stars"].value) == (30, 4)
    assert all_keys()["model.norm"]["stars"].type == "post or pre or none"
    assert "names" not in all_keys()["model.pooling"], "a generator has none"
    assert all_keys()["callbacks.translations.num_samples"]["translation"].value == 5
    assert all_keys()["schedule.decay_fraction"].keys() == {"schedule=warmup_stable_decay"}
    assert "UTF-8" in all_keys()["data.path"]["text"].sentence


def test_what_the_user_does_not_set_is_not_a_key() -> None:
    names = set(all_keys())
    assert {"dropout", "data.path", "model._target_"} <= names
    assert not names & {"model.dropout", "data.seed", "data.tokenizer", "optimizer._target_", "optimizer._partial_"}


@pytest.mark.parametrize(
    ("target", "name", "schema"),
    [
        ("lightning.pytorch.Trainer", "gradient_clip_val", {"type": ["number", "null"]}),
        ("torch.optim.AdamW", "lr", {"type": "number"}),
        ("torch.optim.AdamW", "betas", {"type": "array", "items": {"type": "number"}}),
        ("firstlight.lit.schedules.cosine", "final_fraction", {"type": "number"}),
        ("my_callbacks.Count", "every", {"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_an_argument_is_described_by_its_class_or_a_base_class(
    target: str, name: str, schema: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_callbacks.py").write_text(
        "class Base:\n"
        '    """Counts.\n\n    Args:\n        every: Steps between two counts.\n    """\n'
        "    def __init__(self, every: list[int]) -> None: ...\n"
        "class Count(Base): ...\n"
    )
    sentence, hint = parameter(target, name)
    assert sentence.endswith(".")
    assert schema_of(hint) == schema


@pytest.mark.parametrize(
    "target", ["no_such_package.Class", "firstlight.lit.NoSuchClass", "None", "torch.optim.Adam.x"]
)
def test_a_class_without_a_source_has_no_description(target: str) -> None:
    assert (parameter(target, "lr"), summary(target)) == (("", Any), "")


def test_the_key_reference_has_a_row_for_every_key() -> None:
    reference = key_reference()
    assert all(reference.count(f"\n| `{name}` |") == 1 for name in all_keys())
    assert "| `tokenizer.kind` | word or subword or char |" in reference
    assert "<metric>" not in reference, "which Markdown would read as HTML"
