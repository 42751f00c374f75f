"""The benchmarks at sizes too small for measurements. The tests check that they run and what their tables contain."""

import os
import runpy
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmark_tables import names, shares
from tests_support import ROOT

SCRIPTS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if 'if __name__ == "__main__"' in path.read_text())


class Benchmark:
    """Runner of scripts in this process, which has already imported torch."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def __call__(self, name: str, *arguments: str) -> str:
        """Run a script, and return its output."""
        script = str(ROOT / "benchmarks" / f"{name}.py")
        path = [str(ROOT / "benchmarks"), *sys.path]
        self.capsys.readouterr()
        with (
            patch.object(sys, "argv", [script, *arguments]),
            patch.object(sys, "path", path),
            patch.dict(os.environ, {"FIRSTLIGHT_DATA": str(self.folder / "none")}),
        ):
            runpy.run_path(script, run_name="__main__")
        return self.capsys.readouterr().out


@pytest.fixture
def benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    monkeypatch.chdir(tmp_path)
    return Benchmark(tmp_path, capsys)


@pytest.fixture
def sample(small_sample: str) -> list[str]:
    """Return overrides for the generated sample, which is generated and encoded once for all tests."""
    return ["data.source=sample", small_sample]


def test_generation_compares_the_cache_with_recomputing(benchmark: Benchmark) -> None:
    sizes = ["--tokens", "7", "--dim", "12", "--heads", "3", "--layers", "2", "--context-length", "5", "--pairs", "1"]
    assert names(benchmark("generation", *sizes)) == ["recomputed", "half", "roll", "slide"]


def test_products_of_each_number_of_dimensions_are_checked_and_compared(benchmark: Benchmark) -> None:
    sizes = ["--rows", "3", "--inner", "2", "--columns", "5", "--heads", "2", "--batch-size", "2", "--pairs", "1"]
    assert names(benchmark("products", *sizes)) == ["2 dimensions", "3 dimensions", "4 dimensions"]


@pytest.mark.parametrize("script", ["loop", "profile_step"])
def test_a_mistake_in_an_override_is_answered_as_by_a_run(script, benchmark, capsys) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        benchmark(script, "dropuot=1")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "error: dropuot is not a key of the configuration; did you mean dropout?\n"


@pytest.mark.slow  # a script for developers
@pytest.mark.usefixtures("small_sample")
def test_encoding_compares_three_encodings_and_two_starts(benchmark: Benchmark) -> None:
    printed = benchmark("encoding", "--texts", "60", "--repeats", "1", "--source", "sample")
    assert names(printed) == ["words", "words", "subwords", "characters", "cold", "cached", "ratio"]


def test_without_a_gpu_the_benchmark_of_gpus_says_so_in_a_line(benchmark, capsys) -> None:
    with patch("torch.cuda.is_available", lambda: False), pytest.raises(SystemExit, match=r"^2$"):
        benchmark("gpu")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "this machine has no GPU; use --device cpu to run the same code without one\n"


THIRD_KIND = pytest.param("translation", marks=pytest.mark.slow)  # two kinds of network are already tested


@pytest.mark.slow  # 4 s of processor time; `make test` checks its --help and its mistakes
@pytest.mark.parametrize("task", ["sentiment", THIRD_KIND])
def test_a_profile_of_a_step_has_all_its_parts(benchmark: Benchmark, task: str, sample: list[str]) -> None:
    printed = benchmark("profile_step", f"task={task}", *sample, "model=tiny", "context_length=31", "--steps", "3")
    network = {f"forward: {part}" for part in ("embedding", "attention", "feed-forward", "norms", "dropout", "head")}
    assert network | {"batch", "loss", "backward", "optimizer", "clipping", "schedule", "callbacks and logging"} <= set(
        names(printed)
    )
    assert sum(shares(printed)) == pytest.approx(100, abs=0.05 * len(shares(printed)))
    assert any(name.startswith("aten::") for name in names(printed))


@pytest.mark.slow  # minutes of whole processes
def test_startup_measures_whole_processes(benchmark: Benchmark) -> None:
    found = names(benchmark("startup", "--repeats", "1", "--source", "sample"))
    assert found[:3] == ["python -c pass", "import torch", "import torch, lightning"]
    assert found[-6:-4] == ["first step, cold", "first step, cached"]
    assert found[-4:] == ["predict", "generate", "evaluate", "explore"]


@pytest.mark.slow  # minutes of whole processes
def test_launchers_are_compared_with_a_single_process(benchmark: Benchmark) -> None:
    printed = benchmark("launchers", "--jobs", "2", "--steps", "1", "--launchers", "basic", "joblib")
    assert names(printed) == ["one process", "basic", "joblib"]


@pytest.mark.slow  # minutes of whole processes
def test_a_sweep_is_compared_with_its_fits_and_one_start(benchmark: Benchmark) -> None:
    printed = benchmark("sweep", "--jobs", "2", "--steps", "1", "--source", "sample", "--launchers", "basic")
    assert names(printed) == ["basic"]


def test_the_aims_take_their_figures_from_the_tables_of_the_scripts_and_keep_the_others(tmp_path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("Before\n<!-- begin of the aims -->\n<!-- end of the aims -->\nAfter\n")
    with patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
        import aims  # type: ignore[import-not-found]
    for script, ratio in (("loop", "1.5 (1.4 to 1.6)"), ("generation", "7")):
        rows = [["difference", "0.3"], ["ratio", ratio], ["half", "100", ratio], ["slide", "9", "3"]]
        given = ["aims.py", "--only", script, "--nanogpt", "clone"]
        with patch.multiple(aims, README=readme, tables=lambda *_: rows), patch.object(sys, "argv", given):  # noqa: B023
            aims.main()
    text = readme.read_text()
    assert (text[:7], text[-6:], text.count("| 1.5 (1.4 to 1.6) |")) == ("Before\n", "After\n", 3)
    assert "half windows | `generation.py --pairs 5 --nanogpt` | 7.5 | ≥ 10 | 7 |" in text
    assert "| not measured |" in text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_benchmark_has_a_help_and_stands_in_the_list(script: Path, benchmark: Benchmark) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        benchmark(script.stem, "--help")
    assert f"`python benchmarks/{script.name}" in (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
