"""The scores of translators and the translations that they show."""

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from lightning.pytorch import Callback

from firstlight.decoding.beam import Search, translate
from firstlight.lit.schedules import constant
from firstlight.networks.variants import Norm
from firstlight.text.options import TokenizerOptions
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID
from firstlight.translator import translations
from firstlight.translator.data import PairData
from firstlight.translator.module import Translation
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig
from firstlight.translator.translations import Translations, gathered

CONTEXT = 13
PHRASES = [
    "Ein Hund läuft durch das hohe Gras .",
    "Zwei Männer sitzen auf einer roten Bank .",
    "Das Mädchen singt .",
    "Eine Frau liest dem kleinen Kind ein Buch vor .",
    "Niemand ist heute am Strand .",
]
EVALUATE = pytest.mark.parametrize(("stage", "split"), [("val", "validation"), ("test", "test")])


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Return pairs. One word of the source determines the target, and the other words vary the length."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(len(PHRASES), size=count)
    return [
        (" ".join([f"{'ABCDE'[topic]}", *rng.choice(["so", "and", "well"], rng.integers(8))]), PHRASES[topic])
        for topic in topics
    ]


SPLITS = {"train": sentences(61, 1), "validation": sentences(23, 2), "test": sentences(17, 3)}


@pytest.fixture
def data(tmp_path: Path) -> PairData:
    folder = tmp_path / "pairs"
    folder.mkdir()
    for split, pairs in SPLITS.items():
        lines = (json.dumps({"en": f" {source}\n", "de": target}) + "\n" for source, target in pairs)
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    data = PairData(
        path=str(folder),
        cache_dir=str(tmp_path / "cache"),
        tokenizer=TokenizerOptions(min_document_frequency=1),
        shared_vocabulary=False,
        context_length=CONTEXT,
        batch_tokens=131,
        evaluation_batch_size=5,
    )
    data.ensure_setup()
    return data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "samples"


def module_of(data: PairData, *, lr: float = 0.02, dropout: float = 0.0) -> Translation:
    torch.manual_seed(1)
    config = EncoderDecoderConfig(
        dim=16, num_heads=2, num_layers=1, context_length=CONTEXT, norm=Norm.pre, dropout=dropout, embedding_std=0.5
    )
    network = EncoderDecoder(config, data.source_tokenizer.vocab_size, data.tokenizer.vocab_size)
    return Translation(network, partial(torch.optim.Adam, lr=lr), constant)


def fit(bench: Any, data: PairData, *callbacks: Callback, module: Any = None, **options: Any) -> Any:
    """Train so briefly that most translations are partly correct, and return the trainer."""
    options = {"max_epochs": 3, "limit_train_batches": 5} | options
    return bench.fit(*callbacks, data=data, module=module or module_of(data), **options)


@torch.inference_mode()
def write_one(module: Translation, data: PairData, source: str) -> str:
    """Return the greedy translation, computed without cache, batch and padding."""
    network, tokenizer = module.eval().network, data.tokenizer
    source_ids = torch.from_numpy(data.source_tokenizer.encode_batch([source]).ids)[None].long()
    written = [BEGIN_ID]
    while len(written) < CONTEXT and written[-1] != END_ID:
        logits = network(source_ids, torch.tensor([written]))[0, -1]
        logits[list(tokenizer.unwritten)] = -torch.inf
        written.append(int(logits.argmax()))
    return tokenizer.decode(written)


def greedy(module: Translation, data: PairData, pairs: list[tuple[str, str]]) -> list[str]:
    return [write_one(module, data, source) for source, _ in pairs]


def with_beam(module: Translation, data: PairData, pairs: list[tuple[str, str]], size: int) -> list:
    """Return the best translations of beam search, one sentence at a time."""
    search = Search(BEGIN_ID, END_ID, size, never=tuple(data.tokenizer.unwritten))
    found = []
    for source, _ in pairs:
        source_ids = torch.from_numpy(data.source_tokenizer.encode_batch([source]).ids)[None].long()
        found.append(data.tokenizer.decode(translate(module.eval().network, source_ids, None, search)[0][0].token_ids))
    return found


def scores(written: list[str], pairs: list[tuple[str, str]], stage: str, suffix: str = "") -> dict[str, Any]:
    references = [[target for _, target in pairs]]
    return {
        f"{stage}/bleu{suffix}": pytest.approx(sacrebleu.corpus_bleu(written, references).score, rel=1e-5),
        f"{stage}/chrf{suffix}": pytest.approx(sacrebleu.corpus_chrf(written, references).score, rel=1e-5),
    }


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


# --- scores ---


def test_each_validation_of_a_training_scores_and_shows_what_is_written_greedily(bench, data, folder) -> None:
    trainer = fit(bench, data, Translations(str(folder), num_samples=5))
    written = greedy(trainer.lightning_module, data, SPLITS["validation"])
    expected = scores(written, SPLITS["validation"], "val")
    assert {name: bench.memory.curve(name)[-1][1] for name in expected} == expected
    assert [step for step, _ in bench.memory.curve("val/bleu")] == [4, 9, 14]
    assert len({value for _, value in bench.memory.curve("val/bleu")}) == 3
    assert len(set(written)) > 2  # otherwise any order would pass
    assert 1 < expected["val/bleu"].expected < 99
    assert list(texts(folder)) == ["00000005.txt", "00000010.txt", "00000015.txt"]
    samples = texts(folder)["00000015.txt"].removesuffix("\n").split("\n\n")
    chosen = [0, 4, 8, 12, 16]  # of 23, evenly spaced
    assert samples == [f"{SPLITS['validation'][i][0]}\n  {SPLITS['validation'][i][1]}\n  {written[i]}" for i in chosen]


@EVALUATE
def test_after_the_training_it_is_scored_with_a_beam_too(bench, data, folder, stage, split) -> None:
    callback = Translations(str(folder))
    module = fit(bench, data, callback, max_epochs=2).lightning_module
    trainer, pairs = bench.trainer(callback), SPLITS[split]
    (found,) = (trainer.validate if stage == "val" else trainer.test)(module, datamodule=data, verbose=False)
    of_greedy = scores(greedy(module, data, pairs), pairs, stage)
    of_beam = scores(with_beam(module, data, pairs, 4), pairs, stage, "_beam4")
    assert found == {f"{stage}/loss": found[f"{stage}/loss"]} | of_greedy | of_beam
    assert of_greedy[f"{stage}/bleu"].expected != of_beam[f"{stage}/bleu_beam4"].expected


def test_an_evaluation_forgets_what_the_one_before_it_wrote(bench, data, folder) -> None:
    callback, module = Translations(str(folder), beam_size=None), module_of(data)
    trainer = bench.trainer(callback)
    trainer.validate(module, datamodule=data, verbose=False)
    (found,) = trainer.test(module, datamodule=data, verbose=False)
    assert set(callback.written[1]) == set(range(84, 101))
    (again,) = bench.trainer(Translations(str(folder), beam_size=None)).test(module, datamodule=data, verbose=False)
    assert found == again


def test_the_sanity_check_translates_nothing(bench, data, folder) -> None:
    bench.trainer(Translations(str(folder)), num_sanity_val_steps=2, limit_train_batches=3).fit(module_of(data), data)
    assert list(texts(folder)) == ["00000003.txt"]
    assert [step for step, _ in bench.memory.curve("val/bleu")] == [2]


def test_marks_are_never_written_whatever_the_network_prefers(bench, data, folder) -> None:
    module = module_of(data)
    with torch.no_grad():
        module.network.head.bias[list(data.tokenizer.unwritten)] = 100.0
        module.network.head.bias[END_ID] = -100.0
    callback = Translations(str(folder))
    bench.trainer(callback).test(module, datamodule=data, verbose=False)
    lengths = {len(data.tokenizer.encode_batch([text]).ids) for text in callback.written[1].values()}
    assert lengths == {CONTEXT - 1}  # words up to the limit, which leaves room only for [END]


def test_the_training_is_the_same_with_and_without_translations(bench, data, folder) -> None:
    modules = [module_of(data, dropout=0.3) for _ in range(2)]
    for module, more in zip(modules, ([], [Translations(str(folder))]), strict=True):
        torch.manual_seed(5)
        fit(bench, data, *more, module=module, max_epochs=2)
    plain, translated = (module.state_dict() for module in modules)
    assert all(torch.equal(weight, translated[name]) for name, weight in plain.items())


# --- translations that are shown ---


def test_the_evaluation_after_the_training_leaves_a_file_and_says_how_it_scored(bench, data, folder, caplog) -> None:
    caplog.set_level(logging.INFO, logger=translations.__name__)
    module = module_of(data)
    bench.trainer(Translations(str(folder), num_samples=2, beam_size=None)).test(module, datamodule=data, verbose=False)
    assert [file.name for file in folder.glob("*.txt")] == ["test.txt"]
    written = greedy(module, data, SPLITS["test"])
    shown = [f"{SPLITS['test'][i][0]}\n  {SPLITS['test'][i][1]}\n  {written[i]}" for i in (0, 8)]
    assert (folder / "test.txt").read_text(encoding="utf-8") == "\n\n".join(shown) + "\n"
    assert "BLEU nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp" in caplog.text  # nobody can compare without it
    assert "chrF nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no" in caplog.text


@EVALUATE
def test_loggers_that_show_tables_get_the_translations_of_the_widest_beam(
    bench, data, folder, stage, split, monkeypatch
) -> None:
    tables: dict[str, list[dict[str, str]]] = {}
    monkeypatch.setattr(translations, "publish_table", lambda trainer, name, rows: tables.update({name: list(rows)}))
    module, trainer = module_of(data), bench.trainer(Translations(str(folder), num_samples=2, beam_size=3))
    (trainer.validate if stage == "val" else trainer.test)(module, datamodule=data, verbose=False)
    chosen = [SPLITS[split][0], SPLITS[split][len(SPLITS[split]) // 2]]
    assert [tuple(row.values()) for row in tables[f"{stage}/translations"]] == [
        (*pair, text) for pair, text in zip(chosen, with_beam(module, data, chosen, 3), strict=True)
    ]


# --- several processes, and mistakes ---


def test_what_all_processes_have_written_is_put_together(monkeypatch) -> None:
    def gather(parts: list[Any], own: Any) -> None:
        parts[:] = [{0: "a", 2: "c"}, own]

    monkeypatch.setattr(torch.distributed, "all_gather_object", gather)
    assert gathered({1: "b", 3: "d"}, 2) == {0: "a", 1: "b", 2: "c", 3: "d"}
    assert gathered({1: "b", 3: "d"}, 1) == {1: "b", 3: "d"}
