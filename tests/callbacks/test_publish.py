import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning.pytorch import Callback
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from markdown import markdown as to_html
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from firstlight.callbacks.publish import markdown, publish_figure, publish_table

ROWS = [{"word": "good", "count": 3, "share": 0.51237}, {"word": "bad", "count": 0, "share": 1.0}]


# --- Markdown ---


def test_a_table_has_a_header_and_a_line_for_each_row() -> None:
    assert markdown(["word", "count", "share"], ROWS).splitlines() == [
        "| word | count | share |",
        "| --- | --- | --- |",
        "| good | 3 | 0.5124 |",
        "| bad | 0 | 1.0000 |",
    ]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.text("ab |\\\n\r\x85"), min_size=2, max_size=2), min_size=1, max_size=3))
def test_whatever_is_in_the_cells_the_table_keeps_its_shape(texts: list[list[str]]) -> None:
    columns = ["a", "p(yes|no\nor)"]
    lines = markdown(columns, [dict(zip(columns, row, strict=True)) for row in texts]).split("\n")
    assert len(lines) == 2 + len(texts)
    for line in lines:
        assert re.fullmatch(r"\|(([^|\\]|\\.)*\|){2}", line), "a bar in a cell has a backslash"


# --- to the loggers ---


@pytest.fixture
def board(tmp_path) -> TensorBoardLogger:
    return TensorBoardLogger(tmp_path, name="board", version="")


def read(board: TensorBoardLogger) -> EventAccumulator:
    board.experiment.flush()
    return EventAccumulator(board.log_dir, size_guidance={"images": 0, "tensors": 0}).Reload()


class Publishes(Callback):
    """Callback that publishes a figure and a table in each evaluation."""

    def on_validation_epoch_end(self, trainer, pl_module):
        publish_figure(trainer, "val/picture", Figure(figsize=(3, 2), dpi=100))
        publish_table(trainer, "val/words", ROWS)

    def on_test_epoch_end(self, trainer, pl_module):
        publish_figure(trainer, "test/picture", Figure(figsize=(3, 2), dpi=100))


def test_tensorboard_gets_a_figure_and_a_table_at_the_step_of_the_metrics(bench, board, tmp_path) -> None:
    data = bench.data()
    trainer = bench.fit(Publishes(), loggers=(board, CSVLogger(tmp_path)), data=data, limit_train_batches=3)
    trainer.test(trainer.lightning_module, datamodule=data, verbose=False)
    events = read(board)
    (picture,) = events.Images("val/picture")
    (loss,) = events.Scalars("val/loss")
    assert (picture.step, picture.width, picture.height) == (loss.step, 300, 200)
    assert picture.encoded_image_string.startswith(b"\x89PNG")
    (table,) = events.Tensors("val/words/text_summary")
    assert table.step == loss.step
    assert events.Images("test/picture")[0].step == events.Scalars("test/loss")[0].step
    text = table.tensor_proto.string_val[0].decode()
    assert text == markdown(["word", "count", "share"], ROWS)
    assert to_html(text, extensions=["tables"]).count("<tr>") == 3  # as TensorBoard renders it
