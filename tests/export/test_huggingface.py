"""Exported folders in transformers: each option of a network gives equal logits, or one line that names it."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from firstlight.errors import UserError
from firstlight.export.folder import write_huggingface, write_safetensors
from firstlight.export.huggingface import FORMS
from firstlight.kind.registry import KINDS
from firstlight.networks.variants import Activation
from firstlight.text.options import TokenizerOptions
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import CharacterTokenizer
from untrained_runs import TEXTS, untrained_run

EPS = {"norm_eps": 1e-5}
BEFORE = {"norm": "pre", "final_norm": True, "head_bias": False, **EPS}
BASES: dict[str, tuple[str, dict[str, Any]]] = {  # the kind, and options that a published model has
    "GPT2LMHeadModel": ("generator", {"positions": "learned", "activation": "gelu_tanh", **BEFORE}),
    "LlamaForCausalLM": (
        "generator",
        {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu", "output_bias": False, **BEFORE},
    ),
    "BertForMaskedLM": ("masked", {"positions": "learned", "embedding_norm": True, "head_layer": True, **EPS}),
    "BertForSequenceClassification": (
        "classifier",
        {"positions": "learned", "embedding_norm": True, "pooling": "first", **EPS},
    ),
    "MarianMTModel": ("translator", {"positions": "sinusoidal", **EPS}),
}
OTHER = {  # other values of options that are numbers
    "dim": (12,),
    "num_heads": (4,),
    "num_layers": (2,),
    "head_dim": (2, 6),
    "num_key_value_heads": (1,),
    "context_length": (9,),
    "rotary_base": (500.0,),
    "position_scale": (0.5,),
    "embedding_std": (0.5,),
    "norm_eps": (0.1,),
    "embedding_dim": (5,),
    "embedded_words": (9,),
    "token_dropout": (0.5,),
    "feed_forward_dim": (5,),
    "first_position": (1,),
    "num_loops": (2,),
    "num_decoder_layers": (2,),
    "causal_convolution": (2,),
    "convolution": (3,),
    "dropout": (0.5,),
    "attention_dropout": (0.5,),
    "attention": ({"_target_": "firstlight.networks.attention.MultiHeadAttention"},),
    "_target_": ("firstlight.generator.lstm.LSTM",),
}
TOGETHER = {"base_dim": {"parametrization": "mup", "base_dim": 4}, "parametrization": {}, "base_head_dim": {}}


def changes() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every published model with every other value of every option."""
    for form, (kind, base) in BASES.items():
        yield form, "", {}
        config_type = KINDS[kind].get("module").config_type
        hints = get_type_hints(config_type)
        for option in fields(config_type):
            name, hint = option.name, hints[option.name]
            if name in TOGETHER:
                values: Any = [TOGETHER[name]] if TOGETHER[name] else []
            elif hint is bool:
                values = [{name: not base.get(name, option.default)}]
            elif isinstance(hint, type) and issubclass(hint, Enum):
                values = [{name: each.name} for each in hint]
            else:
                values = [{name: value} for value in OTHER.get(name, ())]
                assert values or name == "options", f"{name}: {get_args(hint)}"
            yield from ((form, name, each) for each in values)


def logits(run: Any, folder: Path) -> tuple[Tensor, Tensor]:
    """Return the logits of ours and of transformers, in float64, for texts of two lengths."""
    import transformers

    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    theirs = getattr(transformers, name).from_pretrained(folder, dtype=torch.float64).eval()
    size = run.tokenizer.vocab_size
    ids = torch.randint(4, size, (2, 8), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(8) < torch.tensor([[8], [5]])
    with torch.no_grad():
        if run.kind == "generator":
            return run.network(ids), theirs(ids).logits
        if run.kind == "classifier":
            found = theirs(ids, attention_mask=mask.long()).logits
            return run.network(ids, mask), found if found.shape[1] > 2 else found[:, 1:] - found[:, :1]
        if run.kind == "masked":
            ids[:, 2] = run.network.mask_id
            expected, found = run.network(ids, mask), theirs(ids, attention_mask=mask.long()).logits
            assert (found[mask][:, size] < -1000).all(), "[MASK] is never predicted"
            return expected[mask], found[mask][:, :size]
        written = theirs(ids, attention_mask=mask.long(), decoder_input_ids=ids[:, :6]).logits
        return run.network(ids, ids[:, :6], mask), written


@pytest.mark.slow
@pytest.mark.parametrize(("form", "option", "model"), changes())
def test_every_option_gives_equal_logits_or_a_line_that_names_it(
    form: str, option: str, model: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("transformers", reason="transformers loads the folders")
    kind, base = BASES[form]
    try:
        run = untrained_run(tmp_path, kind, **base | model)
    except ValueError as error:
        pytest.skip(f"no such network: {error}")
    run.network.double()
    with contextlib.suppress(UserError) if option else contextlib.nullcontext():
        write_huggingface(run, tmp_path)
        close = (
            1e-5 if (tmp_path / "config.json").read_text().find('"llama"') > 0 else 1e-10
        )  # its norms are in float32
        assert_close(*logits(run, tmp_path), atol=close, rtol=close)
        return
    name = "model.(activation|positions)=" if option == "positions" else f"model.{option}="  # it chooses GPT-2 or Llama
    with pytest.raises(UserError, match=rf"{name}\S+ cannot be expressed in \w+, which has {name}"):
        write_huggingface(run, tmp_path)


def test_a_setting_without_a_place_is_refused_in_one_line(tmp_path: Path) -> None:
    run = untrained_run(tmp_path, "generator", norm="post")
    refusal = r"model.norm=post cannot be expressed in GPT2LMHeadModel, which has model.norm=pre; use --to safetensors,"
    with pytest.raises(UserError, match=refusal):
        write_huggingface(run, tmp_path)
    assert not list(tmp_path.iterdir())


# --- the tokenizer ---


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_transformers_loads_the_tokenizer_of_each_kind(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers loads the folders")
    base = next((options for each, options in BASES.values() if each == kind), {})
    run = untrained_run(tmp_path, kind, **base)
    (write_huggingface if base else write_safetensors)(run, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in [*TEXTS, *(["it's [PAD] [UNK] [END], a dog"] if kind != "masked" else [])]:
        assert theirs(text)["input_ids"] == run.tokenizer.encode_batch([text]).ids.tolist()
    assert theirs.model_max_length == 12
    if kind == "masked":
        assert theirs("a [MASK] runs")["input_ids"][1] == theirs.mask_token_id == run.network.mask_id
    if kind != "generator":
        assert 0 in theirs([TEXTS[0], "A"], padding=True)["input_ids"][1]


@pytest.mark.slow
def test_a_translator_with_two_vocabularies_and_a_generator_of_names_write_in_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers loads the folders")
    source = SentenceTokenizer.train(TEXTS[1:], TokenizerOptions(min_document_frequency=1))
    run = untrained_run(tmp_path, "translator", facts={"source_tokenizer": source.to_json()})
    write_huggingface(run, tmp_path)
    read = transformers.AutoTokenizer.from_pretrained(tmp_path)
    written = transformers.AutoTokenizer.from_pretrained(tmp_path, subfolder="target")
    model = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    ids = model.generate(**read([TEXTS[2]], return_tensors="pt"), num_beams=1, max_length=12)
    assert written.decode(ids[0], skip_special_tokens=True).strip() == run.translate(TEXTS[2], beam_size=1)
    (names := tmp_path / "names").mkdir()
    tokenizer = CharacterTokenizer.train([".abc"], None)
    kind, base = BASES["GPT2LMHeadModel"]
    run = untrained_run(tmp_path, kind, tokenizer=tokenizer, facts={"separator_id": 0}, **base)
    write_huggingface(run, names)
    generator = transformers.GPT2LMHeadModel.from_pretrained(names)
    assert generator.generation_config.eos_token_id == 0
    assert transformers.AutoTokenizer.from_pretrained(names).decode([1, 3, 2]) == "acb"


def test_the_page_on_export_lists_what_each_model_has() -> None:
    forms = FORMS.values()
    lines = [" | ".join(["| option", *(f"`{form.name}`" for form in forms)]) + " |", "|---" * (len(forms) + 1) + "|"]
    for name in dict.fromkeys(name for form in forms for name in form.allowed):
        cells = []
        for key, form in FORMS.items():
            kind = key if key in KINDS else "generator"
            exists = name in {each.name for each in fields(KINDS[kind].get("module").config_type)}
            allowed = [json.dumps(each).strip('"') for each in form.allowed.get(name, ())]
            all_but = len(allowed) > 4 and "all but swiglu"
            cells.append(all_but or ", ".join(allowed) or ("any" if exists else "–"))
        lines.append(" | ".join([f"| `{name}`", *cells]) + " |")
    table = "\n".join(lines)
    assert table in (Path(__file__).parents[2] / "docs/export.md").read_text(encoding="utf-8"), table
    assert {*Activation.__members__} - {"swiglu"} == {*FORMS["gpt2"].allowed["activation"]}


@pytest.mark.slow
def test_a_classifier_of_three_classes_has_its_labels_in_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers loads the folders")
    kind, base = BASES["BertForSequenceClassification"]
    run = untrained_run(tmp_path, kind, facts={"class_names": ["bad", "so-so", "good"]}, **base)
    write_huggingface(run, tmp_path)
    found = transformers.pipeline("text-classification", str(tmp_path), top_k=None)([TEXTS[0]])[0]
    ours = run.predict(TEXTS[0])
    assert found[0]["label"] == ours.label
    assert {each["label"]: pytest.approx(each["score"], abs=1e-5) for each in found} == ours.probabilities
