"""Which key or choice a user means by a name that does not exist. Imports nothing heavy."""

import difflib
from collections.abc import Collection, Iterable

from firstlight import config_files
from firstlight.choices import listed, nearest

NAMES_ELSEWHERE = {  # our keys and groups, and the names that other programs give them
    "context_length": "block_size max_length max_seq_length seq_len",
    "data.batch_size data.batch_tokens": "batch batch_size bs",
    "model.dim": "d_model hidden_dim hidden_size n_embd",
    "model.feed_forward_dim": "intermediate_size",
    "model.num_heads": "heads n_head",
    "model.num_key_value_heads": "n_kv_heads",
    "model.num_layers": "layers n_layer",
    "optimized_metric": "monitor",
    "optimizer.lr": "learning_rate lr",
    "paths.log_dir": "out_dir output_dir save_dir",
    "resume init_from": "checkpoint ckpt ckpt_path",
    "schedule": "lr_scheduler scheduler",
    "tokenizer.max_size": "vocab_size",
    "trainer.accelerator": "device gpu",
    "trainer.accumulate_grad_batches": "gradient_accumulation_steps",
    "trainer.gradient_clip_val": "clip grad_clip",
    "trainer.max_epochs": "epochs n_epochs num_epochs",
    "trainer.max_steps": "max_iters steps",
    "trainer.val_check_interval": "eval_interval",
}
ALSO_CALLED = {name: keys.split() for keys, names in NAMES_ELSEWHERE.items() for name in names.split()}
NAMED = ("task", "model", "experiment", "optimizer", "schedule", "trainer", "logger", "tokenizer", "vectors", "debug")


def nearest_keys(word: str, known: Collection[str]) -> list[str]:
    """Return the known keys that a user can mean by a wrong one, at most three.

    In this order: a key that other programs call so, keys with the same last part, similar keys of the same section,
    and keys with a similar last part.
    """
    section, _, leaf = word.rpartition(".")
    if named := [key for key in ALSO_CALLED.get(leaf, []) if key in known and key != word]:
        return named
    leaves = _by_leaf(known)
    siblings = {key for key in known if key.rpartition(".")[0] == section}
    similar = difflib.get_close_matches(word, siblings - {word}, n=2)
    same = [key for key in leaves.get(leaf, []) if key != word]
    return (same or similar or leaves.get(nearest(leaf, leaves, cutoff=0.75) or "", []))[:3]


def nearest_choices(group: str, choice: str, options: Collection[str]) -> list[str]:
    """Return what a user can mean by a choice that a group does not have, as `group=choice`, at most three."""
    leaves = _by_leaf(options, "/")
    same = leaves.get(choice) or difflib.get_close_matches(choice, options, n=1)
    same = same or leaves.get(nearest(choice.rpartition("/")[2], leaves) or "", [])
    return [f"{group}={option}" for option in same[:3]] or choices_named(choice)[:3]


def choices_named(name: str) -> list[str]:
    """Return every `group=choice` whose choice has a name, such as `task=stars` and `experiment=post/stars`."""
    found = ((group, choice) for group in NAMED for choice in config_files.choices(group))
    return [f"{group}={choice}" for group, choice in found if choice.rpartition("/")[2] == name]


def question(candidates: Iterable[str]) -> str:
    """Return `did you mean a, b or c?`; nothing without candidates."""
    names = listed(candidates, "or")
    return names and f"did you mean {names}?"


def _by_leaf(names: Iterable[str], separator: str = ".") -> dict[str, list[str]]:
    leaves: dict[str, list[str]] = {}
    for name in names:
        leaves.setdefault(name.rpartition(separator)[2], []).append(name)
    return leaves
