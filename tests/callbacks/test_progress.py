import logging
import re

import pytest

from firstlight.callbacks import Accuracy, ProgressBar, ValidationLine, progress
from firstlight.lit import TrainingLoss


def lines(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == progress.__name__]


@pytest.fixture(autouse=True)
def information(caplog):
    with caplog.at_level(logging.INFO, progress.__name__):
        yield


def test_every_validation_is_one_line_of_its_metrics_in_the_order_of_their_names(bench, caplog) -> None:
    trainer = bench.fit(TrainingLoss(), Accuracy(), ValidationLine(), max_epochs=2, val_check_interval=3)
    shown = lines(caplog)
    moments = [("1", "3"), ("1", "6"), ("2", "9"), ("2", "12")]
    assert [line.split()[:4] for line in shown] == [["epoch", epoch, "step", step] for epoch, step in moments]
    assert not any("\n" in line for line in shown)
    found = re.findall(r"(\S+/\S+) (\S+)", shown[-1])
    names = ["train/loss", "val/accuracy", "val/loss", "val/macro_f1", "val/mean_absolute_error"]
    assert [name for name, _ in found] == names
    for name, value in found:
        assert float(value) == pytest.approx(trainer.callback_metrics[name].item(), abs=5e-5)


def test_a_training_loss_is_on_the_first_line_after_it_was_logged(bench, caplog) -> None:
    bench.fit(TrainingLoss(), ValidationLine(), log_every_n_steps=4, max_epochs=2, val_check_interval=2)
    steps = {int(line.split()[3]): "train/loss" in line for line in lines(caplog)}
    assert steps == {2: False, 4: True, 6: False, 8: True, 10: False, 12: True}


@pytest.mark.parametrize("stage", ["validate", "test"])
def test_an_evaluation_by_itself_writes_no_line(bench, caplog, stage: str) -> None:
    data = bench.data()
    getattr(bench.trainer(ValidationLine()), stage)(bench.module(data), datamodule=data, verbose=False)
    assert lines(caplog) == []


# --- the bar ---


def test_the_bar_is_silent_where_nobody_watches(bench, capsys) -> None:
    bar = ProgressBar()
    assert not bar.is_enabled
    bench.fit(bar, enable_progress_bar=True)
    assert capsys.readouterr().out == ""
