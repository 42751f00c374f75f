"""Lightning has the private attributes that are used. These tests fail with a version that changes them."""

from pathlib import Path
from typing import Any

from lightning.pytorch import LightningDataModule, Trainer
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.loggers import CSVLogger

from firstlight.lit.lightning_internals import data_of_fit, set_steps_done


class Data(LightningDataModule):
    def train_dataloader(self) -> Any:
        return BoringModel().train_dataloader()


class LogsItsTest(BoringModel):
    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.log("loss", self.step(batch))


def trainer_of(logger: Any) -> Trainer:
    quiet: dict[str, Any] = dict.fromkeys(
        ("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    return Trainer(accelerator="cpu", max_steps=1, limit_val_batches=0, limit_test_batches=1, logger=logger, **quiet)


def test_the_data_of_a_fit_is_the_data_module_that_it_was_given() -> None:
    data, trainer = Data(), trainer_of(False)
    trainer.fit(BoringModel(), datamodule=data)
    assert data_of_fit(trainer) is data


def test_the_steps_that_are_set_are_those_at_which_the_test_is_logged(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path, name="", version="")
    trainer, module = trainer_of(logger), LogsItsTest()
    trainer.fit(module)
    set_steps_done(trainer, 7)
    trainer.test(module, verbose=False)
    rows = (tmp_path / "metrics.csv").read_text().splitlines()
    assert rows[-1].split(",")[rows[0].split(",").index("step")] == "7"
