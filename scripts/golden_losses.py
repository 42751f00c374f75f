"""Write the loss after 30 steps of every task, recipe and post, to compare two versions of the code to the last bit.

  python scripts/golden_losses.py golden.json                  # in the version before a change: about 15 minutes
  python scripts/golden_losses.py golden.json --compare        # in the version after it: exit code 1 if a loss differs

The losses depend on the processor and on the versions of the libraries, so compare them on one machine. The data is
that of FIRSTLIGHT_DATA, or the generated sample. `--only stars names` measures the settings whose names contain one of
the words.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEPS = 30
SHORT = (
    *(f"trainer.max_steps={STEPS}", "trainer.max_epochs=-1", "trainer.check_val_every_n_epoch=null"),
    *(f"trainer.val_check_interval={STEPS}", "trainer.limit_val_batches=2", f"trainer.log_every_n_steps={STEPS}"),
    *("threads=1", "test=false", "trainer.accelerator=cpu", "hydra.mode=RUN"),
)
LADDER = "experiment=post/names_ladder"
MORE = {  # what some experiments require besides their name
    "experiment=scaling/coordinate_check": ["model.dim=64"],
    "experiment=scaling/learning_rates": ["model.dim=64"],
    "experiment=scaling/widths": ["model.dim=64"],
    "experiment=scaling/names": ["scale=9k"],
    "experiment=scaling/shakespeare": ["scale=9k"],
}
ALIKE = ("experiment=finetune/causal", "experiment=finetune/bidirectional")  # without init_from=, as their tasks


def settings() -> dict[str, list[str]]:
    """Return the overrides of each setting by its name: tasks, experiments and the steps of the ladder of names."""
    tasks = [f"task={path.stem}" for path in sorted((ROOT / "conf/task").glob("*.yaml"))]
    folder = ROOT / "conf/experiment"
    paths = sorted(path.relative_to(folder).with_suffix("") for path in folder.rglob("*.yaml"))
    experiments = [f"experiment={path.as_posix()}" for path in paths]
    rungs = [f"{LADDER} ladder={path.stem}" for path in sorted((ROOT / "conf/ladder").glob("*.yaml"))]
    names = [name for name in (*tasks, *experiments, *rungs) if name not in (LADDER, *ALIKE)]
    needs_a_file = ("task=text", "task=review_text", "task=reviews")
    return {name: [*name.split(), *MORE.get(name, [])] for name in names if name not in needs_a_file}


def loss_of(overrides: list[str]) -> dict[str, float | str]:
    """Return the losses of one training after STEPS steps, or the error of a training that failed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "src/train.py"), *overrides, *SHORT, f"hydra.run.dir={folder}/run"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        history = Path(folder, "run", "history.jsonl")
        if done.returncode or not history.is_file():
            return {"error": (done.stderr.strip().splitlines() or ["no history"])[-1]}
        lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    found = {key: value for line in lines for key, value in line.items() if key in ("train/loss", "val/loss")}
    return {key: float(value) for key, value in sorted(found.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the file with the losses")
    parser.add_argument("--compare", action="store_true", help="compare with the file instead of writing it")
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of the settings to measure")
    options = parser.parse_args()
    before = json.loads(options.file.read_text(encoding="utf-8")) if options.file.is_file() else {}
    different = 0
    for name, overrides in settings().items():
        if options.only and not any(word in name for word in options.only):
            continue
        found = loss_of(overrides)
        if options.compare:
            is_equal = found == before.get(name)
            different += not is_equal
            print(f"{'equal' if is_equal else 'DIFFERENT':<10} {name}: {found} before: {before.get(name)}", flush=True)
        else:
            before[name] = found
            options.file.write_text(json.dumps(before, indent=1) + "\n", encoding="utf-8")
            print(f"{name}: {found}", flush=True)
    if different:
        sys.exit(f"{different} losses differ")


if __name__ == "__main__":
    main()
