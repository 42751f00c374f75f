"""The public names of the packages can be imported and have docstrings with examples that run."""

import csv
import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests_support import imported_by, sample_reviews, sample_rows

PACKAGES = ("data", "lit", "callbacks", "networks", "text", "figures")  # of firstlight, with an __init__.pyi
DATA_MODULES = ("ReviewData", "CharacterData", "ReviewTextData", "PairData")
NAMES = [(package, name) for package in PACKAGES for name in importlib.import_module(f"firstlight.{package}").__all__]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
QUIET = {"ACCELERATOR": "cpu", "ENABLE_PROGRESS_BAR": "False", "ENABLE_MODEL_SUMMARY": "False", "LOGGER": "False"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the examples run, with reviews.csv, novel.txt and pairs.csv."""
    folder = tmp_path_factory.mktemp("examples")
    rows = {"reviews": sample_reviews(60), "pairs": sample_rows("pairs", 60)}
    for name, written in rows.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(written[0]))
            writer.writeheader()
            writer.writerows(written)
    novel = "\n".join(str(row["text"]) for row in rows["reviews"])
    (folder / "novel.txt").write_text(novel + "\n", encoding="utf-8")
    return folder


def public(package: str, name: str) -> Any:
    return getattr(importlib.import_module(f"firstlight.{package}"), name)


def private_bases(found: Any) -> list[type]:
    """Return the private classes of firstlight from which a public class inherits methods."""
    bases = inspect.getmro(found)[1:] if inspect.isclass(found) else ()
    known = {name for _, name in NAMES}
    return [base for base in bases if base.__module__.startswith("firstlight.") and base.__name__ not in known]


def test_importing_a_package_imports_neither_torch_nor_numpy() -> None:
    imports = ", ".join(f"firstlight.{package}" for package in PACKAGES)
    assert not imported_by(f"import {imports}") & {"torch", "numpy"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_its_names_and_has_no_other(package: str) -> None:
    module = importlib.import_module(f"firstlight.{package}")
    assert module.__all__
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_a_public_name_has_a_docstring_with_a_first_line_and_an_example(package: str, name: str) -> None:
    found = public(package, name)
    docstring = vars(found).get("__doc__") if inspect.isclass(found) else found.__doc__  # a class's own
    assert docstring, "it has no separate docstring"
    first, *rest = inspect.cleandoc(docstring).splitlines()
    assert first.endswith(".")
    assert rest[0] == ""
    assert ">>> " in docstring


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_the_examples_of_a_public_name_run(package, name, folder, monkeypatch) -> None:
    import lightning
    import numpy
    import torch

    for key, value in QUIET.items():  # Trainer takes its defaults from these variables
        monkeypatch.setenv(f"PL_TRAINER_{key}", value)
    monkeypatch.chdir(folder)
    torch.manual_seed(1)
    found = public(package, name)
    names = {"torch": torch, "np": numpy, "L": lightning, name: found}
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for part in [found, *private_bases(found)]:
        for example in doctest.DocTestFinder(exclude_empty=True).find(part, part.__name__, globs=names):
            runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert runner.tries > 0


@pytest.mark.parametrize("name", DATA_MODULES)
def test_every_option_of_a_data_module_is_described_in_a_line_of_its_docstring(name: str) -> None:
    kind = public("data", name)
    page = inspect.getdoc(kind) or ""  # Python 3.13 keeps a docstring without its indentation
    arguments = re.search(r"^Args:\n(.*?)\n\n", page, flags=re.MULTILINE | re.DOTALL)
    described = re.findall(r"^    (\w+): \S", arguments[1] if arguments else "", flags=re.MULTILINE)
    assert described == [option for option in inspect.signature(kind).parameters if option != "self"]
