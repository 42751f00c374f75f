"""Untrusted checkpoints, run folders and sweeps cannot run code, use the network or write to other folders."""

import builtins
import codecs
import ctypes
import functools
import importlib
import io
import json
import logging
import operator
import os
import pathlib
import pickle
import runpy
import shutil
import socket
import subprocess
import types
import webbrowser
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faults.conftest import DATA_OF, TASKS, RunOf, TrainingOf
from faults.damage import answered, is_refused
from faults.trials import Trials, drawn
from faults.watch import watched
from firstlight.kind.load import load
from firstlight.lit.checkpoint import METADATA, read_checkpoint
from firstlight.spelling import quoted
from stand_ins import Calls
from tests_support import Scripts

PLACES = (
    *("the whole file", "state_dict", "metadata", "config"),
    *("optimizer_states", "callbacks", "loops", "hyper_parameters"),
)


def payloads(canary: Path, elsewhere: Path) -> dict[str, Any]:
    """Return objects whose pickles create the canary or write elsewhere when they are loaded."""
    touch = f"touch '{canary}'"
    code = f"open({str(canary)!r}, 'w').close()"
    script = elsewhere / "script.py"
    script.write_text(code)
    nested = io.BytesIO()
    pickle.dump(Calls(os.system, touch), nested)
    return {
        "os.system": Calls(os.system, touch),
        "os.popen": Calls(os.popen, touch),
        "os.remove": Calls(os.remove, str(script)),
        "subprocess.Popen": Calls(subprocess.Popen, ["touch", str(canary)]),
        "subprocess.getoutput": Calls(subprocess.getoutput, touch),
        "exec": Calls(builtins.exec, code),
        "eval": Calls(builtins.eval, code),
        "compile": Calls(builtins.compile, code, "x", "exec"),
        "open": Calls(builtins.open, str(canary), "w"),
        "io.open": Calls(io.open, str(canary), "w"),
        "codecs.open": Calls(codecs.open, str(canary), "w"),
        "getattr": Calls(builtins.getattr, pathlib.Path, "touch"),
        "import": Calls(importlib.import_module, "this"),
        "runpy": Calls(runpy.run_path, str(script)),
        "Path.touch": Calls(pathlib.Path.touch, canary),
        "shutil.rmtree": Calls(shutil.rmtree, str(elsewhere)),
        "FileHandler": Calls(logging.FileHandler, str(canary), "w"),
        "partial": functools.partial(os.system, touch),
        "methodcaller": Calls(operator.methodcaller, "touch"),
        "attrgetter": operator.attrgetter("system"),
        "torch.load": Calls(torch.load, io.BytesIO(nested.getvalue()), "cpu"),
        "torch.hub.load": Calls(torch.hub.load, str(elsewhere), "script"),
        "torch.storage": Calls(torch.storage._load_from_bytes, nested.getvalue()),
        "torch.jit": Calls(torch.jit.load, str(script)),
        "torch.Generator": Calls(torch.serialization.load, str(script)),
        "numpy.save": Calls(np.save, str(canary), [1]),
        "numpy.load": Calls(np.load, str(script), None, True),
        "numpy.objects": np.array([Calls(os.system, touch)], dtype=object),
        "pickle.loads": Calls(pickle.loads, nested.getvalue()),
        "connection": Calls(socket.create_connection, ("127.0.0.1", 9)),
        "webbrowser": Calls(webbrowser.open, "http://127.0.0.1:9"),
        "CDLL": Calls(ctypes.CDLL, str(script)),
        "CodeType": Calls(types.SimpleNamespace),
        "a huge tensor": Calls(torch.zeros, 10**12),
        "a huge list": Calls(operator.mul, [0], 10**12),
        "a huge bytearray": Calls(bytearray, 10**13),
    }


@pytest.mark.faults("hostile: pickles in checkpoints")
@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_checkpoint_is_refused(place: str, trials: Trials, copied: RunOf, tmp_path: Path) -> None:
    run, elsewhere, canary = copied("sentiment"), tmp_path / "elsewhere", tmp_path / "canary"
    path = run / "checkpoints" / "best.ckpt"
    elsewhere.mkdir()
    whole = read_checkpoint(path)
    for name, payload in drawn([*payloads(canary, elsewhere).items()], f"payloads in {place}"):
        for protocol in (2, 4):
            write_hostile(whole, place, payload, path, protocol)
            with trials.one(f"{name} in {place}, protocol {protocol}"), watched(run):
                assert answered(lambda: load(run)) is None, "it was read"
                assert answered(lambda: read_checkpoint(path)) is None
                assert not canary.exists(), "its code was run"
                assert (elsewhere / "script.py").exists()


def write_hostile(whole: dict[str, Any], place: str, payload: Any, path: Path, protocol: int) -> None:
    """Write a checkpoint that contains a payload."""
    content = dict(whole)
    if place == "the whole file":
        path.write_bytes(pickle.dumps(payload if not isinstance(payload, io.BytesIO) else None, protocol=protocol))
        return
    if place == "metadata":
        content[METADATA] = {**whole[METADATA], "class_names": payload}
    elif place == "config":
        content[METADATA] = {**whole[METADATA], "config": {**whole[METADATA]["config"], "seed": payload}}
    elif place == "state_dict":
        content["state_dict"] = {**whole["state_dict"], "network.extra": payload}
    else:
        content[place] = {"payload": payload}
    torch.save(content, path, pickle_protocol=protocol)


@pytest.mark.faults("hostile: pickles in checkpoints")
def test_hostile_archives_are_refused(trials: Trials, copied: RunOf, tmp_path: Path) -> None:
    run, canary = copied("sentiment"), tmp_path / "canary"
    path = run / "checkpoints" / "best.ckpt"
    whole = path.read_bytes()
    code = pickle.dumps(Calls(os.system, f"touch '{canary}'"))
    name = next(part for part in zipfile.ZipFile(path).namelist() if part.endswith("data.pkl"))
    archives: dict[str, Callable[[], None]] = {
        "another data.pkl": lambda: write_archive(path, whole, {name: code}),
        "a second data.pkl": lambda: append(path, whole, {name: code}),
        "a constants.pkl": lambda: append(path, whole, {name.replace("data.pkl", "constants.pkl"): code}),
        "code for torch.jit": lambda: append(
            path, whole, {name.replace("data.pkl", "code/__torch__.py"): b"import os"}
        ),
        "a path out of the archive": lambda: append(path, whole, {"../../../canary": b"x", "/canary": b"x"}),
        "a tar": lambda: path.write_bytes(tar_of({"pickle": code, "storages": code, "tensors": code})),
        "a pickle before the archive": lambda: path.write_bytes(code + whole),
        "a pickle after the archive": lambda: path.write_bytes(whole + code),
        "a bomb of zeros": lambda: append(path, whole, {"bomb": bytes(300_000_000)}),
        "npz": lambda: np.savez(path.open("wb"), a=np.array([Calls(os.system, "true")], dtype=object)),
    }
    for kind, write in archives.items():
        write()
        with trials.one(kind), watched(run):
            answered(lambda: load(run))
            assert not canary.exists(), "its code was run"


def write_archive(path: Path, whole: bytes, changed: dict[str, bytes]) -> None:
    with zipfile.ZipFile(io.BytesIO(whole)) as before, zipfile.ZipFile(path, "w") as after:
        for part in before.namelist():
            after.writestr(part, changed.get(part, before.read(part)))


def append(path: Path, whole: bytes, parts: dict[str, bytes]) -> None:
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def tar_of(parts: dict[str, bytes]) -> bytes:
    import tarfile

    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, content in parts.items():
            part = tarfile.TarInfo(name)
            part.size = len(content)
            archive.addfile(part, io.BytesIO(content))
    return written.getvalue()


def hostile_overrides(canary: Path, elsewhere: Path) -> Iterable[list[str]]:
    """Yield lines of .hydra/overrides.yaml that run code, or read or write outside of the run."""
    there, touch = str(elsewhere), f"touch {canary}"
    (elsewhere / "hubconf.py").write_text(f"def x():\n    open({str(canary)!r}, 'w').close()\n")
    torch.save(Calls(os.system, touch), elsewhere / "evil.pt")
    (elsewhere / "conf").mkdir()
    (elsewhere / "conf" / "evil.yaml").write_text(
        f"# @package _global_\ncallbacks:\n  x: {{_target_: os.system, command: '{touch}'}}\n"
    )
    (elsewhere / "precious").write_text("precious")
    hub = f"{{_target_: torch.hub.load, repo_or_dir: '{there}', source: local, model: x, trust_repo: true}}"
    opened = f"{{_target_: torch.load, f: '{there}/evil.pt', weights_only: false}}"
    shell = f"{{_target_: os.system, command: '{touch}'}}"
    handler = f"{{_target_: logging.FileHandler, filename: '{there}/precious', mode: w}}"
    saved = f"{{_target_: numpy.savetxt, fname: '{there}/precious', X: [1]}}"
    written = f"{{_target_: builtins.open, file: '{there}/precious', mode: w}}"
    by_name = f"{{_target_: hydra.utils.call, config: {shell}}}"
    profiler = f"{{_target_: lightning.pytorch.profilers.SimpleProfiler, dirpath: '{there}', filename: precious}}"
    for target in (hub, opened, shell, handler, saved, written, by_name):
        yield [f"+callbacks.x={target}"]
        yield [f"+logger.x={target}"]
        yield [f"+trainer.plugins=[{target}]"]
    targets = ("os.system", "builtins.eval", "torch.hub.load", "subprocess.Popen", "firstlight.training.fit.train")
    for key in ("optimizer", "schedule", "trainer", "data", "module", "callbacks.checkpoint", "callbacks.progress"):
        yield from ([f"++{key}._target_={target}"] for target in targets)
    for place in ("trainer.profiler", "trainer.strategy", "trainer.logger", "callbacks.checkpoint.folder", "model.dim"):
        yield [f"++{place}={shell}"]
    yield [f"hydra.searchpath=[file://{there}/conf]", "+evil@_global_=evil"]
    yield [f"hydra.searchpath=[file://{there}/conf]", "experiment=evil"]
    yield ["-c", "job"]
    yield ["data.source=hub", "data.hub=a/b"]
    for line in (
        *(f"+trainer.profiler={profiler}", f"hydra.job_logging.handlers.file.filename={there}/precious"),
        f"+hydra.job_logging.handlers.x={{class: logging.FileHandler, filename: '{there}/precious', mode: w}}",
        f"+hydra.job_logging.handlers.x={{'()': os.system, command: '{touch}'}}",
        *(f"+hydra.callbacks.x={shell}", f"+hydra.job.env_set.PATH={there}", f"hydra.run.dir={there}/run"),
        *(f"hydra.output_subdir={there}/sub", f"paths.output_dir={there}/out", f"paths.log_dir={there}/logs"),
        *("hydra.job.chdir=true", f"resume={there}", f"init_from={there}", "hydra.mode=MULTIRUN"),
        *("hydra/launcher=joblib", "tags=['${oc.env:HOME}']", "seed=${oc.env:SEED}", "hydra.verbose=true"),
        *("--multirun", f"--config-dir={there}/conf", "--help", "experiment=../../../../etc/passwd", "~trainer"),
    ):
        yield [line]


@pytest.mark.faults("hostile: run folders that are resumed")
@pytest.mark.parametrize("part", range(4))
def test_a_hostile_run_folder_runs_no_code(part: int, trials: Trials, finished: RunOf, tmp_path: Path) -> None:
    elsewhere, canary, inside = tmp_path / "elsewhere", tmp_path / "canary", tmp_path / "inside"
    for folder in (elsewhere, inside):
        folder.mkdir()
    scripts = Scripts(inside)
    for lines in drawn([*hostile_overrides(canary, elsewhere)], "overrides")[part::4]:
        run = inside / "run"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(finished("sentiment"), run)
        with (run / ".hydra" / "overrides.yaml").open("a") as file:
            file.writelines(f"- {json.dumps(line)}\n" for line in lines)
        with trials.one(str(lines), seconds=120), watched(inside):
            done = scripts.run("train", f"resume={run}", "trainer.max_steps=52", f"paths.cache_dir={inside / 'cache'}")
            assert not canary.exists(), "its code was run"
            assert (elsewhere / "precious").read_text() == "precious", "its file was written"
            is_refused(done)
        canary.unlink(missing_ok=True)
        (elsewhere / "precious").write_text("precious")


HOSTILE_SETTINGS = (
    *("data.url=http://127.0.0.1:9/evil", "data.name=../../../elsewhere/x", "data.hub=127.0.0.1:9/evil"),
    *("data.path=http://127.0.0.1:9/evil", "data.path=/dev/zero", "data.path=/proc/self/environ"),
    *("data.cache_dir={elsewhere}/cache", "data._target_=os.system", "data.text_column=${oc.env:HOME}"),
    *("paths.output_dir={elsewhere}", "paths.cache_dir={elsewhere}/cache", "paths.log_dir={elsewhere}"),
    *("tokenizer._target_=os.system", f"tokenizer.max_size={10**12}", "tokenizer.unknown_symbol=${oc.env:HOME}"),
    *("vectors.path=/etc/passwd", f"model.dim={10**6}", f"model.num_layers={10**6}", "model._target_=os.system"),
    *("module._target_=os.system", "optimizer._target_=os.system", "trainer._target_=os.system"),
)


@pytest.mark.faults("hostile: metadata of checkpoints")
@pytest.mark.parametrize("task", TASKS)
def test_metadata_chooses_no_path_no_address_and_no_code(task, trials, copied, small_data, tmp_path) -> None:
    run, elsewhere = copied(task), tmp_path / "elsewhere"
    inside = tmp_path / "inside"
    for folder in (elsewhere, inside):
        folder.mkdir()
    path = run / "checkpoints" / "best.ckpt"
    whole = read_checkpoint(path)
    uses = [
        ["evaluate", run],
        ["evaluate", run, "--data.path", small_data / DATA_OF[task]],
        ["explore", run, "--figures", "curves"],
    ]
    uses += [["generate", run, "--tokens", "5"]] if task == "names" else [["predict", run, "--text", "A man."]]
    scripts = Scripts(inside)
    for setting in drawn(HOSTILE_SETTINGS, f"settings {task}"):
        place, _, typed = setting.partition("=")
        group, key = place.split(".")
        value = int(typed) if typed.isdigit() else typed.replace("{elsewhere}", str(elsewhere))
        config = {**whole[METADATA]["config"]}
        config[group] = {**(config.get(group) or {}), key: value}
        torch.save({**whole, METADATA: {**whole[METADATA], "config": config}}, path)
        for name, *arguments in uses:
            with trials.one(f"{task} {setting}: {name} {arguments}", seconds=60), watched(inside, run):
                done = scripts.run(name, *map(str, arguments))
                is_refused(done)
                shown = (done.stdout + done.stderr).replace(str(tmp_path), "")
                assert os.environ["HOME"] not in shown, "an interpolation was resolved"
                assert not any(elsewhere.iterdir()), "it wrote elsewhere"
            shutil.rmtree(elsewhere)
            elsewhere.mkdir()


@pytest.mark.faults("hostile: sweep folders")
def test_a_hostile_sweep_folder_runs_no_code(trials: Trials, training: TrainingOf, tmp_path: Path) -> None:
    """The same command reads the record of a job again, but does not run anything in it."""
    inside, elsewhere, canary = tmp_path / "inside", tmp_path / "elsewhere", tmp_path / "canary"
    for folder in (elsewhere, inside):
        folder.mkdir()
    scripts = Scripts(inside)
    short = [*training("sentiment"), "trainer.max_steps=4", "seed=1,2", "sweep.name=s"]
    scripts.succeed("train", "-m", *short)
    sweep = inside / "logs" / "sweeps" / "s"
    files = [*sweep.glob("*/.hydra/*.yaml"), *sweep.glob("*/config.yaml"), sweep / "multirun.yaml"]
    lines = [
        f"callbacks: {{x: {{_target_: os.system, command: 'touch {canary}'}}}}\n",
        f"!!python/object/apply:os.system ['touch {canary}']\n",
        f"- +callbacks.x={{_target_: os.system, command: 'touch {canary}'}}\n",
        f"hydra: {{run: {{dir: {elsewhere}}}, sweep: {{dir: {elsewhere}}}}}\n",
    ]
    for file in drawn(files, "files of a sweep"):
        before = file.read_text()
        for line in lines:
            for content in (line, before + line):
                file.write_text(content)
                with trials.one(f"{file.relative_to(sweep)}: {line}", seconds=60), watched(inside):
                    done = scripts.run("train", "-m", *short)
                    is_refused(done)
                    scripts.succeed("report", "logs")
                    assert not canary.exists()
        file.write_text(before)
    names = ["../../x", "../x", str(elsewhere / "x"), "a/../../../x", "~/x", "${oc.env:HOME}/x"]
    for name in names:
        with trials.one(f"sweep.name={name}", seconds=60), watched(inside):
            is_refused(scripts.run("train", "-m", *short[:-1], f"sweep.name={quoted(name)}"))
            assert not any(elsewhere.iterdir())
            found = [path for path in inside.rglob("metrics.json") if sweep.parent not in path.parents]
            assert not found, f"sweep.name={name} wrote to {found[0]}"
        for folder in inside.iterdir():
            if folder.name != "logs":
                shutil.rmtree(folder)
