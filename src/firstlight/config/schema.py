"""The configuration: its root, typed where it is ours and open where users name classes by `_target_`; composition."""

import copy
import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import hydra
from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.defaults_list import Overrides
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import II, MISSING, DictConfig, OmegaConf

from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.kind.registry import KINDS
from firstlight.networks.config import TransformerConfig
from firstlight.text.options import TokenizerOptions, VectorOptions

FOLDER_OF_A_JOB = "hydra.sweep.subdir"  # the only option of Hydra that differs between jobs with the same files
COMPOSED: dict[tuple[str, tuple[str, ...]], DictConfig] = {}  # by the sweep and the overrides that choose files


@dataclass
class PathsConfig:
    """Folders that a training writes to.

    Args:
        log_dir: Folder for runs, sweeps and the cache; set it to a disk with enough space.
        cache_dir: Folder for downloaded and encoded data; all runs share it, and it can be deleted.
        output_dir: Folder of this run; it is set when the run starts, so do not set it.
    """

    log_dir: str = "logs"
    cache_dir: str = "${paths.log_dir}/cache"
    output_dir: str = ""


@dataclass
class SweepConfig:
    """Options of a sweep, which is the set of runs that one `-m` command starts.

    Args:
        name: Name of the sweep's folder below `<paths.log_dir>/sweeps`; null: a name made from the command.
        any_code: Whether a sweep continues although the code has changed since its first job.
        stop_at_first_failure: Whether no further job starts after one has failed; those that run continue to their end.
    """

    name: str | None = None
    any_code: bool = False
    stop_at_first_failure: bool = False


@dataclass
class VectorsNode(VectorOptions):
    """Node `vectors` of the tasks with word tokens."""

    std: float | None = II("model.embedding_std")


@dataclass
class DistillationOptions:
    """Node `distillation`: how a network learns from the teacher that `teacher` names.

    Args:
        weight: Share of the loss that compares the network with the teacher, from 0 to 1; the rest compares it with the
            true labels or tokens.
        temperature: Temperature of both distributions in that comparison; above 1, the smaller probabilities of the
            teacher count more.
    """

    weight: float = 0.5
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ValueError(f"distillation.weight={self.weight} must lie between 0 and 1")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"distillation.temperature={self.temperature} must be a finite number above 0")


@dataclass
class RootConfig:
    """Configuration of a training, composed from the files of conf/ and the command line.

    Args:
        dropout: Dropout probability after the embedding and each sublayer, from 0 to below 1; raise it if the network
            overfits.
        context_length: Largest number of tokens that the network reads at once; longer texts are cut (data.truncation)
            or divided.
        epochs: Number of passes over the training data, unless trainer.max_epochs or trainer.max_steps sets the length.
        min_steps: Least number of steps: where epochs has fewer, since the data is small, more epochs are trained.
        seed: Seed of the initial weights, the order of the batches and dropout; the same seed repeats the run exactly.
        tags: Labels of the run, for filtering in loggers and reports; one word or a list, such as tags=demo or
            tags=[demo,v2].
        resume: Run to resume: its folder, latest for the newest unfinished run outside of sweeps, or auto for the
            newest unfinished run with this configuration; null: start a new run.
        init_from: Trained run whose weights the network starts from, as a folder, latest, latest-sweep or
            best:<metric>; for fine-tuning. Or a folder of GPT-2, Llama or BERT that transformers saved.
        teacher: Teachers whose predictions the network learns in addition to the labels: a run (its folder, latest or
            best:<metric>), the folder of a sweep, or a list of these.
        compile: Whether torch.compile compiles the network; it takes a minute at first and pays off in long runs on a
            GPU.
        compile_mode: Mode of torch.compile: default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs;
            requires compile=true.
        quiet: Whether to print nothing but warnings and errors, and at the end the run's folder.
        dry_run: Whether to check the configuration and list the runs that would start, without starting them.
        train: Whether to train; false: only test the weights of init_from.
        test: Whether to measure the test split after the training; null: yes for a single run, no for the jobs of a
            sweep.
        threads: Number of CPU threads; null: one for each core. 1 is often as fast for small networks and leaves the
            other cores free.
        optimized_metric: Validation metric that selects the best checkpoint, stops the run early and ranks the runs of
            a sweep.
        optimized_mode: Whether a lower (min) or higher (max) optimized_metric is better; auto: decided by the metric's
            name.
        model: Options of the network; the task selects the kind of network.
        module: LightningModule, which computes the loss.
        data: Source of the data, and how it is divided and batched.
        tokenizer: Tokenizer and vocabulary.
        vectors: Initial vectors of the words.
        distillation: Distillation of the teacher.
        optimizer: Optimizer.
        schedule: Schedule of the learning rate.
        trainer: Arguments of Lightning's Trainer; add further ones with a plus sign, such as +trainer.benchmark=true.
        callbacks: Callbacks of the training; callbacks.<name>=null removes one.
        logger: Loggers, which write the metrics.
        paths: Folders that a training writes to.
        sweep: Options of a sweep (-m).
    """

    # Most sweeps vary task, model and the next two keys. A task sets its own values in conf/task/.
    dropout: float = TransformerConfig.dropout
    context_length: int = TransformerConfig.context_length

    epochs: int = 10
    min_steps: int = 300
    seed: int = 1
    tags: list[str] = field(default_factory=list)
    resume: str | None = None
    init_from: str | None = None
    teacher: list[str] | None = None
    compile: bool = False
    compile_mode: str | None = None
    quiet: bool = False
    dry_run: bool = False
    train: bool = True
    test: bool | None = None
    threads: int | None = None
    optimized_metric: str = "val/loss"
    optimized_mode: str = "auto"

    model: Any = MISSING
    module: dict[str, Any] = field(default_factory=dict)
    data: Any = MISSING
    tokenizer: TokenizerOptions = MISSING
    vectors: VectorsNode = MISSING
    distillation: DistillationOptions = field(default_factory=DistillationOptions)
    optimizer: dict[str, Any] = field(default_factory=dict)
    schedule: dict[str, Any] = field(default_factory=dict)
    trainer: dict[str, Any] = field(default_factory=dict)
    callbacks: dict[str, Any] | None = None
    logger: dict[str, Any] | None = None
    paths: PathsConfig = MISSING
    sweep: SweepConfig = MISSING


@functools.cache  # they do not change, and registering takes 15% of the time of a composition
def register_schemas() -> None:
    """Register the schemas with Hydra, so that the defaults lists in conf/ can name them."""
    store = ConfigStore.instance()
    store.store(name="root_schema", node=RootConfig)
    nodes: dict[str, Any] = {"paths": PathsConfig, "sweep": SweepConfig}
    nodes |= {"tokenizer": TokenizerOptions, "vectors": VectorsNode}
    for kind in KINDS.values():
        nodes |= {kind.name: kind.model, **kind.schema}
    for name, node in nodes.items():
        store.store(group="schema", name=name, node=node)


def compose(overrides: Iterable[str], *, with_hydra: bool = False) -> DictConfig:
    """Return the configuration for some overrides. with_hydra: also the settings of Hydra, below the key `hydra`."""
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return hydra.compose(CONFIG_NAME, overrides=list(overrides), return_hydra_config=with_hydra)


class OnceForEachChoice(ConfigLoaderImpl):
    """Hydra's loader of configurations, which composes each choice of files once, and then sets the values of each job.

    A composition takes a fifth of a second, and a copy with other values a tenth of that. The worker processes of a
    launcher get the loader for each job, without what it has composed, and keep what they compose themselves.
    """

    def __init__(self, loader: ConfigLoader) -> None:
        super().__init__(loader.get_search_path())
        self.sweep = uuid4().hex

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Return the configuration of a job, as Hydra's loader does."""
        parsed = OverridesParser.create().parse_overrides(sweep_overrides)
        self.validate_sweep_overrides_legal(parsed, RunMode.RUN, from_shell=True)
        given = Overrides(self.repository, parsed).config_overrides
        values = [each for each in given if not each.is_hydra_override() or each.key_or_group == FOLDER_OF_A_JOB]
        chosen = tuple(_line(each) for each in parsed if each not in values)
        if (self.sweep, chosen) not in COMPOSED:
            COMPOSED[self.sweep, chosen] = super().load_sweep_config(master_config, list(chosen))
        config = copy.deepcopy(COMPOSED[self.sweep, chosen])
        OmegaConf.copy_cache(from_config=master_config, to_config=config)  # the times that the folder names
        self._apply_overrides_to_config(values, config)
        of_job = [each for each in parsed if not each.is_hydra_override()]
        config.hydra.overrides.task = [_line(each) for each in of_job]
        config.hydra.overrides.hydra += [_line(each) for each in values if each.is_hydra_override()]
        options = config.hydra.job.config.override_dirname
        config.hydra.job.override_dirname = get_overrides_dirname(
            of_job, kv_sep=options.kv_sep, item_sep=options.item_sep, exclude_keys=options.exclude_keys
        )
        return config


def _line(override: Override) -> str:
    return str(override.input_line)
