"""Tests of the content of the HTML page. tests/lab/test_report.py tests it in a browser."""

import base64
import gzip
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from firstlight.figures import style
from firstlight.lab.reports import page as module
from firstlight.lab.reports.all_runs import SavedPredictions
from firstlight.lab.reports.boards import boards
from firstlight.lab.reports.page import as_script, content, libraries, page
from firstlight.runs.summary import Confusion, Curve, Run
from run_folders import a_row, falls

METRIC = "val/accuracy"
LOAD = SavedPredictions(Path("nowhere"))


def content_of(*runs: Run) -> dict[str, Any]:
    found = content(boards(runs, falls), runs, falls, LOAD)
    return json.loads(json.dumps(found, allow_nan=False))


def test_no_character_of_the_data_ends_its_element() -> None:
    data = {"a": "</script><script>alert(1)</script> <!-- & \u2028"}
    text = as_script(data)
    assert not set("<>&") & set(text)
    assert json.loads(text) == data


def test_the_page_is_whole_and_names_no_other_host() -> None:
    (board,) = boards([a_row("a")], falls)
    found = [replace(board, finding="stars: a <b> & c.")]
    html = page("a <b> $title", ["${data}"], found, board.runs, falls, LOAD)
    assert "<title>a &lt;b&gt; $title</title>" in html
    assert "<p>${data}</p>" in html
    assert "<li>stars: a &lt;b&gt; &amp; c.</li>" in html, "without JavaScript too"
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=\"?(https?:)?//", html)
    assert "default-src 'none'" in html
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, flags=re.DOTALL)
    assert json.loads(data)["boards"][0]["runs"][0]["folder"] == "a"


def test_the_libraries_are_packed_for_the_browser() -> None:
    unpacked = gzip.decompress(base64.b64decode(libraries()["plotly"])).decode()
    assert unpacked.lstrip().startswith("/**") and "Plotly" in unpacked
    assert sum(map(len, libraries().values())) < 2_300_000


def test_the_colors_are_those_of_the_figures() -> None:
    palette = re.search(r"const PALETTE = \[(.*?)\]", module.packaged("reports/page.js"))
    assert tuple(re.findall(r"#\w+", palette[1])) == style.PALETTE


def test_what_is_no_number_is_null_in_a_curve() -> None:
    curve = Curve([1, 2, 3], [0.1, 0.2, 0.4], [3.0, math.nan, math.inf])
    (found,) = content_of(a_row("a", curves={"val/loss": curve}))["boards"][0]["runs"][0]["curves"]
    assert found["values"] == {"val/loss": [3, None, None]}


def test_many_long_curves_are_thinned_to_what_fits_into_a_page(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MOST_NUMBERS", 300)
    curve = Curve(list(range(200)), [0.5 * step for step in range(200)], [float(step) for step in range(200)])
    runs = [a_row(name, curves={"val/loss": curve}, keys={"seed": seed}) for seed, name in enumerate("abcd")]
    for run in content_of(*runs)["boards"][0]["runs"]:
        (thin,) = run["curves"]
        assert len(thin["steps"]) == 25
        assert (thin["steps"][0], thin["steps"][-1], thin["values"]["val/loss"][-1]) == (0, 199, 199)
    monkeypatch.setattr(module, "MOST_NUMBERS", 3)
    assert len(content_of(*runs)["boards"][0]["runs"][0]["curves"][0]["steps"]) == module.FEWEST_POINTS


def test_runs_with_equal_values_have_one_rank() -> None:
    runs = [a_row(str(seed), value, keys={"seed": seed}) for seed, value in enumerate((0.9, 0.7, 0.7, 0.5))]
    runs.append(a_row("failed", status="failed", why="the loss is nan", keys={"seed": 9}))
    assert [run["rank"] for run in content_of(*runs)["boards"][0]["runs"]] == [1, 2, 2, 4, None]


def test_matrices_and_texts_are_those_of_the_best_runs(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "DETAILED", 2)
    confusion = Confusion(["x", "y"], [[1, 2], [3, 4]])
    runs = [a_row(str(seed), 0.1 * seed, keys={"seed": seed}, confusion=confusion, texts="t") for seed in (1, 2, 3)]
    written = content_of(*runs)["boards"][0]["runs"]
    assert [run["texts"] for run in written] == ["t", "t", None]
    assert [run["confusion"] is None for run in written] == [False, False, True]
    assert written[0]["confusion"] == {"classes": ["x", "y"], "counts": [[1, 2], [3, 4]]}
