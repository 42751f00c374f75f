"""Descriptions of the keys that conf/ passes to classes which the user can replace, such as those of `optimizer`.

Their values are in the files of conf/. The docstrings here describe them; no code uses the classes for anything else.
Keys that are not described here can be given too if the class of the user accepts them.
"""

from typing import Literal


class Module:
    """Keys of `module`: arguments of the LightningModule, which computes the loss."""

    label_smoothing: float
    """Share of the target probability that is spread over all classes, from 0 to below 1; it reduces overconfidence."""
    ordinal_smoothing: float
    """Strength with which neighboring classes share the target probability, for ordered classes such as stars; 0:
    none."""
    r_drop: float
    """Weight of the difference between two passes with different dropout; above 0 each step takes twice as long."""


class Optimizer:
    """Keys of `optimizer`: arguments of the optimizer."""

    lr: float
    """Learning rate, at the peak of the schedule; the first key to tune, in factors of about 3."""
    betas: list[float]
    """Decay rates of the running means of the gradient and of its square, for adam, adamw and muon."""
    weight_decay: float
    """Strength of the weight decay; raise it against overfitting."""
    fused: bool
    """Whether one kernel updates all weights, which is faster and changes the rounding only."""
    matrix_lr: float
    """Learning rate of the matrices of the blocks, which Muon updates; optimizer.lr applies to all other weights."""
    momentum: float
    """Momentum of sgd and muon, from 0 to below 1."""


class Schedule:
    """Keys of `schedule`: arguments of the schedule of the learning rate."""

    warmup_steps: int
    """Number of steps in which the learning rate rises linearly from 0 to optimizer.lr."""
    final_fraction: float
    """Learning rate at the end of the training, as a fraction of optimizer.lr."""
    warmup_fraction: float
    """Share of the training in which the learning rate rises, for one_cycle."""
    decay_fraction: float
    """Share of the steps after the warm-up in which the learning rate decays, above 0, for warmup_stable_decay."""
    initial_fraction: float
    """Learning rate at the start of the training, as a fraction of optimizer.lr, for one_cycle."""
    cycle_momentum: bool
    """Whether one_cycle also changes the momentum, or β1 of an optimizer with betas, in the opposite direction."""
    base_momentum: float
    """Momentum at the peak of the learning rate, for one_cycle with cycle_momentum."""
    max_momentum: float
    """Momentum at the start and the end of the training, for one_cycle with cycle_momentum."""


class Trainer:
    """Keys of `trainer`: arguments of Lightning's Trainer."""

    accelerator: Literal["auto", "cpu", "gpu", "mps"] | str
    """Type of the device: auto (a GPU if there is one), cpu, gpu or mps."""
    devices: int | str | list[int]
    """Number of devices, or a list of them such as [0,2]; -1: all. More than one requires a strategy such as
    trainer=ddp."""
    num_nodes: int
    """Number of machines that train together."""
    strategy: str
    """Distribution over several devices, such as ddp; trainer=ddp sets it. Strategies that divide the parameters (fsdp,
    deepspeed) are refused."""
    precision: str | int
    """Precision of the arithmetic: 32-true, bf16-mixed or 16-mixed; the latter two are faster on recent GPUs."""
    max_epochs: int | None
    """Number of passes over the training data; the schedule of the learning rate ends with them."""
    max_steps: int
    """Number of steps after which the training ends even within an epoch; -1: no limit."""
    min_epochs: int | None
    """Number of epochs before which early stopping does not end the training; null: no minimum."""
    min_steps: int | None
    """Number of steps before which early stopping does not end the training; null: no minimum."""
    max_time: str | None
    """Time after which the training ends, as days:hours:minutes:seconds such as 00:01:30:00; null: no limit."""
    gradient_clip_val: float | None
    """Largest norm of the gradient, above which it is scaled down; null: no limit."""
    gradient_clip_algorithm: Literal["norm", "value"]
    """Clipping by the norm of the whole gradient or by the value of each component."""
    accumulate_grad_batches: int
    """Number of batches whose gradients are averaged for one optimizer step, in place of larger batches."""
    val_check_interval: float | int | str | None
    """Interval between validations: a share of an epoch such as 0.25, a number of batches, or a time such as 00:05:00;
    null: an epoch."""
    check_val_every_n_epoch: int | None
    """Number of epochs between validations; null: val_check_interval counts batches across epochs."""
    limit_train_batches: float | int
    """Share (0.1) or number (100) of the training batches that an epoch uses, for quick trials."""
    limit_val_batches: float | int
    """Share or number of the validation batches that are used; 0: no validation."""
    limit_test_batches: float | int
    """Share or number of the test batches that are used."""
    log_every_n_steps: int
    """Number of steps between two records of the training metrics."""
    num_sanity_val_steps: int
    """Number of validation batches that are tried before the training, to find mistakes in a module of your own."""
    deterministic: bool | Literal["warn"]
    """Whether torch uses only deterministic algorithms, which are slower on a GPU; a CPU needs no such setting."""
    detect_anomaly: bool
    """Whether torch names the operation that produced a NaN in the gradient; it makes training several times slower."""
    inference_mode: bool
    """Whether validation and test use torch.inference_mode, which is faster than torch.no_grad."""
    profiler: str | None
    """Profiler that prints where the time goes: simple, advanced or pytorch; null: none."""
    default_root_dir: str
    """Folder for files of Lightning's own; it is the run's folder."""
    use_distributed_sampler: bool
    """Whether Lightning divides the data among processes; false, since the data modules do so themselves."""
    enable_model_summary: bool
    """Whether Lightning prints its own summary of the network; false, since callbacks.model_summary prints one."""
    enable_progress_bar: bool
    """Whether a terminal shows a progress bar; quiet=true hides it too."""


class Callbacks:
    """Keys of `callbacks`: the callbacks of the training and their arguments."""

    class Accuracy:
        """Measures accuracy and macro F1, and for ordered classes the mean absolute error."""

    class ActivationSizes:
        """Measures the mean absolute output of the embedding, the blocks and the output layer at each logged step."""

    class BitsPerCharacter:
        """Measures the loss in bits for each character of the text."""

    class Checkpoint:
        """Saves the best and the last state of the training."""

        folder: str
        """Folder of the checkpoints."""
        monitor: str
        """Metric that decides which state is the best; it follows optimized_metric."""
        mode: Literal["auto", "min", "max"]
        """Whether a lower (min) or higher (max) metric is better; it follows optimized_mode."""
        every_n_train_steps: int | None
        """Number of steps between two checkpoints within an epoch, for resuming; null: only after validations."""

    class ConfusionMatrix:
        """Draws the confusion matrix after each validation."""

        folder: str
        """Folder of the figures."""

    class EarlyStopping:
        """Ends the training when the metric no longer improves."""

        monitor: str
        """Metric that must improve; it follows optimized_metric."""
        mode: Literal["auto", "min", "max"]
        """Whether a lower (min) or higher (max) metric is better; it follows optimized_mode."""
        patience: int
        """Number of validations without an improvement after which the training ends."""
        min_delta: float
        """Smallest change of the metric that counts as an improvement."""
        check_on_train_epoch_end: bool
        """Whether the metric is also read at the end of an epoch; keep false, since only validations measure it."""
        strict: bool
        """Whether an unknown metric is an error here; keep false, since the checkpoint callback reports it."""

    class LastPosition:
        """Measures the loss of the last token of each window, which sees the complete context."""

    class LearningRate:
        """Records the learning rate."""

        logging_interval: Literal["step", "epoch"] | None
        """Interval between two records: step or epoch."""

    class LearningRateFinder:
        """Searches the learning rate before the first step, and trains with it."""

        folder: str
        """Folder of the figure curve.png and the numbers curve.json."""
        min_lr: float
        """First and lowest rate of the search."""
        max_lr: float
        """Last and highest rate of the search."""
        num_training_steps: int
        """Number of steps of the search, on a copy of the network."""
        early_stop_threshold: float
        """Ratio of the smoothed loss to its lowest value at which the search ends."""
        seed: int
        """Seed of dropout in the search; it follows seed."""

    class ModelSummary:
        """Prints a table of the network's layers and parameters."""

        max_depth: int
        """Depth of the modules that the table lists; 0: no table, -1: all."""

    class NonFinite:
        """Ends the training with an error when the loss is NaN or infinite."""

    class Perplexity:
        """Measures perplexity."""

    class Progress:
        """Shows a progress bar on a terminal."""

        refresh_rate: int
        """Number of batches between two updates of the bar."""

    class ReferenceLines:
        """Records the perplexities that counting tokens reaches, to compare the network with."""

    class ReviewTable:
        """Writes a table of test texts with their predictions."""

        folder: str
        """Folder of the table."""
        num_reviews: int
        """Number of texts in the table."""

    class TextSamples:
        """Writes text samples of a generator after each validation."""

        folder: str
        """Folder of the samples."""
        num_samples: int
        """Number of samples after each validation."""
        num_tokens: int
        """Largest number of tokens of a sample."""
        temperature: float
        """Temperature of sampling: below 1 the likelier tokens are preferred, above 1 the samples vary more."""
        top_k: int | None
        """Number of likeliest tokens to sample from; null: all."""
        top_p: float | None
        """Probability that the likeliest tokens to sample from reach together; null: all tokens."""

    class Throughput:
        """Measures tokens per second."""

    class TokenAccuracy:
        """Measures the share of tokens that are predicted correctly."""

    class TrainingEvaluation:
        """Measures loss and accuracy of the training split without dropout, after each epoch."""

    class Translations:
        """Writes translations after each validation and measures BLEU and chrF."""

        folder: str
        """Folder of the translations."""
        num_samples: int
        """Number of translations that are written after each validation."""
        beam_size: int | None
        """Number of candidates of the beam search at the end of the training; null: greedy only."""
        length_penalty: float
        """Exponent of the length in the scores of the beam search; 0 prefers short translations."""

    class ValidationLine:
        """Prints a line with the metrics after each validation."""


class Logger:
    """Keys of `logger`: the loggers and their arguments."""

    class Csv:
        """Writes the metrics to a CSV file in the run's folder."""

        save_dir: str
        """Folder of the logger's files."""
        name: str
        """Subfolder of the logger's files."""
        version: int | str
        """Further subfolder; fixed, so that a resumed run continues its file."""

    class Tensorboard:
        """Writes the metrics for TensorBoard."""

        save_dir: str
        """Folder of the logger's files."""
        name: str
        """Subfolder of the logger's files."""
        version: int | str
        """Further subfolder; empty, so that a resumed run continues its file."""
        default_hp_metric: bool
        """Whether TensorBoard shows the placeholder metric hp_metric."""

    class Wandb:
        """Sends the metrics to Weights & Biases."""

        project: str
        """Project of Weights & Biases."""
        save_dir: str
        """Folder of the logger's files."""
        name: str | None
        """Name of the run; null: Weights & Biases chooses one."""
        group: str | None
        """Group of the run; null: the sweep, or the run's folder."""
        job_type: str
        """Type of the run, by which Weights & Biases can filter."""
        tags: list[str]
        """Labels of the run; they follow tags."""
        offline: bool | None
        """Whether the run is only recorded on this machine; null: the value of WANDB_MODE, else offline if there is no
        API key."""
        log_model: bool | str
        """Whether the best checkpoint is uploaded."""


OPEN_SECTIONS = {
    "module": Module,
    "optimizer": Optimizer,
    "schedule": Schedule,
    "trainer": Trainer,
    "callbacks": Callbacks,
    "logger": Logger,
}
