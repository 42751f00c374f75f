"""The page itself: a section for each kind of run, with one form, and a panel for each run."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import ClassVar, Protocol

from firstlight.figures import style
from firstlight.networks.size import num_parameters
from firstlight.runs.load import Loaded

TITLES = {"classifier": "Judge a review", "generator": "Go on with a text", "translator": "Translate a sentence"}
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


class Panel(Protocol):
    """A run in the playground."""

    kind: ClassVar[str]

    @property
    def run(self) -> Loaded: ...

    def examples(self) -> tuple[str, ...]: ...


def page(panels: Sequence[Panel]) -> str:
    """The whole page. Nothing that a run says of itself can become a part of its markup."""
    sections = [_section(kind, panels) for kind in TITLES if any(panel.kind == kind for panel in panels)]
    return Template(read("page.html")).substitute(sections="\n".join(sections))


def stylesheet() -> str:
    """page.css, with the colours of the figures."""
    colors = "".join(f"--{name}: {color}; " for name, color in COLORS.items())
    return f":root {{ {colors}}}\n{read('page.css')}"


def read(name: str) -> str:
    """A file that lies beside this one."""
    return files("firstlight.runs.playgrounds").joinpath(name).read_text(encoding="utf-8")


def _section(kind: str, panels: Sequence[Panel]) -> str:
    mine = [(number, panel) for number, panel in enumerate(panels) if panel.kind == kind]
    examples = list(dict.fromkeys(example for _, panel in mine for example in panel.examples()))
    buttons = "".join(
        f'<button type="button" class="example" value="{escape(text)}">{escape(text) or "(nothing)"}</button>'
        for text in examples
    )
    form = Template(read(f"{kind}.html")).substitute(examples=f'<p class="examples">{buttons}</p>' if buttons else "")
    shown = "\n".join(_panel(number, panel.run) for number, panel in mine)
    return (
        f'<section data-kind="{kind}">\n<h2>{TITLES[kind]}</h2>\n{form}\n'
        f'<div class="panels">\n{shown}\n</div>\n</section>'
    )


def _panel(number: int, run: Loaded) -> str:
    sample = f'<p class="sample">{SAMPLE}</p>' if run.data_source == "sample" else ""
    facts = " · ".join(facts_of(run))
    path = escape(str(run.folder.path))
    return (
        f'<article class="panel" data-run="{number}"><header><h3>{escape(title_of(run))}</h3>'
        f'<p class="facts">{escape(facts)}</p><p class="facts">{path}</p>{sample}</header>'
        f'<div class="answer" aria-live="polite"></div></article>'
    )


def title_of(run: Loaded) -> str:
    """The task and the model of a run; of a translator the languages too."""
    record, data = run.folder.read(), run.config["data"]
    languages = [str(data[name]) for name in ("source_column", "target_column") if data.get(name)]
    pair = f" ({' → '.join(languages)})" if len(languages) == 2 else ""
    return f"{record.get('task')}{pair}, {record.get('model')}"


def facts_of(run: Loaded) -> list[str]:
    """How large a run is, how good, and how much it reads."""
    record = run.folder.read()
    metric = record.get("optimized_metric")
    value = (record.get("metrics") or {}).get(metric)
    parameters = num_parameters(run.network)
    facts = [f"{parameters:,} parameters"]
    if isinstance(value, int | float):
        facts.append(f"{metric} {value:.4g}")
    return [*facts, f"reads {run.config['context_length']:,} tokens"]
