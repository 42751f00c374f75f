"""Random texts, small networks of each kind, quiet trainers, a stand-in for a trainer, and objects to unpickle."""

from types import SimpleNamespace
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.trainer.states import TrainerStatus
from torch import Tensor, nn

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.networks.attention import MultiHeadAttention, attention_weights
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

WORDS, LENGTH, SOURCES = 23, 7, 11  # of the networks below: their words, and the tokens of their texts and sources
SIZES: dict[str, Any] = {"dim": 12, "num_heads": 3, "num_layers": 2, "context_length": 13}
MASK = torch.arange(LENGTH) < torch.tensor([[LENGTH], [5]])
SOURCE_MASK = torch.arange(SOURCES) < torch.tensor([[4], [SOURCES]])
Made = tuple[Any, tuple[Tensor, ...]]  # a network with random weights, and its inputs: two texts


def random_texts(lengths: list[int], width: int, seed: int = 1, vocab_size: int = 29) -> tuple[Tensor, Tensor]:
    """Return token ids from 2, (texts, width), padded with 0, and the padding mask of texts of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    padding_mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    token_ids = torch.randint(2, vocab_size, padding_mask.shape, generator=generator)
    return token_ids.masked_fill(~padding_mask, 0), padding_mask


def randomized(network: nn.Module) -> Any:
    """Return the network with random weights, in float64 and for evaluation."""
    torch.manual_seed(0)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    return network.double().eval()


def random_ids(*shape: int, vocab_size: int = WORDS, seed: int = 1) -> Tensor:
    """Return random token ids of a shape."""
    return torch.randint(0, vocab_size, shape, generator=torch.Generator().manual_seed(seed))


def make_hidden(*shape: int) -> Tensor:
    """Return random vectors in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def generator(**options: Any) -> Made:
    return randomized(Generator(GeneratorConfig(**SIZES, **options), WORDS)), (random_ids(2, LENGTH),)


def classifier(**options: Any) -> Made:
    return randomized(Classifier(ClassifierConfig(**SIZES, **options), WORDS, 5)), (random_ids(2, LENGTH), MASK)


def masked(**options: Any) -> Made:
    token_ids = random_ids(2, LENGTH).masked_fill(torch.arange(LENGTH) == 2, WORDS)
    return randomized(MaskedLanguageModel(MaskedConfig(**SIZES, **options), WORDS)), (token_ids, MASK)


def translator(**options: Any) -> Made:
    network = EncoderDecoder(EncoderDecoderConfig(**SIZES, num_decoder_layers=3, **options), WORDS, WORDS)
    return randomized(network), (random_ids(2, SOURCES), random_ids(2, LENGTH), SOURCE_MASK, MASK)


def with_weights_of(attention: MultiHeadAttention, *arguments: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Return the output of an attention that is watched, and its weights."""
    with attention_weights(attention) as weights:
        output = attention(*arguments, **options)
    return output, weights[""]


def trainer_of(*callbacks: Callback, **options: Any) -> Trainer:
    """Return a trainer on the processor that shows, logs and saves nothing. Unless told otherwise, it has one epoch."""
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "num_sanity_val_steps": 0}
    defaults = quiet | {"enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1}
    return Trainer(callbacks=list(callbacks), **(defaults | options))


def with_trainer(
    data: Any, *, step: int = 0, rank: int = 0, world_size: int = 1, device: str = "cpu", **options: Any
) -> Any:
    """Give a data module a stand-in for a trainer at a step, whose network is on a device, and return the data."""
    data.trainer = SimpleNamespace(
        global_step=step,
        global_rank=rank,
        world_size=world_size,
        strategy=SimpleNamespace(root_device=torch.device(device)),
        state=SimpleNamespace(status=TrainerStatus.RUNNING),
        overfit_batches=0.0,
        **({"limit_train_batches": 1.0, "accumulate_grad_batches": 1} | options),
    )
    return data


class Calls:
    """An object whose unpickling calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.reduced = function, arguments

    def __reduce__(self) -> Any:
        return self.reduced


class Outputs(Callback):
    """Callback that stores the results of the steps."""

    def __init__(self) -> None:
        self.seen: dict[str, list[dict[str, Tensor]]] = {"train": [], "val": [], "test": []}

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.seen["train"].append(outputs)

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        self.seen["val"].append(outputs)

    def on_test_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        self.seen["test"].append(outputs)
