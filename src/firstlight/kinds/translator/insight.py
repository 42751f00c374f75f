"""Cuts sentences to the length that a translator can read."""

from firstlight.kinds.translator.loaded import LoadedTranslator


def shortened(run: LoadedTranslator, text: str) -> tuple[str, list[str]]:
    """Return the beginning of a sentence that fits the context, and notes for the user."""
    words, limit = text.split(), run.network.context_length

    def length(count: int) -> int:
        return int(run.tokenizers.source.encode_batch([" ".join(words[:count])]).lengths[0])

    if length(len(words)) <= limit:
        return text, []
    low, high = 0, len(words)  # low words fit, high do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if length(middle) <= limit else (low, middle)
    sentence = " ".join(words[:low])
    if not low:  # the first word is too long
        sentence = words[0][:1]
        while len(sentence) < len(words[0]):
            longer = words[0][: len(sentence) + 1]
            if run.tokenizers.source.encode_batch([longer]).lengths[0] > limit:
                break
            sentence = longer
    return sentence, [
        f"the text has more than {limit} tokens, the most that the run reads; it is cut after “{sentence[-30:]}”"
    ]
