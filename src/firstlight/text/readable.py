"""Tokens as people can see them."""

from firstlight.text.text_tokenizers import TextTokenizer, WordText, decode

READABLE = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


def readable(tokenizer: TextTokenizer, token_id: int, separator_id: int | None = None) -> str:
    """A token of a generator as people can see it: a space as ␣, a new line as ⏎, the end of a document as [end]."""
    if token_id == separator_id:
        return "[end]"
    if isinstance(tokenizer, WordText):
        return tokenizer.words[token_id]
    return decode(tokenizer, [token_id]).translate(READABLE)
