"""Every mistake in the configuration is one line and exit code 2, answered before anything heavy is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests_support import ROOT, Scripts

TASKS = "choices, masked_reviews, movies, names, review_text, reviews, sentiment, shakespeare, similarity, stars, "
TASKS += "text, translation"
MISTAKES = {
    "dropuot=0.2": "dropuot is not a key of the configuration; did you mean dropout?",
    "+model.foo.bar=3": "model.foo is not a key of the configuration",
    "+trainer.precision=16": "Either remove + prefix: 'trainer.precision=16'",
    "task=sentimet": f"task=sentimet: no such choice; did you mean task=sentiment? The choices are {TASKS}",
    "experiment=post/starz": "experiment=post/starz: no such choice; did you mean experiment=post/stars? `--help",
    "epochs=0": "epochs=0 must be at least 1; to train nothing, set train=false",
    "task stars": "error: task: a value is missing; write task=…\n",
    "lr=0.1": "lr is not a key of the configuration; did you mean optimizer.lr?\n",
    "dropout=0,0.1": "dropout=0,0.1: several values require -m, which runs every combination; add -m, or quote",
    "data.class_names=good": "data.class_names=good: the value must be a list; write data.class_names=[good]\n",
    "data.label_column=[en]": "the value must not be a list; to give a text, write \"data.label_column='[en]'\"\n",
    "data.label_column=[a,b]": "error: data.label_column=[a,b]: name one column; docs/own-tasks.md is about texts with",
    "data.encoding=latin9x": "data.encoding=latin9x must be an encoding such as utf-8 or cp1252\n",
    "data=my.csv": "data=my.csv: no such choice; did you mean data.path=my.csv?",
    "model.dim=abc": "Value 'abc' of type 'str' could not be converted to Integer; write an integer, as in model.dim=3",
    "task=reviews,": "task=reviews,: a value must not end with a comma; write task=reviews",
    "data.path = my.csv": "data.path: a value is missing; write data.path=…, without spaces around the equals sign",
    "model.norm=both": "model.norm=both: Invalid value 'both', expected one of [post, pre, none]",
    "model.dim=50 model.num_heads=3": "model.dim=50 is not divisible by model.num_heads=3; set model.head_dim, or",
    "trainer.val_check_interval=0": "trainer.val_check_interval=0 must be a share of an epoch above 0, or a number",
    "trainer.check_val_every_n_epoch=0": "trainer.check_val_every_n_epoch=0 must be at least 1",
    "trainer.max_steps=0": "trainer.max_steps=0 would train nothing; set a larger number, or train=false",
    "trainer.limit_train_batches=0.0": "trainer.limit_train_batches=0 would train nothing",
    "trainer.max_epochs=1.5": "trainer.max_epochs=1.5 must be a whole number",
    "trainer.strategy=deepspeed_stage_3": "divides the parameters among processes, which firstlight does not support",
    "optimizer.lr=fast": "error: optimizer.lr=fast must be a number\n",
    "experiment=post/stars model=large": "because experiment=post/stars and its files set model.dim=32; leave it out",
    "optimized_metric=val/acuracy": "; did you mean optimized_metric=val/accuracy? There are ",
    "hydra.sweeper.pruner.warmup=3": "to pass it to the class, write +hydra.sweeper.pruner.warmup\n",
    "tags=['']": "tags='' must be a text of 1 to 64 printable characters",
    f"logger=wandb logger.wandb.group={'a' * 129}": "must be a text of 1 to 128 printable characters",
    "optimized_mode=up": "optimized_mode=up must be auto, min or max",
    "data.path=nowhere.csv": "data.path=nowhere.csv: the file or folder does not exist",
    "data.path=/dev/zero": "/dev/zero is a device, not a regular file; write its content to a file",
    "task=reviews": "data.path is not set; set it to a file of labelled texts, as in data.path=my.csv, or choose",
    "task=text": "data.path is not set; set it to a text file, as in data.path=my_novel.txt",
    "task=names tokenizer=word tokenizer.punctuation=false": "tokenizer.punctuation=false removes marks,",
    "tokenizer=char": "tokenizer=char requires a generator; use tokenizer=word or tokenizer=subword for reviews",
    "resume=nowhere": "nowhere is not a run folder: it has no metrics.json",
    "resume": "resume: a value is missing; write resume=…\n",
    "--task stars": "--task stars: train takes key=value, without dashes; write task=stars\n",
    "-model=small": "error: -model=small: train takes key=value, without dashes; write model=small\n",
    "modle=small": "error: modle is not a key of the configuration; did you mean model or module?\n",
    "data.num_workers=4": "error: data.num_workers is not a key of the configuration; `--help` lists the keys\n",
    "+callbacks=training_evaluation": "+callbacks=training_evaluation: a group needs no plus; write callbacks=training",
    "+callbacks.mine=x": "callbacks.mine=x names no class; set callbacks.mine._target_, or null for none",
    "data.evidence=true": "is not a key of the configuration; did you mean data.target_encoding?",
    "model=logistic data.target_encoding=true": "does not apply to model.architecture=logistic",
    "task=masked_reviews data.label_column=score": "data.label_column is not a key of the configuration",
}


def test_a_current_folder_whose_name_hydra_would_resolve_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "${oc.env:HOME}"
    folder.mkdir()
    done = Scripts(folder).run("train", "task=names")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"error: {folder}: the name of the current folder has ${{ in it" in done.stderr
    assert not any(folder.iterdir())


@pytest.mark.parametrize("argument", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(argument: str, scripts: Scripts) -> None:
    done = scripts.run("train", *argument.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert MISTAKES[argument] in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (scripts.folder / "logs").exists()


# `firstlight train`, which calls the same function as src/train.py, answers a wrong key and --help without torch in
# test_main.py::test_an_answer_does_not_wait_for_what_it_does_not_need.
def test_an_answer_does_not_wait_for_torch(scripts: Scripts) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(ROOT / "src" / "train.py"), "model.dim=50", "model.num_heads=3"],
        capture_output=True,
        text=True,
        cwd=scripts.folder,
        check=False,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert "hydra" in imported
    assert not imported & {"torch", "lightning", "torchmetrics", "datasets", "wandb", "matplotlib"}


def test_a_wrong_argument_of_a_target_is_one_line(scripts: Scripts, tiny_training: list[str]) -> None:
    done = scripts.run("train", *tiny_training, "+trainer.no_such_argument=1")
    assert done.returncode == 2
    assert "no_such_argument" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_option_of_a_reading_script_is_exit_code_2(scripts: Scripts) -> None:
    done = scripts.run("predict", "latest", "--txt", "good")
    assert done.returncode == 2
    assert "--text" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_check_that_fails_by_a_bug_ends_the_run_before_it_begins(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hydra would warn of the exception and train all the same."""
    monkeypatch.setattr("firstlight.config.checks.check_metric", lambda config: 1 / 0)
    done = scripts.run("train", "task=sentiment", "data.source=sample", "dry_run=true")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert not (scripts.folder / "logs").exists()
