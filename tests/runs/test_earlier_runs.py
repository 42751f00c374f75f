"""Runs of earlier versions are read, make the same predictions and resume as with the earlier version.

Each zip file in tests/earlier_runs/ holds a run folder that an earlier version wrote, and in expected.json what that
version computed. evidence_0_2.zip was written by version 0.2.0, which kept the counted evidence in the network:
`train.py task=stars data.path=reviews.csv model.evidence=true model.evidence_pairs=41 …` for two epochs.
"""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import hydra
import pytest
import torch
from torch.testing import assert_close

import firstlight
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.data import ReviewData
from firstlight.data.batches import Rows
from firstlight.earlier_names import current_override
from firstlight.errors import UserError
from firstlight.lit import Classification
from firstlight.networks.config import ClassifierConfig, EncoderDecoderConfig, GeneratorConfig
from firstlight.networks.masked_config import MaskedConfig
from firstlight.runs.identity import ADDED, run_key
from firstlight.runs.settings import Configuration
from tests_support import ROOT, Scripts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reviews, the run and the expected numbers."""
    folder = tmp_path_factory.mktemp("earlier")
    with zipfile.ZipFile(ROOT / "tests/earlier_runs/evidence_0_2.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "expected.json").read_text())


def reviews(folder: Path, **options: Any) -> ReviewData:
    tokenizer = {"max_size": 7000, "min_document_frequency": 2, "punctuation": True}
    return ReviewData(
        path=str(folder / "reviews.csv"),
        labels="stars",
        context_length=19,
        truncation="head_tail",
        tokenizer=tokenizer,
        cache_dir=str(folder / "cache"),
        **options,
    )


def test_a_run_with_evidence_in_its_network_predicts_the_same(folder: Path, expected: dict[str, Any]) -> None:
    run: Any = firstlight.load(folder / "run", checkpoint="last")
    assert_close(torch.from_numpy(run.probabilities(expected["texts"])), torch.tensor(expected["probabilities"]))
    assert run.config["data"]["evidence_pairs"] == 41
    assert "evidence" not in run.config["model"]


def test_the_data_gives_the_features_that_the_network_counted_itself(folder: Path, expected: dict[str, Any]) -> None:
    network = Classification.load_from_checkpoint(folder / "run/checkpoints/last.ckpt").network.eval()
    data = reviews(folder, evidence=True, evidence_pairs=41, evidence_shrinkage=3.0)
    data.ensure_setup()
    rows, lengths = torch.tensor(expected["rows"]).numpy(), data.lookup().lengths
    for are_counted, name in ((False, "whole"), (True, "left_out")):
        batch = data.table(Rows(lengths, are_counted=are_counted)[rows])
        assert_close(network(*batch.inputs).detach(), torch.tensor(expected[name]))
    for batch in data.train_dataloader():
        counted = data.table(Rows(lengths, are_counted=True)[batch.rows.numpy()])
        assert torch.equal(batch.features, counted.features)
    for batch in data.val_dataloader():
        assert torch.equal(batch.features, data.table(Rows(lengths)[batch.rows.numpy()]).features)


def test_a_run_with_evidence_in_its_network_goes_on_as_it_would_have(
    folder: Path, expected: dict[str, Any], scripts: Scripts
) -> None:
    shutil.copytree(folder, scripts.folder, dirs_exist_ok=True)
    done = scripts.run("train", "resume=run", "trainer.max_epochs=4")
    assert done.returncode == 0, done.stderr
    run: Any = firstlight.load(scripts.folder / "run", checkpoint="last")
    assert_close(
        torch.from_numpy(run.probabilities(expected["texts"])), torch.tensor(expected["resumed"]), atol=1e-4, rtol=1e-3
    )
    record = json.loads((scripts.folder / "run/metrics.json").read_text())
    earlier = json.loads((folder / "run/metrics.json").read_text())
    assert record["parameters"] == earlier["parameters"]


def test_a_run_with_evidence_in_its_network_is_trained_further_by_resume_alone(folder: Path) -> None:
    module = Classification.load_from_checkpoint(folder / "run/checkpoints/last.ckpt")
    data = reviews(folder)
    data.use_vocabulary_of(module)
    assert next(iter(data.val_dataloader())).features.shape[2] == 3
    with pytest.raises(UserError, match=r"by version 0.2.0 and lacks the numbers of texts .* resume=, or train a new"):
        data.train_dataloader()


def test_a_report_reads_the_options_of_such_a_run_under_their_names_of_now(folder: Path) -> None:
    assert Configuration(folder / "run").value("data.evidence_pairs") == 41


def test_such_a_run_is_found_by_its_key_in_a_sweep_and_by_resume_auto(folder: Path) -> None:
    record = json.loads((folder / "run/metrics.json").read_text())
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        register_schemas()
        config = hydra.compose(CONFIG_NAME, overrides=[current_override(line) for line in record["overrides"]])
    assert run_key(config) == record["run_key"]
    config.data.evidence = False
    assert run_key(config) != record["run_key"]


def test_a_file_of_settings_with_an_earlier_name_is_answered_with_the_name_of_now(scripts: Scripts) -> None:
    file = scripts.folder / "conf/experiment/mine.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# @package _global_\nmodel:\n  evidence: true\n")
    done = scripts.run("train", "experiment=mine")
    assert (done.returncode, done.stderr) == (2, "error: model.evidence was renamed; write data.evidence\n")


def test_the_keys_leave_out_the_options_that_networks_have_by_default() -> None:
    """A value of `ADDED` that is not the option's default would change the key of every earlier run."""
    defaults = {
        name: getattr(value, "value", value)  # a choice by its name, as in a recorded configuration
        for kind in (ClassifierConfig, EncoderDecoderConfig, GeneratorConfig, MaskedConfig)
        for name, value in vars(kind()).items()
    }
    assert {name: defaults[name] for name in ADDED["model"]} == ADDED["model"]
