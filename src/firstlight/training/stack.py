"""Jobs that differ only in numbers, trained as one network with a leading axis of models.

A `Stack` trains the weights of all its jobs in each step. Each job runs as it does alone, with its own trainer,
callbacks, validations and files, except that `Replay` in `training/replay.py` replaces its training steps by those of
the stack.
"""

import copy
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.func import functional_call
from torch.optim import Adam, AdamW
from torch.optim.lr_scheduler import LambdaLR

from firstlight.callbacks.activation_sizes import ActivationSizes
from firstlight.callbacks.checkpoint import reseed
from firstlight.data.batches import Rows
from firstlight.data.windows import Windows
from firstlight.lit.lightning_internals import STEP_HOOKS
from firstlight.lit.optimizers import build_optimizer
from firstlight.lit.schedules import total_steps
from firstlight.networks.attention import MultiHeadAttention
from firstlight.training.build import Parts, build_module, new_network
from firstlight.training.initialize import initialize_from

KNOWN = (EarlyStopping, LearningRateMonitor)  # callbacks of Lightning that need no step between two visits
TOLERANCE = 0.02  # of the first gradient, relative; TF32 and bfloat16 round to three digits


class CannotStackError(Exception):
    """Jobs cannot be trained together. The message says why."""


class Visit(NamedTuple):
    """What a stack tells the trainers of its jobs about a step.

    outputs: of the training step, for each job; sums: of the steps since the last visit, without this one, (jobs,)
    each; steps: the number of these steps; seconds, processor: the time since the last visit; state: the weights and
    the two running means of Adam after the step, (3, jobs, weights), or None.
    """

    outputs: list[dict[str, Tensor]]
    sums: dict[str, Tensor]
    steps: int
    seconds: float
    processor: float
    state: Tensor | None


class Stack:
    """Some jobs whose weights are trained together, as far as the trainers of the jobs ask for.

    problem: why the jobs are trained one by one after all, or None.
    """

    def __init__(self, configs: Sequence[DictConfig], folder: Path) -> None:
        """configs: of the jobs; folder: on the disk that has the weights of the visits for a while."""
        self.configs, self.folder = configs, folder
        self.problem: str | None = None
        self.visits: dict[int, Visit] = {}
        self.done = 0  # the number of steps that are trained

    def begin(self, parts: Parts) -> bool:
        """Build the stacked network at the first call. Return whether the jobs can be stacked."""
        if self.problem is None and not hasattr(self, "weights"):
            try:
                self._build(parts)
            except CannotStackError as error:
                self.problem = str(error)
        return self.problem is None

    def _build(self, parts: Parts) -> None:
        trainer, data = parts.trainer, parts.data
        loader: Any = trainer.train_dataloader
        self.trainer, self.table, self.device = trainer, data.table, trainer.strategy.root_device
        self.dataset = loader.dataset
        if type(self.dataset) not in (Windows, Rows):
            raise CannotStackError(f"{type(data).__name__} makes batches of other kinds than rows and windows")
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            _refuse_unknown(callback)
        modules = [self._module(config, parts) for config in self.configs]
        self.batches = [_with_seed(data, config.data.seed).train_dataloader().batches for config in self.configs]
        self._take_optimizers(modules, total_steps(trainer))
        self._take_weights(modules)
        self.template = _Step(copy.deepcopy(modules[0])).to(self.device)
        for part in self.template.modules():
            if isinstance(part, MultiHeadAttention):
                part.watch = lambda _, value: value  # plain products, because vmap has no rule for the fused function
        self._compare({0: modules[0], len(modules) - 1: modules[-1]})

    def _module(self, config: DictConfig, parts: Parts) -> LightningModule:
        """Return the module with which a job begins."""
        module = build_module(config, new_network(config, parts.data), parts.data)
        if config.init_from:
            initialize_from(config.init_from, Path(config.paths.log_dir), module, parts.data, config.model)
        return parts.trainer.precision_plugin.convert_module(module)  # type: ignore[return-value]

    def _take_optimizers(self, modules: Sequence[Any], steps: int) -> None:
        """Keep the schedules of all jobs, and the options of each group of their optimizers, (jobs, 1) each."""
        optimizers = [build_optimizer(module.network, module.optimizer_factory) for module in modules]
        pairs = zip(modules, optimizers, strict=True)
        self.schedules: list[Any] = [module.schedule_factory(optimizer, steps) for module, optimizer in pairs]
        self.groups = [optimizer.param_groups for optimizer in optimizers]
        options, kind = optimizers[0].defaults, type(optimizers[0])
        if kind not in (Adam, AdamW) or options["amsgrad"] or options["maximize"]:
            raise CannotStackError(f"the optimizer is {kind.__name__}; optimizer=adamw and adam can be stacked")
        if (schedule := type(self.schedules[0])) is not LambdaLR:
            raise CannotStackError(f"the schedule is {schedule.__name__}; schedule=cosine can be stacked")
        self.is_decoupled = options["decoupled_weight_decay"]

    def _take_weights(self, modules: Sequence[LightningModule]) -> None:
        """Keep the trained weights of all models in one tensor, in the order of the groups of the optimizer."""
        named = [dict(module.named_parameters()) for module in modules]
        names = {id(weight): name for name, weight in named[0].items()}
        of_groups = [[names[id(weight)] for weight in group["params"]] for group in self.groups[0]]
        self.shapes = {name: named[0][name].shape for group in of_groups for name in group}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        self.size_of_groups = [sum(self.shapes[name].numel() for name in group) for group in of_groups]
        rows = [torch.cat([weights[name].detach().flatten() for name in self.shapes]) for weights in named]
        self.weights = torch.stack(rows).to(self.device).requires_grad_()  # (jobs, weights)
        self.means = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        frozen = named[0].keys() - self.shapes.keys()
        self.frozen = {name: torch.stack([each[name].detach() for each in named]).to(self.device) for name in frozen}
        numbers = [[[*each["betas"], each["eps"], each["weight_decay"]] for each in groups] for groups in self.groups]
        options = torch.tensor(numbers, dtype=torch.float64).to(self.weights)[..., None]  # (jobs, groups, 4, 1)
        self.options = [each.unbind(1) for each in options.unbind(1)]  # of a group: β1, β2, eps, decay

    def _compare(self, singles: dict[int, Any]) -> None:
        """Raise CannotStackError unless the first loss and gradient, without dropout, are those of single jobs.

        singles: the modules of some jobs, by their places.
        """
        self.template.eval()
        batch, _ = self._batch(0)
        try:
            losses = self._outputs(batch)["loss"]
            losses.sum().backward()
        except RuntimeError as error:
            raise CannotStackError(f"torch.vmap cannot run its step: {' '.join(str(error).split())[:200]}") from error
        for place, module in singles.items():
            alone = _Step(module).to(self.device).eval()
            single = [part if dim is None else part[place] for part, dim in zip(batch, self._dims(batch), strict=True)]
            with self.trainer.precision_plugin.forward_context():
                loss = alone(type(batch)(*single))["loss"]
            loss.backward()
            own = dict(module.named_parameters())
            if unused := [name for name in self.shapes if own[name].grad is None]:
                raise CannotStackError(f"{unused[0]} has no gradient")
            gradient = torch.cat([own[name].grad.flatten() for name in self.shapes])
            assert self.weights.grad is not None
            difference = float((self.weights.grad[place] - gradient).norm() / gradient.norm())
            if not (difference < TOLERANCE and torch.isclose(loss, losses[place], rtol=TOLERANCE)):
                raise CannotStackError(f"a stack computes another gradient (relative difference {difference:.2g})")
        self.template.train()

    def visit(self, step: int, *, with_state: bool) -> Visit:
        """Return what a trainer needs of a step, counted from 0. All steps before it are trained if necessary."""
        if step not in self.visits:
            self.visits[step] = self._train(step, with_state=with_state)
            self.done = step + 1
        return self.visits[step]

    def _train(self, last: int, *, with_state: bool) -> Visit:
        """Train up to the step `last`."""
        started, processor = time.perf_counter(), time.process_time()
        sums: dict[str, Any] = {}
        steps = range(self.done, last + 1)
        for step, scales in zip(steps, self._scales(steps), strict=True):
            reseed(self.device, self.configs[0].seed, step)
            self.weights.grad = None
            batch, tokens = self._batch(step)
            outputs = self._outputs(batch)
            outputs["loss"].sum().backward()
            self._update(scales)
            outputs = {name: value.detach() for name, value in outputs.items()}
            if step < last:
                for name, value in (_counted(outputs, batch) | {"tokens": tokens}).items():
                    sums[name] = sums.get(name, 0) + value
        if outputs["logits"].ndim > 3:  # of tokens
            outputs["predicted"] = outputs.pop("logits").argmax(dim=-1)
        on_cpu = {name: value.cpu() for name, value in outputs.items()}
        of_jobs = [{name: value[place] for name, value in on_cpu.items()} for place in range(len(self.configs))]
        sums, state = {name: value.cpu() for name, value in sums.items()}, self._stored() if with_state else None
        times = time.perf_counter() - started, time.process_time() - processor
        return Visit(of_jobs, sums, last - self.done, *times, state)

    def _stored(self) -> Tensor:
        """Return a copy of the weights and running means in a file without a name, which ends with this process."""
        with tempfile.TemporaryFile(dir=self.folder) as file:
            kind = torch.empty(0, dtype=self.weights.dtype).numpy().dtype
            stored = torch.from_numpy(np.memmap(file, kind, "w+", shape=(3, *self.weights.shape)))
        for place, part in enumerate((self.weights.detach(), *self.means)):
            stored[place].copy_(part)
        return stored

    def _batch(self, step: int) -> tuple[Any, Tensor]:
        """Return the batches of all models with a leading axis, and the number of tokens of each of them, (jobs,)."""
        arrays = [batches.batch(step) for batches in self.batches]
        indices = move_data_to_device(self.dataset[np.concatenate(arrays)], self.table.flat.device)
        batch = self.trainer.precision_plugin.convert_input(move_data_to_device(self.table(indices), self.device))
        rows, shape = sum(map(len, arrays)), (len(arrays), -1)
        is_part = [isinstance(part, Tensor) and len(part) == rows for part in batch]
        parts = [part.unflatten(0, shape) if is_one else part for part, is_one in zip(batch, is_part, strict=True)]
        windows = type(self.dataset) is Windows
        tokens = [each.size - len(each) if windows else self.dataset[each].num_tokens for each in arrays]
        return type(batch)(*parts), torch.tensor(tokens)

    def _dims(self, batch: Any) -> list[int | None]:
        """Return the axis of the models of each part of a batch, None for those that have none."""
        return [0 if isinstance(part, Tensor) and len(part) == len(self.configs) else None for part in batch]

    def _outputs(self, batch: Any) -> dict[str, Tensor]:
        """Return the outputs of the training step with a leading axis of models."""
        rows = zip(self.shapes.items(), self.weights.split(self.sizes, dim=1), strict=True)
        named = {name: part.unflatten(1, shape) for (name, shape), part in rows} | self.frozen

        def one(named: dict[str, Tensor], batch: Any) -> Any:
            return functional_call(self.template, {f"module.{name}": value for name, value in named.items()}, (batch,))

        dims = (0, type(batch)(*self._dims(batch)))
        with self.trainer.precision_plugin.forward_context():
            return torch.vmap(one, in_dims=dims, randomness="different")(named, batch)

    def _scales(self, steps: range) -> Tensor:
        """Return the numbers of Adam in some steps, (steps, groups, 3, jobs, 1): decay, rate, and scale of the root."""
        numbers = np.empty((len(steps), len(self.size_of_groups), 3, len(self.configs), 1))
        counts = np.array(steps) + 1.0
        for job, (schedule, groups) in enumerate(zip(self.schedules, self.groups, strict=True)):
            for number, group in enumerate(groups):
                rates = np.array([schedule.base_lrs[number] * schedule.lr_lambdas[number](step) for step in steps])
                first, second = (1 - beta**counts for beta in group["betas"])
                of_job = (1 - rates * group["weight_decay"], rates / first, second**-0.5)
                numbers[:, number, :, job, 0] = np.stack(of_job, axis=1)
        return torch.from_numpy(numbers).to(self.weights)

    @torch.no_grad()
    def _update(self, scales: Tensor) -> None:
        """Clip the gradient of each model and take a step of Adam. scales: (groups, 3, jobs, 1)."""
        gradient, most = self.weights.grad, self.trainer.gradient_clip_val
        assert gradient is not None
        if most and self.trainer.gradient_clip_algorithm == "value":
            gradient.clamp_(-most, most)
        elif most:
            gradient *= (most / (gradient.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1)
        parts = [each.split(self.size_of_groups, dim=1) for each in (self.weights, gradient, *self.means)]
        for weights, gradients, mean, square, scale, options in zip(*parts, scales, self.options, strict=True):
            (decay, rate, root), (first, second, eps, share) = scale, options
            if self.is_decoupled:
                weights *= decay
            else:
                gradients = gradients + share * weights
            mean.lerp_(gradients, 1 - first)
            square.lerp_(gradients.square(), 1 - second)
            weights -= rate * mean / (square.sqrt() * root + eps)

    @torch.no_grad()
    def copy_state(self, state: Tensor, place: int, steps: int, module: nn.Module, optimizer: Any) -> None:
        """Give a job its weights and the state of its optimizer after some steps. state: as in `Visit`."""
        own, where = dict(module.named_parameters()), self.device if optimizer.defaults["fused"] else "cpu"
        rows = state[:, place].to(self.device).split(self.sizes, dim=1)
        for (name, shape), row in zip(self.shapes.items(), rows, strict=True):
            values, mean, square = row.unflatten(1, shape).clone()
            own[name].copy_(values)
            count = torch.tensor(float(steps), device=where)
            optimizer.state[own[name]] = {"step": count, "exp_avg": mean, "exp_avg_sq": square}


class _Step(nn.Module):
    """The training step of a module as a function of its parameters."""

    def __init__(self, module: LightningModule) -> None:
        super().__init__()
        self.module = module

    def forward(self, batch: Any) -> dict[str, Tensor]:
        outputs = self.module.training_step(batch)
        if not isinstance(outputs, dict) or not outputs.keys() <= {"loss", "token_loss", "logits"}:
            raise CannotStackError(f"the training step of {type(self.module).__name__} returns something else")
        return outputs


def _counted(outputs: dict[str, Tensor], batch: Any) -> dict[str, Tensor]:
    """Return what is summed over the steps between visits, (jobs,) each."""
    loss, logits = outputs["loss"], outputs["logits"]
    sums = {"loss": loss, "token_loss": outputs.get("token_loss", loss)}
    sums["examples"] = torch.full((len(loss),), len(batch.targets[0]))
    if logits.ndim == 3:  # of classes
        predicted = logits.argmax(dim=2) if logits.shape[2] > 1 else logits.squeeze(2) > 0
        sums["hits"] = (predicted == batch.targets).sum(dim=1)
    return sums


def _with_seed(data: Any, seed: int) -> Any:
    """Return the same data with another order of the batches."""
    other = copy.copy(data)
    other.options = replace(data.options, seed=seed)
    return other


def _refuse_unknown(callback: Callback) -> None:
    """Raise CannotStackError for a callback that may act in the steps between two visits."""
    kind = type(callback)
    acts = any(
        getattr(kind, hook) is not getattr(Callback, hook) for hook in STEP_HOOKS if "train" in hook or "before" in hook
    )
    is_known = kind.__module__.startswith("firstlight.") and not isinstance(callback, ActivationSizes)
    if acts and not (is_known or isinstance(callback, KNOWN)):
        raise CannotStackError(f"{kind.__name__} acts in each step; remove the callback")
