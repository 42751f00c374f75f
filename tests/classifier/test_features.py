import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.networks.pooling import FeatureHead
from firstlight.networks.size import num_parameters
from firstlight.networks.variants import PoolingKind

UNKNOWN, VOCABULARY, LENGTH = 1, 13, 7


def test_the_head_sums_the_features_of_real_words() -> None:
    torch.manual_seed(0)
    head = FeatureHead(3, 5)
    seen = torch.randn(2, 7, 3)
    mask = torch.arange(7) < torch.tensor([[4], [7]])
    real = seen[0, :4]
    pooled = torch.cat((real.sum(0) / 2, real.mean(0), (real * real.abs()).sum(0) / 2))
    assert_close(head(seen, mask)[0], head.score(pooled))


def classifier(num_features: int = 0, **options: object) -> Classifier:
    torch.manual_seed(0)
    settings = {"dim": 12, "num_heads": 3, "context_length": LENGTH, "pooling": PoolingKind.mean, "dropout": 0.0}
    return Classifier(ClassifierConfig(**(settings | options)), VOCABULARY, 5, UNKNOWN, num_features)


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Return token ids, mask and features of two texts of 3 and 5 tokens."""
    generator = torch.Generator().manual_seed(1)
    mask = torch.arange(5) < torch.tensor([[3], [5]])
    token_ids = torch.randint(2, VOCABULARY, (2, 5), generator=generator).masked_fill(~mask, 0)
    return token_ids, mask, torch.randn(2, 5, 3, generator=generator)


def test_features_of_padding_leave_the_logits_unchanged() -> None:
    network = classifier(num_features=3).eval()
    token_ids, mask, features = batch()
    wider = (nn.functional.pad(token_ids, (0, 2)), nn.functional.pad(mask, (0, 2)))
    assert_close(
        network(*wider, nn.functional.pad(features, (0, 0, 0, 2), value=9.0)), network(token_ids, mask, features)
    )


def test_features_reach_the_logits_through_the_blocks_and_beside_them() -> None:
    network = classifier(num_features=3).eval()
    token_ids, mask, features = batch()
    without = network(token_ids, mask, torch.zeros_like(features))
    for name in ("feature_projection.weight", "feature_head.score.weight"):
        part = network.get_parameter(name)
        before = part.detach().clone()
        nn.init.zeros_(part)
        assert (network(token_ids, mask, features) - without).abs().max() > 1e-3
        part.data.copy_(before)


@pytest.mark.parametrize(("expected", "given"), [(3, None), (0, 3), (3, 2)])
def test_other_features_than_the_network_reads_are_refused(expected: int, given: int | None) -> None:
    token_ids, mask, _ = batch()
    features = None if given is None else torch.zeros(2, 5, given)
    message = f"requires {expected} features of each token, but received {given or 0}; pass"
    with pytest.raises(ValueError, match=message):
        classifier(num_features=expected)(token_ids, mask, features)


def test_narrow_vectors_of_few_words_save_weights_and_rare_words_are_one() -> None:
    network = classifier(embedding_dim=5, embedded_words=7).eval()
    assert num_parameters(classifier()) - num_parameters(network) == VOCABULARY * 12 - 7 * 5 - 5 * 12
    logits = network(torch.tensor([[2, 6, 3], [2, 7, 3], [2, 12, 3], [2, UNKNOWN, 3]]))
    assert_close(logits[1:], logits[3].expand(3, -1))
    assert (logits[0] - logits[3]).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embedding_dim": 0}, "model.embedding_dim=0 must be at least 1"),
        ({"embedded_words": 2}, "model.embedded_words=2 must be at least 3"),
        ({"embedding_dim": 3, "architecture": "logistic"}, "model.embedding_dim=3 does not apply to model.arch"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassifierConfig(**options)


def test_a_baseline_reads_no_target_encoding() -> None:
    message = r"data.target_encoding=true does not apply to model.architecture=logistic; set data.target_encoding=false"
    with pytest.raises(ValueError, match=message):
        ClassifierConfig(architecture="logistic").check_target_encoding()
