"""Tests of the shared style and of saving figures."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from firstlight.figures import Curve, plot_curves, style


def test_saving_makes_the_folder_and_replaces_an_older_file_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    path = tmp_path / "figures" / "figure.png"
    style.save(style.new_figure("", 3.0), path)
    style.save(style.new_figure("", 7.0), str(path))
    height, width, _ = imread(path).shape
    assert (abs(height - 840) <= 1, abs(width - 1200) <= 1) == (True, True)  # whatever the width in inches
    before, figure = path.read_bytes(), style.new_figure()

    def fill_the_disk(unfinished: Path, **_: object) -> None:
        unfinished.write_bytes(b"half a figure")
        raise OSError("no space left on device")

    monkeypatch.setattr(figure, "savefig", fill_the_disk)
    with pytest.raises(OSError, match="no space left"):
        style.save(figure, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert "<svg" in style.save(style.new_figure(), tmp_path / "figure.svg").read_text()


@pytest.mark.parametrize("name", ["figure", "figure.", "figure.docx"])
def test_an_unknown_format_is_an_error_that_names_the_file_and_the_remedy(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"is not supported \(supported formats: .*png"):
        style.save(style.new_figure(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_long_name_is_shortened_and_a_short_one_is_kept() -> None:
    assert style.shorten("neutral") == "neutral"
    assert style.shorten("two\nlines") == "two lines"
    assert style.shorten("somewhat but not wholly positive", limit=11) == "somewhat b…"


@pytest.mark.parametrize("heading", ["Short", "A heading that is as long as headings can be " * 3])
def test_a_figure_of_generated_data_says_so_in_its_heading(heading: str) -> None:
    figure = style.new_figure()
    style.heading(figure, heading)
    style.mark_sample(figure)
    assert figure.get_suptitle().startswith(heading[:50].rstrip())
    assert figure.get_suptitle().endswith(" – GENERATED SAMPLE")
    assert len(figure.get_suptitle()) <= 80


def test_a_dollar_in_a_label_or_a_legend_is_no_mathematics() -> None:
    name = "$x_$ <b>"
    labels = style.new_figure()
    style.heading(labels, "from $5 to $6_{}^")
    style.label_axes(labels.subplots(), name, name, name)
    labels.draw_without_rendering()
    plot_curves({name: [Curve(name, np.array([1, 2]), np.array([0.5, 0.4]), style.BLUE)]}).draw_without_rendering()


def test_drawing_changes_no_global_setting_and_never_imports_pyplot() -> None:
    code = """
import sys, matplotlib
def settings():  # without the backend: reading it loads one
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
import numpy as np
from firstlight.figures.confusion_matrix import plot_confusion_matrix
from firstlight.figures.stars import plot_predicted_per_star, plot_probability_per_star
plot_confusion_matrix(np.eye(3, dtype=int), ["a", "b", "c"])
plot_predicted_per_star(np.array([0, 1]), np.array([1, 1]), ["a", "b"])
plot_probability_per_star(np.array([0.5]), np.array([3]))
assert "matplotlib.pyplot" not in sys.modules
assert settings() == before
"""
    source = Path(__file__).parents[2] / "src"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=source, timeout=120)
