"""Tests of `explore` from the command line: figures, the page, and errors."""

import base64
import html
import re
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure

from firstlight.commands.explore import shows_sample
from firstlight.data.options import SourceKind
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.tokens import OPINION_NOTE, drawn_characters, drawn_words
from firstlight.lab.explore.catalog import choose, drawings, traits_of
from firstlight.lab.explore.data import statistics
from firstlight.lab.explore.page import Page
from firstlight.runs.folder import SAMPLE_NOTE
from firstlight.text.text_tokenizers import CharacterTokenizer, readable
from tests_support import Scripts, imported_by

Trained = Callable[[str], Path]
LINES = "".join(f"the {a} {b} sat on the {c}.\n\n" for a in ("big", "old") for b in ("cat", "dog") for c in "xyz") * 40
DATA = ["lengths", "labels", "vocabulary", "word_vectors"]
JUDGED = ["confusion_matrix", "probability_per_star", "predicted_per_class", "calibration", "attributions"]
PARTS = ["logit_lens", "occlusion", "logit_attribution", "ablation", "patching", "exciting_texts"]
OF_SENTIMENT = [*DATA, *JUDGED, "attention", "embeddings", *PARTS, "curves"]  # of one block


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of a character-level generator."""
    scripts = Scripts(tmp_path_factory.mktemp("generator"))
    (scripts.folder / "text.txt").write_text(LINES, encoding="utf-8")
    data = f"data.path={scripts.folder / 'text.txt'}"
    return scripts.train(
        "task=text", data, "model=tiny", "model.num_layers=2", "context_length=11", "trainer.max_steps=20",
        "trainer.log_every_n_steps=5",
        "trainer.accelerator=cpu", "data.batch_size=8",
    )  # fmt: skip


@pytest.fixture
def own(trained: Trained, tmp_path: Path) -> Path:
    """Return a copy of the sentiment run, which a test can change."""
    return Path(shutil.copytree(trained("sentiment"), tmp_path / "run"))


def drawn(run: Path) -> list[str]:
    return sorted(path.stem for path in (run / "figures").glob("*.png"))


def explored(scripts: Scripts, *arguments: str) -> str:
    """Run the script successfully, and return its standard error."""
    done = scripts.succeed("explore", *arguments)
    return done.stderr


# Figures that no other test of this file draws. test_traits_say_what_fits checks which figures a run has.
DRAWN_HERE = ["confusion_matrix", "probability_per_star", "predicted_per_class", "attention"]
DRAWN_HERE += ["position_similarity", "position_waves"]


@pytest.mark.parametrize(
    ("asked", "figures"),
    [
        (("--figures", *DRAWN_HERE), DRAWN_HERE),
        pytest.param((), OF_SENTIMENT, id="all", marks=pytest.mark.slow),  # 6 s
    ],
)
def test_the_figures_of_a_classifier_are_drawn_and_shown_on_one_page(asked, figures, own, scripts) -> None:
    notes = explored(scripts, str(own), *asked)
    assert drawn(own) == sorted(figures)
    for name in figures:
        svg = (own / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert ("expected at initialization: 0.693" in svg) == (name == "curves")
    page = (own / "figures" / "figures.html").read_text(encoding="utf-8")
    assert re.findall(r'<figure id="(\w+)">', page) == figures
    images = [base64.b64decode(content) for content in re.findall(r"base64,([^\"]+)\"", page)]
    assert [image.count(b"</svg>") for image in images] == [1] * len(figures)
    assert not re.search(r"(src|href)=\"(?!data:|#)", page), "the page needs nothing from elsewhere"
    for drawing in drawings():
        assert (drawing.caption in html.unescape(page)) == (drawing.name in figures)
    assert "GENERATED SAMPLE" not in page
    assert "the text is from the validation split" in notes
    assert notes.count("the text is from the validation split") == 1


@pytest.mark.parametrize(
    ("is_sample", "is_trained_on_sample", "note"),
    [(False, True, "The run was trained on a GENERATED SAMPLE"), (True, False, SAMPLE_NOTE), (False, False, None)],
)
def test_figures_of_the_training_and_of_other_data_are_marked_separately(
    is_sample: bool, is_trained_on_sample: bool, note: str | None, tmp_path: Path
) -> None:
    page = Page(tmp_path, "", "", is_sample=is_sample, is_trained_on_sample=is_trained_on_sample)
    marked = {}
    for drawing in (each for each in drawings() if each.name in ("confusion_matrix", "curves")):
        figure = Figure()
        figure.suptitle(drawing.name)
        page.add(drawing, Drawn(figure))
        marked[drawing.name] = "GENERATED SAMPLE" in (tmp_path / f"{drawing.name}.svg").read_text(encoding="utf-8")
    assert marked == {"confusion_matrix": is_sample, "curves": is_trained_on_sample}
    text = page.write().read_text(encoding="utf-8")
    assert text.count("Generated sample.") == sum(marked.values())
    assert ('<p class="sample">' in text) == (note is not None)
    assert note is None or note in text


def test_punctuation_is_named_among_characters_and_left_out_among_words() -> None:
    characters = CharacterTokenizer("\n !aé", None)
    found = drawn_characters(characters, lambda token_id: readable(characters, token_id))
    assert found.names == ["line break", "space", "exclamation mark", "a", "é"]
    assert drawn_words(["tea", "...", "don't", "!", "7"], str).ids == [0, 2, 4]


def test_a_figure_for_lessons_is_drawn_only_by_name() -> None:
    traits = frozenset({"run", "attention", "encoded", "layers"})
    names = [each.name for each in choose([], traits, "a run")]
    assert "curves" in names
    assert not {"position_waves", "position_similarity"} & set(names)
    assert [each.name for each in choose(["position_waves"], traits, "a run")] == ["position_waves"]


@pytest.mark.parametrize("where", ["/home/ann/plays", "/home/ann/plays.txt", "ann/plays"])
def test_no_heading_has_the_folders_above_the_data(where: str) -> None:
    data = SimpleNamespace(complete_text=lambda: "To be.", source=SimpleNamespace(where=where))
    assert statistics(SimpleNamespace(data=data)).figure.get_suptitle() == f"Statistics of {Path(where).name}"


@pytest.mark.parametrize(("words", "notes"), [(["tea", "great"], [OPINION_NOTE]), (["tea", "wren"], [])])
def test_positive_and_negative_words_are_explained_where_they_are(words: list[str], notes: list[str]) -> None:
    assert drawn_words(words, str).notes == notes


def test_figures_can_be_chosen_and_a_text_given(own: Path, scripts: Scripts) -> None:
    explored(scripts, str(own), "--figures", "attributions", "attention_heads", "--text", "good " * 40)
    assert drawn(own) == ["attention_heads", "attributions"]
    page = (own / "figures" / "figures.html").read_text(encoding="utf-8")
    assert page.count("the text has 40 tokens; the network reads 23 of them") == 2
    assert re.findall(r'<figure id="(\w+)">', page) == ["attributions", "attention_heads"], "in the order of asking"


OF_TEXT = ["loss_per_position", "next_token", "passages", "statistics", "surprise"]


def test_the_figures_that_only_a_generator_has_are_drawn(generator: Path, scripts: Scripts) -> None:
    explored(scripts, str(generator), "--figures", *OF_TEXT)
    assert drawn(generator) == OF_TEXT


def lose_data(run: Path, reviews: Path) -> None:
    """Change the config of a run so that its data is missing."""
    import torch

    for path in (run / "checkpoints").glob("*.ckpt"):
        checkpoint = torch.load(path, weights_only=True)
        checkpoint["firstlight"]["config"]["data"]["path"] = str(reviews / "nowhere.csv")
        torch.save(checkpoint, path)


@pytest.mark.slow  # 1.2 s; the figures of a run are drawn above
def test_where_the_data_is_gone_that_is_said_and_the_others_are_drawn(own, scripts, reviews_folder) -> None:
    lose_data(own, reviews_folder)
    notes = explored(scripts, str(own), "--figures", "lengths", "calibration", "attributions")
    assert drawn(own) == ["attributions"]
    assert re.search(r"note: not drawn: lengths, calibration: .*nowhere\.csv: the file .* does not exist", notes)
    assert "the data is not found, so the text is made up" in notes
    page = (own / "figures" / "figures.html").read_text(encoding="utf-8")
    assert "Not drawn" in page
    assert page.count("<li>") == page.count("lengths, calibration: ") == 1
    assert f"{own.parent}/" not in page, "the page names no folder of this machine"
    explored(scripts, str(own), "--figures", "lengths", "--data.path", str(reviews_folder))
    assert "lengths" in drawn(own)


@pytest.mark.parametrize("trained_on", ["sample", "local"])
@pytest.mark.parametrize("drawn", ["sample", "local", "missing", None])
def test_the_data_that_is_drawn_decides_whether_figures_are_marked(trained_on: str, drawn: str | None) -> None:
    class Subject:
        data_changes = DataChanges() if drawn is None else DataChanges(path="a.csv")
        is_sample = trained_on == "sample"

        @property
        def data(self) -> Any:
            if drawn == "missing":
                raise NothingToDrawError("the data is not found")
            return SimpleNamespace(source=SimpleNamespace(kind=SourceKind(drawn)))

    shown = trained_on if drawn in ("missing", None) else drawn
    assert shows_sample(Subject()) == (shown == "sample")


def test_labels_are_read_as_evaluate_reads_them(own: Path, scripts: Scripts, tmp_path: Path) -> None:
    rows = [f"It is {word} and works every day,{label}" for label, word in ((1, "bad"), (2, "good")) for _ in range(40)]
    (tmp_path / "two.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    arguments = (str(own), "--data.path", str(tmp_path / "two.csv"))
    doubt = scripts.run("evaluate", *arguments).stderr.removeprefix("error: ")
    assert doubt.startswith(str(tmp_path / "two.csv"))
    error = scripts.refuse("explore", *arguments, "--figures", "confusion_matrix")
    assert error == f"error: nothing can be drawn: {doubt}"


def test_where_nothing_can_be_drawn_that_is_an_error(own: Path, scripts: Scripts, reviews_folder: Path) -> None:
    assert "--text is empty; write a text, or omit the option" in scripts.refuse("explore", str(own), "--text", " ")
    lose_data(own, reviews_folder)
    assert "nothing can be drawn: " in scripts.refuse("explore", str(own), "--figures", "lengths")
    (own / "history.jsonl").write_text('{"step": 1, "epoch": 0, "seconds": 1.0, "val/speed": 2.0}\n')
    assert "history.jsonl is missing or contains no loss" in scripts.refuse("explore", str(own), "--figures", "curves")
    (own / "history.jsonl").unlink()
    assert "history.jsonl is missing" in scripts.refuse("explore", str(own), "--figures", "curves")


def test_the_data_of_a_task_is_drawn_without_a_run(scripts: Scripts, reviews_folder: Path) -> None:
    explored(scripts, "--task", "stars", "--data.path", str(reviews_folder))
    folder = scripts.folder / "logs" / "stars"
    assert drawn(folder) == sorted(DATA)
    assert "GENERATED SAMPLE" not in (folder / "figures" / "figures.html").read_text(encoding="utf-8")


def test_another_run_to_compare_with_is_another_run_of_the_same_kind(
    own: Path, generator: Path, scripts: Scripts
) -> None:
    error = scripts.refuse("explore", str(generator), "--compare", str(own))
    assert f"{own} is a classifier, and the run is a generator; name runs of one kind" in error
    error = scripts.refuse("explore", str(generator), "--compare", str(generator))
    assert "this is the run itself; name another run" in error


def test_a_folder_without_a_config_and_a_baselines_are_refused(own: Path, scripts: Scripts) -> None:
    (own / "config.yaml").write_text("data: {path: a}\n")
    assert "is a baseline of `python src/baseline.py`, which has no network" in scripts.refuse("explore", str(own))
    (own / "config.yaml").unlink()
    assert "config.yaml is missing or broken" in scripts.refuse("explore", str(own))


def test_a_mistake_is_answered_before_anything_heavy_is_imported(trained: Trained) -> None:
    code = (
        "import sys; sys.argv = ['explore.py', {!r}, '--figures', 'surprise']\n"
        "from firstlight.commands.explore import main\n"
        "try: main()\n"
        "except ValueError as error: assert '--figures surprise does not apply' in str(error), error\n"
        "else: raise AssertionError('no error')"
    )
    imported = imported_by(code.format(str(trained("sentiment"))))
    assert not imported & {"torch", "matplotlib", "lightning", "datasets"}


def test_every_figure_of_the_catalog_has_its_function_and_a_caption_that_says_more() -> None:
    names = [each.name for each in drawings()]
    assert len(set(names)) == len(names)
    for drawing in drawings():
        assert callable(getattr(import_module(drawing.module), drawing.name))
        assert len(drawing.caption) > 80
        assert (" stars" in drawing.caption) == (drawing.name == "probability_per_star"), "true of any classes"


@pytest.mark.parametrize(
    ("model", "data", "expected", "missing"),
    [
        ({"pooling": "mean", "architecture": "bag_of_words", "positions": "none", "causal": False},
         {"text_column": "text", "labels": "stars"},
         {"classifier", "embedding", "reviews", "stars", "words"}, {"attention", "encoded"}),
        ({"pooling": "max", "architecture": "transformer", "positions": "relative", "num_layers": 1},
         {"text_column": "text", "labels": "binary"},
         {"classifier", "attention", "stars"}, {"encoded", "layers"}),
        ({"positions": "sinusoidal", "causal": True, "num_loops": 1, "num_layers": 3}, {"text_column": "text"},
         {"generator", "reviews", "words", "attention", "layers", "encoded", "embedding"},
         {"characters", "labels", "stars", "classifier"}),
        ({"positions": "none", "causal": False, "num_layers": 1, "num_decoder_layers": None}, {"source_column": "en"},
         {"translator", "pairs", "layers"}, {"encoded", "generator", "words"}),
    ],
)  # fmt: skip
def test_traits_say_what_fits(model: dict, data: dict, expected: set[str], missing: set[str]) -> None:
    found = traits_of({"model": model, "data": data}, is_run=True)
    assert found >= expected | {"run"}
    assert not found & missing
    assert "run" not in traits_of({"model": model, "data": data}, is_run=False)
