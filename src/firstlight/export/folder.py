"""Exported folders with weights: those of safetensors and of transformers, with the vocabulary and a model card."""

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from torch import Tensor

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.export.huggingface import OTHERS, Form, form_of
from firstlight.invocation import install_command
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.lit import checkpoint
from firstlight.lit.networks import plain
from firstlight.runs.folder import EXPORTED_CONFIG, EXPORTED_WEIGHTS, RunFolder
from firstlight.runs.predictions import FOLDER, read_predictions
from firstlight.text.saved_tokenizers import kind_in_json, library_tokenizer, tokenizer_of_json
from firstlight.text.sentence_tokenizers import BEGIN, BEGIN_ID, END, SentenceTokenizer
from firstlight.text.tokenizers import MASK, PAD, PAD_ID, UNK, UNKNOWN_ID, Tokenizer

# What an exported folder has of a run's record and of its options: nothing about the machine or its user.
RECORDED = (
    *("task", "model", "experiment", "dropout", "context_length", "seed", "status", "optimized_metric"),
    *("optimized_mode", "parameters", "steps", "tokens", "flops", "versions", "metrics"),
)
OF_CONFIG = ("context_length", "model", "data")
OF_MACHINE = ("hydra.", "paths.", "data.cache_dir", "logger", "resume", "threads")  # overrides that are left out
PIPELINES = {
    "classifier": "text-classification",
    "generator": "text-generation",
    "masked": "fill-mask",
    "translator": "translation",
}
OF_SAMPLE = "\n**Trained on a generated sample.** Its predictions and metrics say nothing about real texts.\n"
Z = 1.96  # half of a 95% interval, in standard errors
ENTITIES = "tokenizer.json does not unescape HTML entities such as &amp;; apply Python's html.unescape to texts first"


def library(name: str) -> Any:
    """Return a module of the extra `export`. Raises UserError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f"this export requires {name.partition('.')[0]}: {install_command('export')}") from error


def write_safetensors(run: Run, folder: Path) -> list[str]:
    """Write the weights, the options and the vocabulary, which `firstlight.load` reads. Return notes for the user.

    Weights that two layers share are written once; config.json names the others.
    """
    weights, tied = without_twins(run.network.state_dict())
    kinds = {key: kind_in_json(text) for key in ("tokenizer", "source_tokenizer") if (text := run.metadata.get(key))}
    metadata = {key: value for key, value in run.metadata.items() if key not in kinds}
    counted: Mapping[str, Tensor] = metadata.pop(checkpoint.TARGET_ENCODING, {})
    weights |= {f"{checkpoint.TARGET_ENCODING}.{name}": values.contiguous() for name, values in counted.items()}
    metadata["config"] = {key: run.config[key] for key in OF_CONFIG}
    metadata["config"]["data"] = {**run.config["data"], "path": None, "cache_dir": None}
    metadata |= {"tokenizer_kinds": kinds, "tied_weights": tied, "record": record_of(run)}
    write_weights(folder, weights)
    write_json(folder / EXPORTED_CONFIG, {checkpoint.METADATA: metadata})
    (folder / "README.md").write_text(card(run, "firstlight"), encoding="utf-8")
    if source := run.metadata.get("source_tokenizer"):
        write_tokenizer(run, folder, source, name=checkpoint.EXPORTED_SOURCE_TOKENIZER)
    return write_tokenizer(run, folder)


def write_huggingface(run: Run, folder: Path) -> list[str]:
    """Write a folder that transformers loads. Return notes for the user.

    Raises UserError for the first setting that the published model does not have.
    """
    config = KINDS[run.kind].reader().config_type(**run.config["model"])
    form = form_of(run.kind, config)
    refuse_inexpressible(run, config, form)
    options, weights = form.convert(run, config)
    dtype = str(run.network.embedding.weight.dtype).removeprefix("torch.")
    separator = run.metadata.get("separator_id")
    ids = (
        {"pad_token_id": PAD_ID} if run.kind != "generator" else {"bos_token_id": separator, "eos_token_id": separator}
    )
    options |= {"architectures": [form.name], "dtype": dtype, "tie_word_embeddings": False} | ids | options
    write_json(folder / "config.json", options)
    write_weights(folder, {name: weight.detach().contiguous().clone() for name, weight in weights.items()})
    write_generation(folder, options, run)
    (folder / "README.md").write_text(card(run, "transformers"), encoding="utf-8")
    return write_tokenizers(run, folder)


def write_tokenizers(run: Run, folder: Path) -> list[str]:
    """Write the tokenizer that reads texts, and that of translations with another vocabulary. Return notes."""
    notes = write_tokenizer(run, folder, run.metadata.get("source_tokenizer"), mask=run.kind == "masked")
    if run.metadata.get("source_tokenizer"):
        (target := folder / "target").mkdir()
        write_tokenizer(run, target)
        notes.append("the translations have another vocabulary than the sources; its tokenizer is in target/")
    return notes


def write_generation(folder: Path, options: dict[str, Any], run: Run, num_beams: int = 4) -> None:
    """Write generation_config.json: sampling for a generator, beam search for a translator; nothing for other kinds."""
    if run.kind not in ("generator", "translator"):
        return
    kept = {key: options[key] for key in options if key.endswith("_token_id")}
    kept["max_length"] = run.config["context_length"]
    searched = {"num_beams": num_beams, "suppress_tokens": [PAD_ID, UNKNOWN_ID, BEGIN_ID]}
    how = {"do_sample": True} if run.kind == "generator" else searched
    write_json(folder / "generation_config.json", kept | how)


def refuse_inexpressible(run: Run, config: Any, form: Form) -> None:
    """Raise UserError for the first option of the network or of the data that a model of transformers does not have."""
    for name, value in settings_of(config).items():
        allowed = form.allowed.get(name, [value])
        if value not in allowed:
            has = f"{form.name}, which has model.{name}={listed(map(_typed, allowed), 'or')}"
            raise UserError(f"{run.path}: model.{name}={_typed(value)} cannot be expressed in {has}; {OTHERS}")
    for name in ("both_orders", "choices", "target_encoding"):
        if run.metadata.get(name):
            key = "choice_columns" if name == "choices" else name
            raise UserError(f"{run.path}: data.{key} cannot be expressed in {form.name}; {OTHERS}")


def settings_of(config: Any) -> dict[str, Any]:
    """Return the options of a network as plain values. A size that equals its default is None."""
    found = {each.name: plain(getattr(config, each.name)) for each in fields(config)}
    found["attention"] = config.own_attention
    if config.resolved_head_dim * config.num_heads == config.dim:
        found["head_dim"] = None
    if config.resolved_num_key_value_heads == config.num_heads:
        found["num_key_value_heads"] = None
    return found


def _typed(value: Any) -> str:
    return json.dumps(value).strip('"')


def without_twins(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the weights, each once, and the names of the repeated ones with the names of their first occurrences."""
    first: dict[tuple[int, Any], str] = {}
    names = {name: first.setdefault((weight.data_ptr(), weight.shape), name) for name, weight in state.items()}
    kept = {name: state[name].detach().contiguous() for name, other in names.items() if name == other}
    return kept, {name: other for name, other in names.items() if name != other}


def write_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write model.safetensors."""
    content = library("safetensors.torch").save(dict(weights), metadata={"format": "pt"})
    (folder / EXPORTED_WEIGHTS).write_bytes(content)


def write_tokenizer(
    run: Run, folder: Path, text: str | None = None, *, mask: bool = False, name: str = checkpoint.EXPORTED_TOKENIZER
) -> list[str]:
    """Write a vocabulary in the format of the library `tokenizers`, which transformers loads, too.

    text: the JSON of the tokenizer; None: that of the run. mask: whether [MASK] is its last id. name: of the file.
    Return notes on what the format lacks.
    """
    tokenizer = tokenizer_of_json(text or run.metadata["tokenizer"])
    backend = library_tokenizer(tokenizer)
    marks = {"pad_token": PAD, "unk_token": UNK} if isinstance(tokenizer, Tokenizer | SentenceTokenizer) else {}
    if isinstance(tokenizer, SentenceTokenizer):
        marks |= {"bos_token": BEGIN, "eos_token": END}
    if mask:
        backend.add_special_tokens([MASK])
        marks["mask_token"] = MASK
    (folder / name).write_text(backend.to_str(pretty=True), encoding="utf-8")
    options = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": run.config["context_length"],
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": not mask,  # a text never contains the marks
    }
    write_json(folder / checkpoint.EXPORTED_TOKENIZER_CONFIG, options | marks)
    return [ENTITIES] if isinstance(tokenizer, Tokenizer) else []


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with one key in a line."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def record_of(run: Run) -> dict[str, Any]:
    """Return what an exported folder keeps of the record of a run; {} for a checkpoint without a run."""
    if not run.folder.is_run():
        return run.metadata.get("record") or {}
    record = {key: run.record.get(key) for key in RECORDED}
    overrides = [_without_place(each) for each in run.record.get("overrides") or [] if not each.startswith(OF_MACHINE)]
    data = {key: value for key, value in (run.record.get("data") or {}).items() if key != "path"}
    return record | {"overrides": overrides, "data": data}


def _without_place(override: str) -> str:
    """Return an override in which only the name of an absolute path is left."""
    key, _, value = override.partition("=")
    return f"{key}={Path(value).name}" if Path(value).is_absolute() else override


# --- the model card ---


def card(run: Run, library_name: str) -> str:
    """Return README.md: the data, the metrics with their intervals and the command, also as Hugging Face reads them."""
    import yaml

    record, data = record_of(run), run.config["data"]
    is_sample = run.data_source == "sample"
    name = "-".join(str(record[key]) for key in ("task", "model") if record.get(key)) or KINDS[run.kind].noun
    data_set = str(data.get("name") or data.get("hub") or Path(data.get("path") or "own data").name)
    data_name = f"a generated sample of {data_set}, not real data" if is_sample else data_set
    metrics = {key: value for key, value in (record.get("metrics") or {}).items() if math.isfinite(value)}
    found = {key: (value, interval(run.folder, key, value)) for key, value in metrics.items()}
    results = [_result(run.kind, data_name, key, *each) for key, each in found.items()]
    facts = {
        "library_name": library_name,
        "pipeline_tag": PIPELINES.get(run.kind),
        "tags": ["firstlight", *(["generated-sample"] if is_sample else [])],
        "model-index": [{"name": name, "results": results}],
    }
    rows = [f"| {key} | {value:.4g} | {_between(ends)} |" for key, (value, ends) in found.items()]
    return Template(Path(__file__).with_name("card.md").read_text(encoding="utf-8")).substitute(
        facts=yaml.safe_dump(facts, sort_keys=False, allow_unicode=True).rstrip(),
        name=name,
        noun=KINDS[run.kind].noun,
        data=data_name,
        warning=OF_SAMPLE if is_sample else "",
        rows="\n".join(rows),
        seed=record.get("seed"),
        command=shlex.join(["firstlight", "train", *record.get("overrides", [])]),
    )


def _result(kind: str, data: str, key: str, value: float, ends: tuple[float, float] | None) -> dict[str, Any]:
    """Return a metric in the form of Hugging Face's model-index."""
    split, _, metric = key.partition("/")
    name = key if ends is None else f"{key} (95% interval {_between(ends)})"
    return {
        "task": {"type": PIPELINES.get(kind, kind)},
        "dataset": {"name": data, "type": data.replace(" ", "_"), "split": split.replace("val", "validation")},
        "metrics": [{"type": metric, "value": value, "name": name}],
    }


def _between(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"


def interval(folder: RunFolder, key: str, value: float) -> tuple[float, float] | None:
    """Return the 95% interval of a metric over the texts of its split; None without stored predictions.

    The interval of a mean is weighted by the tokens of the texts. That of a perplexity is computed from its logarithm.
    """
    split, _, metric = key.partition("/")
    found = read_predictions(folder.path / FOLDER / f"{split.replace('val', 'validation')}.npz")
    values = None if found is None or metric == "bits_per_character" else found.values(key)
    if found is None or values is None or len(values) < 2:
        return None
    weights = found.tokens / found.tokens.sum()
    center = float((weights * values).sum())
    half = Z * math.sqrt(float((np.square(weights * (values - center))).sum()) * len(values) / (len(values) - 1))
    if metric == "perplexity":
        return value * math.exp(-half), value * math.exp(half)
    return value - half, value + half
