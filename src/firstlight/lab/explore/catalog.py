"""Catalog of the figures of `explore`, with their requirements and captions. Imports no heavy library.

The functions of `data.py` plot the figures that `data.yaml` next to it describes, and so on. `figures.py` and
`figures.yaml` of a kind have those of the kind. The function `NAME(subject)` plots the figure NAME.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstlight.choices import nearest
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.kind.kind import Drawn, Kind
from firstlight.kind.registry import KINDS, kind_of_saved

if TYPE_CHECKING:
    from firstlight.kind.subject import Subject

HERE = __name__.rpartition(".")[0]


@dataclass(frozen=True)
class Drawing:
    """Figure of `explore`.

    caption: describes the figure and what to look for. needs: the required traits of the run or task, separated by
    spaces, as in `traits_of`. module: the module of the function that draws it. default: the traits that are required
    as well, unless the user names the figure.
    """

    name: str
    caption: str
    needs: str
    module: str
    default: str = ""

    def draw(self, subject: "Subject") -> Drawn:
        """Import the module and return the figure."""
        drawn: Drawn = getattr(import_module(self.module), self.name)(subject)
        return drawn


def drawings(kinds: Mapping[str, Kind] = KINDS) -> list[Drawing]:
    """Return all figures: those of data, those of each kind of network, and those of every run."""
    of_kinds = [each for kind in kinds.values() for each in _described(kind.package, "figures", kind.name)]
    of_runs = [each for module in ("network", "interventions", "training") for each in _described(HERE, module)]
    return [*_described(HERE, "data"), *of_kinds, *of_runs]


def _described(package: str, module: str, kind: str = "") -> list[Drawing]:
    """Return the figures that the YAML file of a module describes; [] without a file. kind: a trait that all need."""
    path = Path(str(files(package))) / f"{module}.yaml"
    described = read_yaml(path) if path.is_file() else {}
    place = f"{package}.{module}"
    return [
        Drawing(name, each["caption"], f"{kind} {each.get('needs', '')}", place, each.get("default", ""))
        for name, each in described.items()
    ]


def form_of(data: Mapping[str, Any]) -> str:
    """Return the form of the data that the options of `data` describe: `reviews`, `pairs`, or `characters` for text.

    Each form has its own figures, which do not depend on the kind of network.
    """
    return "reviews" if "text_column" in data else "pairs" if "source_column" in data else "characters"


def traits_of(config: dict[str, Any], *, is_run: bool) -> frozenset[str]:
    """Return the traits of a resolved config, as used by Drawing.needs.

    The traits of a run are: run, the name of its kind, attention, layers (it has several layers of attention),
    embedding, encoded (positions have an encoding), and one_text (it reads one text or pair at a time, not several
    answers). The traits of its data are: reviews, labels, stars, characters, pairs and words.
    """
    model, data = config["model"], config["data"]
    form = form_of(data)
    traits = {
        form: True,
        "words": form == "reviews" or data.get("preparation", "lines") != "lines",
        "labels": "labels" in data,
        "stars": data.get("labels") in ("binary", "stars"),
    }
    if is_run:
        architecture = "own" if model.get("_target_") else model.get("architecture", "transformer")
        attends = architecture == "transformer"
        traits |= {
            "run": True,
            kind_of_saved(model).name: True,
            "attention": attends,
            "layers": attends and (model["num_layers"] > 1 or "num_decoder_layers" in model),
            "encoded": attends and model["positions"] in ("learned", "sinusoidal", "rotary"),
            "one_text": data.get("choice_columns") is None,
            "embedding": architecture != "logistic",
        }
    return frozenset(name for name, holds in traits.items() if holds)


def choose(names: list[str], traits: frozenset[str], what: str) -> list[Drawing]:
    """Return the figures of the given names; without names, all figures that are drawn by default.

    what: name of the run or task, for the error. Raises UserError for a figure that does not exist or does not fit.
    """
    every = {each.name: each for each in drawings()}
    fitting = {name: each for name, each in every.items() if traits.issuperset(each.needs.split())}
    for name in names:
        if name not in every:
            meant = nearest(name, every)
            hint = f"did you mean {meant}? Choose" if meant else "choose"
            raise UserError(f"--figures {name}: the figure does not exist; {hint} from {', '.join(every)}")
        if name not in fitting:
            raise UserError(f"--figures {name} does not apply to {what}; choose from {', '.join(fitting)}")
    by_default = [each for each in fitting.values() if traits.issuperset(each.default.split())]
    return [fitting[name] for name in dict.fromkeys(names)] or by_default
