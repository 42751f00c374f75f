"""Figures of interventions, on trained runs of each kind: they show what the functions of the networks return."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from firstlight.kind.kind import NothingToDrawError
from firstlight.kind.load import load
from firstlight.kind.subject import Subject
from firstlight.lab.explore import film
from firstlight.lab.explore import interventions as drawn
from firstlight.networks.interventions import head_scores, mean_ablation
from networks.test_interventions import induction_network, repeated
from tests_support import Scripts

Trained = Callable[[str], Path]
NAMES = ("logit_lens", "occlusion", "logit_attribution", "ablation", "patching", "exciting_texts")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of a generator of two blocks, with its kept checkpoints."""
    scripts = Scripts(tmp_path_factory.mktemp("names"))
    (scripts.folder / "names.txt").write_text(
        "\n".join(f"{a}{b}an{c}" for a in "bdk" for b in "aeo" for c in "aeiou" * 3)
    )
    return scripts.train(
        "task=names", f"data.path={scripts.folder / 'names.txt'}", "model=tiny", "model.num_layers=2",
        "trainer.max_steps=20", "callbacks.checkpoint.keep_every=10", "trainer.accelerator=cpu", "data.batch_size=8",
    )  # fmt: skip


def subject_of(folder: Path, **options: Any) -> Subject:
    run = load(str(folder))
    return Subject(run.config, run, **options)


def bars(subject: Subject, name: str) -> dict[str, float]:
    axes = getattr(drawn, name)(subject).figure.axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    return dict(zip(labels, [patch.get_width() for patch in axes.patches], strict=True))


@pytest.mark.parametrize("task", ["sentiment", "stars", "masked_reviews", "names"])
def test_the_figures_of_every_kind_are_drawn(task: str, trained: Trained, names: Path) -> None:
    subject = subject_of(names if task == "names" else trained(task))
    for name in NAMES:
        figure = getattr(drawn, name)(subject).figure
        assert figure.get_suptitle()
        assert figure.axes


@pytest.mark.parametrize("task", ["similarity", "choices"])
def test_the_figures_of_a_split_of_pairs_and_of_answers_are_drawn(task: str, scripts: Scripts, small_sample) -> None:
    options = ("data.source=sample", "model=tiny", "trainer.max_steps=1", "trainer.accelerator=cpu", "test=false")
    subject = subject_of(scripts.train(f"task={task}", *options, small_sample))
    run, (inputs, losses) = subject.run, subject.run.texts_with_losses(subject.data)
    changes = mean_ablation(run.network, *inputs, losses=losses)
    assert {len(change) for change in changes.values()} == {len(inputs[0])}
    assert len(bars(subject, "ablation")) == len(changes)
    assert drawn.exciting_texts(subject).figure.axes


def test_the_bars_of_a_logit_sum_to_the_difference_of_the_classes(trained: Trained) -> None:
    subject = subject_of(trained("sentiment"), text="It was not good.")
    run = subject.run
    with torch.no_grad():
        (logit,) = run.logits(run.encode(["It was not good."]))[0].tolist()
    found = bars(subject, "logit_attribution")
    assert sum(found.values()) == pytest.approx(abs(logit), abs=1e-5)
    assert list(found) == ["embedding", "block 1, head 1", "block 1, head 2", "block 1, feed-forward", "biases"]


def test_an_ablation_has_a_bar_and_an_interval_for_each_part(names: Path) -> None:
    subject = subject_of(names)
    found = bars(subject, "ablation")
    assert len(found) == 2 * (4 + 1 + 1)
    inputs, losses = subject.run.texts_with_losses(subject.data)
    with torch.no_grad():
        log_probabilities = subject.run.network(*inputs)[:, :-1].log_softmax(-1)
        each = losses(subject.run.network(*inputs))
    known = -log_probabilities.gather(-1, inputs[0][:, 1:, None])[..., 0]  # all losses but those of the last tokens
    assert each.shape == (len(inputs[0]),)
    assert (each * inputs[0].shape[1] >= known.sum(1) - 1e-4).all()


def test_patching_shows_the_changed_token_before_the_first_block(names: Path) -> None:
    subject = subject_of(names, text="bana", against="bena")
    values = np.asarray(drawn.patching(subject).figure.axes[0].images[0].get_array())
    (changed,) = np.flatnonzero(values[0])
    assert values[0, changed] == pytest.approx(1)
    with pytest.raises(NothingToDrawError, match="pass two of the same length"):
        drawn.patching(subject_of(names, text="bana", against="ben"))


def test_the_scores_of_heads_are_compared_with_another_run_and_over_the_checkpoints(names, tmp_path) -> None:
    first = load(str(names / "checkpoints/step_000000.ckpt"))
    subject = subject_of(names, others=[first, first])
    axes = drawn.head_scores(subject).figure.axes[:6]
    assert [each.get_title() for each in axes[:2]] == ["induction", "induction, mean of 3 runs"]
    own, other = drawn.scores_of_heads(subject.run), drawn.scores_of_heads(first)
    means = (own["induction"] + 2 * drawn.matched(other, own)["induction"]) / 3
    np.testing.assert_allclose(np.asarray(axes[1].images[0].get_array()), means)
    value, half_width = map(float, axes[1].texts[0].get_text().split(" ± "))
    assert value == pytest.approx(means[0, 0], abs=0.006)
    assert half_width >= 0
    assert len(drawn.head_development(subject).figure.axes[0].lines) == 3 * 3
    subject = subject_of(names)
    scores = drawn.scores_of_heads(load(str(names / "checkpoints/step_000020.ckpt")))
    axes = drawn.head_development(subject).figure.axes[0]
    assert [line.get_xdata().tolist() for line in axes.lines[:3]] == [[0, 10, 20]] * 3
    ends = [line.get_ydata()[-1] for line in axes.lines[:3]]
    assert ends == pytest.approx([values.max() for values in scores.values()])


def test_heads_of_another_seed_are_paired_by_their_role() -> None:
    network = induction_network()
    own = {name: values.numpy() for name, values in head_scores(network, repeated()).items()}
    for block in network.blocks:
        attention: Any = block.self_attention  # two heads, which change places
        for layer in (attention.query, attention.key, attention.value):
            layer.weight.data = layer.weight.data.roll(layer.weight.shape[0] // 2, 0)
        attention.output.weight.data = attention.output.weight.data.roll(attention.output.weight.shape[1] // 2, 1)
    other = {name: values.numpy() for name, values in head_scores(network, repeated()).items()}
    assert own["induction"].argmax() == 3
    assert other["induction"].argmax() == 2
    paired = drawn.matched(other, own)
    for name in drawn.SCORES:
        np.testing.assert_allclose(paired[name], own[name], atol=1e-12)


def test_the_film_has_a_frame_for_each_kept_checkpoint(names: Path, tmp_path: Path, scripts: Scripts) -> None:
    run = Path(shutil.copytree(names, tmp_path / "run"))
    done = scripts.run("explore", str(run), "--film")
    assert done.returncode == 0, done.stderr
    with Image.open(run / "figures/film.gif") as moving:
        assert moving.n_frames == 3
        assert moving.info["loop"] == 0
    page = (run / "figures/figures.html").read_text(encoding="utf-8")
    assert re.findall(r'<input type="radio" name="film" id="step(\d+)"( checked)?>', page) == [
        ("0", ""), ("10", ""), ("20", " checked"),
    ]  # fmt: skip
    assert re.findall(r'<img class="figure" alt="([^"]+)"', page) == ["Step 0 of 20", "Step 10 of 20", "Step 20 of 20"]
    assert "<script" not in page
    for path in (run / "checkpoints").glob("step_*"):
        path.unlink()
    done = scripts.run("explore", str(run), "--film")
    assert done.returncode == 2
    assert done.stderr == "error: the run kept no checkpoints; train with callbacks.checkpoint.keep_every=100\n"


@pytest.mark.parametrize("task", ["sentiment", "masked_reviews"])
def test_a_frame_of_a_run_that_writes_nothing_has_its_answers(task: str, trained: Trained) -> None:
    run = load(str(trained(task)))
    text = run.made_up_text()
    lines = film.sample(run, text).splitlines()
    shares = [float(line.split("  ")[0]) for line in lines if re.match(r"[01]\.\d{3}  ", line)]
    assert len(shares) == (2 if task == "sentiment" else 5)
    assert shares == sorted(shares, reverse=True)


def test_passages_of_units_have_no_padding_and_spaces_between_words(trained: Trained) -> None:
    figure = drawn.exciting_texts(subject_of(trained("sentiment"))).figure
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown[0].startswith("unit ")
    assert not any("[PAD]" in text for text in shown)
    assert sum(text.endswith(" ") for text in shown) > len(shown) / 2


def test_what_cannot_be_drawn_says_why(trained: Trained) -> None:
    with pytest.raises(NothingToDrawError, match="the run kept no checkpoints; train with"):
        drawn.head_development(subject_of(trained("sentiment")))
