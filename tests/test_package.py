"""The installed package: the content of the wheel, and its commands in an empty folder."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

import firstlight
from tests_support import ROOT, environment, wait_until

NOT_IN_A_WHEEL = ("conf/local/", "conf/wandb_sweep/")  # settings of one machine; W&B's agents start src/train.py
QUICK = ("trainer.max_steps=4", "logger=none", "threads=1", "data.source=sample", "data.max_train_rows=200")


def files_of(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that `python -m build --wheel` makes."""
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


def test_a_wheel_holds_the_configuration(wheel: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "conf"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = {f"firstlight/{name}" for name in tracked.split() if not name.startswith(NOT_IN_A_WHEEL)}
    files = {name for name in files_of(wheel) if name.startswith("firstlight/conf/")}
    assert {name for name in files if name.endswith(".yaml")} == wanted
    assert "firstlight/conf/train.yaml" in wanted


def test_a_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/firstlight", "src/hydra_plugins"]
    tracked = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    wanted = {name.removeprefix("src/") for name in tracked if (ROOT / name).is_file()}
    held = {name for name in files_of(wheel) if not name.startswith("firstlight/conf/") and ".dist-info/" not in name}
    assert held == wanted
    assert {
        "firstlight/py.typed",
        "firstlight/lab/reports/page.html",
        "firstlight/lab/frame.html",
        "firstlight/lab/playground/page.js",
    } <= held
    assert {"firstlight/project_template/gitignore.template", "firstlight/data/samples/pairs/train.jsonl.bz2"} <= held
    assert "hydra_plugins/firstlight_sweeper.py" in held
    assert "hydra_plugins/firstlight_launchers.py" in held


def test_no_run_and_no_encoded_data_is_in_git() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in listed if "logs" in Path(name).parts] == ["logs/.gitkeep"]
    assert not [name for name in listed if name.endswith((".npy", ".npz", ".ckpt", ".arrow", ".parquet"))]


def test_a_wheel_has_the_command_and_the_version(wheel: Path) -> None:
    assert wheel.name == f"firstlight-{firstlight.__version__}-py3-none-any.whl"
    assert wheel.name in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    archive, information = zipfile.ZipFile(wheel), f"firstlight-{firstlight.__version__}.dist-info"
    entry_points = archive.read(f"{information}/entry_points.txt").decode()
    assert "[console_scripts]\nfirstlight = firstlight.__main__:main\n" in entry_points
    assert f"\nVersion: {firstlight.__version__}\n" in archive.read(f"{information}/METADATA").decode()
    assert f"{information}/licenses/LICENSE" in archive.namelist()


def test_settings_of_one_machine_do_not_travel(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        source.mkdir(exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    for name, text in {
        "src/firstlight/version.py": '__version__ = "1"\n',
        "src/hydra_plugins/a.py": "",
        "conf/train.yaml": "a: 1\n",
        "conf/local/default.yaml": "secret: 1\n",
        "conf/wandb_sweep/grid.yaml": "a: 1\n",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (path,) = WheelBuilder(str(source)).build(directory=str(tmp_path), versions=["standard"])
    held = files_of(Path(path))
    assert "firstlight/conf/train.yaml" in held
    assert not [name for name in held if "local" in name or "wandb_sweep" in name]


def test_a_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    (again,) = WheelBuilder(str(next(tmp_path.glob("firstlight-*/")))).build(
        directory=str(tmp_path / "again"), versions=["standard"]
    )
    assert files_of(Path(again)) == files_of(wheel)


def test_an_installation_for_development_leaves_the_configuration_where_it_is(tmp_path: Path) -> None:
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["editable"])
    assert not [name for name in files_of(Path(path)) if "/conf/" in name]


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r'^version: "?([\d.]+)"?$', citation, re.MULTILINE)[1] == firstlight.__version__  # type: ignore[index]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment with the wheel of firstlight and the libraries of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True)
    return environment() | {"PYTHONPATH": str(folder), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.slow  # ten programs, each of which imports torch
def test_an_installed_package_works_in_an_empty_folder(tmp_path: Path, installed: dict[str, str]) -> None:
    def command(*arguments: str, cwd: Path = tmp_path) -> str:
        done = subprocess.run(arguments, cwd=cwd, env=installed, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    where = command(sys.executable, "-c", "import firstlight.config_files as f; print(f.__file__, f.CONFIG_DIR)")
    assert str(ROOT) not in where
    assert (Path(where.split()[1]) / "train.yaml").is_file()
    said = command("firstlight", "train", "task=sentiment", "model=tiny", *QUICK)
    assert "\n  firstlight predict logs/sentiment/runs/" in said
    command("firstlight", "train", "-m", "task=sentiment", "model=tiny", "seed=1,2", *QUICK)
    command("firstlight", "report", "logs")
    assert (tmp_path / "logs" / "report.html").stat().st_size > 100_000
    assert "is already finished" in command("firstlight", "train", f"resume={newest(tmp_path)}")
    run = newest(tmp_path)
    command("firstlight", "train", f"resume={run}", "trainer.max_steps=8")
    assert json.loads((run / "metrics.json").read_text())["steps"] == 8
    assert "negative" in command("firstlight", "predict", "latest", "--text", "It broke after a week.")
    two = ("trainer=ddp", "trainer.devices=2", "trainer.accelerator=cpu", "hydra.run.dir=two")
    for program in (("firstlight",), (sys.executable, "-m", "firstlight")):
        command(*program, "train", "task=sentiment", "model=tiny", *QUICK, *two)
        (tmp_path / "two").rename(tmp_path / f"two by {len(program)}")
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "two by 1", "two by 3"}


def newest(folder: Path) -> Path:
    return max((folder / "logs").glob("*/runs/*/metrics.json"), key=lambda file: file.stat().st_mtime_ns).parent


@pytest.fixture
def birds(tmp_path: Path, installed: dict[str, str]) -> Path:
    """Return the project that `firstlight new birds` makes in tmp_path, with a run."""
    for arguments, cwd in (
        (("new", "birds"), tmp_path),
        (("train", "task=birds", "threads=1", "trainer.max_epochs=2"), tmp_path / "birds"),
    ):
        done = subprocess.run(["firstlight", *arguments], cwd=cwd, env=installed, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "birds"


@pytest.fixture
def playground(birds: Path, installed: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """Start `firstlight playground latest` in the folder of a project."""
    with (birds.parent / "playground.txt").open("w") as output:
        process = subprocess.Popen(
            ["firstlight", "playground", "latest", "--port", "0"],
            cwd=birds,
            env=installed,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        yield process
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.slow  # it trains, sweeps with two workers, tests and serves, each in a separate program
def test_a_new_project_trains_sweeps_passes_its_test_and_is_served(birds, installed, playground) -> None:
    def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(arguments, cwd=birds, env=installed, capture_output=True, text=True, timeout=300)

    sweep = ("-m", "task=birds", "threads=1", "trainer.max_steps=4", "model=birds,logistic", "sweep.name=mine")
    done = command("firstlight", "train", *sweep, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (birds / "logs/sweeps/mine").glob("model-*")} == {"model-birds", "model-logistic"}
    done = command(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    output = birds.parent / "playground.txt"
    wait_until(lambda: "press Ctrl-C to end" in output.read_text(), playground)
    address = next(word for word in output.read_text().split() if word.startswith("http://"))
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310  (http of this machine)
        assert b"<html" in answer.read()
