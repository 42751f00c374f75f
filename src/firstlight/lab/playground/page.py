"""The HTML page. Each kind of run has a section with a form, and each run has a panel."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from firstlight.figures import style
from firstlight.kind.kind import Kind
from firstlight.kind.panels.panel import Panel
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.networks.size import num_parameters

SAMPLE = "trained on a GENERATED SAMPLE, not on real data"
COLORS = {
    "for": style.BLUE,
    "against": style.VERMILION,
    "attention": style.GREEN,
    "ink": style.INK,
    "grey": style.GREY,
    "pale": style.PALE,
    "star": style.ORANGE,
}


def page(panels: Sequence[Panel]) -> str:
    """Return the whole page. All texts of a run are escaped."""
    sections = [_section(kind, panels) for kind in KINDS.values() if any(is_of(panel, kind) for panel in panels)]
    return Template(read("page.html")).substitute(sections="\n".join(sections))


def stylesheet() -> str:
    """Return page.css with the colours of the figures."""
    colors = "".join(f"--{name}: {color}; " for name, color in COLORS.items())
    return f":root {{ {colors}}}\n{read('page.css')}"


def read(name: str) -> str:
    """Return the text of a file in this package."""
    return files("firstlight.lab.playground").joinpath(name).read_text(encoding="utf-8")


def fragment(kind: Kind) -> str:
    """Return the form above the runs of a kind, which is in the package of the kind."""
    return files(kind.package).joinpath("panel.html").read_text(encoding="utf-8")


def is_of(panel: Panel, kind: Kind) -> bool:
    """Return whether a panel shows a run of a kind."""
    return panel.kind == kind.name


def _section(kind: Kind, panels: Sequence[Panel]) -> str:
    mine = [(number, panel) for number, panel in enumerate(panels) if is_of(panel, kind)]
    examples = list(dict.fromkeys(example for _, panel in mine for example in panel.examples()))
    buttons = "".join(
        f'<button type="button" class="example" value="{escape(text)}">{escape(text) or "(empty)"}</button>'
        for text in examples
    )
    form = Template(fragment(kind)).substitute(examples=f'<p class="examples">{buttons}</p>' if buttons else "")
    shown = "\n".join(_panel(number, panel.run) for number, panel in mine)
    return (
        f'<section data-kind="{kind.name}">\n<h2>{mine[0][1].title}</h2>\n{form}\n'
        f'<div class="panels">\n{shown}\n</div>\n</section>'
    )


def _panel(number: int, run: Run) -> str:
    sample = f'<p class="sample">{SAMPLE}</p>' if run.data_source == "sample" else ""
    facts = " · ".join(facts_of(run))
    path = escape(str(run.folder.path))
    return (
        f'<article class="panel" data-run="{number}"><header><h3>{escape(title_of(run))}</h3>'
        f'<p class="facts">{escape(facts)}</p><p class="facts">{path}</p>{sample}</header>'
        f'<div class="answer" aria-live="polite"></div></article>'
    )


def title_of(run: Run) -> str:
    """Return the task and the model of a run. For a translator, include the languages."""
    record, data = run.folder.read(), run.config["data"]
    languages = [str(data[name]) for name in ("source_column", "target_column") if data.get(name)]
    pair = f" ({' → '.join(languages)})" if len(languages) == 2 else ""
    return f"{record.get('task')}{pair}, {record.get('model')}"


def facts_of(run: Run) -> list[str]:
    """Return the number of parameters, the optimized metric and the context length of a run as texts."""
    record = run.folder.read()
    metric = record.get("optimized_metric")
    value = (record.get("metrics") or {}).get(metric)
    parameters = num_parameters(run.network) + run.num_counted
    facts = [f"{parameters:,} parameters"]
    if isinstance(value, int | float):
        facts.append(f"{metric} {value:.4g}")
    return [*facts, f"context length {run.config['context_length']:,}"]
