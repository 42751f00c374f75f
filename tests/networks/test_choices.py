"""Multiple choice: each answer is scored on its own, by the same weights."""

import pytest
import torch

from firstlight.networks import Classifier, ClassifierConfig

CONFIG = ClassifierConfig(dim=12, num_heads=3, num_layers=2, context_length=13, causal=True, pooling="last")


def test_the_logit_of_an_answer_is_that_of_its_pair_alone() -> None:
    torch.manual_seed(0)
    network = Classifier(CONFIG, vocab_size=31, num_outputs=1, choices=True).eval()
    of_pairs = Classifier(CONFIG, vocab_size=31, num_outputs=1).eval()
    of_pairs.load_state_dict(network.state_dict())
    token_ids = torch.randint(5, 31, (5, 3, 11))
    mask = torch.arange(11) < torch.randint(2, 12, (5, 3, 1))
    logits = network(token_ids, mask)
    assert logits.shape == (5, 3)
    for number in range(3):
        torch.testing.assert_close(logits[:, [number]], of_pairs(token_ids[:, number], mask[:, number]))
    torch.testing.assert_close(network(token_ids.flip(1), mask.flip(1)), logits.flip(1))


def test_token_ids_without_answers_are_one_line() -> None:
    network = Classifier(CONFIG, vocab_size=31, num_outputs=1, choices=True)
    with pytest.raises(ValueError, match=r"the token ids must have the shape \(batch, choices, length\), not .*5, 7"):
        network(torch.ones(5, 7, dtype=torch.long))
