import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.networks.layers import num_parameters
from firstlight.networks.pooling import FeatureHead
from firstlight.networks.variants import Activation, FeedForwardKind, Norm, NormKind, PoolingKind, Positions
from firstlight.text.tokenizers import UNKNOWN_ID
from stand_ins import random_texts

VOCABULARY, CONTEXT, OUTPUTS = 29, 13, 5
every_pooling = pytest.mark.parametrize("pooling", PoolingKind)
every_position = pytest.mark.parametrize("positions", Positions)
every_pooling_and_position = pytest.mark.parametrize(
    ("pooling", "positions"),
    [
        pytest.param(  # quick: every pooling, and every kind of positions
            *pair, marks=() if PoolingKind.mean in pair or Positions.learned in pair else pytest.mark.slow
        )
        for pair in itertools.product(PoolingKind, Positions)
    ],
)


def make_classifier(seed: int = 0, num_features: int = 0, **options: object) -> Classifier:
    torch.manual_seed(seed)
    config = ClassifierConfig(**({"dim": 12, "num_heads": 3, "num_layers": 2, "context_length": CONTEXT} | options))
    return Classifier(config, VOCABULARY, OUTPUTS, num_features=num_features).double()


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"convolution": 3}])
@every_pooling_and_position
def test_changing_padding_leaves_logits_unchanged(pooling, positions, options) -> None:
    classifier = make_classifier(pooling=pooling, positions=positions, **options).eval()
    token_ids, padding_mask = random_texts([11, 7, 1, 0], width=CONTEXT)
    others, _ = random_texts([CONTEXT] * 4, width=CONTEXT, seed=3)
    logits = classifier(token_ids, padding_mask)
    assert_close(classifier(torch.where(padding_mask, token_ids, others), padding_mask), logits)
    assert_close(classifier(token_ids[:, :11], padding_mask[:, :11]), logits)


@every_pooling
@settings(deadline=None, max_examples=10)
@given(lengths=st.lists(st.integers(0, CONTEXT), min_size=2, max_size=5), seed=st.integers(0, 2**32 - 1))
def test_a_text_is_scored_the_same_alone_as_in_a_batch(pooling: PoolingKind, lengths: list[int], seed: int) -> None:
    classifier = make_classifier(pooling=pooling).eval()
    token_ids, padding_mask = random_texts(lengths, width=CONTEXT, seed=seed)
    logits = classifier(token_ids, padding_mask)
    for text, length in enumerate(lengths):
        alone = slice(text, text + 1), slice(0, max(length, 1))
        assert_close(classifier(token_ids[alone], padding_mask[alone])[0], logits[text])


@every_position
def test_the_order_of_the_words_matters_unless_there_are_no_positions(positions: Positions) -> None:
    classifier = make_classifier(pooling=PoolingKind.mean, positions=positions).eval()
    token_ids, _ = random_texts([11, 11], width=11)
    assert torch.allclose(classifier(token_ids.flip(1)), classifier(token_ids), atol=1e-9) is (
        positions is Positions.none
    )


@every_pooling_and_position
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_an_empty_text_is_scored_by_the_bias_alone_and_breaks_no_gradient(pooling, positions) -> None:
    classifier = make_classifier(pooling=pooling, positions=positions)
    token_ids, padding_mask = random_texts([7, 0], width=7)
    with torch.autograd.detect_anomaly():
        logits = classifier(token_ids, padding_mask)
        logits.square().sum().backward()
    assert_close(logits[1], classifier.head.outputs.bias.detach())
    for name, parameter in classifier.named_parameters():
        assert parameter.grad.isfinite().all(), name


def test_token_dropout_makes_about_its_share_of_the_tokens_unknown_in_training_alone() -> None:
    config = ClassifierConfig(dim=12, num_heads=3, context_length=CONTEXT, token_dropout=0.2)
    classifier = Classifier(config, VOCABULARY, OUTPUTS, unknown_id=23)
    seen: list[Tensor] = []
    classifier.embedding.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    token_ids = random_texts([CONTEXT] * 997, width=CONTEXT)[0] % 23
    classifier(token_ids)
    classifier.eval()(token_ids)
    dropped = seen[0] == 23
    assert dropped.double().mean().item() == pytest.approx(0.2, abs=0.015)  # 4 standard deviations
    assert torch.equal(seen[0][~dropped], token_ids[~dropped])
    assert torch.equal(seen[1], token_ids)


def test_ids_may_have_32_bits_and_without_a_padding_mask_every_token_is_real() -> None:
    classifier = make_classifier().eval()
    token_ids, padding_mask = random_texts([7, 7], width=7)
    assert torch.equal(classifier(token_ids.int(), padding_mask), classifier(token_ids))


# The first part has an eleventh of the combinations, another eleventh for each norm, residual and positions. It covers
# every pair of options. The rest is slow: it adds combinations of three and more of the same options.
@pytest.mark.parametrize("is_first_part", [True, pytest.param(False, marks=pytest.mark.slow)])
@every_position
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm", Norm)
def test_every_combination_trains_one_step(norm, residual, positions, is_first_part) -> None:
    """Each parameter gets a finite gradient and changes, for every norm kind, feed-forward layer and activation."""
    token_ids, padding_mask = random_texts([7, 7, 5, 2, 7], width=7)
    targets = torch.tensor([0, 1, 2, 3, 4])
    first = list(Norm).index(norm) + 2 * residual + list(Positions).index(positions)
    for number, combination in enumerate(itertools.product(NormKind, FeedForwardKind, Activation)):
        norm_kind, feed_forward, activation = combination
        if ((number - first) % 11 == 0) is not is_first_part:
            continue
        if feed_forward is FeedForwardKind.linear and activation is Activation.swiglu:
            continue  # the config raises an error
        case = (norm_kind.name, feed_forward.name, activation.name)
        options = {"norm": norm, "norm_kind": norm_kind, "residual": residual, "positions": positions}
        classifier = make_classifier(context_length=7, feed_forward=feed_forward, activation=activation, **options)
        before = [parameter.detach().clone() for parameter in classifier.parameters()]
        optimizer = torch.optim.Adam(classifier.parameters(), foreach=True)
        torch.nn.functional.cross_entropy(classifier(token_ids, padding_mask), targets).backward()
        optimizer.step()
        for (name, parameter), old in zip(classifier.named_parameters(), before, strict=True):
            assert parameter.grad is not None, (name, case)
            assert parameter.grad.isfinite().all(), (name, case)
            assert parameter.grad.count_nonzero() > 0, (name, case)
            assert not torch.equal(parameter, old), (name, case)


def test_the_convolution_mixes_neighbors_of_an_odd_width() -> None:
    convolution = make_classifier(convolution=3).convolution
    hidden, mask = torch.zeros(1, 7, 12, dtype=torch.float64), torch.ones(1, 7, dtype=torch.bool)
    hidden[0, 3] = 1.0
    changed = (convolution(hidden, mask) != convolution(hidden * 0, mask)).any(dim=2)[0]
    assert changed.tolist() == [False, False, True, True, True, False, False]


@every_position
@pytest.mark.parametrize("norm", [Norm.pre, Norm.post])
def test_in_a_causal_classifier_a_later_token_changes_nothing_before_it(norm: Norm, positions: Positions) -> None:
    classifier = make_classifier(causal=True, norm=norm, positions=positions, final_norm=True).eval()
    token_ids, padding_mask = random_texts([11, 7], width=11)
    seen: list[Tensor] = []  # the inputs of the head, (batch, length, dim)
    classifier.final_norm.register_forward_hook(lambda _, __, output: seen.append(output))
    classifier(token_ids, padding_mask)
    for place in (1, 5, 10):
        changed = torch.where(torch.arange(11) < place, token_ids, (token_ids + 1) % VOCABULARY)
        classifier(changed, padding_mask)
        assert_close(seen[-1][:, :place], seen[0][:, :place])
        assert not torch.isclose(seen[-1][:, place:], seen[0][:, place:]).all(dim=-1).any()


# --- features of the tokens ---


def features_of(lengths: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the token ids, the mask and three features of each token of texts of these lengths."""
    token_ids, padding_mask = random_texts(lengths, width=max(lengths))
    generator = torch.Generator().manual_seed(1)
    return token_ids, padding_mask, torch.randn(*token_ids.shape, 3, generator=generator, dtype=torch.float64)


def test_the_head_sums_the_features_of_real_words() -> None:
    head = FeatureHead(3, 5).double()
    _, padding_mask, features = features_of([4, 7])
    real = features[0, :4]
    pooled = torch.cat((real.sum(0) / 2, real.mean(0), (real * real.abs()).sum(0) / 2))
    assert_close(head(features, padding_mask)[0], head.score(pooled))


def test_features_of_padding_leave_the_logits_unchanged() -> None:
    classifier = make_classifier(num_features=3).eval()
    token_ids, padding_mask, features = features_of([3, 5])
    wider = (nn.functional.pad(token_ids, (0, 2)), nn.functional.pad(padding_mask, (0, 2)))
    logits = classifier(*wider, nn.functional.pad(features, (0, 0, 0, 2), value=9.0))
    assert_close(logits, classifier(token_ids, padding_mask, features))


@pytest.mark.parametrize("name", ["feature_projection.weight", "feature_head.score.weight"])
def test_features_reach_the_logits_through_the_blocks_and_beside_them(name: str) -> None:
    classifier = make_classifier(num_features=3).eval()
    token_ids, padding_mask, features = features_of([3, 5])
    without = classifier(token_ids, padding_mask, torch.zeros_like(features))
    nn.init.zeros_(classifier.get_parameter(name))
    assert (classifier(token_ids, padding_mask, features) - without).abs().max() > 1e-3


@pytest.mark.parametrize(("expected", "given"), [(3, None), (0, 3), (3, 2)])
def test_other_features_than_the_network_reads_are_refused(expected: int, given: int | None) -> None:
    token_ids, padding_mask = random_texts([3, 5], width=5)
    features = None if given is None else torch.zeros(2, 5, given)
    with pytest.raises(ValueError, match=f"requires {expected} features .*, but received {given or 0}; pass"):
        make_classifier(num_features=expected)(token_ids, padding_mask, features)


def test_narrow_vectors_of_few_words_save_weights_and_rare_words_are_one() -> None:
    network = make_classifier(embedding_dim=5, embedded_words=7).eval()
    assert num_parameters(make_classifier()) - num_parameters(network) == VOCABULARY * 12 - 7 * 5 - 5 * 12
    logits = network(torch.tensor([[2, 6, 3], [2, 7, 3], [2, 12, 3], [2, UNKNOWN_ID, 3]]))
    assert_close(logits[1:], logits[3].expand(3, -1))
    assert (logits[0] - logits[3]).abs().max() > 1e-3
