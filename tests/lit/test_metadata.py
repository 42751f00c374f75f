"""A malformed checkpoint raises an error of one line before memory is allocated. Weights with NaN are not used."""

import copy
import json
import warnings
from collections.abc import Callable
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import torch

import firstlight
from firstlight.classifier.insight import attributions
from firstlight.data import CharacterData, ReviewData
from firstlight.errors import UserError
from firstlight.kind.load import open_checkpoint
from firstlight.lit import Classification, Generation
from firstlight.lit.checkpoint import METADATA, STAMP
from firstlight.lit.metadata import refuse_other_state
from firstlight.runs.identity import refuse_other_config
from firstlight.training.initialize import initialize_from

Content = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("metadata")


@pytest.fixture(scope="module")
def reviews(folder: Path) -> ReviewData:
    rows = [f"a good film number {i},{i % 5}" for i in range(60)]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]))
    return ReviewData(path=str(folder / "reviews.csv"), labels="stars", context_length=7, cache_dir=str(folder))


@pytest.fixture(scope="module")
def classifier(reviews: ReviewData) -> Classification:
    return Classification.for_data(reviews, dim=6, num_heads=2, positions="sinusoidal", pooling="mean")


@pytest.fixture(scope="module")
def generator(folder: Path) -> Generation:
    (folder / "text.txt").write_text("to be or not to be, " * 20)
    data = CharacterData(path=str(folder / "text.txt"), context_length=5, cache_dir=str(folder))
    return Generation.for_data(data, dim=6, num_heads=2)


def content_of(module: Any) -> Content:
    assert module.metadata is not None
    metadata = {**STAMP, **copy.deepcopy(module.metadata)}
    training = {"global_step": 3, "epoch": 1, "loops": {}, "callbacks": {}, "optimizer_states": [], "lr_schedulers": []}
    return {METADATA: metadata, "state_dict": dict(module.state_dict()), **training}


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Content], Path]:
    def write(content: Content) -> Path:
        path = tmp_path / "checkpoints" / "best.ckpt"
        path.parent.mkdir(exist_ok=True)
        torch.save(content, path)
        return path

    return write


def within(*keys: str, **values: Any) -> Callable[[Content], object]:
    """Return a function that changes values in a part of a checkpoint."""
    return lambda content: reduce(getitem, keys, content).update(values)


metadata, config = partial(within, METADATA), partial(within, METADATA, "config")
data, model = partial(config, "data"), partial(config, "model")


def weight(name: str, value: Any) -> Callable[[Content], object]:
    return within("state_dict", **{name: value})


def without(*keys: str) -> Callable[[Content], object]:
    return lambda content: reduce(getitem, keys[:-1], content).pop(keys[-1])


BIAS = "network.head.outputs.bias"
diverged = weight(BIAS, torch.tensor([0.0, 1.0, float("nan"), 0.0, 0.0]))


def renumbered(content: Content) -> None:
    tokenizer = json.loads(content[METADATA]["tokenizer"])
    words = tokenizer["model"]["vocab"]
    words[max(words, key=words.__getitem__)] = 10**6
    content[METADATA]["tokenizer"] = json.dumps(tokenizer)


def without_unknown(content: Content) -> None:
    tokenizer = json.loads(content[METADATA]["tokenizer"])
    tokenizer["model"] |= {"unk_token": "[NONE]"}
    content[METADATA]["tokenizer"] = json.dumps(tokenizer)


def quantized(content: Content) -> None:
    with warnings.catch_warnings():  # torch deprecates quantized tensors
        warnings.simplefilter("ignore")
        content["state_dict"][BIAS] = torch.quantize_per_tensor(torch.ones(5), 0.1, 0, torch.qint8)


BROKEN_WEIGHTS = r"state_dict in the checkpoint is missing or broken"
BROKEN: dict[str, tuple[Callable[[Content], object], str]] = {
    "no tokenizer": (without(METADATA, "tokenizer"), r"tokenizer in the checkpoint is missing"),
    "no classes": (without(METADATA, "class_names"), r"class_names in the checkpoint is missing"),
    "another network": (metadata(network="diffusion"), r"network=diffusion must be one of classifier, generator"),
    "no context": (config(context_length="a"), r"context_length in the checkpoint is missing"),
    "truncation": (data(truncation="middle"), r"data.truncation in the checkpoint is missing"),
    "true for a number": (model(context_length=True), r"model.context_length=True must not be true or false"),
    "a list for a truth value": (model(causal=[None]), r"built by this version: model.causal=\[None\] must be true or"),
    "tokenizer is not JSON": (metadata(tokenizer="{"), r"the saved tokenizer is broken \(JSONDecodeError"),
    "tokenizer with a hole": (renumbered, r"the saved tokenizer is broken \(ValueError: its \d+ ids are not 0 to"),
    "dim": (model(dim=10**6), r"is \(\d+, 6\) in the file, but \(\d+, 1000000\) in the network"),
    "layers": (model(num_layers=10**6), r"model.num_layers=1000000 is more than the \d+ that its weights allow"),
    "more layers": (model(num_layers=2), r"the weight blocks\.1\.\S+ is missing in the file"),
    "context": (model(context_length=10**7 - 1), r"model.context_length=9999999 requires large tables"),
    "heads": (model(num_heads=4), r"cannot be built by this version: model.dim=6 is not divisible"),
    "unknown option": (model(width=3), r"cannot be built by this version: .*width"),
    "a weight less": (without("state_dict", BIAS), r"head\.outputs\.bias is missing in the file, but \(5,\)"),
    "a weight more": (weight("network.more", torch.ones(3)), r"weight more is \(3,\) in the file, but missing in"),
    "another shape": (weight(BIAS, torch.ones(7)), r"head\.outputs\.bias is \(7,\) in the file, but \(5,\)"),
    "no tensor": (weight(BIAS, [1.0]), BROKEN_WEIGHTS),
    "NaN": (diverged, r"the weight head\.outputs\.bias is not finite or has .*, so the training had diverged"),
    "too large": (weight(BIAS, torch.full((5,), 1e30)), r"bias is not finite or has numbers that are too large"),
    "quantized": (quantized, BROKEN_WEIGHTS),
    "unknown token": (without_unknown, r"the saved tokenizer is broken \(ValueError: its vocabulary has no \[NONE\]"),
    "one number for many": (weight(BIAS, torch.zeros(1).expand(5)), BROKEN_WEIGHTS),
    "without numbers": (weight(BIAS, torch.zeros(5, device="meta")), BROKEN_WEIGHTS),
    "sparse": (weight(BIAS, torch.zeros(5).to_sparse()), BROKEN_WEIGHTS),
}


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")  # in torch, of the quantized weight
@pytest.mark.parametrize("name", BROKEN)
def test_a_malformed_checkpoint_is_one_line(name, classifier, written) -> None:
    change, message = BROKEN[name]
    content = content_of(classifier)
    change(content)
    path = written(content)
    of_module = "holds a diffusion, but Classification trains" if name == "another network" else message
    for load, expected in ((firstlight.load, message), (Classification.load_from_checkpoint, of_module)):
        with pytest.raises(UserError, match=expected) as error:
            load(path)
        assert "\n" not in str(error.value)


def test_weights_that_overflow_are_one_line_at_each_use(classifier, generator, written) -> None:
    uses: list[tuple[Any, Callable[[Any], object]]] = [
        (classifier, lambda run: run.predict("a good film")),
        (classifier, lambda run: run.probabilities(["a good film"])),
        (classifier, lambda run: attributions(run, "a good film")),
        (generator, lambda run: run.generate("to be", tokens=2)),
        (generator, lambda run: run.generate("to be", tokens=2, greedy=True)),
        (generator, lambda run: run.network(torch.tensor([[1, 2]]))),
    ]
    for module, use in uses:
        content = content_of(module)
        content["state_dict"] = {name: torch.full_like(each, 1e15) for name, each in content["state_dict"].items()}
        content["state_dict"] |= {name: each * 1e4 for name, each in content["state_dict"].items() if ".head." in name}
        path = written(content)
        run = firstlight.load(path)
        with pytest.raises(UserError, match=r"best\.ckpt: .*outputs are not finite; use the run's other checkpoint"):
            use(run)
        assert run.network.train()(torch.tensor([[1, 2]])) is not None  # a further training has its own check


def test_a_generator_without_its_separator_or_with_another_tokenizer_is_one_line(classifier, generator, written):
    content = content_of(generator)
    content[METADATA].pop("separator_id")
    with pytest.raises(UserError, match="separator_id in the checkpoint is missing"):
        firstlight.load(written(content))
    content = content_of(classifier)
    content[METADATA]["tokenizer"] = generator.metadata["tokenizer"]  # type: ignore[index]
    with pytest.raises(UserError, match="a classifier does not support a CharacterTokenizer"):
        firstlight.load(written(content))


def test_init_from_takes_no_weights_that_are_not_finite(classifier, reviews, written, tmp_path) -> None:
    content = content_of(classifier)
    diverged(content)
    written(content)
    (tmp_path / "metrics.json").write_text("{}")
    with pytest.raises(UserError, match=r"best\.ckpt: the weight network\.head\.outputs\.bias is not finite"):
        initialize_from(str(tmp_path), tmp_path, classifier, reviews)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("loops"), r"loops in the checkpoint is missing or broken"),
        (diverged, r"the weight network\.head\.outputs\.bias is not finite"),
        (weight(BIAS, torch.ones(7)), r"network\.head\.outputs\.bias is \(7,\) in the file"),
        (lambda content: content.update(callbacks={"A": {"best": {"run/../../kept": 1.0}}}), r"names a path with \.\."),
    ],
)
def test_a_training_does_not_go_on_from_a_state_that_is_not_its_own(change, message, classifier, written) -> None:
    content = content_of(classifier)
    path = written(content)
    refuse_other_state(open_checkpoint(path), classifier, path)
    change(content)
    path = written(content)
    with pytest.raises(UserError, match=message):
        refuse_other_state(open_checkpoint(path), classifier, path)


def test_metadata_is_compared_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpolation in the configuration of a checkpoint is not resolved, not even in a message."""
    from omegaconf import OmegaConf

    monkeypatch.setenv("SECRET", "the secret")
    now = {"seed": 1, "trainer": {}, "data": {}}
    with pytest.raises(UserError, match="seed=1 differs from the") as error:
        refuse_other_config(OmegaConf.create(now), {**now, "seed": "${oc.env:SECRET}"})
    assert "the secret" not in str(error.value)
