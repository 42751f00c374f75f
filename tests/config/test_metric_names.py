"""What a configuration measures is known before it runs: nothing more and nothing less."""

import json
from collections.abc import Callable

import pytest

from firstlight.config.checks import known_metrics
from firstlight.config.schema import compose
from wandb_files import OF_EVERY_TASK, Run


@OF_EVERY_TASK
def test_what_is_known_is_what_a_training_measures(task: str, logged: Callable[[str], Run]) -> None:
    history = (logged(task).folder / "history.jsonl").read_text().splitlines()
    measured = {name for line in history for name in json.loads(line) if name.startswith("val/")}
    assert known_metrics(compose([f"task={task}"])) == sorted(measured)


def test_bits_per_character_are_known_of_texts_whose_tokens_are_certain_characters() -> None:
    of = {tokens: known_metrics(compose(tokens.split())) for tokens in ("task=names", "task=review_text")}
    for task, known in of.items():
        assert known_metrics(compose([task, "tokenizer=subword"])) == known
    assert set(of["task=names"] or ()) - set(of["task=review_text"] or ()) == {"val/bits_per_character"}


def test_a_metric_that_is_switched_off_is_not_known_and_what_the_network_needs_is() -> None:
    without = known_metrics(compose(["task=translation", "callbacks.translations=null"]))
    assert without == ["val/accuracy", "val/loss", "val/perplexity"]
    assert known_metrics(compose(["task=sentiment", "callbacks=none"])) == ["val/accuracy", "val/loss", "val/macro_f1"]


@pytest.mark.parametrize("own", ["+callbacks.own._target_=my_callback.Own", "module._target_=my_module.Own"])
def test_nothing_is_known_of_what_somebody_else_measures(own: str) -> None:
    assert known_metrics(compose(["task=stars", own])) is None
