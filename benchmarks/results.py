"""Measure the numbers of RESULTS.md: python benchmarks/results.py (--help lists all options). It takes hours.

results.yaml lists the measurements. Each one has its own folder below logs/results/. Finished runs are used unchanged,
and interrupted runs are resumed. What the page needs of each run is kept as a record below benchmarks/measured/, which
is part of the repository, and the complete page is written again after each run. All choices were made on validation,
in other runs. The test split is read here, with the final settings.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro
from result_tables.page import page_of, readme_of
from result_tables.plan import Line, Plan, Section, read_plan
from result_tables.records import Record, missing_runs, read_record, write_record
from result_tables.runs import ROOT, MeasurementError, Run, runs_of
from result_tables.sweeps import missing_of

from firstlight.errors import UserError


@dataclass
class Options:
    """Options of the measurements and of the page."""

    only: tuple[str, ...] = ()
    """The sections of results.yaml to measure, in this order. By default all of them."""
    seeds: int | None = None
    """The largest number of seeds of each line."""
    train: bool = True
    """Train and count what is missing. With --no-train, records are made of finished runs only."""
    table_only: bool = False
    """Write the page from the records, and measure nothing."""
    plan: Path = ROOT / "benchmarks" / "results.yaml"
    """The file with the measurements."""
    folder: Path = ROOT / "logs" / "results"
    """The folder of the runs."""
    measured: Path = ROOT / "benchmarks" / "measured"
    """The folder of the records."""
    page: Path = ROOT / "RESULTS.md"
    """The page to write."""
    readme: Path = ROOT / "README.md"
    """The file with a table of the recipes, which is written when all of them are measured."""


def main() -> None:
    """Run the missing measurements, and write the page."""
    options = tyro.cli(Options)
    plan = read_plan(options.plan)
    if unknown := [name for name in options.only if name not in plan.sections]:
        sys.exit(f"--only {unknown[0]}: the sections are {', '.join(plan.sections)}")
    failed = 0
    for name in () if options.table_only else (options.only or plan.sections):
        section = plan.sections[name]
        for line in section.lines():
            for run in wanted(runs_of(plan, name, line, options.folder), options):
                if missing_runs(run, options.measured):
                    failed += not measure(run, section, options)
                    write_page(plan, options)
    write_page(plan, options)
    if failed:
        sys.exit(f"{failed} of the runs failed; repeat the command to try them again")


def wanted(runs: list[Run], options: Options) -> list[Run]:
    """Return the runs of the first `seeds` seeds."""
    return [run for run in runs if options.seeds is None or run.seed is None or run.seed <= options.seeds]


def measure(run: Run, section: Section, options: Options) -> bool:
    """Make the record of a run, which is trained if necessary. Return False if it failed."""
    try:
        if run.line.folds is not None:
            done = not options.train or run.measure()  # both commands continue
            write_record(run, (), options.measured)
            return done
        if run.line.sweep is not None:
            run.refuse_other_sweep()
            done = not missing_of(run, read_record(run, options.measured)) or not options.train or run.measure()
            write_record(run, (), options.measured)
            return done
        if not run.is_finished() and not (options.train and run.measure()):
            return not options.train
        write_record(run, section.evaluations(run.line), options.measured)
    except (MeasurementError, UserError) as error:
        print(f"failed: {run.command}: {error}", flush=True)
        return False
    return True


def write_page(plan: Plan, options: Options) -> None:
    """Write the complete page from the records."""

    def runs(section: str, line: Line) -> list[Run]:
        owner = plan.sections[section].line(line.of) if line.reference is not None else line
        return runs_of(plan, section, owner, options.folder)

    def records(section: str, line: Line) -> list[Record]:
        found = (read_record(run, options.measured) for run in runs(section, line))
        return [record for record in found if record is not None]

    def waiting(section: str, line: Line) -> list[str]:
        if line.reference is not None:
            return []
        return [run.command for run in runs(section, line) for _ in range(missing_runs(run, options.measured))]

    options.page.write_text(page_of(plan, records, waiting), encoding="utf-8")
    text = options.readme.read_text(encoding="utf-8")
    options.readme.write_text(readme_of(text, plan, records), encoding="utf-8")


if __name__ == "__main__":
    main()
