"""What one run prints, as a terminal of some columns shows it at the end."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from firstlight.training.terminal import few_rows
from tests_support import ROOT, Scripts, rendered

NUMBER = r"\d+\.\d{4}"
TIME = r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d-\d{6}"
COMMANDS = ("evaluate", "predict", "generate", "explore", "playground", "report")  # which read a run
QUICK = ["model=tiny", "threads=1", "trainer.accelerator=cpu", "trainer.log_every_n_steps=1", "logger=none"]


def names(scripts: Scripts) -> list[str]:
    """Overrides of a training on some names with three validations and three samples."""
    lines = [first + middle + last for first in "bdfgklmnprst" for middle in "aeiou" for last in ("n", "ra", "lo")]
    (scripts.folder / "names.txt").write_text("\n".join(lines))
    return [
        *("task=names", "data.path=names.txt", *QUICK, "data.batch_size=8", "context_length=8"),
        *("trainer.max_steps=9", "trainer.val_check_interval=3", "callbacks.text_samples.num_tokens=12"),
        "callbacks.progress.refresh_rate=1",
    ]


def assert_in_order(lines: list[str], patterns: list[str]) -> None:
    """Assert that some line matches each pattern, in this order."""
    rest = iter(lines)
    missing = [pattern for pattern in patterns if not any(re.fullmatch(pattern, line) for line in rest)]
    assert not missing, "\n".join([*missing, "are not in:", *lines])


def test_a_training_of_a_generator_shows_each_line_and_each_sample_once(scripts: Scripts) -> None:
    done = scripts.run_in_terminal("train", *names(scripts), columns=80)
    assert done.returncode == 0, done.stdout
    assert re.search(r"epoch 1 .*step \d/9 .*loss \d\.\d{3}", done.stdout)
    lines = rendered(done.stdout, 80)
    run = rf"logs/names/runs/{TIME}"
    assert_in_order(
        lines,
        [
            *(r"task     names", r"data     names\.txt", r"tokens   train \d+  validation \d+  test \d+"),
            *(r"network  generator  tiny  [\d,]+ parameters", r"loss     expected at initialization: 2\.\d{3}"),
            *(r"device   cpu  1 thread", rf"run      new  {run}"),
            *(rf"epoch 1  step {step}  \d+ s  val/loss {NUMBER}  train/loss {NUMBER}.*" for step in (3, 6, 9)),
            r"names, tiny, [\d,]+ parameters; the best checkpoint \(step [369]\):",
            *(rf"│ {metric} +│ +{NUMBER} │ +{NUMBER} │" for metric in ("accuracy", "loss", "perplexity")),
            rf"The run is in {run}\. To continue:",
            rf"  python src/generate\.py {run}.*",
            *(rf"  python src/{name}\.py {run}" for name in ("explore", "playground")),
            r"  python src/report\.py logs",
        ],
    )
    assert sum(line.startswith("epoch 1") for line in lines) == 3
    shown = " ".join(line.removeprefix("  │") for line in lines if line.startswith("  │"))
    files = sorted((scripts.newest_run() / "samples").glob("*.txt"))
    assert len(files) == 3
    assert shown.replace("(empty)", "").split() == " ".join(file.read_text() for file in files).split()


def test_ctrl_c_leaves_no_part_of_the_bar_and_no_color_is_obeyed(scripts: Scripts, tiny_training: list[str]) -> None:
    training = [*tiny_training, "threads=1", "trainer.max_epochs=1000", "logger=none", "callbacks.early_stopping=null"]
    done = scripts.run_in_terminal(
        *("train", *training), columns=80, environ={"NO_COLOR": "1"}, interrupt=lambda shown: b"epoch 3/1000" in shown
    )
    assert done.returncode == 130
    assert "^C" in done.stdout
    assert not re.search(r"\x1b\[[\d;]*3[0-8]", done.stdout)  # no color
    lines = rendered(done.stdout, 80)
    validation = rf"epoch \d+  step \d+  \d+ s  val/accuracy {NUMBER}  val/loss {NUMBER}  train/loss {NUMBER}"
    assert_in_order(
        lines,
        [
            *(r"task     sentiment", rf"run      new  logs/sentiment/runs/{TIME}", validation),
            "Stopping after this step; press Ctrl-C again to stop at once",
            r"Interrupted at step \d+\. To resume:",
            rf"  python src/train\.py resume=logs/sentiment/runs/{TIME}",
        ],
    )
    assert not any("━" in line for line in lines), "a part of the bar"


def test_quiet_prints_the_folder_alone(scripts: Scripts, tiny_training: list[str]) -> None:
    done = scripts.run("train", *tiny_training, "trainer.max_steps=2", "logger=none", "quiet=true")
    assert done.stderr == ""
    assert done.stdout == f"{scripts.newest_run().relative_to(scripts.folder)}\n"
    assert "epoch 1  step 2" in (scripts.newest_run() / "train.log").read_text()


def test_the_modules_are_printed_when_asked_for(scripts: Scripts, tiny_training: list[str]) -> None:
    training = [*tiny_training, "trainer.max_steps=1", "logger=none", "test=false", "trainer.limit_val_batches=1"]
    asked = scripts.run("train", *training, "callbacks=model_summary").stdout
    assert "│ network.blocks " in asked
    assert "Trainable params" in asked


def test_without_a_terminal_there_is_no_color_and_no_bar_and_the_commands_at_the_end_work(scripts: Scripts) -> None:
    done = scripts.run("train", *names(scripts), "test=false")
    assert "\x1b" not in done.stdout + done.stderr
    assert "epoch 1/" not in done.stdout
    assert done.stderr == ""
    commands = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith("  python src/")]
    assert [Path(command[1]).stem for command in commands] == ["generate", "explore", "playground", "report"]
    for command in (commands[0], commands[-1]):
        assert scripts.run(Path(command[1]).stem, *command[2:]).returncode == 0


def test_a_run_on_the_sample_says_so_at_the_start_and_at_the_end(scripts: Scripts, small_sample: str) -> None:
    training = ["trainer.max_steps=1", "test=false", small_sample, "resume=auto"]  # without data or a network
    done = scripts.run("train", *QUICK, *training)
    lines = done.stdout.splitlines()
    assert "run      new  " in done.stdout
    assert "starts again" not in done.stdout  # that is said of an unfinished run
    *before, end = (number for number, line in enumerate(lines) if "GENERATED SAMPLE" in line)
    assert any(lines[number].startswith("data     ") for number in before)
    assert lines[end] == "Measured on a GENERATED SAMPLE: the numbers say nothing about real data."
    assert lines[end + 1].startswith("The run is in ")
    record = json.loads((scripts.newest_run() / "metrics.json").read_text())
    assert record["data"]["source"] == "sample"
    assert not any(name.startswith("test/") for name in record["metrics"])


def test_a_wrong_column_is_one_line_and_leaves_no_folder(scripts: Scripts, tiny_training: list[str]) -> None:
    (scripts.folder / "given.csv").write_text("text,label\n" + "good,5\nbad,1\n" * 9)
    error = scripts.refuse("train", *tiny_training, "data.path=given.csv", "data.text_column=txet")
    assert "the column 'txet' does not exist; the columns are text, label; set data." in error
    assert not list((scripts.folder / "logs").glob("*/runs/*"))


def test_a_mistake_in_a_folder_with_other_files_leaves_them(scripts: Scripts, tiny_training: list[str]) -> None:
    (scripts.folder / "mine").mkdir()
    (scripts.folder / "mine" / "notes.txt").write_text("mine")
    scripts.refuse("train", *tiny_training, "data.text_column=txet", "hydra.run.dir=mine")
    assert (scripts.folder / "mine" / "notes.txt").read_text() == "mine"
    assert json.loads((scripts.folder / "mine" / "metrics.json").read_text())["status"] == "failed"


def test_a_run_that_does_not_exist_is_reported_before_torch_is_imported(tmp_path: Path) -> None:
    code = f"""
import runpy, sys
for name in {COMMANDS}:
    sys.argv = [f"{ROOT / "src"}/{{name}}.py", "latset", *(["--text", "x"] if name == "predict" else [])]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as error:
        print(name, error.code, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines() == [f"{name} 2 False" for name in COMMANDS]
    assert [line.partition("latset")[0] for line in done.stderr.splitlines()] == ["error: "] * len(COMMANDS)


def test_a_split_with_few_texts_is_noted_with_what_one_text_means() -> None:
    rows = {"train": 48, "validation": 200, "test": 6}
    assert few_rows({"rows": rows, "classes": ["a", "b"]}) == [
        "test has 6 texts: one text is 17 points of accuracy (95% interval: ± 40)"
    ]
    assert few_rows({"rows": rows}) == ["test has 6 texts: one text is 17% of each metric"]
    assert few_rows({"tokens": {"train": 40}}) == []
