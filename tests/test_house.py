"""What holds the house together: imports that point down, short entry scripts, names that shadow no library."""

import importlib.util
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from tests_support import ROOT, SET_THE_MODE

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


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_entry_script_is_short_and_shadows_no_library(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= 15
    assert script.stem not in packages_distributions(), "an installed library has this name"
    assert script.stem not in sys.stdlib_module_names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_readme_shows_every_entry_script(script: Path) -> None:
    assert f"python src/{script.name}" in (ROOT / "README.md").read_text()


def test_every_choice_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    created = re.findall(r"\bfirstlight new (\w+)", readme)  # whose choices are those of the template
    for group, choice in re.findall(
        r"\b(task|model|optimizer|schedule|logger|trainer|experiment|debug)=([\w/]+)", readme
    ):
        path = ROOT / "conf" / group / f"{choice}.yaml"
        if choice in created:
            path = ROOT / "src/firstlight/project_template/conf" / group / "PROJECT_NAME.yaml.template"
        assert path.is_file(), f"{group}={choice}"


def test_only_experiments_and_searches_set_the_mode_of_hydra() -> None:
    setting = {
        path.relative_to(ROOT / "conf").parts[0]
        for path in (ROOT / "conf").rglob("*.yaml")
        if "mode" in (OmegaConf.load(path).get("hydra") or {})
    }
    assert setting == {"experiment", "hparams_search"}
    assert setting < set(SET_THE_MODE)


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
