"""Checks of a network on one batch: what it reads, what it must not read, and whether all of it is trained."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from firstlight.data.tables import IGNORED
from firstlight.errors import reason
from firstlight.lit.losses import expected_loss
from firstlight.lit.training import Training

MOST_ROWS = 8  # of the batch
MORE_PADDING = 3  # tokens
TOO_LARGE = 3  # times the loss of even probabilities
NOISE = 0.1  # standard deviation
ALMOST = 1e-4  # largest difference of logits that counts as rounding
FIRST_STEPS = 3  # in which each weight must get a gradient; an output projection of zeros stops it in the first step
MOST_NAMED = 3  # weights in a line


Checking = Callable[[Training, Any], tuple[bool | None, str]]  # a check of a module on a batch


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        name: What was checked.
        passed: Whether the network passed; None if the check does not apply to it.
        found: What was found, in one line.
    """

    name: str
    passed: bool | None
    found: str


def audit(module: Training, batch: Any, *, compiled: bool = True) -> list[Check]:
    """Return the results of all checks of a module's network on a batch of its data.

    Dropout is off except where it is checked. The weights do not change.

    Args:
        module: The module, with its network on the device of the batch.
        batch: A batch of the data module, with targets. Only its first rows are used.
        compiled: Whether the network is exported and compiled too, which takes some seconds.
    """
    batch = first_rows(batch, MOST_ROWS)
    stirred = _stirred(module)
    of_start: list[Checking] = [_loss, _gradients]
    of_structure: list[Checking] = [_evaluation, _batch, _padding, _future, _cache]
    of_structure += [_export, _compile] if compiled else []
    found = [_checked(check, module, batch) for check in of_start]
    return found + [_checked(check, stirred, batch) for check in of_structure]


def _checked(check: Checking, module: Training, batch: Any) -> Check:
    name = check.__name__.strip("_")
    was_training = module.training
    module.eval()
    try:
        return Check(name, *check(module, batch))
    except Exception as error:  # noqa: BLE001 (the network is the user's, and may raise anything; the line shows it)
        return Check(name, False, f"{type(error).__name__}: {reason(error)}")
    finally:
        module.train(was_training)


def _stirred(module: Training) -> Training:
    """Return a copy with noise in all weights. Weights that start at zero would hide what a network reads."""
    module = copy.deepcopy(module)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in module.network.parameters():
            weight.add_(NOISE * torch.randn(weight.shape, generator=generator).to(weight))
    return module


def first_rows(batch: Any, count: int) -> Any:
    """Return the first rows of a batch, a NamedTuple whose tensors have the rows as their first dimension."""
    rows = len(batch[0])
    changes: dict[str, Any] = {
        name: value[:count]
        for name, value in batch._asdict().items()
        if isinstance(value, Tensor) and len(value) == rows
    }
    if "places" in batch._fields:  # of masked words, counted through all rows
        is_kept = batch.places < count * batch.token_ids.shape[1]
        changes |= {"places": batch.places[is_kept], "targets": batch.targets[is_kept]}
    if "num_tokens" in batch._fields:
        mask = changes["target_mask" if "target_mask" in changes else "padding_mask"]
        changes["num_tokens"] = int(mask.sum())
    return batch._replace(**changes)


def training_loss(module: Training, batch: Any) -> Tensor:
    """Return the loss of a training step, which returns it, or a dict with it."""
    outputs: Any = module.training_step(batch)
    return outputs["loss"] if isinstance(outputs, dict) else outputs


def _has_target_logits(module: Training) -> bool:
    return type(module).target_logits is not Training.target_logits


@torch.no_grad()
def _logits(module: Training, batch: Any) -> Tensor:
    has_them = _has_target_logits(module)
    logits: Tensor = module.target_logits(module.network, batch) if has_them else module.network(*_inputs(batch))
    return logits.float()


def _difference(one: Tensor, two: Tensor) -> float:
    """Return the largest difference, in units of the largest logit or 1."""
    scale = max(1.0, float(one.abs().max())) if one.numel() else 1.0
    return float((one - two).abs().max()) / scale if one.numel() else 0.0


def _loss(module: Training, batch: Any) -> tuple[bool | None, str]:
    loss = float(module.measure(batch).outputs["loss"].detach())
    if not _has_target_logits(module):
        text = f"loss {loss:.3f} with these weights; nothing is expected of it, as the module has no target_logits"
        return None if math.isfinite(loss) else False, text
    expected = expected_loss(max(2, _logits(module, batch).shape[-1]), 0)  # two classes share one logit
    text = f"loss {loss:.3f} with these weights; expected at initialization: {expected:.3f}"
    if not math.isfinite(loss):
        return False, text
    if loss > TOO_LARGE * expected:
        return False, f"{text}; the logits are too large: start the weights, or those of the last layer, smaller"
    return True, text


def _gradients(module: Training, batch: Any) -> tuple[bool, str]:
    module = copy.deepcopy(module)
    trained = {name: weight for name, weight in module.network.named_parameters() if weight.requires_grad}
    optimizer, dead = torch.optim.AdamW(trained.values(), lr=1e-3), list(trained)
    for _ in range(FIRST_STEPS):
        optimizer.zero_grad()
        training_loss(module, batch).backward()
        dead = [name for name in dead if (gradient := trained[name].grad) is None or not bool(gradient.any())]
        optimizer.step()
    if not dead:
        return True, f"all {len(trained)} weights have gradients"
    more = f" and {len(dead) - MOST_NAMED} more" if len(dead) > MOST_NAMED else ""
    problem = f"no gradient for {', '.join(dead[:MOST_NAMED])}{more}"
    return False, f"{problem}; forward does not use them, or they are detached"


def _evaluation(module: Training, batch: Any) -> tuple[bool, str]:
    if _difference(_logits(module, batch), _logits(module, batch)) == 0:
        return True, "two passes in evaluation are equal"
    return False, "two passes in evaluation differ; dropout must stop after eval(): use nn.Dropout, or self.training"


def _batch(module: Training, batch: Any) -> tuple[bool, str]:
    rows = len(batch[0])
    whole, part = _logits(module, batch), _logits(module, first_rows(batch, max(1, rows // 2)))
    if _difference(whole[: len(part)], part) <= ALMOST:
        return True, "a text has the same result alone and together with other texts"
    return False, "the result of a text depends on the other texts of its batch; normalize over features, not over rows"


def _padding(module: Training, batch: Any) -> tuple[bool | None, str]:
    masks = [value for name, value in batch._asdict().items() if name.endswith("mask")]
    if not masks:
        return None, "these batches have no padding"
    longest = getattr(module.network, "context_length", math.inf)
    if (excess := max(mask.shape[-1] for mask in masks) + MORE_PADDING - longest) > 0:
        batch = _lengthened(batch, -int(excess))
    if _difference(_logits(module, batch), _logits(module, _lengthened(batch, MORE_PADDING))) <= ALMOST:
        return True, "more padding does not change the result"
    return False, "padding changes the result; attention and pooling must leave out the places where the mask is False"


def _lengthened(batch: Any, columns: int) -> Any:
    """Return a batch with more padding at the end of each text, or with fewer tokens for a negative number."""
    changes = {}
    for name, value in batch._asdict().items():
        if isinstance(value, Tensor) and value.ndim > 1:
            sides = (0, 0, 0, columns) if name == "features" else (0, columns)
            changes[name] = pad(value, sides, value=IGNORED if name == "targets" else 0)
    if "places" in batch._fields:  # of masked words, counted through all rows
        length = batch.token_ids.shape[1]
        rows, place = batch.places // length, batch.places % length
        is_kept = place < length + columns
        changes |= {"places": (rows * (length + columns) + place)[is_kept], "targets": batch.targets[is_kept]}
    return batch._replace(**changes)


def _future(module: Training, batch: Any) -> tuple[bool | None, str]:
    ids = batch.token_ids
    if not _are_next_tokens(batch.targets, ids):
        return None, "the network predicts no next tokens"
    half = ids.shape[1] // 2
    changed = ids.clone()
    changed[:, half:] = ids[:, half:].flip(0)  # the tokens of other texts
    places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    is_before = (places < half)[batch.targets != IGNORED]
    one, two = _logits(module, batch), _logits(module, batch._replace(token_ids=changed))
    if _difference(one[is_before], two[is_before]) <= ALMOST:
        return True, "a token sees no later token"
    return False, "a token sees later tokens, so the training loss is too good; use a causal mask, or model.causal=true"


def _are_next_tokens(targets: Tensor, token_ids: Tensor) -> bool:
    """Return whether each target is the token that follows, as for a generator, and not a label of the token."""
    if targets.shape != token_ids.shape:
        return False
    is_followed = targets[:, 1:] != IGNORED
    return torch.equal(targets[:, :-1][is_followed], token_ids[:, 1:][is_followed])


@torch.no_grad()
def _cache(module: Training, batch: Any) -> tuple[bool | None, str]:
    network: Any = module.network
    if hasattr(batch, "inputs") or not hasattr(network, "new_cache") or not getattr(network, "is_causal", True):
        return None, "the network has no cache of earlier tokens"
    ids = batch.token_ids[:, : getattr(network, "context_length", None)]
    cache = network.new_cache()
    parts = [network(ids[:, place : place + 1], cache) for place in range(ids.shape[1])]
    difference = _difference(network(ids), torch.cat(parts, dim=1))
    if difference <= ALMOST:
        return True, "token by token with the cache gives the logits of the complete text"
    problem = f"with the cache, the logits differ by {difference:.2g}"
    return False, f"{problem}; check the positions and the mask of new tokens"


def _inputs(batch: Any) -> tuple[Tensor, ...]:
    return batch.inputs if hasattr(batch, "inputs") else (batch.token_ids,)


@torch.no_grad()
def _export(module: Training, batch: Any) -> tuple[bool, str]:
    return _alike(module, batch, "torch.export", torch.export.export(module.network, _inputs(batch)).module())


@torch.no_grad()
def _compile(module: Training, batch: Any) -> tuple[bool, str]:
    return _alike(module, batch, "torch.compile", torch.compile(module.network))


def _alike(module: Training, batch: Any, name: str, network: Callable[..., Tensor]) -> tuple[bool, str]:
    difference = _difference(module.network(*_inputs(batch)), network(*_inputs(batch)))
    return difference <= ALMOST, f"{name} gives logits that differ by at most {difference:.1g}"
