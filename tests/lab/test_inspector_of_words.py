"""Tests of the look inside a translator and a masked language model, in an exported and a served page, in a browser.

Every number is compared with PyTorch's, computed by `run_with_cache` and `run_with_hooks`.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from browser import Opened
from firstlight.kind.load import load
from firstlight.lab.playground.page import exported_page, panel_of
from firstlight.networks import run_with_cache, run_with_hooks
from firstlight.text.sentence_tokenizers import BEGIN_ID
from inspected import WAIT, cells, check_look, explained, look_inside, numbers, percent, says, shares, write
from tests_support import sample_rows

pytestmark = pytest.mark.browser
ROUNDED = {"rel": 6e-3, "abs": 2e-5}  # numbers with three digits
TRANSLATOR, MASKED = 0, 1
MASKED_TEXTS = ("this is [MASK] a great book", "this is [MASK] a terrible book")
HEAT_MAPS = (  # panel, caption, and the activation by its name after that of the block, with LAYER for the attention
    ("vectors", "before the block", "BEFORE"),
    ("qkv", "queries", "LAYER.hook_q"),
    ("qkv", "keys", "LAYER.hook_k"),
    ("qkv", "values", "LAYER.hook_v"),
    ("scores", "scores", "LAYER.hook_attn_scores"),
    ("scores", "weights", "LAYER.hook_pattern"),
    ("mix", "mix of the head", "LAYER.hook_z"),
    ("mix", "all heads, after the output layer", "hook_LAYER_out"),
    ("residual", "sum", "AFTER"),
    ("feed", "units", "mlp.hook_post"),
    ("feed", "result", "hook_mlp_out"),
    ("feed", "sum", "hook_resid_post"),
)


LAYERS = {"attn": "self_attention", "cross_attn": "cross_attention"}


@dataclass
class Looked:
    """A run and two texts with the same number of tokens. inputs: of the network, each (1, length)."""

    run: Any
    texts: tuple[str, str]
    inputs: tuple[Tensor, ...]
    others: tuple[Tensor, ...]
    layers: dict[str, tuple[str, str, str, str]]  # its title -> block, attention, activations before and after it

    def shares(self, inputs: tuple[Tensor, ...], place: int, hooks: Any = ()) -> Any:
        """Return the probability of each token: after a place of a translation, or at the [MASK]."""
        logits = run_with_hooks(self.run.network, *inputs, fwd_hooks=hooks)[0]
        if len(inputs) == 1:
            (place,) = (inputs[0][0] == self.run.tokenizer.vocab_size).nonzero()[:, 0].tolist()
        unwritten = [0, 1] if len(inputs) == 1 else [0, 1, BEGIN_ID]
        logits[:, unwritten] = -torch.inf
        return 100 * logits[place].softmax(dim=0)

    @property
    def cache(self) -> Any:
        return run_with_cache(self.run.network, *self.inputs)[1]


def source_of(run: Any, text: str) -> Tensor:
    return torch.from_numpy(run.read([text])[0].astype(np.int64))[None]


def target_of(run: Any, text: str) -> Tensor:
    return torch.tensor([[BEGIN_ID, *run.write(text, beam_size=1)]])


@pytest.fixture(scope="module")
def looked(translation: Path, trained: Callable[[str], Path]) -> list[Looked]:
    """Return the translator and the masked language model."""
    run: Any = load(str(translation))
    sentences = sorted({row["en"] for row in sample_rows("pairs", 60)})
    pairs = ((a, b) for a in sentences for b in sentences if a < b)
    texts = next(pair for pair in pairs if len({source_of(run, text).shape for text in pair}) == 1)
    inputs, others = [(source_of(run, text), target_of(run, text)) for text in texts]
    translator = {
        "encoder block 1": ("encoder.0", "attn", "hook_resid_pre", "hook_resid_mid"),
        "decoder block 1": ("decoder.0", "attn", "hook_resid_pre", "hook_resid_mid"),
        "cross-attention of block 1": ("decoder.0", "cross_attn", "hook_resid_mid", "hook_resid_mid_cross"),
    }
    masked: Any = load(str(trained("masked_reviews")))
    ids = [(masked.batch(text).token_ids,) for text in MASKED_TEXTS]
    block = {"block 1": ("blocks.0", "attn", "hook_resid_pre", "hook_resid_mid")}
    return [Looked(run, texts, inputs, others, translator), Looked(masked, MASKED_TEXTS, ids[0], ids[1], block)]


both = pytest.mark.parametrize("address", ["exported", "served"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def address(
    request: pytest.FixtureRequest,
    looked: list[Looked],
    served: Callable[..., AbstractContextManager[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    if getattr(request, "param", "exported") == "exported":
        file = tmp_path_factory.mktemp("exported") / "page.html"
        file.write_text(exported_page([panel_of(each.run) for each in looked]), encoding="utf-8")
        yield file.as_uri()
    else:
        with served(*(each.run.path for each in looked)) as found:
            yield found


@pytest.fixture
def inside(opens: Callable[..., Opened], address: str, looked: list[Looked]) -> Callable[..., Any]:
    """Return a function that looks inside a run."""
    return lambda run, **context: look_inside(opens(address, **context).page, run, looked[run].texts[0])


Shown = tuple[Any, Looked]


@pytest.fixture
def shown(run: int, inside: Callable[..., Any], looked: list[Looked]) -> Shown:
    """Return the opened panels of a run, and the run."""
    return inside(run), looked[run]


def choose(place: Any, side: str, token: int) -> None:
    place.locator(f".chips [data-side={side}][data-token='{token}']").focus()
    explained(place)


@both
@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
def test_every_panel_shows_the_numbers_of_the_run(run: int, shown: Shown) -> None:
    place, case = shown
    cache = case.cache
    for title, (block, attention, before, after) in case.layers.items():
        place.locator("[name=layer]").select_option(label=title)
        place.locator("[name=head]").select_option("1")
        side = "target" if block.startswith("decoder") else "source"
        choose(place, side, 2)
        pattern, scores = (cache[f"{block}.{attention}.hook_{step}"][0, 1, 2] for step in ("pattern", "attn_scores"))
        most = pattern.topk(min(4, int((pattern > 0).sum())))
        expected = [each for i in most.indices for each in (100 * pattern[i].item(), scores[i].item())]
        assert numbers(says(place, "scores").replace("attends to", ": ")) == pytest.approx(expected, abs=0.06, rel=6e-3)
        vectors = {name: cache[f"{block}.{name}"][0, 2] for name in (before, after, f"hook_{attention}_out")}
        *first, width, length = numbers(says(place, "vectors"))
        assert (first, width) == (pytest.approx(vectors[before][:6].tolist(), **ROUNDED), len(vectors[before]))
        assert length == pytest.approx(vectors[before].norm().item(), **ROUNDED)
        lengths = [vectors[name].norm().item() for name in (before, f"hook_{attention}_out", after)]
        assert numbers(says(place, "residual")) == pytest.approx(lengths, **ROUNDED)
        units = cache[f"{block}.mlp.hook_post"][0, 2].topk(4)
        expected = [each for i, value in zip(*units[::-1], strict=True) for each in (i.item() + 1, value.item())]
        assert numbers(says(place, "feed").replace(" are ", ": ")) == pytest.approx(expected, **ROUNDED)


@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
def test_every_heat_map_has_the_numbers_of_the_run(run: int, shown: Shown) -> None:
    place, case = shown
    cache = case.cache
    for title, (block, attention, before, after) in case.layers.items():
        place.locator("[name=layer]").select_option(label=title)
        for panel, caption, step in HEAT_MAPS:
            name = step.replace("LAYER", attention).replace("BEFORE", before).replace("AFTER", after)
            value = cache[f"{block}.{name}"][0]
            if caption in ("queries", "keys"):  # the panel shows those that are compared: with their positions
                layer = case.run.network.get_submodule(f"{block}.{LAYERS[attention]}")
                value = layer.rotate(value.flatten(1)).view_as(value)
            if value.ndim == 3:
                value = value[0] if caption in ("scores", "weights") else value[:, 0]  # of the first head
            value = value.masked_fill(value.isinf(), 0)
            shown = np.array(cells(place, panel, caption, value.shape))
            expected = (value / value.abs().max()).numpy()
            seen = cache[f"{block}.{attention}.hook_attn_scores"][0, 0].isfinite().numpy()
            here = seen if caption == "scores" else np.ones(value.shape, bool)
            np.testing.assert_allclose(shown[here], expected[here], atol=0.02, err_msg=f"{title}: {caption}")


@both
@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
def test_the_bars_are_the_probabilities_of_the_run(run: int, shown: Shown) -> None:
    place, case = shown
    write(place, "other", case.texts[1])
    for token in (0, 3) if run == TRANSLATOR else (3,):
        choose(place, "target" if run == TRANSLATOR else "source", token)
        full = case.shares(case.inputs, token)
        best = full.topk(10).indices
        assert list(shares(place).values()) == pytest.approx(full[best].tolist(), abs=0.06)
        last = min(token, case.others[-1].shape[1] - 1)
        expected = case.shares(case.others, last)[best]
        assert list(shares(place, 2).values()) == pytest.approx(expected.tolist(), abs=0.06)


@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
def test_a_head_that_is_switched_off_changes_the_prediction_as_in_the_run(run: int, shown: Shown) -> None:
    place, case = shown
    choose(place, "target" if run == TRANSLATOR else "source", 1)
    full = case.shares(case.inputs, 1)
    best = full.topk(10).indices
    for title, (block, attention, _, _) in case.layers.items():

        def without(z: Tensor, *, hook: Any) -> Tensor:
            z[:, :, 1] = 0
            return z

        box = place.get_by_role("checkbox", name=f"{title}, head 2 on")
        box.uncheck()
        explained(place)
        expected = case.shares(case.inputs, 1, [(f"{block}.{attention}.hook_z", without)])[best]
        assert list(shares(place).values()) == pytest.approx(expected.tolist(), abs=0.06)
        assert (expected - full[best]).abs().max() > 1e-4
        assert list(shares(place, 1).values()) == pytest.approx(full[best].tolist(), abs=0.06)
        box.check()
        explained(place)


@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
def test_a_token_that_is_removed_or_replaced_changes_the_prediction_as_in_the_run(run: int, shown: Shown) -> None:
    place, case = shown
    token, (source, *target) = 1, case.inputs
    choose(place, "source", token)
    write(place, "instead", "good")
    tokenizer = case.run.tokenizers.source if run == TRANSLATOR else case.run.tokenizer
    new = torch.tensor([tokenizer.encode_batch(["good"])[0].tolist()])
    wanted = case.shares(case.inputs, 0).argmax()
    replaced = torch.cat([source[:, :token], new, source[:, token + 1 :]], dim=1)
    removed = torch.cat([source[:, :token], source[:, token + 1 :]], dim=1)
    changed = [(removed, *target), case.inputs, (replaced, *target)]
    expected = [case.shares(inputs, 0)[wanted].item() for inputs in changed]
    found = [percent(each) for each in re.findall(r"[<>]?[\d.]+%", says(place, "tokens"))]
    assert found == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
def test_a_vector_of_the_second_text_brings_what_it_brings_in_the_run(run: int, shown: Shown) -> None:
    place, case = shown
    write(place, "other", case.texts[1])
    token = int((case.inputs[0] != case.others[0])[0].nonzero()[0])
    choose(place, "source", token)
    line = place.locator("text=/ → .*: before block 1: -?[0-9]+%.* of the difference/")
    line.wait_for(timeout=WAIT)
    wanted = case.shares(case.inputs, 0).argmax()
    cache = run_with_cache(case.run.network, *case.others)[1]
    low, high = (case.shares(inputs, 0)[wanted] for inputs in (case.inputs, case.others))
    block = "encoder.0" if run == TRANSLATOR else "blocks.0"
    name = f"{block}.hook_resid_pre"

    def patched(value: Tensor, *, hook: Any) -> Tensor:
        value[:, token] = cache[name][:, token]
        return value

    brought = (case.shares(case.inputs, 0, [(name, patched)])[wanted] - low) / (high - low)
    found = float(line.inner_text().split("block 1: ")[1].split("%")[0])
    assert found == pytest.approx(100 * brought.item(), abs=1.5)


@both
@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
def test_the_link_has_the_whole_state(run: int, shown: Shown, opens: Callable[..., Opened]) -> None:
    place, case = shown
    title = list(case.layers)[-1]
    place.get_by_role("checkbox", name=f"{title}, head 1 on").uncheck()
    write(place, "other", case.texts[1])
    place.locator("[name=layer]").select_option(label=title)
    place.locator("[name=head]").select_option("1")
    choose(place, "target" if run == TRANSLATOR else "source", 2)
    state = [shares(place, column) for column in range(3)] + [says(place, "scores")]
    there = opens(place.page.url).page.locator(f"[data-run='{run}'] .inspector")
    there.locator(".chips button.here").last.wait_for(timeout=WAIT)
    assert [shares(there, column) for column in range(3)] + [says(there, "scores")] == state
    assert there.locator("[name=layer] option:checked").inner_text() == title
    assert not there.get_by_role("checkbox", name=f"{title}, head 1 on").is_checked()


def test_pointing_at_a_key_marks_a_token_of_the_source(inside: Callable[..., Any]) -> None:
    place = inside(TRANSLATOR)
    place.locator("[name=layer]").select_option(label="cross-attention of block 1")
    for caption, side in (("keys", "source"), ("queries", "target")):
        figure = place.locator("figure").filter(has=place.page.locator(f"figcaption:text-is('{caption}')"))
        figure.locator("canvas").hover(position={"x": 3, "y": 30})
        assert place.locator(f".chips [data-side={side}].here").get_attribute("data-token") == "1"


def test_a_text_without_a_mask_is_refused_and_nothing_fails(opens: Callable[..., Opened], address: str) -> None:
    page = opens(address).page
    page.locator("[data-kind=masked] textarea").fill("no word is missing")
    page.locator(f"[data-run='{MASKED}'] summary").press("Enter")
    place = page.locator(f"[data-run='{MASKED}'] .inspector")
    place.locator("[name=head]").select_option("1")
    place.get_by_role("button", name="Copy results").click()
    place.get_by_role("button", name="block 1, head 1").first.click()
    assert "write [MASK] for each word to fill in" in place.locator(".guide").inner_text()
    write(place, "text", MASKED_TEXTS[0])
    choose(place, "source", 2)
    write(place, "instead", "not")
    assert "NaN" not in place.inner_text()
    assert "it has no worth" in says(place, "tokens")


@pytest.mark.parametrize("run", [TRANSLATOR, MASKED])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_its_window_and_has_no_barrier(inside: Callable[..., Any], run: int, width: int, scheme: str) -> None:
    check_look(inside(run, width=width, color_scheme=scheme), width)
