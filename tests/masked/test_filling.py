"""The predicted words of a mask, with networks of known scores."""

import pytest
import torch
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.masked.filling import fill_in, with_words
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.text.tokenizers import Tokenizer, train_word_tokenizer

TEXTS = ["it broke after one week", "it works after one year", "it broke after one year"]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return train_word_tokenizer(TEXTS)[0]


class NextWord(nn.Module):
    """A network for which [UNK] is the most probable token of place i, and then the word with the id i + 2."""

    context_length = 7

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size

    def forward(self, token_ids: Tensor, padding_mask: Tensor, places: Tensor) -> Tensor:
        columns = places % token_ids.shape[1]
        logits = torch.zeros(len(places), self.vocab_size)
        logits[torch.arange(len(places)), columns + 2] = 2.0
        logits[:, 1] = 9.0
        return logits


def test_each_mask_gets_the_likeliest_words_and_their_probabilities(tokenizer: Tokenizer) -> None:
    filled = fill_in(NextWord(tokenizer.vocab_size), tokenizer, "It [MASK] after one [MASK]!", count=3)
    words = tokenizer.words
    assert [fillings[0].word for fillings in filled.fillings] == [words[1 + 2], words[4 + 2]]
    assert filled.text == f"It {words[3]} after one {words[6]}!"
    others = tokenizer.vocab_size - 3
    likeliest = torch.tensor(2.0).exp().item() / (torch.tensor(2.0).exp().item() + others)
    for fillings in filled.fillings:
        assert fillings[0].probability == pytest.approx(likeliest)
        assert [each.probability for each in fillings[1:]] == pytest.approx([(1 - likeliest) / others] * 2)
        assert len({each.word for each in fillings}) == 3


def test_neither_padding_nor_the_unknown_word_is_proposed(tokenizer: Tokenizer) -> None:
    ((*fillings,),) = fill_in(NextWord(tokenizer.vocab_size), tokenizer, "it [MASK]", count=997).fillings
    assert {each.word for each in fillings} == set(tokenizer.words) - {"[PAD]", "[UNK]"}
    assert sum(each.probability for each in fillings) == pytest.approx(1)


def test_the_network_is_given_the_text_with_its_masks(tokenizer: Tokenizer) -> None:
    torch.manual_seed(1)
    config = MaskedConfig(dim=8, num_heads=2, context_length=7, dropout=0.5)
    network = MaskedLanguageModel(config, tokenizer.vocab_size).eval()
    filled = fill_in(network, tokenizer, "it [MASK] after [MASK] year", count=2)
    token_ids = torch.tensor([[*tokenizer.encode("it"), network.mask_id, *tokenizer.encode("after"), network.mask_id]])
    token_ids = torch.cat((token_ids, torch.tensor([tokenizer.encode("year")])), dim=1)
    shares = network(token_ids)[0, [1, 3], 2:].softmax(dim=1)
    best, ids = shares.topk(2)
    assert [[each.word for each in fillings] for fillings in filled.fillings] == [
        [tokenizer.words[i + 2] for i in row] for row in ids.tolist()
    ]
    probabilities = [[each.probability for each in fillings] for fillings in filled.fillings]
    assert torch.tensor(probabilities) == pytest.approx(best.detach())


def test_a_text_longer_than_the_context_is_cut_unless_a_mask_is_cut_off(tokenizer: Tokenizer, caplog) -> None:
    network = NextWord(tokenizer.vocab_size)
    assert len(fill_in(network, tokenizer, "[MASK] " + "after " * 7).fillings) == 1
    assert "longer than the context of 7 tokens and was cut" in caplog.text
    for truncation, cut_off in (("head", 7), ("tail", 0), ("head_tail", 4)):
        words = ["after"] * 8
        words[1 if truncation == "head" else 6] = "[MASK]"
        assert len(fill_in(network, tokenizer, " ".join(words), truncation=truncation).fillings) == 1
        words[cut_off] = "[MASK]"
        with pytest.raises(
            UserError, match=r"^text 1 has 8 tokens, but only context_length=7 of them are read, and a \[MASK\]"
        ):
            fill_in(network, tokenizer, " ".join(words), truncation=truncation)


def test_no_proposals_are_an_error(tokenizer: Tokenizer) -> None:
    with pytest.raises(UserError, match=r"^count=0 must be at least 1$"):
        fill_in(NextWord(tokenizer.vocab_size), tokenizer, "it [MASK]", count=0)


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["broke", "week"], "It broke, after one week"), (["##s", "year"], "Its, after one year")],
)
def test_a_piece_that_continues_a_word_is_joined_to_it(words: list[str], expected: str) -> None:
    assert with_words("It [MASK], after one [MASK]", words) == expected
