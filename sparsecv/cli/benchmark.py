"""The command ``sparsecv benchmark``, which compares the grid, Algorithm 1 and shared trees.

This is the comparison of the first paper's Section 4.1 (Tables 1 and 2).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby
from types import SimpleNamespace
from typing import Any

from ..cv.benchmark import Row, averages, run
from ..cv.settings import Settings
from ..errors import InputError, file_faults
from ..report import screen
from ..report.sections import Section, SectionColumn, SectionTable, percent
from ..tables.datasets import resolve
from . import grids, outputs
from .console import Steps, names_in, open_console, progress
from .options import Exit


def benchmark(**given: Any) -> Exit:
    """Compare the grid with Algorithm 1 and the shared trees: problems, nodes, seconds."""
    asked, rows = SimpleNamespace(**given), list[Row]()
    console = open_console(asked.quiet)
    outputs.refuse_unwritable(asked)
    gammas = grids.parse_gammas(asked.gamma)
    if gammas is None:
        raise InputError("--gamma auto: a benchmark needs values of gamma")
    settings: dict[str, Any] = {name: given[name] for name in ("backend", "time_limit", "tol")}
    settings["n_jobs"] = asked.jobs
    Settings(**settings)  # Settings that are not allowed are refused before any table is read.
    names = names_in(asked.folds), gammas, names_in(asked.ways)
    steps = Steps(verbose=True)
    with progress(asked.quiet, steps):
        steps("reading the tables", 0, 1)
        tables = [resolve(name) for name in asked.tables]
        for row in run(tables, *names, scale=asked.scale, report=steps, **settings):
            rows.append(row)
            if asked.csv_file is None:
                continue
            # An interrupted run leaves the rows it has finished.
            with (
                file_faults(f"--csv {asked.csv_file}"),
                asked.csv_file.open("w", newline="", encoding="utf-8") as file,
            ):
                table = csv.DictWriter(file, list(row.entries()))
                table.writeheader()
                table.writerows(one.entries() for one in rows)
    screen.show(console, _sections(rows))
    proved = all(row.status == "optimal" for row in rows)
    return Exit.DONE if proved else Exit.GAP


def _sections(rows: Sequence[Row]) -> Iterator[Section]:
    """Yield a table of the work of every way, and a table of the mean reductions over γ."""
    for (name, folds), some in groupby(rows, key=lambda row: (row.case.dataset, row.case.folds)):
        runs = list(some)
        columns = [
            SectionColumn("γ", [row.case.gamma for row in runs]),
            SectionColumn("way", [row.way for row in runs], "words"),
            SectionColumn("problems", [f"{row.mio:,}" for row in runs]),
            SectionColumn("fewer", [percent(row.reduction, 3) for row in runs]),
            SectionColumn("nodes", [f"{row.nodes:,}" for row in runs]),
            SectionColumn("fewer", [percent(row.node_reduction, 3) for row in runs]),
            SectionColumn("s", [f"{row.seconds:.3g}" for row in runs]),
        ]
        yield Section(f"{name}, {folds}", table=SectionTable(columns))
    means = [(*of, *map(percent, fewer, (3, 3))) for of, fewer in averages(rows)]
    if means:
        heads = ("folds", "way", "data", "fewer problems", "fewer nodes")
        cells = zip(*means, strict=True)
        kinds = ("words", "words", "words", "number", "number")
        columns = [SectionColumn(*one) for one in zip(heads, cells, kinds, strict=True)]
        yield Section("Mean over γ", table=SectionTable(columns))
