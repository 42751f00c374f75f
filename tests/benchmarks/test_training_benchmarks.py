"""Benchmarks train as src/train.py does: their trainings have the global settings of a user's run."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from omegaconf import OmegaConf

from benchmark_tables import names
from firstlight.commands.train import CONFIG_DIR, CONFIG_NAME
from firstlight.config.schema import register_schemas
from firstlight.lit.networks import build_network
from tests_support import ROOT, Done, Scripts

HERE = Path(__file__).parent
GENERATOR = ["task=shakespeare", "model.dim=12", "model.num_heads=3", "context_length=7", "data.source=sample"]
THREADS = 3
VARIANTS = ["eager", "bfloat16"]
COMMANDS = {
    "train": ["trainer.max_steps=2", "trainer.limit_val_batches=0", "test=false"],
    "loop": ["--pairs", "2", "--steps", "3"],
    "profile_step": ["--steps", "2"],
    "gpu": ["--device", "cpu", "--steps", "2", "--warmup-steps", "1", "--repeats", "1"],
    "against": ["--pairs", "1", "--steps", "50"],
}
LISTS = {"gpu": ["--sizes", "tiny", "large", "--variants", *VARIANTS], "against": ["--sizes", "tiny"]}
# All benchmarks train with measure.train. `make test` checks one of them, and `make test-all` checks all.
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("profile_step", "gpu", "against")]
BENCHMARKS = ["loop", *OTHERS]


@pytest.fixture(scope="module")
def measured(
    tmp_path_factory: pytest.TempPathFactory, sample_cache: str
) -> Callable[[str], tuple[Done, list[dict[str, Any]]]]:
    """Return the result of a command and the settings of each of its trainings. Each command is run once."""
    known: dict[str, tuple[Done, list[dict[str, Any]]]] = {}

    def run(name: str) -> tuple[Done, list[dict[str, Any]]]:
        if name not in known:
            folder = tmp_path_factory.mktemp("measured")
            file = folder / "settings.jsonl"
            settings = ["+callbacks.settings._target_=torch_settings.Settings", f"+callbacks.settings.file={file}"]
            script = name if name == "train" else f"../benchmarks/{name}"
            overrides = [*GENERATOR, *settings, f"threads={THREADS}", sample_cache]
            shutil.copy(HERE / "torch_settings.py", folder)
            done = Scripts(folder).run_alone(script, *COMMANDS[name], *overrides, *LISTS.get(name, []))
            assert done.returncode == 0, done.stderr
            known[name] = done, list(map(json.loads, file.read_text().splitlines()))
        return known[name]

    return run


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_benchmark_trains_with_the_torch_settings_of_a_users_run(measured: Any, benchmark: str) -> None:
    _, (of_a_run,) = measured("train")
    _, of_trainings = measured(benchmark)
    assert of_a_run["num_threads"] == THREADS
    assert of_trainings
    for settings in of_trainings:
        assert settings == of_a_run


def test_loop_compares_lightning_with_a_bare_loop(measured: Any) -> None:
    done, _ = measured("loop")
    assert names(done.stdout) == ["Lightning", "bare", "difference", "ratio"]
    assert f"{THREADS} CPU threads" in done.stdout


@pytest.mark.slow  # 18 s of processor time: six trainings by measure.train, which `make test` checks with `loop`
def test_the_benchmark_of_gpus_runs_on_a_cpu_too(measured: Any) -> None:
    done, trainings = measured("gpu")
    assert names(done.stdout) == VARIANTS * 2  # the variants of two generators
    assert len(trainings) == 2 * len(VARIANTS)


@pytest.mark.slow  # two complete programs, 19 s; the tests of plain_gpt.py below check its parts
def test_two_programs_that_train_the_same_network_are_compared(measured: Any) -> None:
    done, trainings = measured("against")
    assert names(done.stdout) == ["src/train.py", "plain_gpt.py"]
    assert len(trainings) == 2, "one to prepare the text, and one that is measured"
    rows = [line.strip("│").split("│")[1:] for line in done.stdout.splitlines() if line.startswith("│")]
    (*ours, no_ratio, _), (*plain, ratio, _) = rows
    for *_, loss in (ours, plain):
        assert float(loss) < 5  # an untrained network of about 70 characters has 4.2
    assert no_ratio.strip() == ""
    assert float(ratio) == pytest.approx(float(ours[0]) / float(plain[0]), rel=0.05)


def module(path: Path) -> Any:
    """Return a file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded  # a dataclass looks up its module here
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def plain_gpt() -> Any:
    return module(ROOT / "benchmarks" / "plain_gpt.py")


def test_the_plain_network_is_ours_with_other_names(plain_gpt: Any) -> None:
    gpt_2 = module(ROOT / "benchmarks" / "gpt_2.py")
    register_schemas()
    sizes = ["model.dim=12", "model.num_heads=3", "model.num_layers=2", "context_length=7"]
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=[*gpt_2.GPT_2, *sizes])
    ours: Any = build_network(OmegaConf.to_object(config.model), vocab_size=11, num_classes=0)
    plain = plain_gpt.GPT(vocab_size=11, context_length=7, dim=12, num_heads=3, num_layers=2)
    for parameter in plain.parameters():
        torch.nn.init.normal_(parameter)
    ours.embedding.load_state_dict(plain.tokens.state_dict())
    ours.positions.table.load_state_dict(plain.positions.state_dict())
    ours.final_norm.load_state_dict(plain.norm.state_dict())
    for block, layer in zip(ours.blocks, plain.layers, strict=True):
        attention, perceptron = block.self_attention, block.feed_forward
        block.self_attention_norm.load_state_dict(layer.norm_1.state_dict())
        block.feed_forward_norm.load_state_dict(layer.norm_2.state_dict())
        weights, biases = (part.chunk(3) for part in layer.query_key_value.parameters())
        for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            getattr(attention, name).load_state_dict({"weight": weight, "bias": bias})
        attention.output.load_state_dict(layer.projection.state_dict())
        perceptron.expand.load_state_dict(layer.expand.state_dict())
        perceptron.contract.load_state_dict(layer.contract.state_dict())
    token_ids, targets = torch.randint(11, (2, 5, 7))
    loss = F.cross_entropy(ours.eval()(token_ids).flatten(0, 1), targets.flatten())
    torch.testing.assert_close(plain(token_ids, targets), loss)


def test_the_plain_program_learns_and_writes_its_record(plain_gpt: Any, tmp_path: Path) -> None:
    text = tmp_path / "text.bin"
    np.tile(np.arange(5, dtype=np.uint16), 40).tofile(text)  # the previous token determines each token
    sizes = ["--vocab-size", "5", "--dim", "12", "--num-heads", "3", "--num-layers", "1", "--context-length", "7"]
    options = [*sizes, "--steps", "120", "--learning-rate", "0.01", "--warmup-steps", "5"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["plain_gpt.py", str(text), *options, "--record", str(tmp_path / "record.json")])
        plain_gpt.main()
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["loss"] < 0.2  # without training, it is the logarithm of 5, which is 1.6
    assert record["steps"] == 120
    assert record["parameters"] == 5 * 12 + 7 * 12 + (12 * 12 * 12 + 13 * 12) + 2 * 12
    assert record["processor_seconds"] > 0
    assert record["wall_seconds"] > 0
