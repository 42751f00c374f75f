"""Folders that transformers saved: equal logits as a network of ours, and one line for what does not fit."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch.testing import assert_close

import firstlight
from firstlight.errors import UserError
from firstlight.export.published import published_tokenizer, read_published
from firstlight.kind.registry import KINDS
from firstlight.lit.checkpoint import METADATA
from firstlight.lit.networks import build_network
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import UNK
from tests_support import Scripts
from untrained_runs import TEXTS, randomized

SIZES = {"vocab_size": 290, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
OF_BERT = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 20}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {  # the class, our kind, its options
    "gpt2": ("GPT2LMHeadModel", "generator", {"n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 16}),
    "gpt2 untied": (
        "GPT2LMHeadModel",
        "generator",
        {"n_embd": 8, "n_head": 2, "n_layer": 1, "n_inner": 9, "tie_word_embeddings": False},
    ),
    "llama": (
        "LlamaForCausalLM",
        "generator",
        {**OF_BERT, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "attention_bias": True},
    ),
    "bert": ("BertForMaskedLM", "masked", OF_BERT),
    "bert untied": ("BertForMaskedLM", "masked", {**OF_BERT, "tie_word_embeddings": False, "hidden_act": "relu"}),
    "bert of three classes": ("BertForSequenceClassification", "classifier", {**OF_BERT, "num_labels": 3}),
    "bert of two classes": ("BertForSequenceClassification", "classifier", OF_BERT),
}


def byte_pairs() -> Backend:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"])
    backend.train_from_iterator(TEXTS * 5, trainer)
    return backend


def word_pieces() -> Backend:
    backend = Backend(models.WordPiece(unk_token=UNK))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    marks = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    backend.train_from_iterator(TEXTS * 5, trainers.WordPieceTrainer(vocab_size=90, special_tokens=marks))
    backend.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 0))
    return backend


def save(folder: Path, name: str) -> Any:
    """Save a random model with its tokenizer in transformers. Return the model."""
    transformers = pytest.importorskip("transformers", reason="transformers saves the folders")
    class_name, kind, options = MODELS[name]
    model_type = getattr(transformers, class_name)
    backend = byte_pairs() if kind == "generator" else word_pieces()
    torch.manual_seed(0)
    marks = {} if kind == "generator" else {"pad_token": "[PAD]", "mask_token": "[MASK]", "unk_token": "[UNK]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **marks).save_pretrained(folder)
    config = model_type.config_class(**SIZES | {"pad_token_id": 1} | options)
    model = randomized(model_type(config).double())
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    model, (_, kind, _) = save(tmp_path, name), MODELS[name]
    content = read_published(tmp_path, kind)
    metadata, foreign = content[METADATA], published_tokenizer(tmp_path, kind)
    config = KINDS[kind].get("module").config_type(**metadata["config"]["model"])
    network = build_network(config, foreign.tokenizer.vocab_size, len(metadata.get("class_names", ()))).double().eval()
    weights = {key.removeprefix("network."): weight for key, weight in content["state_dict"].items()}
    network.load_state_dict(weights)
    theirs = torch.tensor(foreign.ids)
    ids = torch.randint(2, len(theirs), (2, 8), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(8) < torch.tensor([[8], [5]])
    if kind == "generator":
        found, expected = network(ids), model(theirs[ids]).logits
    else:
        found = network(ids, mask)
        expected = model(theirs[ids], attention_mask=mask.long()).logits
        if found.shape[-1] == 1:
            expected = expected[:, 1:] - expected[:, :1]
    if kind == "masked":
        found, expected = found[mask], expected[mask][:, theirs[: network.vocab_size]]
    assert_close(found, expected, atol=(close := 1e-5 if name == "llama" else 1e-10), rtol=close)


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_the_ids_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    import transformers

    save(tmp_path, name)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = published_tokenizer(tmp_path, MODELS[name][1])
    read = tokenizer_of_json(ours.tokenizer.to_json())
    for text in [*TEXTS, "", "  a\nB\u00e9 \U0001f600"]:
        found = read.encode_batch([text]).ids
        assert [ours.ids[i] for i in found] == theirs(text)["input_ids"], text


# --- what is refused ---


def changed(path: Path, **keys: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def unsuitable(folder: Path) -> Iterator[tuple[str, str]]:
    """Change a folder of GPT-2 in one way after the other. Yield the file to restore, and the message."""
    weights, config, tokenizer = (folder / name for name in ("model.safetensors", "config.json", "tokenizer.json"))
    weights.rename(folder / "pytorch_model.bin")
    yield "model.safetensors", "pytorch_model.bin is a pickle, which may run code; save the model with safetensors"
    weights.unlink()
    weights.symlink_to("elsewhere")
    yield "model.safetensors", "model.safetensors is a link, which may lead anywhere; copy the folder with `cp -rL`"
    save_file({"transformer.wte.weight": torch.zeros(3, 4)}, weights)
    yield "model.safetensors", r"the shape of transformer.wte.weight is \(3, 4\), not \(290, 12\)\); use another"
    weights.write_bytes(b"\x10\0\0")
    yield "model.safetensors", "model.safetensors is truncated or damaged"
    for keys, message in [
        ({"auto_map": {"AutoModel": "modeling.py"}}, "auto_map names code, which is not run; use another model"),
        ({"model_type": "t5"}, "model_type=t5 does not fit a generator, whose type is gpt2 or llama"),
        ({"activation_function": "mish"}, "the activation mish must be relu, gelu, "),
        ({"scale_attn_weights": False}, "scale_attn_weights=False must be true; use another model"),
        ({"n_head": 5}, "model.dim=12 is not divisible by model.num_heads=5"),
        ({"vocab_size": 7}, "its tokenizer has the id 289, but vocab_size=7"),
    ]:
        changed(config, **keys)
        yield "config.json", message
    config.write_text("[")
    yield "config.json", "config.json is missing or broken"
    tokenizer.unlink()
    yield "tokenizer.json", "tokenizer.json is missing or broken .*; save the tokenizer, too"
    word_pieces().save(str(tokenizer))
    yield "tokenizer.json", r"cannot be read \(ValueError: its model is WordPiece, not byte-level BPE"


def test_an_unsuitable_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    save(tmp_path, "gpt2")
    whole = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    for name, message in unsuitable(tmp_path):
        with pytest.raises(UserError, match=message):
            read_published(tmp_path, "generator")
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).write_bytes(whole[name])
    with pytest.raises(UserError, match="model_type=gpt2 does not fit a classifier, whose type is bert"):
        read_published(tmp_path, "classifier")
    (tmp_path / "modeling.py").write_text("raise SystemExit")  # it is never read
    assert read_published(tmp_path, "generator")["state_dict"]


# --- a training ---


def test_a_training_starts_from_a_folder_and_its_tokenizer(scripts: Scripts, tmp_path, reviews_folder) -> None:
    save(tmp_path / "bert", "bert of two classes")
    sizes = ["model.dim=12", "model.num_heads=3", "model.num_layers=2", "model.feed_forward_dim=20"]
    norms = ["model.norm=post", "model.norm_eps=1e-12", "model.final_norm=false", "model.embedding_norm=true"]
    others = ["model.positions=learned", "model.attention_bias=true", "model.convolution=null", "model.activation=gelu"]
    start = ["task=sentiment", f"data.path={reviews_folder}", f"init_from={tmp_path / 'bert'}", "model=tiny"]
    start += [*sizes, *norms, "trainer.max_steps=2", "context_length=32", "model.norm_kind=layer"]
    refused = scripts.run("train", *start)
    assert refused.returncode == 2
    (line,) = [each for each in refused.stderr.splitlines() if each.startswith("error: ")]
    assert "its network has other options than model=; set model." in line
    assert "model.positions=learned" in line
    changed(tmp_path / "bert" / "config.json", id2label={"0": "negative", "1": "positive"})
    done = scripts.run("train", *start, *others, "model.pooling=first", "hydra.run.dir=first")
    assert "model.pooling=first, so its output layer is not copied" in done.stdout
    done = scripts.run("train", *start, *others, "model.pooling=bert", "hydra.run.dir=run")
    assert done.returncode == 0, done.stderr
    run = firstlight.load(scripts.folder / "run")
    assert run.tokenizer.to_json() == published_tokenizer(tmp_path / "bert", "classifier").tokenizer.to_json()
    assert run.predict("A dog runs.").label in run.class_names
    shutil.rmtree(tmp_path / "bert")  # a resumed run has its tokenizer
    done = scripts.run("train", "resume=run", "init_from=null", "trainer.max_steps=4")
    assert done.returncode == 0, done.stderr
