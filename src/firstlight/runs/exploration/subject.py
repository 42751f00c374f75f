"""What is explored: a run, or a task's data alone; each part is opened when the first figure asks for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from firstlight.data.encoding import EncodedTexts, encode
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.data.pairs import PairData
from firstlight.data.sources import Source, find_source
from firstlight.data.streams import StreamData
from firstlight.errors import UserError
from firstlight.runs import evaluate_generator, evaluate_translator
from firstlight.runs.evaluate import DataChanges, EvaluateOptions, changed_options, refuse_other_data
from firstlight.runs.evaluate_classifier import Judged, encode_for, judge
from firstlight.runs.exploration.catalog import NothingToDrawError
from firstlight.runs.exploration.insight import Attention, attention_of
from firstlight.runs.load import Loaded
from firstlight.runs.loaded_classifier import LoadedClassifier
from firstlight.runs.loaded_generator import LoadedGenerator
from firstlight.runs.loaded_translator import LoadedTranslator
from firstlight.text.text_tokenizers import decode

Part = TypeVar("Part")
SHORTEST_TEXT, LONGEST_TEXT = 12, 40  # tokens of the text that is drawn where none is given
SPLIT = "validation"  # on which choices may be made
SOME_REVIEW = "It looks great, but it broke after a week and nobody answered. I would not buy it again."
SOME_SENTENCE = "A man rides a bike."


@dataclass(frozen=True, eq=False)
class Reviews:
    """Labelled texts as they were found, and as ids."""

    source: Source
    options: ReviewOptions
    encoded: EncodedTexts

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """The texts of some rows, read again from the source."""
        return self.source.texts(self.options.text_column, rows.tolist())


@dataclass(eq=False)
class Subject:
    """A run or a task, with what the command line says of the figures.

    config: resolved, as plain types; loaded: None where a task's data is explored alone; other: the run to compare
    with; text: what is drawn, None where it is to be chosen; block, head: which attention is enlarged, from 1.
    """

    config: dict[str, Any]
    loaded: Loaded | None = None
    other: Loaded | None = None
    text: str | None = None
    block: int | None = None
    head: int | None = None
    data_changes: DataChanges = field(default_factory=DataChanges)
    data_node: Any = None  # of a task without a run
    log_dir: Path = Path("logs")  # below which the cache is
    _parts: dict[str, Any] = field(default_factory=dict)

    @property
    def run(self) -> Loaded:
        """The run, of a figure that needs one."""
        assert self.loaded is not None, "the catalog lets no task have a figure of a run"
        return self.loaded

    @property
    def classifier(self) -> LoadedClassifier:
        assert isinstance(self.loaded, LoadedClassifier)
        return self.loaded

    @property
    def generator(self) -> LoadedGenerator:
        assert isinstance(self.loaded, LoadedGenerator)
        return self.loaded

    @property
    def translator(self) -> LoadedTranslator:
        assert isinstance(self.loaded, LoadedTranslator)
        return self.loaded

    @property
    def context_length(self) -> int:
        return int(self.config["context_length"])

    @property
    def is_sample(self) -> bool:
        """Whether the figures are about generated data: of a run, what it was trained on."""
        if self.loaded is not None:
            return self.loaded.data_source == SourceKind.sample.value
        data = self.config["data"]
        found = self.reviews if "labels" in data else self.pairs if "source_column" in data else self.stream
        return found.source.kind is SourceKind.sample

    @property
    def reviews(self) -> Reviews:
        """Labelled texts, in the vocabulary of the run. Raises NothingToDrawError if they are not found."""
        return self._part("reviews", self._open_reviews)

    @property
    def stream(self) -> StreamData:
        """A text to be continued, likewise."""
        return self._part("stream", self._open_stream)

    @property
    def pairs(self) -> PairData:
        """Sentences and their translations, likewise."""
        return self._part("pairs", self._open_pairs)

    @property
    def judged(self) -> Judged:
        """What a classifier says of the validation split."""
        reviews = self.reviews
        return self._part("judged", lambda: judge(self.classifier, reviews.encoded, SPLIT))

    @property
    def attention(self) -> Attention:
        """What the run's attentions look at in the text."""
        return self._part(
            "attention", lambda: self.of_text(self._short_text(), lambda text: attention_of(self.run, text))
        )

    def chosen_text(self) -> tuple[str, list[str]]:
        """The text of --text, or one of the validation split, or where the data is gone another; and what to say."""
        if self.text is not None:
            return self.text, []
        return self._part("text", self._choose_text)

    def of_text(self, text: str, compute: Callable[[str], Part]) -> Part:
        """What is computed of a text. Raises UserError for a text that was given, else NothingToDrawError."""
        try:
            return compute(text)
        except UserError as error:
            if self.text is not None:
                raise
            raise NothingToDrawError(str(error)) from error

    def _short_text(self) -> str:
        """The chosen text, but of a generator's own choice no more than it can see."""
        text, _ = self.chosen_text()
        if self.text is not None or not isinstance(self.run, LoadedGenerator):
            return text
        run = self.run
        ids = run.tokenizer.encode_batch([text])[0][: run.network.context_length - (run.separator_id is not None)]
        return decode(run.tokenizer, ids.tolist())

    def _part(self, name: str, make: Callable[[], Part]) -> Part:
        """Make a part of the subject once; one that cannot be made is not tried again."""
        if name not in self._parts:
            try:
                self._parts[name] = make()
            except UserError as error:
                if name == "attention" and self.text is not None:  # of a text that was given
                    raise
                self._parts[name] = NothingToDrawError(str(error))
        found = self._parts[name]
        if isinstance(found, NothingToDrawError):
            raise found
        return found

    def _open_reviews(self) -> Reviews:
        saved = self.config["data"]
        options: ReviewOptions = changed_options(saved, ReviewOptions, self.data_changes, self.log_dir)
        source = find_source(options, sample=options.sample.value)
        if isinstance(self.loaded, LoadedClassifier):
            refuse_other_data(self.loaded, source, self.data_changes)
            encoded = encode_for(self.loaded, source, options)
        else:
            if self.loaded is not None:
                refuse_other_data(self.loaded, source, self.data_changes)
            encoded = encode(source, options)
        if not len(encoded.rows_of("train")):
            raise UserError(f"{source.where} has no train split")
        return Reviews(source, options, encoded)

    def _open_stream(self) -> StreamData:
        options = EvaluateOptions("", data=self.data_changes, log_dir=self.log_dir)
        if isinstance(self.loaded, LoadedGenerator):
            return evaluate_generator.open_data(self.loaded, options)
        return self._of_task()

    def _open_pairs(self) -> PairData:
        options = EvaluateOptions("", data=self.data_changes, log_dir=self.log_dir)
        if isinstance(self.loaded, LoadedTranslator):
            return evaluate_translator.open_data(self.loaded, options)
        return self._of_task()

    def _of_task(self) -> Any:
        """The data module that the task names."""
        data = instantiate(self.data_node, _convert_="object")
        data.prepare_data()
        data.setup("fit")
        return data

    def _choose_text(self) -> tuple[str, list[str]]:
        try:
            match self.run:
                case LoadedClassifier():
                    return self._some_review(), ["the text is one of the validation split; --text takes another"]
                case LoadedGenerator():
                    return self._some_passage(), ["the text begins the validation split; --text takes another"]
                case LoadedTranslator():
                    return self._some_sentence(), ["the sentence is one of the validation split; --text takes another"]
        except NothingToDrawError:
            if isinstance(self.run, LoadedGenerator):
                written = self.run.generate(tokens=self.run.network.context_length, seed=0)
                return written, ["the data is not found, so the run wrote the text itself; --text takes another"]
            text = SOME_REVIEW if isinstance(self.run, LoadedClassifier) else SOME_SENTENCE
            return text, ["the data is not found, so the text is made up; --text takes another"]

    def _some_review(self) -> str:
        """The first validation text of a length that can be drawn."""
        reviews = self.reviews
        rows = reviews.encoded.rows_of(SPLIT)
        lengths = reviews.encoded.ids.lengths[rows]
        return reviews.texts(rows[[_first_between(lengths)]])[0]

    def _some_passage(self) -> str:
        """The first passages of the validation split."""
        data = self.stream
        ids = data.ids(data.stream(SPLIT), 1200)
        separator = decode(data.tokenizer, [data.separator_id]) if data.separator_id is not None else ""
        text = decode(data.tokenizer, ids.tolist()).removeprefix(separator)
        _, blank_line, rest = text.partition("\n\n")
        return rest if blank_line and len(rest) > len(text) / 2 else text  # from the beginning of a passage

    def _some_sentence(self) -> str:
        data = self.pairs
        rows = data.rows(SPLIT)
        lengths = data.encoded.source.lengths[rows]
        return data.texts(rows[[_first_between(lengths)]])[0][0]


def _first_between(lengths: NDArray[np.int64]) -> int:
    """The first length that can be drawn well, or else the one nearest to it."""
    off = np.maximum(SHORTEST_TEXT - lengths, 0) + np.maximum(lengths - LONGEST_TEXT, 0)
    return int(off.argmin())
