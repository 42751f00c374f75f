"""The imports of networks/ and decoding/: torch, the standard library, and the package's module of choices."""

import ast
import sys

import pytest

from tests_support import ROOT

FOLDERS = ("networks", "decoding")
ALLOWED = {"torch", "firstlight.networks", "firstlight.decoding", "firstlight.choices"}
FILES = [path for folder in FOLDERS for path in sorted((ROOT / "src" / "firstlight" / folder).glob("*.py"))]


def imported(source: str) -> set[str]:
    """Return the modules that a file imports. Modules outside firstlight are shortened to their top-level package."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module) if not node.level else "a relative import")
    return {".".join(name.split(".")[: 2 if name.startswith("firstlight") else 1]) for name in names}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_networks_and_decoding_import_only_torch_and_the_standard_library(path) -> None:
    allowed = ALLOWED | ({"firstlight.lazy"} if path.name == "__init__.py" else set())
    assert imported(path.read_text(encoding="utf-8")) - set(sys.stdlib_module_names) <= allowed
