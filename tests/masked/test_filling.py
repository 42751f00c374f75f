"""The ids of texts with masks, and the predicted words of a mask, with networks of known scores."""

import re

import pytest
import torch
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.masked.network import encode_masked
from firstlight.masked.run import fill_in, with_words
from firstlight.text.tokenizers import Tokenizer, train_subword_tokenizer, train_word_tokenizer

TEXTS = ["it broke after one week", "it works after one year", "it broke after one year"]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return train_word_tokenizer(TEXTS)


@pytest.fixture(params=["word", "marks", "subword"])
def any_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    if request.param == "subword":
        return train_subword_tokenizer(TEXTS, vocab_size=60)
    return train_word_tokenizer(TEXTS, punctuation=request.param == "marks")


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
    (filled,) = fill_in(NextWord(tokenizer.vocab_size), tokenizer, ["It [MASK] after one [MASK]!"], count=3)
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
    (filled,) = fill_in(NextWord(tokenizer.vocab_size), tokenizer, ["it [MASK]"], count=997)
    (fillings,) = filled.fillings
    assert {each.word for each in fillings} == set(tokenizer.words) - {"[PAD]", "[UNK]"}
    assert sum(each.probability for each in fillings) == pytest.approx(1)
    with pytest.raises(UserError, match=r"^count=0 must be at least 1$"):
        fill_in(NextWord(tokenizer.vocab_size), tokenizer, ["it [MASK]"], count=0)


def test_a_text_longer_than_the_context_is_cut_unless_a_mask_is_cut_off(tokenizer: Tokenizer, caplog) -> None:
    network = NextWord(tokenizer.vocab_size)
    for truncation, kept, cut_off in (("head", 1, 7), ("tail", 6, 0), ("head_tail", 6, 4)):
        words = ["after"] * 8
        words[kept] = "[MASK]"
        (filled,) = fill_in(network, tokenizer, [" ".join(words)], truncation=truncation)
        assert len(filled.fillings) == 1
        words[cut_off] = "[MASK]"
        message = r"^text 2 has 8 tokens, but only context_length=7 of them are read, and a \[MASK\] is cut off"
        with pytest.raises(UserError, match=message):
            fill_in(network, tokenizer, ["a [MASK]", " ".join(words)], truncation=truncation)
    assert "longer than the context of 7 tokens and were cut" in caplog.text


@pytest.mark.parametrize(
    ("words", "expected"), [(["broke", "week"], "It broke, after one week"), (["##s", "year"], "Its, after one year")]
)
def test_a_piece_that_continues_a_word_is_joined_to_it(words: list[str], expected: str) -> None:
    assert with_words("It [MASK], after one [MASK]", words) == expected


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It [MASK] after [MASK]!", ["It", "after", "!"]),
        ("[MASK][MASK]", ["", "", ""]),
        ("low[MASK]er", ["low", "er"]),
        ("zyzzyva [MASK]", ["zyzzyva", ""]),
    ],
)
def test_the_ids_are_those_of_the_text_between_the_masks(any_tokenizer: Tokenizer, text: str, parts: list[str]) -> None:
    mask_id = any_tokenizer.vocab_size
    first, *others = map(any_tokenizer.encode, parts)
    expected = first + [token_id for part in others for token_id in (mask_id, *part)]
    assert encode_masked(any_tokenizer, [text, "a [MASK]"])[0].tolist() == expected


@pytest.mark.parametrize(
    ("text", "shown"), [("", "''"), ("it [mask] after MASK", "'it [mask] after MASK'"), ("x" * 999, f"'{'x' * 39}…'")]
)
def test_a_text_without_a_mask_is_an_error_that_says_what_to_write(tokenizer: Tokenizer, text: str, shown: str) -> None:
    with pytest.raises(UserError, match=rf"^the text {re.escape(shown)} does not contain \[MASK\]; write \[MASK\]"):
        encode_masked(tokenizer, ["a [MASK]", text])
