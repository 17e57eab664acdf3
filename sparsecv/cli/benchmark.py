"""The command ``sparsecv benchmark``, which compares the grid, Algorithm 1 and shared trees.

This is the comparison of the first paper's Section 4.1 (Tables 1 and 2).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..cv.benchmark import Row, averages, run
from ..cv.settings import Settings
from ..errors import InputError, file_faults
from ..report import screen
from ..report.progress import Steps
from ..report.sections import Section, SectionColumn, SectionTable, percent
from ..tables.datasets import resolve
from . import grids, outputs
from .console import names_in, open_console, progress
from .options import Exit


def benchmark(**options: Any) -> Exit:
    """Compare the grid with Algorithm 1 and the shared trees: problems, nodes, seconds.

    options: The values of all options of the command, under their names in ``options.py``.
    Returns: GAP where a row of the comparison is not proved, else DONE.
    Raises InputError: The options or a table cannot be used.
    """
    asked, rows, steps = SimpleNamespace(**options), list[Row](), Steps(verbose=True)
    outputs.refuse_unwritable(asked)
    gammas = grids.parse_gammas(asked.gamma)
    if gammas is None:
        raise InputError("--gamma auto: a benchmark needs values of gamma")
    settings: dict[str, Any] = {name: options[name] for name in ("backend", "time_limit", "tol")}
    settings["n_jobs"] = asked.jobs
    Settings(**settings)  # Settings that are not allowed are refused before any table is read.
    folds, ways = names_in(asked.folds), names_in(asked.ways)
    with progress(asked.quiet, steps):
        steps("reading the tables", 0, 1)
        tables = [resolve(name) for name in asked.tables]
        for row in run(tables, folds, gammas, ways, scale=asked.scale, report=steps, **settings):
            rows.append(row)
            if asked.csv_file is not None:
                _write(rows, asked.csv_file)  # An interrupted run leaves the rows it has finished.
    screen.show(open_console(asked.quiet), _sections(rows))
    proved = all(row.status == "optimal" for row in rows)
    return Exit.DONE if proved else Exit.GAP


def _write(rows: Sequence[Row], path: Path) -> None:
    """Write rows to the file of --csv; InputError where it cannot be written."""
    with (
        file_faults(f"--csv {path}"),
        path.open("w", newline="", encoding="utf-8") as file,
    ):
        table = csv.DictWriter(file, list(rows[0].entries()))
        table.writeheader()
        table.writerows(row.entries() for row in rows)


def _sections(rows: Sequence[Row]) -> Iterator[Section]:
    """Yield a table of the work of every way, and a table of the mean reductions over γ."""
    # The rows of one table and one kind of folds follow one another.
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
    if means := list(averages(rows)):  # There is none where the grid is the only way.
        kinds = [kind for kind, _ in means]
        columns = [
            SectionColumn("folds", [folds for folds, _, _ in kinds], "words"),
            SectionColumn("way", [way for _, way, _ in kinds], "words"),
            SectionColumn("data", [name for _, _, name in kinds], "words"),
            SectionColumn("fewer problems", [percent(fewer[0], 3) for _, fewer in means]),
            SectionColumn("fewer nodes", [percent(fewer[1], 3) for _, fewer in means]),
        ]
        yield Section("Mean over γ", table=SectionTable(columns))
