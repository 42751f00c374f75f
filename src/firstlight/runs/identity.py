"""Which settings make a run the run that it is. Every list of them is here; this module imports nothing."""

NOT_PART_OF_A_RUN = (  # keys at the top that change where, how fast or how loudly a run computes, but not what
    *("resume", "tags", "paths", "sweep", "logger", "callbacks", "test", "train", "hydra"),
    *("optimized_metric", "optimized_mode", "dry_run", "threads"),
)
FREE_OPTIONS = {  # likewise, options of groups whose other options are part of a run
    "data": ("cache_dir", "num_workers", "evaluation_batch_size", "device_resident"),
    "trainer": (
        *("accelerator", "strategy", "benchmark", "deterministic", "detect_anomaly", "inference_mode", "profiler"),
        *("default_root_dir", "enable_autolog_hparams", "enable_checkpointing", "enable_model_summary"),
        *("enable_progress_bar", "log_every_n_steps", "num_sanity_val_steps"),
    ),
}
# What is not listed above is part of a run: two runs that differ in it have different keys. A run that is named by its
# folder may go on with another value all the same, for the options below excepted: those decide what its steps are,
# and others, such as trainer.max_epochs, only how long it goes on.
MAY_CHANGE_ON_RESUME = ("init_from",)
FIXED_OF_TRAINER = (
    *("accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm", "precision"),
    *("limit_train_batches", "devices", "num_nodes"),
)
# The keys of runs that version 0.2.0 recorded left out no more than this.
NOT_PART_OF_A_RUN_IN_0_2 = tuple(key for key in NOT_PART_OF_A_RUN if key != "threads")
FREE_OPTIONS_IN_0_2 = {"data": ("cache_dir",), "trainer": ("default_root_dir",)}
