"""Every key of the configuration is described once, for --help and the documentation."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from omegaconf import OmegaConf

from firstlight.config.keys import SECTIONS, keys_of, parameter, types_of
from key_reference import all_keys, key_reference


def test_a_key_without_a_sentence_is_an_error() -> None:
    @dataclass
    class Undescribed:
        width: int = 3

    with pytest.raises(LookupError, match=r"model.width: no docstring of Undescribed describes it; add one"):
        list(keys_of(OmegaConf.structured(Undescribed), "model."))


def test_a_sentence_is_short_and_complete() -> None:
    sentences = {key.sentence: name for name, places in all_keys().items() for key in places.values()}
    assert {key.section for places in all_keys().values() for key in places.values()} == set(SECTIONS)
    assert [each for each in sentences.items() if each[0] and not re.fullmatch(r"[^\n]{10,250}\.", each[0])] == []


def test_every_argument_that_conf_gives_to_our_own_classes_is_described() -> None:
    foreign = ("logger.wandb.", "logger.tensorboard.", "logger.csv.", "logger.trackio.")
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
    ("target", "name", "types"),
    [
        ("lightning.pytorch.Trainer", "gradient_clip_val", ["number", "null"]),
        ("lightning.pytorch.Trainer", "max_time", ["string", "timedelta", "dict", "null"]),
        ("torch.optim.AdamW", "lr", ["number"]),
        ("torch.optim.AdamW", "betas", ["list of numbers"]),
        ("firstlight.lit.schedules.cosine", "final_fraction", ["number"]),
        ("my_callbacks.Count", "every", ["list of integers"]),
    ],
)
def test_an_argument_is_described_by_its_class_or_a_base_class(target, name, types, tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_callbacks.py").write_text(
        "class Base:\n"
        '    """Counts.\n\n    Args:\n        every: Steps between two counts.\n    """\n'
        "    def __init__(self, every: list[int]) -> None: ...\n"
        "class Count(Base): ...\n"
    )
    sentence, hint = parameter(target, name)
    assert sentence.endswith(".")
    assert types_of(hint) == types


@pytest.mark.parametrize(
    "target", ["no_such_package.Class", "firstlight.lit.NoSuchClass", "None", "torch.optim.Adam.x"]
)
def test_a_class_without_a_source_has_no_description(target: str) -> None:
    assert parameter(target, "lr") == parameter(target, "") == ("", Any)


def test_the_key_reference_has_a_row_for_every_key() -> None:
    reference = key_reference()
    assert all(reference.count(f"\n| `{name}` |") == 1 for name in all_keys())
    assert "| `tokenizer.kind` | word or subword or char |" in reference
    assert "<metric>" not in reference, "which Markdown would read as HTML"
