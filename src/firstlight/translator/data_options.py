"""The options of sentences and their translations. This module imports nothing heavy."""

from dataclasses import KW_ONLY, dataclass, field

from firstlight.data.options import DataOptions
from firstlight.spelling import declare
from firstlight.text.options import NUM_BYTES, NUM_MARKS, TokenizerKind, TokenizerOptions


@dataclass
class PairOptions(DataOptions):
    """Options of sentences and their translations for a translator.

    Args:
        path: Your own data: a CSV, TSV, JSONL or Parquet file, a folder with a file for each split, the common name of
            two text files (corpus for corpus.en and corpus.de), or an identifier on the Hub.
        source_column: Column with the sentences to translate; for two text files, the ending of the file's name.
        target_column: Column with the translations; for two text files, the ending of the file's name.
        max_train_rows: Number of training pairs to use, before data.skip_too_long leaves out some; null: all.
        batch_tokens: Size of a training batch in tokens: the number of pairs times the length of the longest sentence,
            padding included.
        hub: Identifier of the data set on the Hugging Face Hub, used if data.path is null.
        skip_too_long: Whether training pairs longer than context_length are left out; false: such a pair is an error.
        shared_vocabulary: Whether both languages share one vocabulary; set it to false for languages with different
            scripts.
        context_length: The largest number of tokens in a sentence. The end of a translation counts as a token.
    """

    path: str | None = None
    source_column: str = "en"
    target_column: str = "de"
    max_train_rows: int | None = None
    batch_tokens: int = 2000

    _: KW_ONLY
    name: str = "multi30k"
    hub: str = "bentrevett/multi30k"
    skip_too_long: bool = False
    tokenizer: TokenizerOptions = field(default_factory=lambda: TokenizerOptions(kind=TokenizerKind.subword))
    shared_vocabulary: bool = True
    context_length: int = 64
    evaluation_batch_size: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source_column == self.target_column:
            raise ValueError(f"data.source_column and data.target_column are both {self.source_column}; change one")
        if self.tokenizer.kind is TokenizerKind.char:
            raise ValueError("tokenizer=char makes sentences too long; use tokenizer=subword or word for translation")
        size = self.tokenizer.max_size
        if self.tokenizer.kind is TokenizerKind.subword and size is not None and size < NUM_BYTES + NUM_MARKS:
            raise ValueError(
                f"tokenizer.max_size={size} is too small for 256 bytes and 4 marks; "
                f"set it to {NUM_BYTES + NUM_MARKS} or more"
            )


declare("data", PairOptions)
