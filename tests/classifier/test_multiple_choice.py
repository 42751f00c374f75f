"""Multiple choice: training on a file with a column for each answer, and everything that reads such a run."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

import firstlight
from browser import a_browser
from firstlight.classifier.baseline import fit
from firstlight.classifier.panel import ClassifierPanel
from firstlight.data import ReviewData
from firstlight.errors import UserError
from firstlight.files.rows import write_rows
from firstlight.kind.panel import Inputs
from firstlight.kind.subject import Subject
from firstlight.lab.explore.data import lengths, vocabulary
from firstlight.lab.playground.page import exported_page
from firstlight.lit import Classification
from tests_support import Scripts, read_csv, write_lines

DATA = ["data.text_column=[who,where]", "data.choice_columns=[first,second,third]", "data.label_column=right"]
ANSWERS = ("first", "second", "third")
PLACES = {"kitchen": "cooks", "pool": "swims", "stage": "sings", "bed": "sleeps", "desk": "writes"}


def rows(count: int, seed: int) -> list[dict[str, object]]:
    """Return rows with a context in two columns, three answers, and the number of the correct one."""
    chosen = random.Random(seed)
    found = []
    for i in range(count):
        places = chosen.sample(sorted(PLACES), 3)
        answers = {name: f"He {PLACES[place]}." for name, place in zip(ANSWERS, places, strict=True)}
        context = {"who": f"A man, number {i}.", "where": f"He is at the {places[i % 3]}."}
        found.append(context | answers | {"right": i % 3})
    return found


def review_data(path: Path) -> ReviewData:
    """Return the data module of a file with these rows."""
    columns: dict[str, Any] = {"text_column": ["who", "where"], "choice_columns": ["first", "second", "third"]}
    return ReviewData(
        path=str(path), label_column="right", labels="classes", cache_dir=str(path.parent / "cache"), **columns
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tiny_training: list[str]) -> tuple[Scripts, Path]:
    """Return a folder of scripts and a run that was trained on a file of answers."""
    scripts = Scripts(tmp_path_factory.mktemp("answers"))
    write_lines(scripts.folder / "train.jsonl", rows(101, seed=1))
    own = [each for each in tiny_training if not each.startswith(("data.path=", "context_length="))]
    return scripts, scripts.train("task=choices", "data.path=train.jsonl", *DATA, "context_length=13", *own)


def test_the_order_of_the_answers_does_not_change_their_probabilities(home: tuple[Scripts, Path]) -> None:
    run = firstlight.load(home[1])
    assert run.class_names == ["first", "second", "third"]
    context, answers = "He is at the pool.", ("He swims.", "He sings all night long.", "He writes.")
    first, other, joined, long = run.predict_many(
        [(context, *answers), (context, *answers[::-1]), " ||| ".join((context, *answers)), (context * 9, *answers)]
    )
    assert list(first.probabilities.values()) == pytest.approx(list(other.probabilities.values())[::-1], abs=1e-6)
    assert first == joined
    assert sum(long.probabilities.values()) == pytest.approx(1)
    assert len({round(share, 4) for share in first.probabilities.values()}) == 3
    alone = run.predict(("A man.", context, *answers))  # the context in two texts, as in the training
    assert alone == run.predict((f"A man. {context}", *answers))
    with pytest.raises(UserError, match=r"chooses among 3 answers .* a row has the texts .*; give a tuple"):
        run.predict((context, *answers[:2]))


def test_a_file_is_predicted_by_the_columns_of_the_training(home: tuple[Scripts, Path]) -> None:
    scripts, run = home
    new = rows(7, seed=2)
    write_rows(scripts.folder / "new.csv", [dict(reversed(row.items())) for row in new])
    scripts.succeed("predict", str(run), "--input", "new.csv", "--output", "out.csv")
    labels = [line["label"] for line in read_csv(scripts.folder / "out.csv")]
    columns = ("who", "where", "first", "second", "third")
    texts = [tuple(str(row[name]) for name in columns) for row in new]
    assert labels == [each.label for each in firstlight.load(run).predict_many(texts)]


def test_other_answers_are_evaluated_and_their_columns_are_written(home: tuple[Scripts, Path]) -> None:
    scripts, run = home
    names = {"who": "q", "where": "r", "first": "a", "second": "b", "third": "c"}
    others = [{names.get(name, name): value for name, value in row.items()} for row in rows(11, seed=3)]
    write_lines(scripts.folder / "other.jsonl", [row | {"right": int(str(row["right"])) + 1} for row in others])
    asked = ["evaluate", str(run), "--data.path", "other.jsonl", "--data.text-column", "q,r"]
    scripts.succeed(*asked, "--data.choice-columns", "a,b,c", "--data.lowest-label", "1")
    (table,) = (run / "evaluate").glob("other-*/predictions.csv")
    found = read_csv(table)
    for line, row in zip(found, others, strict=True):
        assert [line[name] for name in names.values()] == [row[name] for name in names.values()]
    assert [line["label"] for line in found] == [ANSWERS[i % 3] for i in range(11)]
    for columns, message in {
        "a,b": "--data.choice-columns a,b: the run chooses among 3 answers; name as many columns",
        "a,b,nothing": "other.jsonl:1: the column 'nothing' does not exist; the columns are q, r, a, b, c, right; "
        "set --data.choice-columns",
    }.items():
        assert message in scripts.refuse(*asked, "--data.choice-columns", columns)


def test_figures_of_one_text_do_not_apply_and_the_others_are_drawn(home, monkeypatch) -> None:
    scripts, run = home
    for name in ("attention", "attributions"):
        error = scripts.refuse("explore", str(run), "--figures", name)
        assert f"--figures {name} does not apply to this run, a classifier (transformer); choose from" in error
    monkeypatch.chdir(scripts.folder)
    loaded = firstlight.load(run)
    subject = Subject(loaded.config, loaded)
    for draw in (lengths, vocabulary):
        assert draw(subject).figure.axes


def test_the_playground_shows_the_probability_of_each_answer(home: tuple[Scripts, Path]) -> None:
    panel = ClassifierPanel(firstlight.load(home[1]))
    panel.warm_up()
    assert [example.count("|||") for example in panel.examples()] == [3, 3]
    notice = "Type a context and 3 answers with ||| between them."
    assert panel.answer(Inputs({"text": "He is at the pool. ||| He swims."}))["notice"] == notice
    shown = panel.answer(Inputs({"text": "He is at the pool. ||| He swims. ||| He & she sing. ||| He writes."}))
    assert shown["classes"]["names"] == ["1. He swims.", "2. He & she sing.", "3. He writes."]
    assert sum(shown["classes"]["shares"]) == pytest.approx(1)


def test_an_exported_page_computes_the_probability_of_each_answer(home: tuple[Scripts, Path]) -> None:
    panel = ClassifierPanel(firstlight.load(home[1]))
    text = "A man. ||| At a pool. ||| He swims. ||| Sings. ||| He writes."
    compute = "(text) => computedAnswer(0, { text }, new AbortController().signal)"
    with a_browser() as browser:
        page = browser.new_page()
        page.set_content(exported_page([panel]))
        expected = page.evaluate("shownAnswer", panel.answer(Inputs({"text": text})))
        found, refused = (page.evaluate(compute, each) for each in (text, "He is at the pool. ||| He swims."))
    shares = re.compile(r'class="share">([^<]*)<')
    assert shares.findall(found) == shares.findall(expected)
    assert "Type a context and 3 answers with ||| between them." in refused


def test_the_baseline_reads_the_answers_without_their_contexts(tmp_path: Path) -> None:
    """The words of the correct answers differ in this file, as they do in some that people wrote."""
    known = rows(60, seed=6)
    for row in known:
        column = ANSWERS[int(str(row["right"]))]
        row[column] = f"{row[column]} Well done."
    write_lines(tmp_path / "known.jsonl", known)
    data = review_data(tmp_path / "known.jsonl")
    data.ensure_setup()
    fitted = fit(data, "val/loss", tmp_path)
    assert fitted.validation["val/accuracy"] == 1
    assert fitted.references()["chance"] == {"val/accuracy": 1 / 3, "test/accuracy": 1 / 3}


def test_what_does_not_apply_to_answers_is_one_line(home: tuple[Scripts, Path]) -> None:
    scripts, _ = home
    data = review_data(scripts.folder / "train.jsonl")
    data.ensure_setup()
    with pytest.raises(UserError, match=r"data\.choice_columns requires the argument choices, which L"):
        Classification.for_data(data, architecture="logistic")


def test_metadata_that_contradicts_itself_is_one_line(home: tuple[Scripts, Path]) -> None:
    run = firstlight.load(home[1])
    names = ["first", "second", "third"]
    lacking = {name: value for name, value in run.metadata.items() if name not in ("choices", "class_names")}
    for metadata in ({"choices": True, "class_names": names[:2]}, {"class_names": names}):
        with pytest.raises(UserError, match=r"data\.choice_columns does not fit the network of the metadata"):
            type(run)(run.folder, run.checkpoint, run.network, lacking | metadata, run.tokenizer)
    check = Classification.metadata_checks["config.data.choice_columns"]
    assert [check(value) for value in (None, ["a", "b"], ["a"], "ab", [1, 2])] == [True, True, False, False, False]


def test_an_empty_answer_is_one_line(tmp_path: Path) -> None:
    first, second, *others = rows(20, seed=4)
    write_lines(tmp_path / "broken.jsonl", [first, second | {"second": " "}, *others])
    with pytest.raises(UserError, match=r"broken.jsonl:2: the answer in column second is empty; fill it in, or remove"):
        review_data(tmp_path / "broken.jsonl").prepare_data()


def test_the_correct_answer_must_not_always_be_in_the_same_column(tmp_path: Path) -> None:
    write_lines(tmp_path / "same.jsonl", [row | {"right": "second"} for row in rows(40, seed=5)])
    data = review_data(tmp_path / "same.jsonl")
    with pytest.raises(UserError, match=r"every training row is second .*; write the answers of each row in a"):
        data.ensure_setup()
