"""Starting from another run's weights: what fits is taken, what a generator knows by name or by place is moved."""

import logging
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.testing import assert_close

from firstlight.data import PairData, ReviewData
from firstlight.errors import UserError
from firstlight.lit import Classification, Generation, Translation, constant
from firstlight.lit.checkpoint import STAMP
from firstlight.networks import EncoderDecoder, EncoderDecoderConfig, Generator, GeneratorConfig
from firstlight.networks.positions import stretch
from firstlight.networks.variants import Norm, Positions
from firstlight.text.options import TokenizerOptions
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import CharacterTokenizer
from firstlight.training.initialize import initialize_from

EMBEDDING, HEAD, BIAS = "network.embedding.weight", "network.head.weight", "network.head.bias"
POSITIONS = "network.positions.table.weight"
QUERY = "network.blocks.{}.self_attention.query.weight"
RELATIVE = "network.blocks.0.self_attention.relative.table.weight"


def generation(seed: int, tokenizer: CharacterTokenizer | None = None, **options: Any) -> Generation:
    torch.manual_seed(seed)
    sizes = {"dim": 12, "num_heads": 3, "num_layers": 2, "context_length": 7, "norm": Norm.pre}
    network = Generator(GeneratorConfig(**(sizes | options)), (tokenizer or VOCABULARY).vocab_size)
    return Generation(network, partial(torch.optim.SGD, lr=0.1), constant)


def save(folder: Path, module: LightningModule, metadata: dict[str, Any]) -> None:
    """Write the weights of a module as a run that has been trained."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "metrics.json").write_text("{}")
    content = {"state_dict": module.state_dict(), "firstlight": {**STAMP, **metadata}}
    torch.save(content, folder / "checkpoints" / "last.ckpt")


Weights = dict[str, Tensor]
VOCABULARY = CharacterTokenizer("abcdefg", "\ufffd")


@pytest.fixture(autouse=True)
def information(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def weights_of(module: LightningModule) -> Weights:
    return {name: weight.clone() for name, weight in module.state_dict().items()}


@pytest.fixture
def initialized(tmp_path: Path) -> Callable[..., tuple[Weights, Weights, Weights]]:
    """Return a function that saves a generator as a run, and starts another generator from it.

    It returns the weights of the run, and those of the new generator before and after.
    """

    def initialize(old: Generation, new: Generation, theirs=VOCABULARY, ours=VOCABULARY, **more: Any):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        save(tmp_path / "run", old, {"network": "generator", "tokenizer": theirs.to_json()} | more)
        before = weights_of(new)
        initialize_from(str(tmp_path / "run"), tmp_path, new, SimpleNamespace(tokenizer=ours, metadata=dict))
        return weights_of(old), before, new.state_dict()

    return initialize


def test_weights_of_another_maximal_update_parametrization_are_refused(initialized, tmp_path: Path) -> None:
    mup = {"parametrization": "mup", "base_dim": 6}
    config = {"model": {"dim": 12, **mup}}
    with pytest.raises(UserError) as error:
        initialized(generation(0, **mup), generation(1), config=config)
    assert str(error.value) == (
        f"init_from={tmp_path / 'run'}: its network has 2 times its base width, but the new network 1 times, so the "
        "same weights would give other logits; set model.dim, model.parametrization and model.base_dim as there"
    )
    _, before, after = initialized(generation(0, **mup), generation(1, **mup), config=config)
    assert not torch.equal(before[HEAD], after[HEAD])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("positions", Positions)
def test_the_same_network_takes_every_weight(positions: Positions, tied: bool, initialized, caplog) -> None:
    options = {"positions": positions, "tie_embeddings": tied}
    given, before, after = initialized(generation(0, **options), generation(1, **options))
    assert all(torch.equal(weight, given[name]) for name, weight in after.items())
    assert not torch.equal(before[EMBEDDING], after[EMBEDDING])
    assert f"{len(after)} weights copied; not copied: none" in caplog.text


@pytest.mark.parametrize("tied", [False, True])
def test_characters_that_both_know_keep_their_rows(tied: bool, initialized, caplog) -> None:
    """The other vocabulary has them at other ids; the other words keep their new random vectors."""
    theirs, ours = (CharacterTokenizer(letters, "\ufffd") for letters in ("acegikm", "abcdefghi"))
    old, new = generation(0, theirs, tie_embeddings=tied), generation(1, ours, tie_embeddings=tied)
    given, before, after = initialized(old, new, theirs, ours)
    assert (new.network.head.weight is new.network.embedding.weight) is tied
    shared = set(theirs.words) & set(ours.words)
    assert shared == {"\ufffd", *"acegi"}
    for name in (EMBEDDING, HEAD, BIAS):
        for row, word in enumerate(ours.words):
            expected = given[name][theirs.words.index(word)] if word in shared else before[name][row]
            assert torch.equal(after[name][row], expected), (name, word)
    assert torch.equal(after[QUERY.format(1)], given[QUERY.format(1)])
    assert "init_from: the other run has 6 of 10 words" in caplog.text


@pytest.mark.parametrize("length", [13, 29, 7])
def test_learned_positions_are_stretched_between_their_ends(length: int, initialized, caplog) -> None:
    learned = {"positions": Positions.learned}
    given, _, after = initialized(generation(0, **learned), generation(1, **learned, context_length=length))
    assert after[POSITIONS].shape == (length, 12)
    assert_close(after[POSITIONS], stretch(given[POSITIONS], length))
    assert (f"{POSITIONS} stretched from 7 to {length} rows" in caplog.text) is (length != 7)
    assert f"{len(after)} weights copied; not copied: none" in caplog.text


@pytest.mark.parametrize(
    ("kind", "name", "first"), [(Positions.learned, POSITIONS, 0), (Positions.relative, RELATIVE, 3)]
)
def test_positions_are_cut_and_not_squeezed_for_a_shorter_context(kind, name, first, initialized, caplog) -> None:
    given, _, after = initialized(generation(0, positions=kind), generation(1, positions=kind, context_length=4))
    assert torch.equal(after[name], given[name][first : first + len(after[name])])
    assert f"{name} cut from" in caplog.text


def test_relative_positions_are_stretched_about_the_distance_of_nothing(initialized, caplog) -> None:
    relative = {"positions": Positions.relative}
    given, _, after = initialized(generation(0, **relative), generation(1, **relative, context_length=13))
    assert (given[RELATIVE].shape, after[RELATIVE].shape) == ((13, 4), (25, 4))
    assert_close(after[RELATIVE][::2], given[RELATIVE])  # a distance of 2 is now what 1 was, and 0 is still 0
    assert f"{RELATIVE} stretched from 13 to 25 rows" in caplog.text


def test_a_network_of_another_width_takes_nothing(initialized) -> None:
    new = generation(1, dim=18, feed_forward_dim=17)
    before = weights_of(new)
    with pytest.raises(UserError, match=r"^init_from=.*: no weight in .*last\.ckpt has the name and shape of a weight"):
        initialized(generation(0), new)
    assert all(torch.equal(weight, before[name]) for name, weight in new.state_dict().items())


def sentence_tokenizer(*words: str) -> SentenceTokenizer:
    return SentenceTokenizer.train([" ".join(words)], TokenizerOptions(min_document_frequency=1))


def translation(source: SentenceTokenizer, target: SentenceTokenizer, seed: int, *, shared: bool) -> Translation:
    torch.manual_seed(seed)
    config = EncoderDecoderConfig(
        dim=12, num_heads=3, context_length=7, share_embeddings=shared, tie_embeddings=True, head_bias=False
    )
    network = EncoderDecoder(config, source.vocab_size, target.vocab_size)
    return Translation(network, partial(torch.optim.SGD, lr=0.1), constant)


def test_one_vocabulary_takes_the_words_of_two_those_of_the_target_first(tmp_path: Path) -> None:
    english, german, both = (
        sentence_tokenizer(*words.split()) for words in ("cat in dog", "katze in hund", "hund dog in katze fish")
    )
    old = translation(english, german, 0, shared=False)
    folder = tmp_path / "run"
    tokenizers = {"tokenizer": german.to_json(), "source_tokenizer": english.to_json()}
    save(folder, old, {"network": "encoder_decoder", **tokenizers})
    data = PairData()
    data.tokenizer = data.source_tokenizer = both
    new = translation(both, both, 1, shared=True)
    own = new.network.embedding.weight.detach().clone()
    initialize_from(str(folder), tmp_path, new, data)
    given = {"source": old.network.source_embedding.weight, "target": old.network.embedding.weight}
    expected = {
        "dog": given["source"][english.words.index("Ġdog")],
        "katze": given["target"][german.words.index("Ġkatze")],
        "hund": given["target"][german.words.index("Ġhund")],
        "in": given["target"][german.words.index("Ġin")],  # both know it
        "fish": own[both.words.index("Ġfish")],  # neither does
    }
    for word, vector in expected.items():
        for weight in (new.network.embedding.weight, new.network.source_embedding.weight, new.network.head.weight):
            assert_close(weight[both.words.index(f"Ġ{word}")], vector, msg=word)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["x", "y", "z"], ["b", "a", "c"]])
def test_the_output_layer_is_copied_only_for_the_same_classes(names: list[str], tmp_path: Path, caplog) -> None:
    def data_of(names: list[str]) -> ReviewData:
        path = tmp_path / f"{''.join(names)}.csv"
        path.write_text("\n".join(["text,label", *(f"a good film {i},{names[i % 3]}" for i in range(60))]))
        options = {"labels": "classes", "class_names": names, "context_length": 7, "cache_dir": str(tmp_path)}
        return ReviewData(path=str(path), **options)

    modules = [Classification.for_data(data_of(each), dim=6, num_heads=2) for each in (["a", "b", "c"], names)]
    folder = tmp_path / "run"
    save(folder, modules[0], modules[0].metadata or {})
    data = data_of(names)
    data.ensure_setup()
    initialize_from(str(folder), tmp_path, modules[1], data)
    old, new = (module.state_dict() for module in modules)
    is_same = names == ["a", "b", "c"]
    for name, weight in old.items():
        if name.startswith("network.head.") and weight.dim() > 1:
            assert torch.equal(weight, new[name]) == is_same, name
    assert torch.equal(old[QUERY.format(0)], new[QUERY.format(0)])
    assert ("has other classes, so its output layer is not copied" in caplog.text) != is_same
    assert ("not copied: network.head." in caplog.text) != is_same
