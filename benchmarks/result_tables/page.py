"""RESULTS.md as a function of the plan and the records."""

import statistics
from collections.abc import Callable, Sequence

from result_tables import folds
from result_tables.comparisons import Verdict, are_on_same_texts, compare, corrected, interval, value_of
from result_tables.plan import SHARES, WITHOUT_UNITS, Column, Line, Plan, Section, Summary, Table
from result_tables.runs import Record
from result_tables.sweeps import part_of

NOTHING = "–"  # there is no such number
UNPUBLISHED, WAITING = "not published", "not measured"
OTHER_TEXTS = "other texts"  # in place of a comparison text by text
BEGIN, END = "<!-- results: written by make results -->", "<!-- end of results -->"
Records = Callable[[str, Line], list[Record]]
Waiting = Callable[[str, Line], list[str]]


def page_of(plan: Plan, records: Records, waiting: Waiting) -> str:
    """Return the content of RESULTS.md.

    records: returns the records of a line, given the name of its section. waiting: returns the commands of the runs of
    a line that have no record.
    """
    parts = [plan.findings, *([table] if (table := summary_of(plan, records)) else []), plan.reading]
    for section in plan.sections.values():
        parts += [f"## {section.title}\n{section.text}", *section_parts(section, records)]
    parts.append(f"## How it was measured\n{plan.protocol}{versions(plan, records)}")
    parts.append(waiting_part(plan, waiting))
    return "\n\n".join(parts) + "\n"


def section_parts(section: Section, records: Records) -> list[str]:
    """Return the tables of a section with their texts, the commits and the notes."""
    parts = []
    for table in section.tables:
        parts += [table.text] if table.text else []
        if table.lines[0].folds is not None:
            for line in table.lines:
                others = records(section.name, section.line(line.against)) if line.against else []
                parts += [folds.part_of(record, line, *others) for record in records(section.name, line)]
            continue
        if table.lines[0].sweep is not None:
            parts += [part_of(record, table.lines[0]) for record in records(section.name, table.lines[0])]
            continue
        parts.append(table_of(section, table, records))
    found = [record for line in section.lines() for record in records(section.name, line)]
    if commits := sorted({commit_of(record) for record in found}):
        parts.append(f"Measured with {'commit' if len(commits) == 1 else 'commits'} {', '.join(commits)}.")
    return [*parts, *([section.notes] if section.notes else [])]


def commit_of(record: Record) -> str:
    """Return the commit of the code of a run, with a + if files were modified."""
    return f"`{(record['commit'] or 'unknown')[:7]}{'+' if record['modified'] else ''}`"


def table_of(section: Section, table: Table, records: Records) -> str:
    """Return a table with a row for each line."""
    verdicts = verdicts_of(section, table, records)
    titles = ["", "command", "parameters", section.unit, *(column.title for column in table.columns)]
    rows = [[*titles, *([table.compare.title] if table.compare else []), "training"]]
    rows.append(["---"] * len(rows[0]))
    for line in table.lines:
        found = records(section.name, line)
        cells = [line.title, command_of(section, line, found), *numbers_of(section, table, line, found)]
        if table.compare:
            cells.append(verdict_text(verdicts.get(line.name or "", NOTHING)))
        rows.append([*cells, minutes(found) if line.train else NOTHING])
    return rows_of(rows)


def command_of(section: Section, line: Line, found: Sequence[Record]) -> str:
    """Return the command of a line, with its first seed."""
    if line.reference is not None:
        return f"`python src/baseline.py {section.line(line.of).baseline}`"
    if found:
        return f"`{found[0]['command']}`"
    if line.train is not None:
        return f"`python src/train.py {line.train} seed={line.seeds[0]}`"
    if line.baseline is not None:
        return f"`python src/baseline.py {line.baseline}`"
    return f"`python src/evaluate.py logs/results/{line.of}/seed-1 {line.evaluate}`" if line.evaluate else NOTHING


def numbers_of(section: Section, table: Table, line: Line, found: Sequence[Record]) -> list[str]:
    """Return the cells of the parameters, the training data and the columns of a line."""
    if line.published is not None:
        keys = ("parameters", "seen", *(column.title for column in table.columns))
        return [line.published.get(key, UNPUBLISHED) for key in keys]
    if not found:
        return [WAITING] * (2 + len(table.columns))
    if line.reference is not None:
        return [NOTHING, seen(found, section.unit), *(reference_of(found[0], line, each) for each in table.columns)]
    first = found[0]
    parameters = f"{first['parameters']:,}" if first["parameters"] else NOTHING
    return [parameters, seen(found, section.unit), *(cell(found, column) for column in table.columns)]


def reference_of(record: Record, line: Line, column: Column) -> str:
    """Return the metric of a simpler model that the record of a baseline has."""
    stage = {"validation": "val"}.get(column.evaluation, column.evaluation)
    value = ((record["references"] or {}).get(line.reference) or {}).get(f"{stage}/{column.metric}")
    return NOTHING if value is None else number(value, column)


def cell(found: Sequence[Record], column: Column) -> str:
    """Return mean ± standard deviation (number of seeds) [interval of the split, if the records have its units]."""
    measured = [record for record in found if value_of(record, column) is not None]
    if not measured:
        return WAITING
    if column.metric in WITHOUT_UNITS:
        return spread(measured, column)
    limits = interval(measured, column)
    low, high = (number(each, column).removesuffix("%") for each in (limits.low, limits.high))
    return f"{spread(measured, column)} [{low}, {high}]"


def spread(found: Sequence[Record], column: Column) -> str:
    """Return mean ± standard deviation (number of seeds). A baseline has no seed."""
    values = [value for record in found if (value := value_of(record, column)) is not None]
    mean = number(statistics.mean(values), column)
    seeds = f" ({len(values)})" if found[0]["seed"] is not None else ""
    if len(values) == 1:
        return f"{mean}{seeds}"
    sign = "%" if mean.endswith("%") else ""
    return f"{mean.removesuffix('%')} ± {number(statistics.stdev(values), column).removesuffix('%')}{sign}{seeds}"


def number(value: float, column: Column) -> str:
    """Return a value as a text. Accuracies, F1 and the calibration error are percentages."""
    if column.metric in (*SHARES, "macro_f1", "calibration_error"):
        return f"{100 * value:.1f}%"
    return f"{value:.1f}" if column.rises else f"{value:.3f}"


def verdicts_of(
    section: Section, table: Table, records: Records, column: Column | None = None
) -> dict[str, Verdict | str]:
    """Return how the line of the comparison differs from each other measured line of a table, by the names.

    For a line that was evaluated on other texts, this is OTHER_TEXTS. column: by default that of the comparison.
    """
    if table.compare is None:
        return {}
    column = column or next(each for each in table.columns if each.title == table.compare.column)
    first = with_value(records(section.name, section.line(table.compare.line)), column)
    others = {
        line.name: with_value(records(section.name, line), column)
        for line in table.lines
        if line.name and line.name != table.compare.line and line.reference is None
    }
    if not first:
        return {}
    measured = {name: second for name, second in others.items() if second}
    found = {name: second for name, second in measured.items() if are_on_same_texts(first, second, column)}
    verdicts = corrected([compare(first, second, column) for second in found.values()])
    return dict.fromkeys(measured, OTHER_TEXTS) | dict(zip(found, verdicts, strict=True))


def with_value(found: Sequence[Record], column: Column) -> list[Record]:
    """Return the records that have the metric of a column."""
    return [record for record in found if value_of(record, column) is not None]


def verdict_text(verdict: Verdict | str) -> str:
    """Return a verdict such as `better: +1.9 points [+0.5, +3.4]`, or the text in place of one."""
    if isinstance(verdict, str):
        return verdict
    digits = 3 if verdict.unit in ("nats", "bits") else 1
    low, value, high = (
        f"{each:+.{digits}f}" for each in (verdict.benefit.low, verdict.benefit.value, verdict.benefit.high)
    )
    unit = "%" if verdict.unit == "%" else f" {verdict.unit}"
    return f"{verdict.word}: {value}{unit} [{low}, {high}]"


def short_text(verdict: Verdict | str) -> str:
    """Return a verdict with half of its interval, such as `better: +1.9 ± 1.5 points`."""
    if isinstance(verdict, str):
        return verdict
    digits = 3 if verdict.unit in ("nats", "bits") else 1
    unit = "%" if verdict.unit == "%" else f" {verdict.unit}"
    return f"{verdict.word}: {verdict.benefit.value:+.{digits}f} ± {verdict.benefit.half_width:.{digits}f}{unit}"


def seen(found: Sequence[Record], unit: str) -> str:
    """Return the amount of training data as a text: rows, or tokens in all epochs together.

    Seeds that stopped early have seen fewer tokens than the others, so this may be a range.
    """
    if unit.endswith("rows"):
        return f"{found[0]['data']['rows']['train']:,}"
    if not found[0]["tokens_seen"]:
        return NOTHING
    amounts = [record["tokens_seen"] / 1e6 for record in found]
    low, high = f"{min(amounts):.2f}", f"{max(amounts):.2f}"
    return f"{low} million" if low == high else f"{low} to {high} million"


def minutes(found: Sequence[Record]) -> str:
    """Return the mean processor time of the trainings of a line."""
    return f"{statistics.mean(record['processor_minutes'] for record in found):.1f} min" if found else WAITING


def readme_of(text: str, plan: Plan, records: Records) -> str:
    """Return the text of README with the table of the plan's summary. It is unchanged until each row is measured."""
    table = summary_of(plan, records)
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table}\n\n{end}{after}" if table and end else text


def summary_of(plan: Plan, records: Records) -> str | None:
    """Return the table of the recipes, or None until each of its rows is measured."""
    rows = [summary_row(plan, row, records) for row in plan.summary]
    measured = [row for row in rows if row is not None]
    if not rows or len(measured) < len(rows):
        return None
    titles = ["`experiment=`", "measure", "published", "classical baseline", "firstlight", "against the baseline"]
    return rows_of([titles, ["---"] * len(titles), *measured])


def summary_row(plan: Plan, row: Summary, records: Records) -> list[str] | None:
    """Return a row of the table of the recipes, or None if one of its numbers is not measured."""
    section = plan.sections[row.section]
    if row.folds:
        return folds_row(section, row, records)
    table = next(table for table in section.tables if section.line(row.line) in table.lines)
    column = next(each for each in table.columns if each.title == row.column)
    names = [row.line, *([row.baseline] if row.baseline else [])]
    measured = {name: with_value(records(row.section, section.line(name)), column) for name in names}
    if not all(measured.values()):
        return None
    cells = [f"`{row.settings}`", row.measure, row.claim]
    if row.baseline is None:
        return [*cells, NOTHING, spread(measured[row.line], column), NOTHING]
    verdict = verdicts_of(section, table, records, column)[row.baseline]
    values = [spread(measured[name], column).partition(" (")[0] for name in (row.baseline, row.line)]
    units = measured[row.line][0]["evaluations"][column.evaluation]["units"]
    texts = f"{units['count']:,} texts" if "count" in units else f"{sum(units['tokens']):,} {section.unit.split()[0]}"
    seeds = f"{len(measured[row.line])} seed{'s' * (len(measured[row.line]) != 1)}"
    return [*cells, *values, f"{short_text(verdict)} ({texts}, {seeds})"]


def folds_row(section: Section, row: Summary, records: Records) -> list[str] | None:
    """Return a row of the table of the recipes for a cross-validation, or None if it is not complete."""
    line = section.line(row.folds)
    found = records(section.name, line)
    others = records(section.name, section.line(line.against)) if line.against else []
    if not found or folds.waiting_runs(line, found[0]) or bool(line.against) > len(others):
        return None
    compared = folds.compared(found[0], row.baseline or "", *others)
    network, counted = (each.partition(" ")[0] for each in (compared.network, compared.baseline))
    verdict = f"{compared.row[1]}: {compared.row[3]} ({compared.texts} texts, {compared.seeds} seeds)"
    name = {"nb-svm": "NB-SVM", "tfidf": "TF-IDF"}[row.baseline or ""]
    return [f"`{row.settings}`", row.measure, row.claim, f"{counted}% ({name})", f"{network}%", verdict]


def rows_of(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows of a table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def versions(plan: Plan, records: Records) -> str:
    """Return the versions of all records, as an item of a list."""
    found = [
        record
        for section in plan.sections.values()
        for line in section.lines()
        for record in records(section.name, line)
    ]
    named = dict.fromkeys(f"{name} {number}" for record in found for name, number in record["versions"].items())
    return f"\n- **Versions.** {', '.join(named)}." if named else ""


def waiting_part(plan: Plan, waiting: Waiting) -> str:
    """Return the list of the runs that have no record."""
    rows = []
    for section in plan.sections.values():
        for line in section.lines():
            if missing := waiting(section.name, line):
                runs = "1 run" if len(missing) == 1 else f"{len(missing)} runs"
                rows.append(f"- `make results ONLY={section.name}`: {line.title}, {runs}: `{missing[0]}`")
    heading = "## Not measured yet\n"
    return heading + ("\n".join(rows) if rows else "Nothing: each line was measured.")
