"""Options of the classifiers, as typed dataclasses that check their values. Imports no torch."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any

from firstlight.choices import require
from firstlight.networks.config import TransformerConfig, check_at_least, check_convolution, check_share
from firstlight.networks.variants import Parametrization, PoolingKind


class Architecture(Enum):
    """Architecture of a classifier: transformer blocks, the mean of the word vectors, or one weight for each word."""

    transformer = "transformer"
    bag_of_words = "bag_of_words"
    logistic = "logistic"


CLASSIFIERS = {
    Architecture.transformer: "firstlight.classifier.network:Classifier",
    Architecture.bag_of_words: "firstlight.classifier.network:BagOfWords",
    Architecture.logistic: "firstlight.classifier.network:LogisticRegression",
}


@dataclass
class ClassifierConfig(TransformerConfig):
    """Options of a `Classifier`: those of `TransformerConfig` and the following.

    Args:
        architecture: Structure of the classifier: "transformer", or one of the baselines "bag_of_words" and "logistic",
            which use few of the options.
        pooling: Reduction of all tokens to one prediction: "mean", "max", "first", "last", "attention" (a learned
            mean), "flatten" (a linear layer over all tokens), "bert" (the pooler of BERT) or "per_token" (a score
            for each token, then a linear layer, as in post 1 (reviews)).
        token_dropout: Probability of replacing a token by [UNK] in training, from 0 to below 1; it prevents learning
            rare words by heart.
        convolution: Width of a convolution over the embeddings, an odd number of tokens such as 3; None: no
            convolution.
        embedding_dim: Size of the word vectors before they are projected to `dim`; None: `dim`. Lower it to save
            parameters.
        embedded_words: Number of most frequent words that have a vector of their own; None: all words of the
            vocabulary.

    Raises:
        ValueError: if a value is out of range or values contradict each other; the message names the key and the
            fix.

    Example:
        >>> from firstlight.networks import ClassifierConfig
        >>> config = ClassifierConfig(dim=32, num_heads=4, context_length=50, pooling="mean")
        >>> config.pooling
        <PoolingKind.mean: 'mean'>
        >>> ClassifierConfig(pooling="average")
        Traceback (most recent call last):
        ValueError: model.pooling='average' must be one of per_token, flatten, mean, first, last, max, attention, bert
    """

    architecture: Architecture = Architecture.transformer
    pooling: PoolingKind = PoolingKind.per_token
    token_dropout: float = 0.0
    convolution: int | None = None
    _: KW_ONLY
    embedding_dim: int | None = None
    embedded_words: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("model.token_dropout", self.token_dropout)
        for name, minimum in (("embedding_dim", 1), ("embedded_words", 3)):
            if (value := getattr(self, name)) is not None:
                check_at_least(f"model.{name}", value, minimum)
                self._refuse_baseline(f"model.{name}={value}", f"model.{name}=null")
        check_convolution(self.convolution)
        if self.causal and self.convolution not in (None, 1):
            problem = "lets a token see the next one, which model.causal=true forbids; set model.convolution=null"
            raise ValueError(f"model.convolution={self.convolution} {problem}")

    @property
    def network(self) -> str:
        return CLASSIFIERS[self.architecture]

    def network_arguments(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        arguments = (sizes["vocab_size"], sizes["num_outputs"], sizes["unknown_id"])
        if not sizes.get("num_features"):
            return arguments
        if self._target_ is None:
            self.check_target_encoding()
        return (*arguments, sizes["num_features"])

    def inputs(self, token_ids: Any, features: Any) -> tuple[Any, ...]:
        return (token_ids,) if features is None else (token_ids, None, features)

    def check_target_encoding(self) -> None:
        """Raise ValueError unless the network can read the features of `data.target_encoding=true`."""
        self._refuse_baseline("data.target_encoding=true", "data.target_encoding=false")

    def _check_parametrization(self) -> None:
        super()._check_parametrization()
        if self.parametrization is Parametrization.mup:
            problem = "model.parametrization=mup does not apply to model.pooling=bert"
            require(self.pooling is not PoolingKind.bert, f"{problem}; set model.pooling=first")
            self._refuse_baseline("model.parametrization=mup", "model.parametrization=standard")

    def _refuse_baseline(self, setting: str, remedy: str) -> None:
        if self.architecture is not Architecture.transformer:
            raise ValueError(f"{setting} does not apply to model.architecture={self.architecture.value}; set {remedy}")
