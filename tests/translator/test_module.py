"""The losses of a translator, computed by hand."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.testing import assert_close

from firstlight.data.tables import IGNORED
from firstlight.lit.schedules import constant
from firstlight.translator.data import PairBatch
from firstlight.translator.module import Translation


class Fixed(nn.Module):
    """A network with constant scores, which records its inputs."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)
        self.given: tuple[Tensor, ...] = ()

    def forward(self, *given: Tensor) -> Tensor:
        self.given = given
        return self.logits


# Two sentences of 2 and of 1 token, counting the end, with a vocabulary of 4. At the padding after the second sentence,
# the network predicts one token with a high probability.
SHARES = torch.tensor(
    [[[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]], [[0.7, 0.1, 0.1, 0.1], [1e-9, 1e-9, 1.0, 1e-9]]]
)
TWO = PairBatch(
    source_ids=torch.tensor([[1, 2, 2], [2, 0, 0]]),
    source_mask=torch.tensor([[True, True, True], [True, False, False]]),
    token_ids=torch.tensor([[2, 1], [2, 0]]),
    targets=torch.tensor([[1, 3], [0, IGNORED]]),
    target_mask=torch.tensor([[True, True], [True, False]]),
    rows=torch.tensor([5, 3]),
    num_tokens=3,
)
BY_HAND = torch.tensor([[0.2, 0.25], [0.7, 1.0]]).log().neg()


def fixed(label_smoothing: float = 0.0) -> Translation:
    return Translation(Fixed(SHARES.log()), partial(SGD, lr=0.1), constant, label_smoothing=label_smoothing)


def test_the_training_loss_is_the_mean_over_what_is_to_be_written() -> None:
    found = fixed().training_step(TWO)
    assert_close(found["loss"], BY_HAND.sum() / 3)
    assert_close(found["logits"], SHARES.log())
    assert not found["logits"].requires_grad


@pytest.mark.parametrize("stage", ["val", "test"])
def test_an_evaluation_gives_the_loss_of_every_token_and_none_of_padding(stage: str, monkeypatch) -> None:
    module, logged = fixed(label_smoothing=0.3), []
    monkeypatch.setattr(module, "log", lambda name, loss, **options: logged.append((name, loss, options["batch_size"])))
    found = (module.validation_step if stage == "val" else module.test_step)(TWO)
    assert_close(found["token_losses"], BY_HAND)
    assert found["token_losses"][1, 1] == 0
    assert found["predicted"].tolist() == [[3, 0], [0, 2]]
    assert_close(found["loss"], BY_HAND.sum() / 3)
    assert [(name, count) for name, _, count in logged] == [(f"{stage}/loss", 3)]
    assert_close(logged[0][1], BY_HAND.sum() / 3)


def test_smoothing_gives_every_token_a_share_of_each_target_in_training() -> None:
    of_all = -SHARES.log().mean(dim=2)  # the loss of a uniform target
    smooth = 0.7 * BY_HAND + 0.3 * of_all
    assert_close(
        fixed(label_smoothing=0.3).training_step(TWO)["loss"], (smooth[0, 0] + smooth[0, 1] + smooth[1, 0]) / 3
    )


def test_the_network_is_given_the_source_and_what_stands_before_each_target_with_their_masks() -> None:
    module = fixed()
    module(TWO)
    expected = (TWO.source_ids, TWO.token_ids, TWO.source_mask, TWO.target_mask)
    assert len(module.network.given) == 4
    assert all(map(torch.equal, module.network.given, expected))
