import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.networks.classifier import Classifier
from firstlight.networks.config import Architecture, ClassifierConfig, PoolingKind
from firstlight.networks.evidence import EvidenceHead, NgramEvidence, class_scores
from firstlight.networks.size import num_parameters

PAD, UNKNOWN, VOCABULARY, PAIRS, SHRINKAGE = 0, 1, 13, 7, 3.0
TEXTS = [[2, 3, 4], [2, 3, 2, 3, 5], [3, 2, 1, 4], [4], [2, 3]]
STARS = [4, 0, 2, 1, 3]


def padded(texts: list[list[int]]) -> tuple[Tensor, Tensor]:
    width = max(map(len, texts))
    token_ids = torch.tensor([text + [PAD] * (width - len(text)) for text in texts])
    return token_ids, torch.tensor([[i < len(text) for i in range(width)] for text in texts])


def counted(
    num_classes: int, targets: list[int], num_pairs: int = PAIRS, texts: list[list[int]] = TEXTS
) -> NgramEvidence:
    evidence = NgramEvidence(VOCABULARY, num_pairs, num_classes, SHRINKAGE, UNKNOWN)
    token_ids, mask = padded(texts)
    evidence.count(token_ids, mask, torch.tensor(targets))
    return evidence


def by_hand(texts: list[list[int]], targets: list[int], gram: tuple[int, ...], scores: Tensor) -> Tensor:
    """The shrunken mean of the texts that have the n-gram: (scores,)."""
    n = len(gram)
    having = [i for i, text in enumerate(texts) if gram in {tuple(text[j : j + n]) for j in range(len(text) - n + 1)}]
    return sum((scores[targets[i]] for i in having), torch.zeros(scores.shape[1])) / (len(having) + SHRINKAGE)


def features(evidence: NgramEvidence, token_ids: Tensor, targets: Tensor | None = None) -> Tensor:
    return evidence(token_ids, targets) * evidence.scale


@pytest.mark.parametrize(("num_classes", "targets"), [(2, [1, 0, 1, 0, 1]), (5, STARS)])
def test_a_word_and_a_pair_have_the_shrunken_mean_of_the_texts_they_are_in(
    num_classes: int, targets: list[int]
) -> None:
    evidence, scores = counted(num_classes, targets), class_scores(num_classes)
    seen = features(evidence, torch.tensor([[2, 3, 4]]))[0]
    for place, word in enumerate([2, 3, 4]):
        assert_close(seen[place, :-1], by_hand(TEXTS, targets, (word,), scores))
    assert seen[0, -1] == 0, "nothing stands before the first word"
    assert_close(seen[1, -1], by_hand(TEXTS, targets, (2, 3), scores)[0])
    assert seen[2, -1] == 0, "3 4 is in one text alone"


def test_the_own_class_of_a_text_is_taken_out_as_if_it_had_not_been_counted() -> None:
    evidence = counted(5, STARS)
    token_ids, mask = padded(TEXTS)
    left_out = features(evidence, token_ids, torch.tensor(STARS))
    for row in range(len(TEXTS)):
        others = [text for i, text in enumerate(TEXTS) if i != row]
        stars = [star for i, star in enumerate(STARS) if i != row]
        for place, word in enumerate(TEXTS[row]):
            expected = by_hand(others, stars, (word,), class_scores(5))
            assert_close(left_out[row, place, :-1], expected)
    assert_close(left_out[1, 1, -1], by_hand([TEXTS[0], TEXTS[4]], [4, 3], (2, 3), class_scores(5))[0])
    assert not left_out[~mask].any()


def test_a_text_that_is_alone_with_its_words_is_told_nothing() -> None:
    evidence = counted(2, [1, 0], texts=[[2, 3], [4, 5]])
    assert not evidence(torch.tensor([[2, 3], [4, 5]]), torch.tensor([1, 0])).any()
    assert features(evidence, torch.tensor([[2]])).abs().sum() > 0.1


def test_padding_and_pairs_beside_unknown_words_say_nothing() -> None:
    evidence = counted(2, [1, 0, 1, 0, 1])
    seen = features(evidence, torch.tensor([[2, UNKNOWN, 3, PAD]]))[0]
    assert not seen[:, -1].any()
    assert not seen[3].any()


def test_the_pairs_of_most_texts_are_kept() -> None:
    texts = [[2, 3, 4], [2, 3, 4, 5], [2, 3, 5, 6], [5, 6]]
    evidence = counted(2, [1, 1, 0, 0], num_pairs=2, texts=texts)
    assert evidence.pair_keys.tolist() == [2 * VOCABULARY + 3, 3 * VOCABULARY + 4]
    assert evidence.pair_texts.tolist() == [3, 2]


def test_the_features_of_the_training_words_have_deviations_of_about_one() -> None:
    generator = torch.Generator().manual_seed(1)
    token_ids = torch.randint(2, VOCABULARY, (499, 11), generator=generator)
    targets = torch.randint(5, (499,), generator=generator)
    evidence = NgramEvidence(VOCABULARY, 101, 5, SHRINKAGE, UNKNOWN)
    evidence.count(token_ids, torch.ones_like(token_ids, dtype=torch.bool), targets)
    assert_close(evidence(token_ids).square().mean(dim=(0, 1)).sqrt(), torch.ones(3), atol=0.3, rtol=0)


def test_the_scores_of_classes_are_their_height_and_how_extreme_they_are() -> None:
    assert_close(class_scores(2), torch.tensor([[-1.0], [1.0]]))
    expected = [[-1, 0.4], [-0.5, -0.1], [0, -0.6], [0.5, -0.1], [1, 0.4]]
    assert_close(class_scores(5), torch.tensor(expected))


def test_the_head_sums_the_evidence_of_real_words() -> None:
    torch.manual_seed(0)
    head = EvidenceHead(3, 5)
    seen = torch.randn(2, 7, 3)
    mask = torch.arange(7) < torch.tensor([[4], [7]])
    real = seen[0, :4]
    pooled = torch.cat((real.sum(0) / 2, real.mean(0), (real * real.abs()).sum(0) / 2))
    assert_close(head(seen, mask)[0], head.score(pooled))


def classifier(**options: object) -> Classifier:
    torch.manual_seed(0)
    settings = {"dim": 12, "num_heads": 3, "context_length": 7, "pooling": PoolingKind.mean, "evidence_pairs": PAIRS}
    return Classifier(ClassifierConfig(**(settings | options)), VOCABULARY, 5, UNKNOWN)


def test_a_classifier_with_evidence_says_the_same_whatever_the_padding() -> None:
    network = classifier(evidence=True).eval()
    token_ids, mask = padded(TEXTS)
    network.evidence.count(token_ids, mask, torch.tensor(STARS))
    wider = nn.functional.pad(token_ids, (0, 2)), nn.functional.pad(mask, (0, 2))
    assert_close(network(*wider), network(token_ids, mask))


def test_the_evidence_reaches_the_logits_and_its_own_class_does_not() -> None:
    network = classifier(evidence=True, dropout=0.0).eval()
    token_ids, mask = padded(TEXTS)
    before = network(token_ids, mask)
    network.evidence.count(token_ids, mask, torch.tensor(STARS))
    told = network(token_ids, mask)
    assert (told - before).abs().max() > 1e-3
    assert (network(token_ids, mask, torch.tensor(STARS)) - told).abs().max() > 1e-3


def test_counted_numbers_are_parameters_that_a_checkpoint_holds_and_nothing_trains() -> None:
    network, plain = classifier(evidence=True), classifier()
    weights = 3 * 12 + 3 * 3 * 5 + 5  # the projection and the head, of three features
    assert num_parameters(network) - num_parameters(plain) == weights + VOCABULARY * 2 + PAIRS + 3
    token_ids, mask = padded(TEXTS)
    network.evidence.count(token_ids, mask, torch.tensor(STARS))
    again = classifier(evidence=True)
    again.load_state_dict(network.state_dict())
    assert_close(again.eval()(token_ids, mask), network.eval()(token_ids, mask))
    assert not any("evidence." in name for name, _ in network.named_parameters())


def test_narrow_vectors_of_few_words_save_weights_and_rare_words_are_one() -> None:
    network = classifier(embedding_dim=5, embedded_words=7).eval()
    assert num_parameters(classifier()) - num_parameters(network) == VOCABULARY * 12 - 7 * 5 - 5 * 12
    logits = network(torch.tensor([[2, 6, 3], [2, 7, 3], [2, 12, 3], [2, UNKNOWN, 3]]))
    assert_close(logits[1:], logits[3].expand(3, -1))
    assert (logits[0] - logits[3]).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evidence_pairs": 0}, "model.evidence_pairs=0 must be at least 1"),
        ({"evidence_shrinkage": math.inf}, "model.evidence_shrinkage=inf must be a finite number above 0"),
        ({"embedding_dim": 0}, "model.embedding_dim=0 must be at least 1"),
        ({"embedded_words": 2}, "model.embedded_words=2 must be at least 3"),
        (
            {"evidence": True, "architecture": Architecture.logistic},
            "model.evidence=true is not of model.architecture=logistic",
        ),
        ({"embedding_dim": 3, "architecture": Architecture.bag_of_words}, "model.embedding_dim=3 is not of model.arch"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassifierConfig(**options)
