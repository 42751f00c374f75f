"""Sweeps over widths: the callback that measures activations, and the figures at the end of a sweep."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure
from omegaconf import OmegaConf
from torch import nn

from firstlight.callbacks.activation_sizes import ActivationSizes, layers_of
from firstlight.errors import UserError
from firstlight.figures.style import SAMPLE_MARK
from firstlight.lab.reports.all_runs import gather
from firstlight.runs.folder import read_history
from firstlight.sweeps.figures import ShowActivationSizes, ShowLearningRates, save_marked, sizes_of
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig
from run_folders import make_run
from tests_support import Scripts, some_text


def test_the_sizes_are_those_of_the_embedding_all_blocks_and_the_logits() -> None:
    network = EncoderDecoder(EncoderDecoderConfig(dim=8, num_heads=2, num_decoder_layers=2), 11, 13)
    assert list(layers_of(network)) == ["embedding", "encoder.0", "decoder.0", "decoder.1", "head"]


def test_a_sweep_over_widths_measures_every_logged_step_and_draws_them(scripts: Scripts) -> None:
    text = scripts.folder / "play.txt"
    text.write_text(some_text(3_000), encoding="utf-8")
    quick = ["trainer.max_steps=3", "trainer.log_every_n_steps=2", "data.batch_size=4", "context_length=16"]
    quick += ["model.num_layers=1", "model.dim=8,16", "model.base_dim=8", "model.parametrization=mup"]
    done = scripts.succeed("train", "experiment=scaling/coordinate_check", "task=text", f"data.path={text}", *quick)
    folder = scripts.folder / "logs" / "sweeps" / "coordinate_check"
    assert (folder / "coordinate_check.png").stat().st_size > 10_000
    assert str(folder.relative_to(scripts.folder) / "coordinate_check.png") in done.stdout
    (wide,) = folder.glob("*dim-16*")
    lines = {line["step"]: line for line in read_history(wide / "history.jsonl") if "activations/head" in line}
    assert lines.keys() == {1}
    assert {name for name in lines[1] if "activations" in name} == {
        *("activations/embedding", "activations/blocks.0", "activations/head")
    }
    assert all(0 < value < 10 for name, value in lines[1].items() if "activations" in name)
    rates = [line for line in read_history(wide / "history.jsonl") if "lr-AdamW/pg2" in line]
    assert [line["lr-AdamW/pg2"] for line in rates] == [pytest.approx(rates[0]["lr-AdamW/pg1"] / 2)]  # hidden matrices


def test_a_compiled_network_is_refused() -> None:
    module = nn.Module()
    module.network = nn.Linear(3, 3)
    module.network._compiled_call_impl = module.network.forward  # as after compile(), which takes 2 s
    with pytest.raises(UserError, match=r"^callbacks=activation_sizes cannot .*; set compile=false$"):
        ActivationSizes().on_fit_start(SimpleNamespace(), module)


def test_the_best_rate_of_each_width_is_printed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    losses = {("standard", 32, 0.01): 2.2, ("standard", 32, 0.1): 2.3, ("mup", 64, 0.01): 2.1, ("mup", 64, 0.1): 2.0}
    for (kind, dim, rate), loss in losses.items():
        for seed in (1, 2):
            keys = (f"model.parametrization={kind}", f"model.dim={dim}", f"optimizer.lr={rate}", f"seed={seed}")
            value = loss + 0.01 * seed
            make_run(tmp_path, "_".join(keys), *keys, seed=seed, task="names", metrics={"val/loss": value}, steps=300)
    make_run(tmp_path, "failed", "model.dim=64", "optimizer.lr=9", seed=1, task="names", status="failed", metrics={})
    ShowLearningRates().on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}}))
    rows = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert rows == [["standard", "32", "0.01", "2.215", "2"], ["µP", "64", "0.1", "2.015", "2"]]
    assert (tmp_path / "learning_rates.png").stat().st_size > 10_000


def test_the_sizes_of_activations_are_means_over_the_seeds(tmp_path: Path) -> None:
    for seed, size in ((1, 0.5), (2, 1.5)):
        lines = [{"step": 0, "seconds": 1.0, "epoch": 0, "activations/head": size}]
        make_run(tmp_path, f"seed-{seed}", "model.dim=8", f"seed={seed}", seed=seed, task="names", lines=lines)
    assert sizes_of(gather(tmp_path)) == {"standard": {"head": {0: {8: 1.0}}}}


@pytest.mark.parametrize(
    ("other_seed", "why"),
    [(1, "steps-150 and steps-300 differ in something else than model.dim"), (2, "the runs have different numbers of")],
)
def test_runs_that_differ_in_another_key_are_not_taken_for_seeds(other_seed, why, tmp_path, caplog) -> None:
    for steps, seed in ((150, 1), (300, other_seed)):
        keys = ("model.dim=8", "optimizer.lr=0.1", f"trainer.max_steps={steps}", f"seed={seed}")
        make_run(tmp_path, f"steps-{steps}", *keys, seed=seed, task="names", metrics={"val/loss": 2.0}, steps=steps)
    ShowLearningRates().on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}}))
    assert not list(tmp_path.glob("*.png"))
    assert f"No figure is drawn, because {why}" in caplog.text


@pytest.mark.parametrize("source", ["sample", "local"])
def test_the_figure_of_generated_data_is_marked(tmp_path: Path, source: str) -> None:
    make_run(tmp_path, "one", "model.dim=8", task="names", data={"source": source, "fingerprint": "f"})
    figure = Figure()
    figure.suptitle("names: validation loss")
    save_marked(figure, gather(tmp_path), tmp_path / "a.png")
    assert figure.get_suptitle() == "names: validation loss" + (SAMPLE_MARK if source == "sample" else "")
    assert (tmp_path / "a.png").exists()


def test_a_sweep_without_widths_or_without_runs_draws_nothing(tmp_path: Path) -> None:
    ShowLearningRates().on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path / "dry_run")}}}))
    make_run(tmp_path, "one", "optimizer.lr=0.1", seed=1, task="names", metrics={"val/loss": 2.0})
    for callback in (ShowLearningRates(), ShowActivationSizes()):
        callback.on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}}))
    assert not list(tmp_path.glob("*.png"))
