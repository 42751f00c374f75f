"""The kind `generator`: networks that continue a text."""

from dataclasses import dataclass

from omegaconf import DictConfig, OmegaConf

from firstlight.kinds.data_nodes import CharacterDataNode, ReviewTextDataNode
from firstlight.kinds.generator.drawings import DRAWINGS
from firstlight.kinds.kind import Kind
from firstlight.kinds.top_level import ModelNode
from firstlight.networks.config import GeneratorConfig


@dataclass
class GeneratorNode(ModelNode, GeneratorConfig):
    """Schema of `model` for a generator."""


def metrics(config: DictConfig) -> tuple[str, ...]:
    """Return the names of the metrics of the token callbacks. Bits per character require a text without [UNK]."""
    is_text = OmegaConf.get_type(config.data) is CharacterDataNode
    return ("loss", "accuracy", "perplexity", *(("bits_per_character",) if is_text else ()))


NGRAMS = ("ngrams", "firstlight.kinds.generator.baseline:fit")
KIND = Kind(
    name="generator",
    noun="generator",
    model=GeneratorNode,
    schema={"characters": CharacterDataNode, "review_text": ReviewTextDataNode},
    metrics=metrics,
    metric_callbacks=(
        "firstlight.callbacks.token_metrics:BitsPerCharacter",
        "firstlight.callbacks.token_metrics:Perplexity",
        "firstlight.callbacks.token_metrics:TokenAccuracy",
    ),
    has_any_length=False,
    command="generate",
    example=lambda config: "--num-samples 3 --tokens 300 --temperature 0.8",  # noqa: ARG005
    evaluation_options=("context_length", "stride"),
    training="firstlight.lit.generation:Generation",
    tokenizers=(
        "firstlight.text.text_tokenizers:CharacterTokenizer",
        "firstlight.text.text_tokenizers:BytePairTokenizer",
        "firstlight.text.text_tokenizers:TextWordTokenizer",
        "firstlight.text.tokenizers:Tokenizer",
    ),
    loaded="firstlight.kinds.generator.loaded:from_card",
    evaluate="firstlight.kinds.generator.evaluation:evaluate_generator",
    exploration="firstlight.kinds.generator.exploration:GeneratorExploration",
    panel="firstlight.kinds.generator.panel:GeneratorPanel",
    panel_title="Continue a text",
    dashboard="firstlight.kinds.generator.dashboard:sections",
    baselines={
        "firstlight.data.streams.CharacterData": NGRAMS,
        "firstlight.data.streams.ReviewTextData": NGRAMS,
    },
    drawings=DRAWINGS,
    lesson="firstlight.kinds.token_teacher:lesson",
)
