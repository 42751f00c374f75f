"""Consecutive windows of a text, which a recurrent network reads with the state of the windows before."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.optim import SGD
from torch.testing import assert_close

from firstlight.data.tables import FirstWindows, NextWindows
from firstlight.errors import UserError
from firstlight.generator.data import CharacterData
from firstlight.generator.lstm import LSTM
from firstlight.generator.module import Generation
from firstlight.generator.options import GeneratorConfig
from firstlight.lit.schedules import constant
from stand_ins import trainer_of

CONTEXT, SIZE = 5, 7
TEXT = "".join(f"{number:b}.\n\n" for number in range(83))
NAMES = "\n".join(f"n{number:b}" for number in range(83))


@pytest.fixture(params=["text", "lines"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> CharacterData:
    return opened(tmp_path, preparation=request.param)


def opened(folder: Path, **options: Any) -> CharacterData:
    file = folder / "text.txt"
    file.write_text(NAMES if options.get("preparation") == "lines" else TEXT)
    sizes = {"context_length": 16, "batch_size": SIZE, "validation_fraction": 0.3, "evaluation_batch_size": 1}
    return CharacterData(path=str(file), cache_dir=str(folder / "cache"), stateful_window=CONTEXT, **sizes | options)


def lstm(data: CharacterData) -> Generation:
    torch.manual_seed(1)
    data.ensure_setup()
    network = LSTM(
        GeneratorConfig(dim=6, num_heads=1, num_layers=2, context_length=16, dropout=0.0), data.tokenizer.vocab_size
    )
    return Generation.for_data(data, network=network, optimizer=partial(SGD, lr=2.0), schedule=constant)


def test_each_row_continues_its_row_of_the_batch_before_until_the_pass_ends(data: CharacterData) -> None:
    loader = data.train_dataloader()
    batches = [batch for _ in range(2) for batch in loader]
    assert [*map(type, batches)] == 2 * [FirstWindows, *[NextWindows] * (len(loader) - 1)]
    for before, after in pairwise(batches):
        assert after.token_ids.shape == (SIZE, CONTEXT)
        if isinstance(after, NextWindows):
            assert torch.equal(before.targets[:, -1], after.token_ids[:, 0])
    tokens = len(data.stream("train"))
    assert 0 <= tokens - 1 - len(loader) * SIZE * CONTEXT < SIZE * CONTEXT
    is_shuffled = not torch.equal(batches[0].token_ids, batches[len(loader)].token_ids)
    assert is_shuffled is (data.separator_id is not None)


def test_validation_reads_the_text_from_its_beginning_to_its_end(data: CharacterData) -> None:
    module = lstm(data)
    (metrics,) = trainer_of().validate(module, datamodule=data, verbose=False)
    ids = torch.from_numpy(data.ids(data.stream("validation"))).long()[None]
    with torch.inference_mode():
        losses = torch.nn.functional.cross_entropy(module.eval()(ids[:, :-1])[0], ids[0, 1:])
    assert_close(metrics["val/loss"], losses.item(), rtol=1e-5, atol=0)
    assert len(data.val_dataloader()) > 2


def test_training_carries_the_state_without_gradients_beside_that_of_validation(data: CharacterData) -> None:
    module = lstm(data)
    first, second = list(data.train_dataloader())[:2]
    module.training_step(first)["loss"].backward()
    module.measure(next(iter(data.val_dataloader())))
    logits = module.training_step(second)["logits"]
    whole = module(torch.cat((first.token_ids, second.token_ids), dim=1))
    assert_close(logits, whole[:, CONTEXT:])
    assert not any(each.requires_grad for each in module.carried[True].tensors or ())


def test_a_resumed_training_continues_with_the_state(data: CharacterData, tmp_path: Path) -> None:
    def trained(steps: int, start: Path | None = None) -> Generation:
        module = lstm(data)
        saved = ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=3)
        trainer = L.Trainer(max_steps=steps, callbacks=[saved], logger=False, accelerator="cpu", val_check_interval=2)
        trainer.fit(module, datamodule=data, ckpt_path=start)
        return module

    whole = trained(5)
    resumed = trained(5, tmp_path / "step=3.ckpt")
    assert all(map(torch.equal, whole.network.parameters(), resumed.network.parameters()))
    assert all(map(torch.equal, whole.carried[True].tensors or (), resumed.carried[True].tensors or ()))
    checkpoint = torch.load(tmp_path / "step=3.ckpt", weights_only=True)
    torch.save(checkpoint | {"carried_state": "none"}, tmp_path / "other.ckpt")
    with pytest.raises(UserError, match="the checkpoint has no state of the network"):
        trained(5, tmp_path / "other.ckpt")


def test_a_network_without_a_state_and_a_text_too_short_for_the_rows_are_refused(tmp_path: Path) -> None:
    data = opened(tmp_path)
    with pytest.raises(UserError, match=r"with_state; set it to null, or model\._target_="):
        trainer_of().validate(Generation.for_data(data, dim=8, num_heads=2), datamodule=data)
    with pytest.raises(UserError, match=r"data\.batch_size=997 requires 4986"):
        opened(tmp_path, batch_size=997).ensure_setup()
