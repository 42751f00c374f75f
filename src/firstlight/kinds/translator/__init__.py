"""The kind `translator`: encoder-decoder networks that read a sentence and write another one."""

from dataclasses import dataclass

from omegaconf import DictConfig

from firstlight.kinds.data_nodes import PairDataNode
from firstlight.kinds.kind import Kind
from firstlight.kinds.top_level import ModelNode
from firstlight.kinds.translator.drawings import DRAWINGS
from firstlight.networks.config import EncoderDecoderConfig


@dataclass
class TranslatorNode(ModelNode, EncoderDecoderConfig):
    """Schema of `model` for a translator."""


def metrics(config: DictConfig) -> tuple[str, ...]:  # noqa: ARG001  (those of other kinds depend on it)
    """Return the names of the metrics of the token callbacks."""
    return ("loss", "accuracy", "perplexity")


KIND = Kind(
    name="translator",
    noun="translator",
    model=TranslatorNode,
    schema={"pairs": PairDataNode, "encoder_decoder": TranslatorNode},  # the second is the former name of `translator`
    metrics=metrics,
    metric_callbacks=(
        "firstlight.callbacks.token_metrics:Perplexity",
        "firstlight.callbacks.token_metrics:TokenAccuracy",
    ),
    always_looks_back=True,
    has_any_length=True,
    command="predict",
    example=lambda config: '--text "A man rides a bike."',  # noqa: ARG005
    evaluation_options=("beam_size", "length_penalty"),
    prediction_options=("beam_size", "length_penalty", "attention"),
    training="firstlight.lit.translation:Translation",
    tokenizers=("firstlight.text.sentence_tokenizers:SentenceTokenizer",),
    loaded="firstlight.kinds.translator.loaded:from_card",
    evaluate="firstlight.kinds.translator.evaluation:evaluate_translator",
    predictor="firstlight.kinds.translator.predictor:TranslationPredictor",
    exploration="firstlight.kinds.translator.exploration:TranslatorExploration",
    panel="firstlight.kinds.translator.panel:TranslatorPanel",
    panel_title="Translate a sentence",
    dashboard="firstlight.kinds.translator.dashboard:sections",
    drawings=DRAWINGS,
    lesson="firstlight.kinds.token_teacher:lesson",
)
