"""Base class of the runs of all kinds: what can be done with a trained network without its data set, or with it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from firstlight.data.tables import IGNORED
from firstlight.errors import UserError
from firstlight.kind.attention import Attention, has_attention
from firstlight.kind.data_changes import DataChanges, changed_options, refuse_other_data, warn_of_training_texts
from firstlight.kind.kind import Measurement, NothingToDrawError
from firstlight.kind.registry import KINDS
from firstlight.kind.tokens import DrawnTokens, drawn_words
from firstlight.kind.tokens import first_drawable as first_drawable
from firstlight.lazy import later
from firstlight.lit.checkpoint import METADATA
from firstlight.lit.metadata import TRAIN_AGAIN, Checks, refuse_overflow
from firstlight.lit.networks import network_of_checkpoint
from firstlight.networks.config import TransformerConfig
from firstlight.runs.folder import RunFolder, history_table
from firstlight.runs.gather import metrics_of, read_run
from firstlight.runs.summary import SAMPLE, SAMPLE_MARK, number
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import CONTINUATION, Tokenizer

if TYPE_CHECKING:
    from lightning.pytorch import Callback
    from pandas import DataFrame  # type: ignore[import-untyped]

SPLIT, MOST_ROWS = "validation", 256  # of the figures, because the test split must not influence choices
TEXTS_AT_ONCE = 4096  # limits the memory for inputs of any length

Item = TypeVar("Item")


class Run(ABC):
    """Trained run, read from its folder.

    The checkpoint is read when the run is loaded. `record`, `metrics` and `history` are read from the folder at their
    first use and then cached. Load a run that is still training again to get newer values.

    Attributes:
        folder: the paths of the run's files, such as `folder.vocabulary_file`.
        checkpoint: the path of the checkpoint that was loaded.
        network: the torch module with the trained weights, on the CPU and in evaluation mode.
        metadata: the content of the checkpoint without the weights.
        config: the resolved configuration of the training, as nested dicts.
        data_source: where the training data came from: `local`, `hub` or `sample` (generated data).
        data_fingerprint: the hash of the training data.
        tokenizer: the tokenizer; `tokenizer.words` is the vocabulary.
    """

    kind: ClassVar[str]  # the name of the kind
    tokenizer_types: ClassVar[tuple[type, ...]] = (Tokenizer,)
    metric_callbacks: ClassVar["tuple[type[Callback], ...]"] = later(  # added to each training, measured by `measure`
        "firstlight.callbacks.token_metrics.Perplexity", "firstlight.callbacks.token_metrics.TokenAccuracy"
    )
    config_type: ClassVar[type[TransformerConfig]]  # the options of its network
    metadata_checks: ClassVar[Checks]  # of its checkpoints
    evaluates_whole_texts: ClassVar[bool] = False  # whether other data without a named split is evaluated as a whole
    attention_title: ClassVar[str] = "Attention of each block"
    choice_note: ClassVar[str] = "the text is from the validation split"  # on the text of `some_text`
    made_up_note: ClassVar[str] = "the text is made up"  # on the text of `made_up_text`

    network: Any
    tokenizer: Any

    def __init__(
        self, folder: RunFolder, checkpoint: Path, network: Any, metadata: dict[str, Any], tokenizer: Any
    ) -> None:
        self.folder, self.checkpoint, self.network = folder, checkpoint, network
        self.metadata, self.tokenizer = metadata, tokenizer
        self.config: dict[str, Any] = metadata["config"]
        self.data_source: str = metadata["data_source"]
        self.data_fingerprint: str = metadata["data_fingerprint"]

    @classmethod
    def from_checkpoint(cls, folder: RunFolder, path: Path, content: dict[str, Any]) -> Self:
        """Return the run of a checkpoint whose content was checked. Raises UserError if its parts do not fit.

        >>> from firstlight.kind.load import open_checkpoint
        >>> type(run).from_checkpoint(run.folder, run.checkpoint, open_checkpoint(run.checkpoint))
        """
        metadata, kind = content[METADATA], KINDS[cls.kind]
        tokenizer = tokenizer_of_json(metadata["tokenizer"])
        if not isinstance(tokenizer, cls.tokenizer_types):
            raise UserError(f"{path}: a {kind.noun} does not support a {type(tokenizer).__name__}; {TRAIN_AGAIN}")
        network = network_of_checkpoint(content, path, kind.reader().config_type).eval()
        network.register_forward_hook(partial(refuse_overflow, path))
        return cls(folder, path, network, metadata, tokenizer)

    # --- the record of the training ---

    @property
    def path(self) -> Path:
        """The run's folder.

        >>> sorted(file.name for file in run.path.iterdir())
        """
        return self.folder.path

    @cached_property
    def record(self) -> dict[str, Any]:
        """The content of `metrics.json`: task, model, seed, status, data, seconds, versions, metrics and more.

        Raises UserError if the file is missing or damaged.

        >>> run.record["seconds"]["fit"]
        """
        return self.metadata.get("record") or self.folder.read()

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The metrics of the best checkpoint on the validation and test splits, by name, such as `val/loss`.

        Empty until the training has finished. Raises UserError if `metrics.json` is missing or damaged.

        >>> run.metrics["val/loss"]
        """
        record = self.record
        try:
            return metrics_of(record)
        except UserError as error:
            raise UserError(f"{self.path}: {error}; train the run again") from error

    @cached_property
    def history(self) -> "DataFrame":
        """The metrics during the training, as a pandas DataFrame with one row for each step with a logged metric.

        The first columns are `step` (the first step is 0), `epoch` and `seconds` (since the start of the fit, summed
        over all sessions of a resumed run). They are followed by a column of floats for each metric, in alphabetical
        order. A value is NaN at steps where the metric was not logged. The table is empty if nothing has been logged
        yet. Raises UserError with the line number if `history.jsonl` is damaged. An incomplete last line is ignored.

        >>> run.history.dropna(subset="val/loss")[["step", "val/loss"]]
        """
        return history_table(self.folder.history_file)

    @property
    def num_counted(self) -> int:
        """The number of counts of the training texts that the network reads in addition to its weights.

        >>> run.num_counted
        """
        return 0

    def __repr__(self) -> str:
        row = read_run(self.folder, str(self.path), most=2)
        named = [f"{key}={row.keys[key]}" for key in ("task", "model", "experiment") if row.keys.get(key) is not None]
        counted = [f"{row.parameters:,} parameters"] if row.parameters is not None else []
        optimized = row.optimized_metric or ""
        metrics = [name for name in (optimized, f"test/{optimized.partition('/')[2]}") if name in row.metrics]
        steps = "" if row.steps is None else f" after {row.steps:,} steps"
        record = {
            "metrics": ", ".join(f"{name} {number(row.metrics[name])}" for name in metrics) or "none yet",
            "status": f"{row.status}: {row.why}" if row.why else f"{row.status}{steps}",
            "folder": f"{self.path} ({self.checkpoint.name})",
        }
        if not self.folder.is_run():
            record = {"status": "a checkpoint without a run, as a Trainer writes it", "file": str(self.checkpoint)}
        source = f"{SAMPLE_MARK}, not real data" if self.data_source == SAMPLE else self.data_source
        facts = self._facts() | {"data": source} | record
        title = f"{type(self).__name__}: {', '.join([*named, *counted])}".rstrip(": ")
        return "\n".join([title, *(f"  {name:<11}{fact}" for name, fact in facts.items())])

    def _facts(self) -> dict[str, str]:
        """Return the lines of the repr that only this kind of run has, by name."""
        return {"vocabulary": f"{self.tokenizer.vocab_size:,} tokens, context length {self.network.context_length}"}

    # --- evaluate ---

    def open_data(
        self,
        changes: DataChanges = DataChanges(),  # noqa: B008  (never changed)
        log_dir: Path = Path("logs"),
        only_split: str | None = None,
    ) -> Any:
        """Return the data of the training or other data, encoded with the vocabulary of the run.

        changes: options that replace the data; a warning counts the texts that the run was trained on. log_dir: the
        folder with the cache. only_split: the split of a single file; None: train for the run's own data, else test.
        Raises UserError if the data is not found, and for other data than that of the training without changes.

        >>> run.open_data()
        """
        data_type = self._data_type()
        data = data_type(**vars(changed_options(self.config["data"], data_type.options_type, changes, log_dir)))
        data.read_as(self.metadata)
        data.only_split = only_split or changes.only_split
        refuse_other_data(self.data_fingerprint, data.source, changes)
        data.setup("test")
        if only_split is None and changes.given():
            warn_of_training_texts(self, data, log_dir)
        return data

    def _data_type(self) -> Any:
        return KINDS[self.kind].get("module").data_type

    @abstractmethod
    def measure(self, data: Any, split: str) -> Measurement:
        """Return the metrics of a split. data: as returned by `open_data`. Raises UserError for a split without rows.

        The options of `evaluate` that apply to this kind are keyword arguments.

        >>> run.measure(run.open_data(), "validation").metrics
        """

    # --- explore ---

    @abstractmethod
    def some_text(self, data: Any) -> str:
        """Return a text of the validation split with a suitable length for figures. data: as returned by `open_data`.

        >>> run.some_text(run.open_data())
        """

    @abstractmethod
    def made_up_text(self) -> str:
        """Return a text for figures without the data.

        >>> run.made_up_text()
        """

    def beginning(self, text: str) -> str:
        """Return the part of an automatically chosen text that fits the context.

        >>> run.beginning("It works.")
        """
        return text

    def attention(self, text: str) -> Attention:
        """Return the attention weights of all layers for a text. The text is cut to the context.

        For a translator, these are the weights while it writes its own translation. Raises UserError for a text that
        cannot be read, and for a network without attention.

        >>> run.attention(run.made_up_text()).maps[0].weights.shape
        """
        if not has_attention(self.network):
            raise UserError(f"{self.path}: the network has no attention; name another run")
        if not text.strip():
            raise UserError("the text is empty; pass a text with at least one word")
        return self._attention(text)

    @abstractmethod
    def _attention(self, text: str) -> Attention:
        """Return the attention weights for a text that is not empty."""

    def _batch(self, data: Any) -> tuple[tuple[Any, ...], Tensor]:
        """Return the arguments of the network and the targets of some validation rows."""
        rows = data.rows(SPLIT)[:MOST_ROWS]
        if not len(rows):
            raise NothingToDrawError(f"{data.source.where} has no {SPLIT} rows")
        batch = data.table(data.lookup()[rows])
        return batch.inputs, batch.targets

    def texts_with_losses(self, data: Any) -> tuple[tuple[Any, ...], Callable[[Tensor], Tensor]]:
        """Return the arguments of the network for some texts of the validation split, and a function of its output.

        The function returns the loss of each text, (texts,). Raises NothingToDrawError without such texts.

        >>> inputs, losses = run.texts_with_losses(run.open_data())
        >>> losses(run.network(*inputs)).shape
        """
        inputs, targets = self._batch(data)
        count, length = inputs[0].shape[:2]
        rows = torch.arange(count) if len(targets) == count else inputs[2] // length  # the places of masked words

        def losses(logits: Tensor) -> Tensor:
            return torch.stack([self._loss(logits[rows == row], targets[rows == row]) for row in rows.unique()])

        return inputs, losses

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED)

    def tokens(self) -> DrawnTokens:
        """Return the tokens for the figure of the embeddings.

        >>> run.tokens().names[:5]
        """
        words = self.tokenizer.words[: self.network.embedding.num_embeddings]  # the rarest words may have no vector
        return drawn_words(words, lambda token_id: words[token_id].replace(CONTINUATION, "·"))

    def vectors(self) -> dict[str, Tensor]:
        """Return the weights of the embedding, and of the output layer if it has its own weights, by name.

        >>> run.vectors()["embedding"].shape
        """
        embedding = self.network.embedding
        head = getattr(getattr(self.network, "head", None), "weight", None)  # your own network may have none
        is_table = isinstance(head, Tensor) and head.ndim == 2 and len(head) == embedding.num_embeddings
        has_own = is_table and head is not embedding.weight
        return {"embedding": embedding.weight} | ({"output head": head} if has_own else {})


class PredictingRun(Run):
    """Run of `predict`, which predicts something for each text.

    The options of `predict` that apply to a kind are keyword arguments of `show` and `rows`.
    """

    @property
    def text_columns(self) -> list[str]:
        """The columns of the texts in the training data.

        >>> run.text_columns
        """
        named = self.config["data"].get("text_column")
        return [named] if isinstance(named, str) else list(named or ())

    @property
    @abstractmethod
    def columns(self) -> Sequence[str]:
        """The names of the values of `rows`.

        >>> run.columns
        """

    @abstractmethod
    def show(self, texts: list[str]) -> None:
        """Print the prediction for each text. Raises UserError for a text that cannot be read.

        >>> run.show([run.made_up_text()])
        """

    @abstractmethod
    def rows(self, texts: Iterable[Any]) -> Iterator[list[Any]]:
        """Yield the values of `columns` for each text, or for each tuple of texts if the run reads several columns.

        >>> list(run.rows([run.made_up_text()]))
        """


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of `size` items. The last list can be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
