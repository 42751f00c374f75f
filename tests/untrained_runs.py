"""Runs of every kind with random weights, made without data and without a training."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from firstlight.kind.registry import KINDS
from firstlight.lit.checkpoint import METADATA, STAMP
from firstlight.lit.networks import build_network, plain
from firstlight.runs.folder import RunFolder
from firstlight.text.options import TokenizerOptions
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import BytePairTokenizer
from firstlight.text.tokenizers import train_word_tokenizer

TEXTS = ["A dog runs, doesn't it?", "Two dogs (red ones) run!", "Zwei Hunde laufen — schön schnell.", "café 5/5!!!"]
DATA: dict[str, dict[str, Any]] = {  # the options of the data that a run reads
    "classifier": {"truncation": "head", "text_column": "text"},
    "masked": {"truncation": "head", "text_column": "text"},
    "generator": {"preparation": "text"},
    "translator": {"source_column": "en", "target_column": "de"},
}


def untrained_run(folder: Path, kind: str, *, tokenizer: Any = None, facts: Any = None, **model: Any) -> Any:
    """Return a run of a small network with random weights, all of which matter. It reads no file.

    tokenizer: None: that of the kind, on TEXTS. facts: changes of the metadata, and `data`, those of the options of the
    data. model: options of the network.
    """
    if tokenizer is None:
        tokenizer = tokenizer_of(kind)
    facts = dict(facts or {})
    data = DATA[kind] | facts.pop("data", {})
    config = KINDS[kind].get("module").config_type(**{"dim": 8, "num_heads": 2, "context_length": 12} | model)
    metadata = {
        "task": None,
        "network": kind,
        "config": {"context_length": config.context_length, "model": plain(config), "data": data},
        "tokenizer": tokenizer.to_json(),
        "data_source": "local",
        "data_fingerprint": "f",
        **STAMP,
        **({"class_names": ["bad", "good"], "label_names": ["0", "1"]} if kind == "classifier" else {}),
        **({"separator_id": None} if kind == "generator" else {}),
        **({"source_tokenizer": None} if kind == "translator" else {}),
        **facts,
    }
    size = tokenizer.vocab_size
    source = metadata.get("source_tokenizer")
    source_size = tokenizer_of_json(source).vocab_size if source else size
    classes = len(metadata.get("class_names", ()))
    forms = {form: bool(facts.get(form)) for form in ("both_orders", "choices")}
    sizes = {"vocab_size": size, "num_classes": classes, "source_vocab_size": source_size}
    network = randomized(build_network(config, **sizes, **forms))
    weights = {f"network.{name}": weight for name, weight in network.state_dict().items()}
    content = {METADATA: copy.deepcopy(metadata), "state_dict": weights}
    return KINDS[kind].get("run").from_checkpoint(RunFolder(folder), folder / "best.ckpt", content)


def tokenizer_of(kind: str) -> Any:
    if kind == "generator":
        return BytePairTokenizer.train(TEXTS * 3, vocab_size=270)
    if kind == "translator":
        return SentenceTokenizer.train(TEXTS, TokenizerOptions(min_document_frequency=1))
    return train_word_tokenizer(TEXTS, punctuation=True)


def randomized(network: nn.Module) -> nn.Module:
    """Return the network with random weights, for evaluation. Biases and norms are random too, so that each matters."""
    torch.manual_seed(0)
    for name, parameter in network.named_parameters():
        nn.init.normal_(parameter, mean=1.0 if "norm" in name and name.endswith("weight") else 0.0, std=0.2)
    return network.eval()
