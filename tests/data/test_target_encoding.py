import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from firstlight.data.target_encoding import NgramTargetEncoding, class_scores, num_features

PAD, UNKNOWN, VOCABULARY, PAIRS, SHRINKAGE = 0, 1, 13, 7, 3.0
TEXTS = [[2, 3, 4], [2, 3, 2, 3, 5], [3, 2, 1, 4], [4], [2, 3]]
STARS = [4, 0, 2, 1, 3]


def padded(texts: list[list[int]]) -> tuple[Tensor, Tensor]:
    width = max(map(len, texts))
    token_ids = torch.tensor([text + [PAD] * (width - len(text)) for text in texts])
    return token_ids, torch.tensor([[i < len(text) for i in range(width)] for text in texts])


def counted(
    num_classes: int, targets: list[int], num_pairs: int = PAIRS, texts: list[list[int]] = TEXTS
) -> NgramTargetEncoding:
    target_encoding = NgramTargetEncoding(VOCABULARY, num_pairs, num_classes, SHRINKAGE)
    token_ids, mask = padded(texts)
    target_encoding.count(lambda: [(token_ids, mask, torch.tensor(targets))])
    return target_encoding


def by_hand(texts: list[list[int]], targets: list[int], gram: tuple[int, ...], scores: Tensor) -> Tensor:
    """Return the shrunken mean of the texts with the n-gram: (scores,)."""
    n = len(gram)
    having = [i for i, text in enumerate(texts) if gram in {tuple(text[j : j + n]) for j in range(len(text) - n + 1)}]
    return sum((scores[targets[i]] for i in having), torch.zeros(scores.shape[1])) / (len(having) + SHRINKAGE)


def features(target_encoding: NgramTargetEncoding, token_ids: Tensor, targets: Tensor | None = None) -> Tensor:
    return target_encoding(token_ids, targets) * target_encoding.scale


@pytest.mark.parametrize(("num_classes", "targets"), [(2, [1, 0, 1, 0, 1]), (5, STARS)])
def test_a_word_and_a_pair_have_the_shrunken_mean_of_the_texts_they_are_in(num_classes, targets) -> None:
    target_encoding, scores = counted(num_classes, targets), class_scores(num_classes)
    seen = features(target_encoding, torch.tensor([[2, 3, 4]]))[0]
    for place, word in enumerate([2, 3, 4]):
        assert_close(seen[place, :-1], by_hand(TEXTS, targets, (word,), scores))
    assert seen[0, -1] == 0, "nothing stands before the first word"
    assert_close(seen[1, -1], by_hand(TEXTS, targets, (2, 3), scores)[0])
    assert seen[2, -1] == 0, "3 4 is in one text alone"


def test_the_own_class_of_a_text_is_taken_out_as_if_it_had_not_been_counted() -> None:
    target_encoding = counted(5, STARS)
    token_ids, mask = padded(TEXTS)
    left_out = features(target_encoding, token_ids, torch.tensor(STARS))
    for row in range(len(TEXTS)):
        others = [text for i, text in enumerate(TEXTS) if i != row]
        stars = [star for i, star in enumerate(STARS) if i != row]
        for place, word in enumerate(TEXTS[row]):
            expected = by_hand(others, stars, (word,), class_scores(5))
            assert_close(left_out[row, place, :-1], expected)
    assert_close(left_out[1, 1, -1], by_hand([TEXTS[0], TEXTS[4]], [4, 3], (2, 3), class_scores(5))[0])
    assert not left_out[~mask].any()


def test_a_text_that_is_alone_with_its_words_is_told_nothing() -> None:
    target_encoding = counted(2, [1, 0], texts=[[2, 3], [4, 5]])
    assert not target_encoding(torch.tensor([[2, 3], [4, 5]]), torch.tensor([1, 0])).any()
    assert features(target_encoding, torch.tensor([[2]])).abs().sum() > 0.1


def test_padding_and_pairs_beside_unknown_words_say_nothing() -> None:
    target_encoding = counted(2, [1, 0, 1, 0, 1])
    seen = features(target_encoding, torch.tensor([[2, UNKNOWN, 3, PAD]]))[0]
    assert not seen[:, -1].any()
    assert not seen[3].any()


def test_the_pairs_of_most_texts_are_kept() -> None:
    texts = [[2, 3, 4], [2, 3, 4, 5], [2, 3, 5, 6], [5, 6]]
    target_encoding = counted(2, [1, 1, 0, 0], num_pairs=2, texts=texts)
    assert target_encoding.pair_keys.tolist() == [2 * VOCABULARY + 3, 3 * VOCABULARY + 4]
    assert target_encoding.pair_texts.tolist() == [3, 2]


def test_the_features_of_the_training_words_have_deviations_of_about_one() -> None:
    generator = torch.Generator().manual_seed(1)
    token_ids = torch.randint(2, VOCABULARY, (499, 11), generator=generator)
    targets = torch.randint(5, (499,), generator=generator)
    target_encoding = NgramTargetEncoding(VOCABULARY, 101, 5, SHRINKAGE)
    target_encoding.count(lambda: [(token_ids, torch.ones_like(token_ids, dtype=torch.bool), targets)])
    assert_close(target_encoding(token_ids).square().mean(dim=(0, 1)).sqrt(), torch.ones(3), atol=0.3, rtol=0)


def test_the_scores_of_classes_are_their_height_and_how_extreme_they_are() -> None:
    assert_close(class_scores(2), torch.tensor([[-1.0], [1.0]]))
    expected = [[-1, 0.4], [-0.5, -0.1], [0, -0.6], [0.5, -0.1], [1, 0.4]]
    assert_close(class_scores(5), torch.tensor(expected))


def test_a_table_is_read_as_it_was_written() -> None:
    target_encoding = counted(5, STARS)
    again = NgramTargetEncoding.from_table(target_encoding.table(), VOCABULARY, 5)
    token_ids, _ = padded(TEXTS)
    assert target_encoding(token_ids).shape[-1] == num_features(5)
    for targets in (None, torch.tensor(STARS)):
        assert torch.equal(again(token_ids, targets), target_encoding(token_ids, targets))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"word_scores": torch.zeros(VOCABULARY + 1, 2)}, "word_scores must be a tensor of type torch.float32"),
        ({"pair_keys": torch.zeros(PAIRS)}, "pair_keys must be a tensor of type torch.int64"),
        ({"pair_keys": torch.zeros(1, PAIRS, dtype=torch.int64)}, "pair_keys must be a tensor of 1 dimensions"),
        ({"shrinkage": torch.zeros(2)}, "shrinkage must be a tensor of 0 dimensions"),
        ({"scale": torch.tensor([1.0, torch.nan, 1.0])}, "scale is not finite"),
        ({"pair_scores": None}, "pair_scores must be"),
    ],
)
def test_a_table_of_something_else_is_refused(change: dict[str, Tensor | None], message: str) -> None:
    table = counted(5, STARS).table() | change
    with pytest.raises(ValueError, match=message):
        NgramTargetEncoding.from_table({name: each for name, each in table.items() if each is not None}, VOCABULARY, 5)
