"""The plan of the measurements, which is results.yaml: sections with tables, columns and lines."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

PAIRS = "pairs"  # the share of pairs of consecutive texts of which both are classified correctly
SHARES = ("accuracy", PAIRS)
WITHOUT_UNITS = ("macro_f1", "calibration_error", "mean_absolute_error")  # a record has only their values
RISES = (*SHARES, "macro_f1", "bleu", "bleu_beam4")  # for all other metrics, lower is better


@dataclass(frozen=True)
class Column:
    """A metric of one evaluation.

    evaluation: `validation` or `test`, `validation-stride32` for overlapping windows, or `other` for other data.
    """

    title: str
    evaluation: str
    metric: str

    @property
    def rises(self) -> bool:
        """Whether a higher value is better."""
        return self.metric in RISES


@dataclass(frozen=True)
class Line:
    """A line of a table, which has one of train, baseline, evaluate, reference, published, sweep and folds.

    train, baseline: what follows the command. evaluate: the options of an evaluation of the runs of another line, `of`,
    such as `sentiment/best`. reference: a model that the record of the baseline `of` has, such as `largest_class`.
    published: texts by the title of a column, and of parameters and seen. sweep: what follows the command of a sweep
    over sizes and budgets, which is alone in its table; more: cells with more seeds, such as `scale=2k
    trainer.max_steps=250 seed=2,3`; hold_out: the runs that are predicted, a value of `scale` or a compute such as
    C>1e12; sizes: those that are fitted for the prediction, or all. folds: what follows the command of a sweep over
    folds; `of` is what follows that of its baseline, and also: the options of another baseline on these folds. against:
    the line of folds with the networks of which a line has only a baseline; its `folds` is their number. generated:
    whether the data is generated, as the title of the section must say.
    """

    title: str
    name: str = ""
    train: str | None = None
    baseline: str | None = None
    evaluate: str | None = None
    reference: str | None = None
    of: str = ""
    published: dict[str, str] | None = None
    sweep: str | None = None
    hold_out: str = ""
    more: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    folds: str | None = None
    also: str = ""
    against: str = ""
    generated: bool = False
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The line with which the other lines of a table are compared, the column, and the title of the verdicts."""

    line: str
    column: str
    title: str


@dataclass(frozen=True)
class Table:
    """Lines with the same columns. text: what stands before it."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    text: str = ""
    compare: Comparison | None = None


@dataclass(frozen=True)
class Section:
    """A section of the page. unit: the title of the column with the amount of training data."""

    name: str
    title: str
    text: str
    unit: str
    tables: tuple[Table, ...]
    notes: str = ""

    def lines(self) -> list[Line]:
        """Return the lines of all tables, each once."""
        every = [line for table in self.tables for line in table.lines]
        return [line for place, line in enumerate(every) if line not in every[:place]]

    def line(self, name: str) -> Line:
        """Return the line of a name."""
        return next(line for line in self.lines() if line.name == name)

    def evaluations(self, line: Line) -> list[str]:
        """Return the evaluations that the columns of a line require, each once."""
        return list(
            dict.fromkeys(col.evaluation for table in self.tables if line in table.lines for col in table.columns)
        )


@dataclass(frozen=True)
class Summary:
    """A row of the table of the recipes, which is in README and at the top of the page.

    baseline: the name of the line of the classical baseline, if the section has one. settings, measure and claim are
    texts. folds: the line of cross-validation in whose texts the baseline is compared, in place of those of the column;
    baseline is then the name of a setting of its record.
    """

    section: str
    column: str
    settings: str
    measure: str
    claim: str
    line: str = "best"
    baseline: str | None = None
    folds: str = ""


@dataclass(frozen=True)
class Plan:
    """All sections, by their names, the texts before and after them, and the table of the recipes.

    findings: what was found. reading: how a number is read. protocol: how it was measured.
    """

    findings: str
    reading: str
    protocol: str
    sections: dict[str, Section] = field(default_factory=dict)
    summary: tuple[Summary, ...] = ()


def read_plan(path: Path) -> Plan:
    """Return the plan of a file."""
    content: Any = OmegaConf.to_container(OmegaConf.load(path))
    return plan_of(content)


def plan_of(content: dict[str, Any]) -> Plan:
    """Return the plan of plain types."""
    sections = {name: _section(name, each) for name, each in content["sections"].items()}
    summary = tuple(Summary(**row) for row in content.get("summary", ()))
    texts = {key: content[key].strip() for key in ("findings", "reading", "protocol")}
    return Plan(**texts, sections=sections, summary=summary)


def _section(name: str, content: dict[str, Any]) -> Section:
    tables = tuple(_table(each) for each in content["tables"])
    texts = {key: content.get(key, "").strip() for key in ("text", "notes")}
    return Section(name=name, title=content["title"], unit=content["unit"], tables=tables, **texts)


def _table(content: dict[str, Any]) -> Table:
    compare = Comparison(**content["compare"]) if "compare" in content else None
    columns = tuple(Column(*each) for each in content.get("columns", ()))
    return Table(columns, tuple(map(_line, content["lines"])), content.get("text", "").strip(), compare)


def _line(content: dict[str, Any]) -> Line:
    return Line(**content | {key: tuple(content.get(key, ())) for key in ("seeds", "more", "sizes")})
