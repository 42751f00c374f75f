import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import stand_ins
from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.networks.variants import Norm, PoolingKind, Positions

VOCABULARY, CONTEXT = 29, 13
SIZES = {"dim": 12, "num_heads": 3, "num_layers": 2, "context_length": CONTEXT}
every_position = pytest.mark.parametrize("positions", Positions)


def make_network(seed: int = 0, **options: object) -> MaskedLanguageModel:
    torch.manual_seed(seed)
    return MaskedLanguageModel(MaskedConfig(**(SIZES | {"convolution": 3} | options)), VOCABULARY).double().eval()


def random_texts(lengths: list[int], width: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Return token ids (texts, width), some masked, padded with 0, and the padding mask of texts of these lengths."""
    token_ids, padding_mask = stand_ins.random_texts(lengths, width, seed, VOCABULARY + 1)
    token_ids[:, 0] = VOCABULARY
    return token_ids.masked_fill(~padding_mask, 0), padding_mask


def test_the_logits_of_some_places_are_those_of_all_places_there() -> None:
    network, (token_ids, padding_mask) = make_network(), random_texts([7, 3, 5], width=7)
    places = torch.tensor([15, 0, 8])
    everywhere = network(token_ids, padding_mask)
    assert everywhere.shape == (3, 7, VOCABULARY)  # the mask is not predicted
    assert_close(network(token_ids, padding_mask, places), everywhere[[2, 0, 1], [1, 0, 1]])


@every_position
@pytest.mark.parametrize("norm", Norm)
def test_changing_padding_leaves_the_logits_of_real_tokens_unchanged(norm: Norm, positions: Positions) -> None:
    network = make_network(norm=norm, positions=positions)
    token_ids, padding_mask = random_texts([11, 7, 1, 0], width=11)
    others, _ = random_texts([11] * 4, width=11, seed=3)
    changed = torch.where(padding_mask, token_ids, others)
    assert not torch.equal(changed, token_ids)
    logits, after = network(token_ids, padding_mask), network(changed, padding_mask)
    assert_close(after[padding_mask], logits[padding_mask])
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("place", [0, 6])
def test_a_mask_is_filled_in_from_both_sides(place: int) -> None:
    """The first and the last word change the logits of the masked word between them."""
    network = make_network()
    token_ids = torch.tensor([[4, 7, 3, VOCABULARY, 9, 3, 5]])
    other = token_ids.clone()
    other[0, place] = 11
    assert not torch.allclose(network(token_ids)[0, 3], network(other)[0, 3])


def test_a_masked_word_is_not_seen() -> None:
    """The vector of [MASK] is a separate parameter, so no word's vector changes the embedding of a masked word."""
    network = make_network(tie_embeddings=False)
    token_ids = torch.tensor([[4, VOCABULARY, 3]])
    logits = network(token_ids)
    read = network.embedding.weight.data.clone()
    with torch.no_grad():
        network.embedding.weight[[i for i in range(VOCABULARY) if i not in (3, 4)]] += 1.0
    assert_close(network(token_ids), logits)
    with torch.no_grad():
        network.embedding.weight.copy_(read)
        network.mask_vector += 1.0
    assert not torch.allclose(network(token_ids), logits)


@pytest.mark.parametrize("positions", [Positions.learned, Positions.relative, Positions.rotary])
def test_a_classifier_has_the_same_weights_but_for_the_head(positions: Positions) -> None:
    options = {"positions": positions, "final_norm": True, "convolution": 3}
    masked = make_network(**options).state_dict()
    classifier = Classifier(ClassifierConfig(**SIZES, **options, pooling=PoolingKind.mean), VOCABULARY, 5).state_dict()
    shared = {name: weight.shape for name, weight in classifier.items() if not name.startswith("head.")}
    assert shared == {name: weight.shape for name, weight in masked.items() if name in shared}
    own = {name.partition(".")[0] for name in masked if name not in shared}
    assert own == {"mask_vector", "head"}


def test_the_layer_before_the_head_is_a_linear_layer_an_activation_and_a_norm() -> None:
    network = make_network(head_layer=True, activation="tanh", final_norm=True)
    token_ids, seen = random_texts([7, 3], width=7)[0], {}
    network.final_norm.register_forward_hook(lambda _, __, output: seen.update(hidden=output))
    logits, layer = network(token_ids), network.head_layer
    transformed = torch.tanh(seen["hidden"] @ layer.linear.weight.T + layer.linear.bias)
    normalized = torch.nn.functional.layer_norm(transformed, transformed.shape[-1:], layer.norm.weight, layer.norm.bias)
    assert_close(logits, network.head(normalized))
