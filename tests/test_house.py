"""Rules of the package: imports point only down, entry scripts are short, and names do not shadow a library."""

import functools
import importlib.util
import inspect
import re
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import grimp
import pytest
from omegaconf import OmegaConf

from firstlight.__main__ import COMMANDS
from firstlight.classifier.network import Classifier
from firstlight.config.schema import PathsConfig, SweepConfig
from firstlight.kind.kind import Kind
from firstlight.kind.registry import KINDS, kind_of_saved
from firstlight.kind.run import PredictingRun
from firstlight.text.options import TokenizerOptions, VectorOptions
from tests_support import ROOT

SOURCE = ROOT / "src/firstlight"
NAMING = [  # modules below the kinds that name a class of one of them
    *(("commands", "generate.py"), ("commands", "train.py")),
    *(("config", "checks.py"), ("lit", "networks.py"), ("kind", "kind.py")),  # as a value of the configuration
]
SCRIPTS = sorted(path for path in (ROOT / "src").glob("*.py"))


def test_imports_point_only_down() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Return the modules of the package that each of its modules imports, also in functions and for typing."""
    graph = grimp.build_graph("firstlight", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_circle_of_imports(imports: dict[str, set[str]]) -> None:
    list(TopologicalSorter(imports).static_order())  # raises CycleError, which names the modules


def test_a_drawing_of_the_imports_shows_the_kinds_side_by_side(imports: dict[str, set[str]]) -> None:
    """Each package is drawn above all that it imports, which no circle prevents; the kinds are then in one row."""
    rooms: dict[str, set[str]] = {}
    for module, imported in imports.items():
        names = [name.split(".")[1] for name in (module, *imported) if "." in name]
        if "." in module:
            rooms.setdefault(names[0], set()).update({*names[1:]} - {names[0]})
    drawing = TopologicalSorter(rooms)
    drawing.prepare()  # raises CycleError, which names the packages
    rows = []
    while drawing.is_active():
        rows.append(set(drawing.get_ready()))
        drawing.done(*rows[-1])
    assert [row & {*KINDS} for row in rows if row & {*KINDS}] == [{*KINDS}]


def test_no_room_holds_more_than_a_fifth_of_the_lines() -> None:
    lines: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        lines[path.relative_to(SOURCE).parts[0]] += len(path.read_text(encoding="utf-8").splitlines())
    room, most = lines.most_common(1)[0]
    assert most < lines.total() / 5, room


def test_nothing_imports_a_command_but_the_doors(imports: dict[str, set[str]]) -> None:
    commands = {f"firstlight.commands.{name}" for name in COMMANDS}
    importing = {module for module, imported in imports.items() if imported & commands}
    importing.remove("firstlight.commands.job")  # the process of a job on a cluster, which trains it
    assert importing == set(), "a script of src/ and `python -m` start a command"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_part_of_a_kind_is_found(kind: Kind) -> None:
    assert len(fields(kind)) <= 10
    assert all(kind.get(module) for module in ("run", "module", "panel"))
    assert kind.has("baseline") == (kind.baseline is not None)
    assert kind.baseline is None or callable(kind.function("baseline", "fit"))
    assert issubclass(kind.model, kind.get("module").config_type)
    assert kind_of_saved({field.name: None for field in fields(kind.model)}) is kind
    assert (issubclass(kind.get("run"), PredictingRun)) == (kind.command == "predict")
    assert (SOURCE / f"{kind.name}/panel.html").is_file()


def test_from_the_script_to_the_network_are_at_most_eight_frames_of_our_own(scripts, tiny_training, monkeypatch):
    frames: list[inspect.FrameInfo] = []

    def forward(self: Classifier, *inputs: Any) -> Any:
        if self.training and not frames:
            frames.extend(each for each in inspect.stack() if Path(each.filename).is_relative_to(ROOT / "src"))
        return original(self, *inputs)

    original = Classifier.forward
    monkeypatch.setattr(Classifier, "forward", forward)
    assert scripts.run("train", *tiny_training).returncode == 0
    own = [each for each in frames if Path(each.filename).stem != "lightning_internals"]  # which replace Lightning's
    assert 3 <= len(own) + 1 <= 8, [each.function for each in own]  # and forward itself


def test_every_kind_is_in_the_registry() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/kind.py")} - {"kind"}
    assert folders == set(KINDS)
    assert all(name == kind.name for name, kind in KINDS.items())


def test_only_the_kinds_themselves_are_named_by_their_own_modules() -> None:
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts
        for name in KINDS:
            if room not in NAMING and room[0] != name:
                assert f"firstlight.{name}" not in path.read_text(encoding="utf-8"), path


@functools.cache
def installed_packages() -> set[str]:
    return set(packages_distributions())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_entry_script_is_short_and_shadows_no_library(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= 15
    assert script.stem not in installed_packages(), "an installed library has this name"
    assert script.stem not in sys.stdlib_module_names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_readme_shows_every_entry_script(script: Path) -> None:
    assert f"python src/{script.name}" in (ROOT / "README.md").read_text()


def test_every_target_of_the_configuration_can_be_found() -> None:
    for path in (ROOT / "conf").rglob("*.yaml"):
        for target in re.findall(r"_target_: (\S+)", path.read_text()):
            module, _, name = target.rpartition(".")
            assert importlib.util.find_spec(module) is not None, target
            assert hasattr(__import__(module, fromlist=[name]), name), target


def test_the_numbers_of_a_size_are_in_one_file_for_each_kind_of_task() -> None:
    sizes = {path.stem for path in (ROOT / "conf/size").rglob("*.yaml")}
    assert sizes == {"tiny", "small", "medium", "large"}
    for size in sizes:
        assert not OmegaConf.load(ROOT / f"conf/model/{size}.yaml"), "it names the files that have the numbers"
    for kind in (ROOT / "conf/size").iterdir():
        for size in sizes:
            numbers = OmegaConf.load(kind / f"{size}.yaml")
            assert set(numbers) == {"dim", "num_heads", "num_layers"}, f"{kind.name}/{size}"


SCHEMAS = {"tokenizer": TokenizerOptions, "vectors": VectorOptions, "paths": PathsConfig, "sweep": SweepConfig}
OF_A_KIND = {  # options that a kind of tokenizer requires: characters and pieces need other limits than words
    *(("tokenizer/char", key) for key in ("max_size", "min_document_frequency")),
    *(("tokenizer/subword", key) for key in ("max_size", "min_document_frequency")),
}


@pytest.mark.parametrize("path", [path for group in SCHEMAS for path in sorted((ROOT / "conf" / group).glob("*.yaml"))])
def test_no_file_of_the_configuration_has_another_default_than_its_dataclass(path: Path) -> None:
    """Only a task, an experiment or a size may set other values."""
    content: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    name = path.relative_to(ROOT / "conf").with_suffix("").as_posix()
    assert content.pop("defaults") == [f"/schema/{path.parent.name}@_here_", "_self_"]
    needed = {"path": "vectors.txt"} if name == "vectors/file" else {}
    kind = {key: value for key, value in content.items() if key == "kind"}
    options = SCHEMAS[path.parent.name](**kind, **needed)
    for key, value in content.items():
        if key != "kind" and (name, key) not in OF_A_KIND:
            assert getattr(options, key) == value, f"{name}.yaml: {key}"
