"""The root of the configuration: typed where it is ours, open where users name classes by `_target_`."""

import functools
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import II, MISSING

from firstlight.invocation import invocation
from firstlight.kinds.registry import KINDS
from firstlight.networks.config import TransformerConfig
from firstlight.text.options import TokenizerOptions, VectorOptions


@dataclass
class PathsConfig:
    """Where things are written: all of it below log_dir."""

    log_dir: str = "logs"
    cache_dir: str = "${paths.log_dir}/cache"
    output_dir: str = ""  # this run's own folder, filled in when the run starts


@dataclass
class SweepConfig:
    """Where the runs of one `-m` command lie together."""

    name: str | None = None  # null: made of what is typed, so that the same command finds its sweep again
    any_code: bool = False  # true: go on although the code has changed since the first jobs


@dataclass
class VectorsNode(VectorOptions):
    """`vectors` of the tasks with word tokens."""

    std: float | None = II("model.embedding_std")


@dataclass
class RootConfig:
    """What a training composes from the files of the configuration."""

    # task, model and these two are what most sweeps vary; a task sets its own values in conf/task/.
    dropout: float = TransformerConfig.dropout
    context_length: int = TransformerConfig.context_length  # tokens

    seed: int = 1
    tags: list[str] = field(default_factory=list)
    resume: str | None = None  # auto: the newest unfinished run of this configuration; latest; or a run folder
    init_from: str | None = None  # a run whose weights the network starts from
    compile: bool = False  # whether torch.compile compiles the network; requires a compiler and, at first, a minute
    compile_mode: str | None = None  # of torch.compile, such as reduce-overhead (CUDA graphs) or max-autotune
    dry_run: bool = False  # list the jobs of -m with their parameters, and run none
    train: bool = True
    test: bool | None = None  # null: yes in a single run, no under -m, where choices are made on validation
    threads: int | None = None  # CPU threads of torch; null: one for each core. 1 is often as fast for small models
    optimized_metric: str = "val/loss"
    optimized_mode: str = "auto"  # min or max; auto: by the metric's name

    model: Any = MISSING
    module: dict[str, Any] = field(default_factory=dict)
    data: Any = MISSING
    tokenizer: TokenizerOptions = MISSING
    vectors: VectorsNode = MISSING
    optimizer: dict[str, Any] = field(default_factory=dict)
    schedule: dict[str, Any] = field(default_factory=dict)
    trainer: dict[str, Any] = field(default_factory=dict)
    callbacks: dict[str, Any] | None = None
    logger: dict[str, Any] | None = None
    paths: PathsConfig = MISSING
    sweep: SweepConfig = MISSING


def register_schemas() -> None:
    """Make the schemas known to Hydra, so that conf/ can name them in its defaults lists."""
    ConfigStore.instance().store(group="schema", name="help", node={"app_name": invocation("train")})
    _register_classes()


@functools.cache  # nobody changes them, and it takes 15% of the time of a composition
def _register_classes() -> None:
    store = ConfigStore.instance()
    store.store(name="root_schema", node=RootConfig)
    store.store(group="schema", name="paths", node=PathsConfig)
    store.store(group="schema", name="sweep", node=SweepConfig)
    store.store(group="schema", name="tokenizer", node=TokenizerOptions)
    store.store(group="schema", name="vectors", node=VectorsNode)
    for kind in KINDS.values():
        store.store(group="schema", name=kind.name, node=kind.model)
        for name, node in kind.schema.items():
            store.store(group="schema", name=name, node=node)
