"""Tokens with visible symbols for white space."""

from firstlight.text.text_tokenizers import TextTokenizer, WordText, decode

READABLE = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


def readable(tokenizer: TextTokenizer, token_id: int, separator_id: int | None = None) -> str:
    """Return the text of a token, with ␣ for a space, ⏎ for a new line, ⇥ for a tab and [end] for a separator."""
    if token_id == separator_id:
        return "[end]"
    if isinstance(tokenizer, WordText):
        return tokenizer.words[token_id]
    return decode(tokenizer, [token_id]).translate(READABLE)
