"""Resolve the pins of constraints.txt for each supported Python and platform, and print a table: `make resolve`.

The script requires the network and uv, which evaluates the environment markers for the target. (pip evaluates them for
this machine.) The exit code is 1 if a target does not resolve or requires a package without a pin.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux arm64": "aarch64-manylinux_2_28",
    "macOS 14 arm64": "aarch64-apple-darwin",
}
SOURCE_ONLY = "antlr4-python3-runtime"  # the version that OmegaConf requires has no wheel; it is pure Python
PINNED_BY_TORCH = re.compile(r"(nvidia|cuda)-|triton$")


def supported_pythons() -> list[str]:
    """Return the minor versions that pyproject.toml names, such as 3.11."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    return re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))


def names(lines: str) -> set[str]:
    """Return the normalized names of packages in lines of the form `name==version`."""
    return {re.sub(r"[-_.]+", "-", name).lower() for name in re.findall(r"^([\w.-]+)==", lines, re.MULTILINE)}


def resolve(python: str, platform: str) -> subprocess.CompletedProcess[str]:
    """Resolve all extras for one target, using only wheels. The packages are the lines of the standard output."""
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "--no-config", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    command += ["pyproject.toml", "--all-extras", "--constraints", "constraints.txt"]
    command += ["--only-binary", ":all:", "--no-binary", SOURCE_ONLY]
    command += ["--python-version", python, "--python-platform", platform]
    environment = os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}  # the oldest macOS that PyTorch has a build for
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603


def main() -> int:
    """Print a row for each target, and return the exit code."""
    pinned = names((ROOT / "constraints.txt").read_text())
    failed = False
    print(f"{'Python':8}{'platform':16}{'packages':>8}  result")
    for python in supported_pythons():
        for label, platform in PLATFORMS.items():
            done = resolve(python, platform)
            packages = names(done.stdout)
            unpinned = sorted(name for name in packages - pinned if not PINNED_BY_TORCH.match(name))
            failed |= done.returncode != 0 or bool(unpinned)
            result = done.stderr.strip() or (f"no pin: {', '.join(unpinned)}" if unpinned else "resolves")
            print(f"{python:8}{label:16}{len(packages):8}  {result}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
