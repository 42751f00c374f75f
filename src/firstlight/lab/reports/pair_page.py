"""The comparison of two runs as a page that works offline: sentences, tables, and the curves on one axis."""

import html
from string import Template
from typing import Any

from firstlight.lab.reports.changed_predictions import A, B
from firstlight.lab.reports.packed import Packed, libraries
from firstlight.lab.reports.page import as_script, finite, packaged
from firstlight.lab.reports.pair import Pair
from firstlight.runs.summary import SAMPLE_MARK, Run

DRAWN = ("val/", "train/")  # metrics whose curves are drawn
SPEED = "_per_second"
MOST_CURVES = 8
SAMPLE_BADGE = f' <span class="badge">{SAMPLE_MARK}</span>'


def pair_page(found: Pair) -> str:
    """Return the whole page. All texts of runs are escaped."""
    curves = _curves(found)
    packed = libraries() if curves else Packed("", ())
    return Template(packaged("pair.html")).substitute(
        title=html.escape(f"{B} against {A}: {found.metric}"),
        runs="\n".join(
            f"<p><b>{name}</b> {html.escape(run.folder)}{SAMPLE_BADGE if run.is_sample else ''}</p>"
            for name, run in ((A, found.first), (B, found.second))
        ),
        sentences="\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in found.sentences),
        tables="\n".join(table.html() for table in found.tables),
        style=packaged("page.css"),
        libraries=packed.text,
        sizes=",".join(map(str, packed.sizes)),
        data=as_script(curves),
        unpack=packaged("unpack.js"),
        script=packaged("pair.js"),
    )


def _curves(found: Pair) -> list[dict[str, Any]]:
    """Return the curves of the metrics that both runs have, the metric of the comparison first."""
    common = [name for name in found.first.curves if name in found.second.curves]
    chosen = [name for name in common if name.startswith(DRAWN) and not name.endswith(SPEED)]
    chosen.sort(key=lambda name: (name != found.metric, not name.startswith("val/"), name))
    sides = ((A, found.first), (B, found.second))
    return [{"metric": name, "lines": [_line(side, run, name) for side, run in sides]} for name in chosen[:MOST_CURVES]]


def _line(side: str, run: Run, metric: str) -> dict[str, Any]:
    curve = run.curves[metric]
    return {"name": side, "steps": list(curve.steps), "values": [finite(value) for value in curve.values]}
