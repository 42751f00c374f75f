"""The command `export`, and the folder of weights, options and vocabulary that `firstlight.load` reads again."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Backend

import firstlight
from firstlight.commands import export
from firstlight.errors import UserError
from firstlight.export.folder import write_safetensors
from firstlight.files.atomic import new_folder
from firstlight.kind.registry import KINDS
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.saved_tokenizers import json_of_library, kind_in_json, library_tokenizer, tokenizer_of_json
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import BytePairTokenizer, CharacterTokenizer, TextWordTokenizer
from firstlight.text.tokenizers import train_subword_tokenizer, train_word_tokenizer
from tests_support import Scripts
from untrained_runs import TEXTS, untrained_run

IDS = torch.tensor([[5, 4, 7, 2, 9], [6, 3, 1, 5, 5]])
INPUTS = {"classifier": (IDS,), "masked": (IDS,), "generator": (IDS,), "translator": (IDS, IDS[:, :4])}
OPTIONS: dict[str, dict[str, Any]] = {"masked": {"tie_embeddings": True}, "generator": {"tie_embeddings": True}}
STRANGE = [
    *TEXTS,
    "  It's\u00a0GREAT\u3000—  a caf\u0065\u0301,\r\n5/5 stars!!! (no_1) [PAD] \x1c snake_case \U0001f600\u200d!\n",
    "",
    " \t\n",
    "ÉCOLE İstanbul ﬁne x² ½ don’t 東京 ١٢ \u212b\u1100\u1161",
]


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Return an exported classifier, which a test can damage."""
    folder = tmp_path / "exported"
    folder.mkdir()
    write_safetensors(untrained_run(tmp_path, "classifier"), folder)
    return folder


# --- there and back ---


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_run_of_each_kind_is_loaded_with_equal_outputs_and_vocabulary(kind: str, tmp_path: Path) -> None:
    run = untrained_run(tmp_path, kind, **OPTIONS.get(kind, {}))
    (folder := tmp_path / "exported").mkdir()
    write_safetensors(run, folder)
    back = firstlight.load(folder)
    assert type(back) is type(run)
    assert torch.equal(back.network(*INPUTS[kind]), run.network(*INPUTS[kind]))
    assert back.metadata["tokenizer"] == run.metadata["tokenizer"]
    assert back.network.state_dict().keys() == run.network.state_dict().keys()
    if kind in OPTIONS:
        assert "head.weight" not in load_file(folder / "model.safetensors"), "a shared weight is in the file once"


def test_a_translator_with_two_vocabularies_keeps_both(tmp_path: Path) -> None:
    source = SentenceTokenizer.train(TEXTS[1:], TokenizerOptions(min_document_frequency=1))
    run = untrained_run(tmp_path, "translator", facts={"source_tokenizer": source.to_json()})
    write_safetensors(run, tmp_path)
    back: Any = firstlight.load(tmp_path)
    assert back.translate(TEXTS[0]) == run.translate(TEXTS[0])
    assert back.tokenizers.source.words == source.words != back.tokenizers.target.words


def test_a_trained_run_is_exported_with_its_metrics_and_without_paths(trained, scripts: Scripts) -> None:
    run, output = firstlight.load(trained("sentiment")), scripts.folder / "out"
    done = scripts.run("export", str(run.path), "--to", "safetensors", "--output", str(output))
    assert done.returncode == 0, done.stderr
    back = firstlight.load(output)
    assert back.metrics == run.metrics
    assert back.predict(["It works.", "It broke."]) == run.predict(["It works.", "It broke."])
    content = "".join((output / name).read_text() for name in ("config.json", "README.md", "tokenizer.json"))
    assert str(run.path.parent) not in content
    assert run.record["host"] not in (output / "config.json").read_text() or len(run.record["host"]) < 3
    results = ModelCard.load(output / "README.md").data.eval_results
    assert {each.metric_value for each in results} == set(run.metrics.values())
    (accuracy,) = (each for each in results if each.metric_name.startswith("val/accuracy"))
    assert "(95% interval " in accuracy.metric_name
    assert accuracy.dataset_split == "validation"
    refused = scripts.run("export", str(run.path), "--to", "safetensors", "--output", str(output))
    assert (refused.returncode, refused.stderr) == (2, f"error: --output {output} exists already; name a new folder\n")
    assert scripts.run("predict", str(output), "--text", "It works.").returncode == 0


def test_the_card_of_a_run_on_generated_data_says_so(tmp_path: Path) -> None:
    write_safetensors(untrained_run(tmp_path, "generator", facts={"data_source": "sample"}), tmp_path)
    card = ModelCard.load(tmp_path / "README.md")
    assert "**Trained on a generated sample.**" in card.text
    assert "generated-sample" in card.data.tags


# --- the vocabulary ---

TOKENIZERS: dict[str, Any] = {
    "words": train_word_tokenizer(TEXTS),
    "words and marks": train_word_tokenizer(TEXTS, punctuation=True),
    "subwords": train_subword_tokenizer(TEXTS * 2, vocab_size=90),
    "characters": CharacterTokenizer.train(TEXTS, "Ø"),
    "byte pairs": BytePairTokenizer.train(TEXTS * 3, vocab_size=280),
    "words of a text": TextWordTokenizer.train(TEXTS, vocab_size=280),
    "words of sentences": SentenceTokenizer.train(TEXTS, TokenizerOptions(min_document_frequency=1)),
    "pieces of sentences": SentenceTokenizer.train(TEXTS * 3, TokenizerOptions(TokenizerKind.subword, 311)),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_vocabulary_has_the_same_ids_in_the_library_and_comes_back(name: str) -> None:
    ours = TOKENIZERS[name]
    theirs = Backend.from_str(library_tokenizer(ours).to_str())
    for text in STRANGE:
        assert theirs.encode(text).ids == ours.encode_batch([text]).ids.tolist(), text
    text = ours.to_json()
    assert json_of_library(theirs.to_str(pretty=True), kind_in_json(text)) == text


def test_a_pair_of_texts_has_the_same_ids_in_the_library() -> None:
    ours = train_word_tokenizer(TEXTS, pairs=True)
    theirs = library_tokenizer(tokenizer_of_json(ours.to_json()))
    assert theirs.encode(*TEXTS[:2]).ids == ours.encode((TEXTS[0], TEXTS[1]))


def test_characters_without_an_unknown_symbol_stay_an_error() -> None:
    ours = CharacterTokenizer.train(["to be"], None)
    theirs = library_tokenizer(ours)
    assert json_of_library(theirs.to_str(), "characters") == ours.to_json()
    assert theirs.decode(theirs.encode("bet").ids) == "bet"
    with pytest.raises(Exception, match="UNK"):
        theirs.encode("tab")


# --- what is refused ---


def test_a_link_another_file_and_a_folder_of_another_program_are_refused(exported: Path) -> None:
    (exported / "modeling.py").write_text("raise SystemExit")
    with pytest.raises(UserError, match=r"modeling.py is not a file of `.*safetensors` and may be code"):
        firstlight.load(exported)
    (exported / "modeling.py").unlink()
    (exported / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(UserError, match=r"pytorch_model.bin is not a file of"):
        firstlight.load(exported)
    (exported / "pytorch_model.bin").unlink()
    (exported / "tokenizer.json").rename(exported.parent / "elsewhere.json")
    (exported / "tokenizer.json").symlink_to(exported.parent / "elsewhere.json")
    with pytest.raises(UserError, match=r"tokenizer.json is a link, which may lead anywhere; replace it by a copy"):
        firstlight.load(exported)
    (exported / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(UserError, match=r"config.json was not written by `.*export RUN --to safetensors`; name"):
        firstlight.load(exported)


def test_damaged_files_are_refused_in_one_line(exported: Path) -> None:
    weights, config = exported / "model.safetensors", exported / "config.json"
    whole, described = weights.read_bytes(), json.loads(config.read_text())
    weights.write_bytes(whole[:-7])
    with pytest.raises(UserError, match=r"model.safetensors is truncated or damaged"):
        firstlight.load(exported)
    weights.write_bytes(whole)
    save_file(load_file(weights) | {"embedding.weight": torch.zeros(3, 8)}, weights)
    with pytest.raises(UserError, match=r"the shape of the weight embedding.weight is \(3, 8\) in the file"):
        firstlight.load(exported)
    weights.write_bytes(whole)
    described["firstlight"]["config"]["model"]["_target_"] = "os.path.Network"
    config.write_text(json.dumps(described))
    with pytest.raises(UserError, match=r"names the class os.path.Network.*its code is not run"):
        firstlight.load(exported)
    config.write_text('{"firstlight": ')
    with pytest.raises(UserError, match=r"config.json is missing or broken"):
        firstlight.load(exported)
    described["firstlight"]["tokenizer_kinds"]["tokenizer"] = "characters"
    described["firstlight"]["config"]["model"]["_target_"] = None
    (exported / "tokenizer.json").write_text("[1]")
    config.write_text(json.dumps(described))
    with pytest.raises(UserError, match=r"tokenizer.json is not of the kind characters"):
        firstlight.load(exported)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_leaves_no_folder(error: BaseException, tmp_path: Path) -> None:
    with pytest.raises(type(error)), new_folder(tmp_path / "out") as folder:
        (folder / "model.safetensors").write_bytes(b"half")
        raise error
    assert not list(tmp_path.iterdir())


def test_every_format_has_a_writer() -> None:
    from importlib import import_module
    from typing import get_args, get_type_hints

    assert set(get_args(get_type_hints(export.ExportOptions)["to"])) == export.WRITERS.keys()
    for writer in export.WRITERS.values():
        module, _, name = writer.partition(":")
        assert callable(getattr(import_module(f"firstlight.export.{module}"), name))
