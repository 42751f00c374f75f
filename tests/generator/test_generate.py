"""Tests of generating text with a trained run, from the command line and from Python."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import firstlight
from docstring_examples import run_examples, without_an_example
from firstlight.commands import generate
from firstlight.generator.run import GeneratorRun
from firstlight.generator.writing import Writing
from tests_support import Scripts

CONTEXT = 13


@pytest.fixture(scope="module")
def runs(generators: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the trained runs. The cache no longer exists, and the scripts run in another folder."""
    kept = tmp_path_factory.mktemp("kept")
    shutil.copytree(generators / "runs", kept, dirs_exist_ok=True)
    for name in ("text.txt", "names.txt"):
        shutil.copy(generators / name, kept)
    return kept


@pytest.fixture
def write(runs: Path, scripts: Scripts) -> Callable[..., str]:
    """Return a function that runs the script successfully and returns its output."""

    def written(kind: str, *arguments: str) -> str:
        done = scripts.succeed("generate", str(runs / kind), *arguments)
        return done.stdout

    return written


def with_metadata(run: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Return a copy of a run with a changed metadata in its checkpoint."""
    shutil.copytree(run, target)
    path = target / "checkpoints" / "best.ckpt"
    content = torch.load(path, weights_only=True)
    change(content["firstlight"])
    torch.save(content, path)
    return target


# --- one text ---


def test_a_text_begins_with_the_prompt_and_a_seed_repeats_it(runs: Path, scripts: Scripts) -> None:
    arguments = [str(runs / "text"), "--prompt", "ka lo mi né r", "--tokens", "53"]  # as long as the context
    done = [scripts.run("generate", *arguments, *seed) for seed in ([], [], ["--seed", "3"], ["--seed", "3"])]
    texts = [each.stdout for each in done]
    for text in texts:
        assert text.startswith("ka lo mi né r")
        assert text.endswith("\n")
        assert len(text) == len("ka lo mi né r") + 53 + 1
    assert texts[2] == texts[3]
    assert len(set(texts)) == 3
    assert {each.stderr for each in done} == {""}


@pytest.mark.parametrize(
    ("kind", "arguments", "writing"),
    [
        ("pairs", [], {}),
        ("text", ["--temperature", "0.7", "--top-k", "5"], {"temperature": 0.7, "top_k": 5}),
        ("text", ["--top-p", "0.8", "--window", "slide"], {"top_p": 0.8, "window": "slide"}),
        ("pairs", ["--greedy", "--context-length", "5"], {"greedy": True, "context_length": 5}),
    ],
)
def test_python_and_the_command_line_agree(kind, arguments, writing, runs, write) -> None:
    found = write(kind, "--prompt", "né t€", "--tokens", "53", "--seed", "3", *arguments)
    generator = firstlight.load(runs / kind)
    assert generator.generate("né t€", tokens=53, seed=3, **writing) + "\n" == found


def test_the_window_matters_beyond_the_context_and_not_before(write: Callable[..., str]) -> None:
    arguments = ["--prompt", "ka", "--seed", "3", "--tokens", "97"]
    half, slide = (write("text", *arguments, "--window", window) for window in ("half", "slide"))
    assert half[: CONTEXT + 1] == slide[: CONTEXT + 1]
    assert half != slide


def test_letters_of_several_bytes_arrive_whole(runs: Path) -> None:
    """Check that each piece is text, and that all pieces together are the decoded ids."""
    generator = firstlight.load(runs / "pairs")
    prompt = generator.read("né", Writing())
    pieces = [piece for (piece,) in generator.stream(prompt, 1, Writing(tokens=211, seed=3, top_k=11))]
    assert len(pieces) == 211 + 1  # and what was kept back
    assert any(set("éö€") & set(piece) for piece in pieces)
    assert "né" + "".join(pieces) == generator.generate("né", tokens=211, seed=3, top_k=11)


def test_a_text_arrives_while_it_is_written_and_stops_when_nobody_reads(runs: Path, scripts: Scripts) -> None:
    process = scripts.start("generate", str(runs / "text"), "--prompt", "ka", "--tokens", "100000000", "--top-k", "1")
    try:
        assert process.stdout.read(97).startswith("ka")
        assert process.poll() is None
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.stderr.close()


# --- several texts ---


def test_several_texts_stand_under_their_numbers(runs: Path, write: Callable[..., str]) -> None:
    found = write("text", "--prompt", "ka", "--num-samples", "3", "--tokens", "23", "--seed", "3")
    texts = firstlight.load(runs / "text").generate_many("ka", 3, tokens=23, seed=3)
    assert len(set(texts)) == 3
    assert found == "".join(f"--- {number}\n{text}\n" for number, text in enumerate(texts, start=1))


@pytest.mark.parametrize("kind", ["text", "names"])
def test_texts_are_printed_while_the_rest_is_still_to_be_written(kind, runs, monkeypatch, capsys) -> None:
    generator = firstlight.load(runs / kind)
    printed_before: list[int] = []
    stream = GeneratorRun.stream

    def watched(*arguments: Any) -> Any:
        printed_before.append(len(capsys.readouterr().out.splitlines()))
        return stream(*arguments)

    monkeypatch.setattr(GeneratorRun, "stream", watched)
    monkeypatch.setattr(generate, "SAMPLES_AT_ONCE", 3)
    writing = Writing(tokens=5, seed=3)
    write = generate.write_documents if kind == "names" else generate.write_many
    write(generator, generator.read("ka", writing), writing, 7)
    assert printed_before[0] == 0
    assert min(printed_before[1:]) >= 3


# --- documents ---


def test_names_stand_one_a_line(write: Callable[..., str]) -> None:
    lines = write("names", "--prompt", "né", "--num-samples", "31", "--seed", "3").splitlines()
    assert len(lines) == 31
    assert len(set(lines)) > 11
    assert all(line.startswith("né") and "." not in line for line in lines)


def test_names_that_were_not_read_are_marked(runs: Path, scripts: Scripts, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "names", run)
    known = run / "training_documents.txt"
    assert len(known.read_text(encoding="utf-8").splitlines()) > 97
    arguments = [str(run), "--num-samples", "31", "--seed", "3", "--prompt", "ka"]

    known.unlink()
    done = scripts.run("generate", *arguments)
    names = done.stdout.splitlines()
    assert not any("*" in name for name in names)

    half = set(sorted(set(names))[::2])
    known.write_text("\n".join(half) + "\n", encoding="utf-8")
    done = scripts.run("generate", *arguments)
    assert done.stdout.splitlines() == [name if name in half else f"{name} *" for name in names]
    assert done.stderr == f"note: * not among the {len(half)} training documents\n"


# --- notes ---


@pytest.mark.parametrize(
    ("kind", "prompt", "note"),
    [
        ("text", "", "the prompt is empty; the text begins as a new line does"),
        ("names", "", "the prompt is empty; the text begins as a document does"),
        ("text", "kaβ loγβ", "tokens unknown to the run, read as \ufffd: 3"),
        ("text", "ka lo mi né ru sö", "the prompt has 17 tokens, but the network sees only the last 13"),
    ],
)
def test_what_was_done_to_a_prompt_is_said_apart_from_the_text(kind, prompt, note, runs, scripts, tmp_path, caplog):
    run = tmp_path / "run"
    shutil.copytree(runs / kind, run)
    (run / "training_documents.txt").unlink(missing_ok=True)
    done = scripts.succeed("generate", str(run), "--prompt", prompt, "--tokens", "23", "--seed", "3")
    assert done.stderr == f"note: {note}\n"
    text = firstlight.load(run).generate(prompt, tokens=23, seed=3)
    assert done.stdout == text + "\n"
    assert text.startswith(prompt)
    assert note in caplog.text  # Python says it too


def test_what_the_metadata_says_of_the_data_is_said_too(runs: Path, scripts: Scripts, tmp_path: Path) -> None:
    def of_plays_of_the_sample(metadata: dict[str, Any]) -> None:
        metadata["data_source"] = "sample"
        metadata["config"]["data"]["preparation"] = "plays"

    run = with_metadata(runs / "text", tmp_path / "run", of_plays_of_the_sample)
    done = scripts.succeed("generate", str(run), "--prompt", "ka\tlo…", "--tokens", "23", "--seed", "3")
    assert "note: the prompt was prepared like the plays: 'ka lo...'\n" in done.stderr
    assert "note: this run was trained on a GENERATED SAMPLE, not on real data\n" in done.stderr
    assert done.stdout.startswith("ka lo...")


@pytest.mark.parametrize("prompt", ["\n", "\x00", "--prompt", "👩‍👩‍👧", "ka \udcff"], ids=ascii)
@pytest.mark.parametrize("kind", ["text", "pairs"])
def test_an_odd_prompt_is_no_crash(kind: str, prompt: str, runs: Path, scripts: Scripts) -> None:
    """The last one is the character that Python substitutes for a byte that is not UTF-8."""
    done = scripts.run("generate", str(runs / kind), f"--prompt={prompt}", "--tokens", "7")
    assert done.returncode == (2 if "\udcff" in prompt else 0), done.stderr
    assert "Traceback" not in done.stderr


# --- mistakes ---

MISTAKES = {
    "--temperature 0": "temperature=0 must be above 0; for the most likely token, use --greedy\n",
    "--tokens 0": "tokens=0",
    "--num-samples 0": "num_samples=0",
    f"--num-samples {10**30}": f"num_samples={10**30} must be from 1 to 1,000,000",
    f"--tokens {10**30}": f"tokens={10**30} must be at least 1 and at most 100,000,000",
    "--context-length 17": "context_length=17 must lie between 1 and 13",
    "--seed 99999999999999999999": "seed=99999999999999999999",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: str, runs: Path, scripts: Scripts) -> None:
    error = scripts.refuse("generate", str(runs / "text"), "--prompt", "ka", *arguments.split())
    assert error.startswith(f"error: {MISTAKES[arguments]}")


def test_a_generator_does_not_predict(runs: Path, scripts: Scripts) -> None:
    error = scripts.refuse("predict", str(runs / "text"), "--text", "ka lo")
    assert "is a generator; use `python src/generate.py`, or name another run" in error


# --- objects ---


def test_a_loaded_generator_never_drops_anything_out(runs: Path) -> None:
    generator = firstlight.load(runs / "text")
    assert not any(module.training for module in generator.network.modules())
    state = torch.get_rng_state()
    generator.generate("ka", tokens=53, seed=3)
    assert torch.equal(torch.get_rng_state(), state)  # a user's random numbers are the user's


def test_every_example_of_a_generator_runs(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "logs").symlink_to(runs)
    for name in ("text.txt", "names.txt"):  # for the examples that read the data
        (tmp_path / name).symlink_to(runs / name)
    assert without_an_example(GeneratorRun) == []
    for run in (runs / "text", runs / "names"):
        assert run_examples(GeneratorRun, tmp_path, firstlight=firstlight, run=firstlight.load(run)) > 10
