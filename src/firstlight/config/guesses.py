"""Which key or choice a user means by a name that does not exist. Imports nothing heavy."""

import difflib
from collections.abc import Collection, Iterable

from firstlight import config_files

ALSO_CALLED = {  # names that other programs give to our keys and groups
    "attention_probs_dropout_prob": ("model.attention_dropout",),
    "attn_pdrop": ("model.attention_dropout",),
    "batch": ("data.batch_size", "data.batch_tokens"),
    "batch_size": ("data.batch_size", "data.batch_tokens"),
    "block_size": ("context_length",),
    "bs": ("data.batch_size", "data.batch_tokens"),
    "checkpoint": ("resume", "init_from"),
    "ckpt": ("resume", "init_from"),
    "ckpt_path": ("resume", "init_from"),
    "clip": ("trainer.gradient_clip_val",),
    "d_model": ("model.dim",),
    "dataset": ("task",),
    "device": ("trainer.accelerator",),
    "early_stopping": ("callbacks.early_stopping.patience",),
    "epochs": ("trainer.max_epochs",),
    "eval_interval": ("trainer.val_check_interval",),
    "gpu": ("trainer.accelerator",),
    "gpus": ("trainer.devices",),
    "grad_clip": ("trainer.gradient_clip_val",),
    "gradient_accumulation_steps": ("trainer.accumulate_grad_batches",),
    "heads": ("model.num_heads",),
    "hidden_dim": ("model.dim",),
    "hidden_size": ("model.dim",),
    "layers": ("model.num_layers",),
    "initializer_range": ("model.embedding_std",),
    "intermediate_size": ("model.feed_forward_dim",),
    "layer_norm_eps": ("model.norm_eps",),
    "learning_rate": ("optimizer.lr",),
    "lr": ("optimizer.lr",),
    "lr_scheduler": ("schedule",),
    "max_iters": ("trainer.max_steps",),
    "max_length": ("context_length",),
    "max_seq_length": ("context_length",),
    "monitor": ("optimized_metric",),
    "n_embd": ("model.dim",),
    "n_epochs": ("trainer.max_epochs",),
    "n_head": ("model.num_heads",),
    "n_kv_heads": ("model.num_key_value_heads",),
    "n_layer": ("model.num_layers",),
    "net": ("model",),
    "network": ("model",),
    "num_epochs": ("trainer.max_epochs",),
    "num_gpus": ("trainer.devices",),
    "out_dir": ("paths.log_dir",),
    "output_dir": ("paths.log_dir",),
    "rms_norm_eps": ("model.norm_eps",),
    "rope_theta": ("model.rotary_base",),
    "run_name": ("tags",),
    "save_dir": ("paths.log_dir",),
    "scheduler": ("schedule",),
    "seq_len": ("context_length",),
    "steps": ("trainer.max_steps",),
    "vocab_size": ("tokenizer.max_size",),
    "warmup": ("schedule.warmup_steps",),
    "wd": ("optimizer.weight_decay",),
}
NAMED = ("task", "model", "experiment", "optimizer", "schedule", "trainer", "logger", "tokenizer", "vectors", "debug")
LESS_LIKELY = ("callbacks.", "logger.")  # sections that a user seldom means by the last part of a key


def nearest_keys(word: str, known: Collection[str]) -> list[str]:
    """Return the known keys that a user can mean by a wrong one, at most three.

    In this order: a key that other programs call so, keys with the same last part, similar keys of the same section,
    and keys with a similar last part.
    """
    section, _, leaf = word.rpartition(".")
    if named := [key for key in ALSO_CALLED.get(leaf, ()) if key in known and key != word]:
        return named
    leaves = _by_leaf(known)
    if leaf in leaves and leaves[leaf] != [word]:
        return _likely(leaves[leaf])
    siblings = {key for key in known if key.rpartition(".")[0] == section}
    if nearest := difflib.get_close_matches(word, siblings - {word}, n=2):
        return nearest
    return [key for name in difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.75) for key in _likely(leaves[name])]


def nearest_choices(group: str, choice: str, options: Collection[str]) -> list[str]:
    """Return what a user can mean by a choice that a group does not have, as `group=choice`, at most three."""
    leaves = _by_leaf(options, "/")
    same = leaves.get(choice) or difflib.get_close_matches(choice, options, n=1)
    if not same:
        names = difflib.get_close_matches(choice.rpartition("/")[2], leaves, n=1)
        same = [option for name in names for option in leaves[name]]
    return [f"{group}={option}" for option in same[:3]] or choices_named(choice)[:3]


def choices_named(name: str) -> list[str]:
    """Return every `group=choice` whose choice has a name, such as `task=stars` and `experiment=post/stars`."""
    return [
        f"{group}={choice}"
        for group in NAMED
        for choice in config_files.choices(group)
        if name in (choice, choice.rpartition("/")[2])
    ]


def question(candidates: Iterable[str]) -> str:
    """Return `did you mean a, b or c?`; nothing without candidates."""
    *most, last = candidates or [""]
    return f"did you mean {', '.join(most)}{' or ' if most else ''}{last}?" if last else ""


def _by_leaf(names: Iterable[str], separator: str = ".") -> dict[str, list[str]]:
    leaves: dict[str, list[str]] = {}
    for name in names:
        leaves.setdefault(name.rpartition(separator)[2], []).append(name)
    return leaves


def _likely(keys: list[str]) -> list[str]:
    return [key for key in keys if not key.startswith(LESS_LIKELY)][:3] or keys[:3]
