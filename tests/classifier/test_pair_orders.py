"""Pairs of texts in both orders: the texts change places, and the order of a pair does not change the logits."""

import random

import pytest
import torch
from torch import Tensor

from firstlight.classifier.network import Classifier, places_of_other_order
from firstlight.classifier.options import ClassifierConfig

START, DELIMITER, EXTRACT = 2, 3, 4


def pairs(count: int, *, exchanged: bool = False) -> tuple[Tensor, Tensor]:
    """Return the ids of random pairs, padded to the longest, and the padding mask."""
    chosen = random.Random(0)
    rows = []
    for _ in range(count):
        first, second = ([chosen.randrange(5, 31) for _ in range(chosen.choice((0, 1, 2, 5)))] for _ in range(2))
        texts = (second, first) if exchanged else (first, second)
        rows.append(torch.tensor([START, *texts[0], DELIMITER, *texts[1], EXTRACT]))
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return ids, ids != 0


def test_the_texts_change_places_and_the_marks_and_the_padding_stay() -> None:
    ids, mask = pairs(97)
    others, _ = pairs(97, exchanged=True)
    assert torch.equal(ids.gather(1, places_of_other_order(ids, mask)), others)


@pytest.mark.parametrize("options", [{"causal": True, "pooling": "last"}, {"pooling": "mean", "convolution": 3}])
def test_the_order_of_a_pair_does_not_change_its_logits(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    config = ClassifierConfig(dim=12, num_heads=3, num_layers=2, context_length=13, **options)
    network = Classifier(config, vocab_size=31, num_outputs=3, both_orders=True).eval()
    one_order = Classifier(config, vocab_size=31, num_outputs=3).eval()
    one_order.load_state_dict(network.state_dict())
    (ids, mask), (others, _) = pairs(7), pairs(7, exchanged=True)
    logits = network(ids, mask)
    torch.testing.assert_close(network(others, mask), logits)
    torch.testing.assert_close(one_order(ids, mask) + one_order(others, mask), logits)
    assert not torch.allclose(one_order(ids, mask), one_order(others, mask))
