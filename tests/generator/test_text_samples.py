"""The texts that a generator writes after each validation. Writing them must have no other effect."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from firstlight.generator import metrics
from firstlight.generator.metrics import TextSamples
from firstlight.generator.options import Preparation

NAMES = "\n".join(["emma", "olivia", "ava", "isabella", "sophia", "mia", "zoe"] * 11)
BLANK_LINE = "\n\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "samples"


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def written(folder: Path) -> list[str]:
    """Return the samples of the last file."""
    return list(texts(folder).values())[-1].removesuffix("\n").split(BLANK_LINE)


def test_each_validation_of_a_training_leaves_a_file(writer_bench, folder: Path) -> None:
    data = writer_bench.data()
    writer_bench.fit(TextSamples(str(folder), num_samples=3, num_tokens=23), data=data, max_epochs=3)
    found = texts(folder)
    assert list(found) == ["00000006.txt", "00000012.txt", "00000018.txt"]
    assert all(len(text) == 3 * 23 + 2 * len(BLANK_LINE) + 1 for text in found.values())
    assert all(set(text) <= set(data.tokenizer.characters) for text in found.values())
    assert len(set(found.values())) == 3


def test_the_same_weights_write_the_same(writer_bench, folder: Path) -> None:
    data = writer_bench.data()
    module = writer_bench.module(data, lr=0.0, dropout=0.7)
    writer_bench.fit(TextSamples(str(folder), num_tokens=23), data=data, module=module, max_epochs=3)
    assert len(set(texts(folder).values())) == 1
    assert TextSamples(str(folder), num_tokens=23).write(data, module) == written(folder)
    assert TextSamples(str(folder), num_tokens=23, seed=2).write(data, module) != written(folder)


def test_the_training_is_the_same_with_and_without_samples(writer_bench, folder: Path) -> None:
    found: list[dict[str, Any]] = []
    for more in ([], [TextSamples(str(folder), num_tokens=23)]):
        data = writer_bench.data()
        module = writer_bench.module(data, dropout=0.3)  # dropout shows a change of the random state or of the mode
        writer_bench.fit(*more, data=data, module=module, max_epochs=3)
        found.append(module.state_dict())
    plain, sampled = found
    assert len(texts(folder)) == 3
    assert all(torch.equal(weight, sampled[name]) for name, weight in plain.items())


def test_a_document_ends_at_its_separator(writer_bench, folder: Path) -> None:
    writer_bench.text = NAMES
    data = writer_bench.data(preparation=Preparation.lines)
    module = writer_bench.module(data)
    samples = TextSamples(str(folder), num_samples=97, num_tokens=13, temperature=1.0)
    texts = samples.write(data, module)
    lengths = {len(text) for text in texts}
    assert not any(data.options.separator in text for text in texts)
    assert max(lengths) == 13  # some texts have no end
    assert len(lengths) > 5


def test_the_unknown_symbol_is_never_written(writer_bench, folder: Path) -> None:
    data = writer_bench.data()
    module = writer_bench.module(data)
    with torch.no_grad():
        module.network.head.bias[data.tokenizer.unknown_id] = 100.0
    (sample,) = TextSamples(str(folder), num_samples=1, num_tokens=211).write(data, module)
    assert len(sample) == 211
    assert data.tokenizer.unknown_symbol not in sample


def test_only_the_validations_of_a_training_write(writer_bench, folder: Path) -> None:
    data = writer_bench.data(test_fraction=0.1)
    module = writer_bench.module(data)
    trainer = writer_bench.trainer(TextSamples(str(folder), num_tokens=5), num_sanity_val_steps=2, max_epochs=1)
    trainer.validate(module, datamodule=data, verbose=False)
    trainer.test(module, datamodule=data, verbose=False)
    assert not folder.exists()
    trainer.fit(module, datamodule=data)
    assert list(texts(folder)) == ["00000006.txt"]


def test_the_log_has_the_first_and_the_loggers_have_all(writer_bench, folder: Path, monkeypatch, caplog) -> None:
    tables: list[tuple[str, list[dict[str, Any]]]] = []
    monkeypatch.setattr(metrics, "publish_table", lambda trainer, name, rows: tables.append((name, list(rows))))
    with caplog.at_level(logging.INFO, logger="firstlight"):
        writer_bench.fit(TextSamples(str(folder), num_samples=3, num_tokens=23))
    ((name, rows),) = tables
    assert name == "val/samples"
    assert [row["step"] for row in rows] == [6] * 3
    assert BLANK_LINE.join(row["sample"] for row in rows) + "\n" == texts(folder)["00000006.txt"]
    assert rows[0]["sample"].strip() in caplog.text
    assert rows[1]["sample"].strip() not in caplog.text
