"""The pins, the version ranges of pyproject.toml, and the script that creates an environment."""

import json
import re
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests_support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text()
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][0-9a-z.]*")
PLACE = re.compile(r"://|file:|localhost|(^|\s)[~.]?/|\w\.(com|org|net|io|dev|local|internal|lan)\b", re.IGNORECASE)


def not_public(constraints: str) -> list[str]:
    """Return the lines that are not a public version, or that name a package index or a file."""
    lines = [line.strip() for line in constraints.splitlines() if line.strip()]
    return [line for line in lines if PLACE.search(line) or not (line.startswith("#") or PIN.fullmatch(line))]


def direct_requirements() -> list[Requirement]:
    """Return the dependencies of the project and of each of its extras, other than the project itself."""
    texts = [*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra)]
    return [parsed for text in texts if (parsed := Requirement(text)).name != PROJECT["name"]]


def pins() -> dict[str, Version]:
    """Return the pinned version of each package by its normalized name."""
    pairs = [line.split("==") for line in CONSTRAINTS.splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_every_pin_is_a_public_version_that_any_machine_can_install() -> None:
    assert not_public(CONSTRAINTS) == []
    names = re.findall(r"^([\w.-]+)==", CONSTRAINTS, re.MULTILINE)
    assert len(names) == len(pins()), "a package has two pins"


def test_every_dependency_and_every_extra_is_pinned_to_a_version_in_its_range() -> None:
    pinned = pins()
    for requirement in direct_requirements():
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"constraints.txt has no pin of {name}"
        assert requirement.specifier.contains(pinned[name]), f"{name}=={pinned[name]} is not in {requirement.specifier}"


def test_the_dev_extra_has_every_other_extra_but_ray_which_is_large() -> None:
    (own,) = (parsed for text in EXTRAS["dev"] if (parsed := Requirement(text)).name == PROJECT["name"])
    assert own.extras == EXTRAS.keys() - {"dev", "ray"}


def test_every_package_that_an_installed_dependency_needs_is_pinned() -> None:
    pinned, seen, to_visit = pins(), set(), direct_requirements()
    while to_visit:
        requirement = to_visit.pop()
        name, extras = canonicalize_name(requirement.name), frozenset({"", *requirement.extras})
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if not re.match(r"(nvidia|cuda)-|triton$", name):  # constraints.txt explains why these have no pin
            assert name in pinned, f"constraints.txt has no pin of {name}"
        try:
            needed = [Requirement(text) for text in requires(name) or []]
        except PackageNotFoundError:
            continue  # this environment does not have the extra
        for need in needed:
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras):
                to_visit.append(need)
    assert len(seen) > len(direct_requirements())


@pytest.mark.parametrize(
    ("name", "vulnerable", "fixed"),
    [("lightning", "2.6.5", "2.6.6"), ("hydra-core", "1.3.7", "1.3.8"), ("torch", "2.9.1", "2.10.0")],
)
def test_a_version_with_a_published_vulnerability_is_out_of_range(name: str, vulnerable: str, fixed: str) -> None:
    (requirement,) = (each for each in direct_requirements() if each.name == name)
    assert not requirement.specifier.contains(vulnerable)
    assert requirement.specifier.contains(fixed)


def test_every_place_names_the_same_versions_of_python() -> None:
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    supported = SpecifierSet(PROJECT["requires-python"])
    assert [f"3.{minor}" for minor in range(30) if supported.contains(f"3.{minor}.0")] == classified
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == classified
    first, last = classified[0], classified[-1]
    bounds = f"({first.replace('.', ', ')}) <= sys.version_info[:2] <= ({last.replace('.', ', ')})"
    assert bounds in (ROOT / "scripts" / "environment.sh").read_text()
    for document in ("README.md", "docs/index.md", "Makefile", "scripts/environment.sh"):
        assert f"Python {first} to {last}" in (ROOT / document).read_text(), document


def test_the_docker_image_is_made_of_files_that_exist_and_of_the_pinned_packages() -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    names = [name for name, _ in steps]
    assert names[0] == "FROM"
    (version,) = re.fullmatch(r"python:(3\.\d+)-slim", steps[0][1]).groups()  # type: ignore[union-attr]
    assert SpecifierSet(PROJECT["requires-python"]).contains(f"{version}.0")

    copied = [source for name, step in steps if name == "COPY" for source in step.split()[:-1]]
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {source.partition("/")[0] for source in copied} == sent
    assert all((ROOT / source).exists() for source in copied)
    (install,) = (step.split() for name, step in steps if step.startswith("pip install"))
    assert install[install.index("-c") + 1] == "constraints.txt"
    assert set(re.search(r"\[(.*)\]", install[-1])[1].split(",")) <= EXTRAS.keys()  # type: ignore[index]

    command = json.loads(dict(steps)["CMD"])
    assert command[0] == "python"
    assert (ROOT / command[1]).is_file()
    assert names.index("USER") > max(i for i, name in enumerate(names) if name in ("RUN", "COPY"))
    assert dict(steps)["USER"] != "root"
    (usage,) = (line.split() for line in lines if line.startswith("#   docker run"))
    assert f"{dict(steps)['WORKDIR']}/logs" in usage[usage.index("-v") + 1]
    for document in ("README.md", "docs/index.md"):
        assert all(part in (ROOT / document).read_text() for part in ("docker build -t firstlight .", "WSL")), document


def test_make_setup_ends_with_the_command_that_comes_next(tmp_path: Path) -> None:
    (tmp_path / ".installed").touch()
    make = ["make", "--silent", f"VENV={tmp_path}", "setup"]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"Done. Now run: source {tmp_path}/bin/activate\n"


STAND_IN = """#!/bin/sh
# Replaces an interpreter: answers the calls of scripts/environment.sh, and logs them.
case "$*" in
  "-c import sys"*) exit {unsupported} ;;
  "--version") echo "Python {version}" ;;
  "-m venv --clear "*)
    rm -rf "$4"
    mkdir -p "$4/bin"
    touch "$4/pyvenv.cfg"
    cp "$0" "$4/bin/python"
    echo "{version} made" >> {log} ;;
  "-m pip install"*) echo "installed $*" >> {log}; exit {pip_exit} ;;
esac
"""


class Machine:
    """A folder with scripts in place of interpreters, and the log of their calls."""

    def __init__(self, folder: Path) -> None:
        self.environment = folder / "environment"
        self.folder = folder
        self.log = folder / "log"

    def interpreter(self, version: str, *, unsupported: bool = False, pip_exit: int = 0) -> str:
        path = self.folder / f"python{version}"
        text = STAND_IN.format(version=version, unsupported=int(unsupported), log=self.log, pip_exit=pip_exit)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def make(self, *interpreters: str) -> subprocess.CompletedProcess[str]:
        script = str(ROOT / "scripts" / "environment.sh")
        command = ["sh", script, str(self.environment), " ".join(interpreters), "-c", "constraints.txt"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def notes(self) -> list[str]:
        return [" ".join(line.split()[:2]) for line in self.log.read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_first_supported_python_makes_the_environment_which_is_then_kept(machine: Machine) -> None:
    pythons = machine.interpreter("3.9", unsupported=True), machine.interpreter("3.12"), machine.interpreter("3.13")
    assert machine.make(*pythons).returncode == 0
    assert machine.make(*pythons).returncode == 0
    assert machine.notes() == ["3.12 made", "installed -m", "installed -m"]
    assert machine.log.read_text().endswith(" -c constraints.txt\n")


def test_an_environment_without_its_python_or_with_an_interrupted_installation_is_made_again(machine: Machine) -> None:
    assert machine.make(machine.interpreter("3.12", pip_exit=1)).returncode == 1
    assert machine.make(machine.interpreter("3.12")).returncode == 0
    assert machine.make(machine.interpreter("3.12")).returncode == 0
    assert machine.notes() == ["3.12 made", "installed -m", "3.12 made", "installed -m", "installed -m"]
    (machine.environment / "bin" / "python").unlink()
    (machine.environment / "bin" / "python").symlink_to(machine.folder / "gone")
    assert machine.make(machine.interpreter("3.13")).returncode == 0
    assert machine.notes()[5:] == ["3.13 made", "installed -m"]


def test_without_a_supported_python_one_line_names_what_was_tried_and_the_remedy(machine: Machine) -> None:
    done = machine.make(machine.interpreter("3.9", unsupported=True), "no-such-python")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("Python 3.11 to 3.13 is required")
    assert f"{machine.folder}/python3.9 no-such-python" in done.stderr
    assert "PYTHON=/path/to/python" in done.stderr
    assert not machine.environment.exists()


def test_a_folder_of_something_else_and_an_environment_of_another_python_are_left_as_they_are(machine: Machine) -> None:
    machine.environment.mkdir()
    (machine.environment / "thesis.txt").write_text("words")
    done = machine.make(machine.interpreter("3.12"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not empty and is not a virtual environment" in done.stderr
    assert [path.name for path in machine.environment.iterdir()] == ["thesis.txt"]
    (machine.environment / "thesis.txt").unlink()
    assert machine.make(machine.interpreter("3.12")).returncode == 0
    other = machine.interpreter("3.14", unsupported=True)
    (machine.environment / "bin" / "python").write_text(Path(other).read_text())
    done = machine.make(machine.interpreter("3.12"))
    assert done.returncode == 2
    assert "has Python 3.14, but Python 3.11 to 3.13 is required; remove" in done.stderr
    assert machine.notes() == ["3.12 made", "installed -m"]
