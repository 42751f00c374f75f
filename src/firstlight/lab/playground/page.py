"""The HTML page. Each kind of run has a section with a form, and each run has a panel."""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from string import Template
from typing import Any

from firstlight.errors import UserError
from firstlight.kind.kind import Kind
from firstlight.kind.panel import Panel
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.lab.frame import framed, packaged
from firstlight.lab.playground.export import exported, unsupported_part
from firstlight.networks.layers import num_parameters

PROMISE = '<p class="facts">Everything runs on this machine. Your texts are not sent anywhere.</p>'
SAMPLE = "trained on a GENERATED SAMPLE, not on real data"
NETWORK_SCRIPTS = ("tensors.js", "text.js", "network.js", "writing.js")  # in this order


def panel_of(run: Run) -> Panel:
    """Return the panel of a run. Raises UserError for a kind without one."""
    kind = KINDS[run.kind]
    if not kind.has("panel"):
        raise UserError(f"{run.path}: the package {kind.package} has no panel.py; write one, or name another run")
    panel: type[Panel] = kind.get("panel")
    return panel(run)


def page(panels: Sequence[Panel]) -> str:
    """Return the whole page of the server. All texts of a run are escaped."""
    return _filled(panels, '<script src="page.js" defer></script>', "script-src 'self'; connect-src 'self'")


def exported_page(panels: Sequence[Panel]) -> str:
    """Return a page that requires no server: it has its scripts, its style and the networks, as base64 of float32.

    The browser refuses every request of the page, and every script except its own. Raises UserError for a run that the
    page cannot compute.
    """
    data = []
    for number, panel in enumerate(panels):
        run = json.dumps(packed(panel))
        of_script = run.replace("<", "\\u003c")  # so that no text of a run ends the element
        data.append(f'<script type="application/json" id="run-{number}">{of_script}</script>')
    script = exported_script()
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    end = "\n".join([*data, f"<script>{script}</script>"])
    return _filled(panels, end, f"script-src 'sha256-{hashed}'", shows_folders=False)


def packed(panel: Panel) -> dict[str, Any]:
    """Return a run for `openSaved` of answers.js. Raises UserError for one that the page cannot compute."""
    description, tensors = exported(panel)
    return {"description": description, "tensors": base64.b64encode(tensors).decode()}


def _filled(panels: Sequence[Panel], end: str, policy: str, *, shows_folders: bool = True) -> str:
    """Return the page with elements at the end of its body. shows_folders: of the runs."""
    kinds = [kind for kind in KINDS.values() if any(panel.kind == kind.name for panel in panels)]
    sections = "\n".join(_section(kind, panels, shows_folders=shows_folders) for kind in kinds)
    body = f"{PROMISE}\n<main>\n{sections}\n</main>\n{end}"
    return framed("firstlight playground", body, ("playground/page.css", "playground/inspector.css"), policy)


def network_script() -> str:
    """Return the script that computes networks in the browser."""
    return "\n".join(packaged(f"playground/{name}") for name in NETWORK_SCRIPTS)


def exported_script() -> str:
    """Return the script of an exported page, which the served page uses too."""
    rest = (packaged(f"playground/{name}.js") for name in ("answers", "steps", "inspector", "page"))
    return "\n".join([network_script(), *rest])


def _section(kind: Kind, panels: Sequence[Panel], *, shows_folders: bool) -> str:
    mine = [(number, panel) for number, panel in enumerate(panels) if panel.kind == kind.name]
    examples = list(dict.fromkeys(example for _, panel in mine for example in panel.examples()))
    buttons = "".join(
        f'<button type="button" class="example" value="{escape(text)}">{escape(text) or "(empty)"}</button>'
        for text in examples
    )
    form = Template(packaged("panel.html", kind.package)).substitute(
        examples=f'<p class="examples">{buttons}</p>' if buttons else ""
    )
    settings = [set(panel.run.folder.read().get("overrides") or ()) for _, panel in mine]
    own = [sorted(each - set.intersection(*settings)) for each in settings]
    shown = "\n".join(
        _panel(number, panel, differs, shows_folder=shows_folders)
        for (number, panel), differs in zip(mine, own, strict=True)
    )
    return (
        f'<section data-kind="{kind.name}">\n<h2>{mine[0][1].title}</h2>\n{form}\n'
        f'<div class="panels">\n{shown}\n</div>\n</section>'
    )


def _panel(number: int, panel: Panel, differs: Sequence[str], *, shows_folder: bool) -> str:
    """Return the panel of a run: its task, model and languages, its size, its optimized metric and its context.

    differs: what was typed for this run and not for all runs of its kind. Values with a path are left out.
    """
    run = panel.run
    record, data = run.folder.read(), run.config["data"]
    languages = [str(data[name]) for name in ("source_column", "target_column") if data.get(name)]
    pair = f" ({' → '.join(languages)})" if len(languages) == 2 else ""
    facts = [f"{num_parameters(run.network) + run.num_counted:,} parameters"]
    value = (record.get("metrics") or {}).get(record.get("optimized_metric"))
    if isinstance(value, int | float):
        facts.append(f"{record['optimized_metric']} {value:.4g}")
    facts.append(f"context length {run.config['context_length']:,}")
    facts += [setting for setting in differs if not set("/\\") & set(setting)]
    title = f"{record.get('task')}{pair}, {record.get('model')}"
    sample = f'<p class="sample">{SAMPLE}</p>' if run.data_source == "sample" else ""
    folder = f'<p class="facts">{escape(str(run.folder.path))}</p>' if shows_folder else ""
    inside = '<details class="inside"><summary>Look inside the network</summary><div></div></details>'
    return (
        f'<article class="panel" data-run="{number}"><header>'
        f"<h3>{escape(title)}</h3>"
        f'<p class="facts">{escape(" · ".join(facts))}</p>{folder}{sample}'
        f'</header><div class="answer" aria-live="polite"></div>{"" if unsupported_part(panel) else inside}</article>'
    )
