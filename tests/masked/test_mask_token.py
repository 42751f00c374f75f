import re

import pytest

from firstlight.errors import UserError
from firstlight.masked.masking import encode_masked
from firstlight.text.tokenizers import Tokenizer, train_subword_tokenizer, train_word_tokenizer

TEXTS = ["it broke after a week!", "it works, after a year", "a new lower low"]


@pytest.fixture(params=["word", "marks", "subword"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    if request.param == "subword":
        return train_subword_tokenizer(TEXTS, vocab_size=60)
    return train_word_tokenizer(TEXTS, punctuation=request.param == "marks")[0]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It [MASK] after [MASK]!", ["It", "after", "!"]),
        ("[MASK][MASK]", ["", "", ""]),
        ("low[MASK]er", ["low", "er"]),
        ("zyzzyva [MASK]", ["zyzzyva", ""]),
    ],
)
def test_the_ids_are_those_of_what_stands_between_the_masks(tokenizer: Tokenizer, text: str, parts: list[str]) -> None:
    mask_id = tokenizer.vocab_size
    first, *others = map(tokenizer.encode, parts)
    expected = first + [token_id for part in others for token_id in (mask_id, *part)]
    assert encode_masked(tokenizer, [text, "a [MASK]"])[0].tolist() == expected


@pytest.mark.parametrize(
    ("text", "shown"), [("", "''"), ("it [mask] after MASK", "'it [mask] after MASK'"), ("x" * 999, f"'{'x' * 39}…'")]
)
def test_a_text_without_a_mask_is_an_error_that_says_what_to_write(tokenizer: Tokenizer, text: str, shown: str) -> None:
    with pytest.raises(UserError, match=rf"^the text {re.escape(shown)} does not contain \[MASK\]; write \[MASK\]"):
        encode_masked(tokenizer, ["a [MASK]", text])
