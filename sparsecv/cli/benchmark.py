"""The command ``sparsecv benchmark``, which times exact cross-validation on data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import typer

from ..errors import InputError
from .console import names_in, open_console, progress
from .options import Exit, option, takes

if TYPE_CHECKING:
    from ..plots.sections import Section


@takes(
    "datasets folds gamma ways scale tol backend time_limit csv_file plot dask quiet",
    datasets=option(str, "diabetes11,housing,servo,autompg", "Data sets, comma-separated."),
    folds=option(str, "loo,size:10", "loo, K or size:M, comma-separated."),
    gamma=option(str, "0.01,0.02,0.05,0.1,0.2,0.5,1", "As in cv."),
    ways=option(
        str,
        "grid,paper,paper-exact,best,exact",
        "Of grid, paper, paper-exact, best (Algorithm 1) and exact.",
    ),
    scale=option(Literal["unit-norm", "unit-variance"], "unit-norm", "Scale of the columns."),
    tol=option(float, 0.01, "Relative tolerance of Algorithm 1."),
    time_limit=option(float | None, None, "Seconds for each way at each γ."),
    csv_file=option(Path | None, None, "Write the table here.", "--csv"),
    plot=option(Path | None, None, "Picture of the reductions over γ (Figures 2 and 3)."),
)
def benchmark(**given: Any) -> None:
    """Compare the grid with Algorithm 1 and the shared trees: problems, nodes, seconds.

    This repeats Section 4.1 of the first paper by the paper's protocol: columns are standardised
    once and folds have no intercept. The data sets are in the folder SPARSECV_DATA.
    """
    from ..cv.settings import Settings
    from ..plots import reductions
    from ..solvers.executor import on_client
    from . import comparison, files, grids, screen

    asked = SimpleNamespace(**given)
    console = open_console(asked.quiet)
    files.check(asked)
    gammas = grids.parse_gammas(asked.gamma)
    if gammas is None:
        raise InputError("--gamma auto: a benchmark needs values of gamma")
    settings: dict[str, Any] = {name: given[name] for name in ("backend", "time_limit", "tol")}
    Settings(**settings)  # Settings that are not allowed are refused before any table is read.
    rows: list[comparison.Row] = []
    names = names_in(asked.datasets), names_in(asked.folds), gammas, names_in(asked.ways)
    with on_client(asked.dask), progress(asked.quiet) as bar:
        for row in comparison.run(*names, scale=asked.scale, report=bar, **settings):
            rows.append(row)
            if asked.csv_file is not None:  # An interrupted run leaves the rows it has finished.
                comparison.write_csv(rows, asked.csv_file)
    screen.show(console, _sections(rows), whole=True)
    if asked.plot is not None:
        reductions.plot(rows, str(asked.plot))
    proved = all(row.status == "optimal" for row in rows)
    raise typer.Exit(Exit.DONE if proved else Exit.GAP)


def _sections(rows: Sequence[Any]) -> Iterator[Section]:
    """Yield a table of the work of every way, and a table of the mean reductions over γ.

    rows: The rows that :func:`sparsecv.cli.comparison.run` yields.
    """
    from ..plots.sections import Column, Section, Table, percent
    from .comparison import averages

    for (name, folds), some in groupby(rows, key=lambda row: (row.dataset, row.folds)):
        runs = list(some)
        columns = [
            Column("γ", [f"{row.gamma:.6g}" for row in runs]),
            Column("way", [row.way for row in runs], "words"),
            Column("problems", [f"{row.mio:,}" for row in runs]),
            Column("fewer", [percent(row.reduction, 3) for row in runs]),
            Column("nodes", [f"{row.nodes:,}" for row in runs]),
            Column("fewer", [percent(row.node_reduction, 3) for row in runs]),
            Column("s", [f"{row.seconds:.3g}" for row in runs]),
        ]
        yield Section(f"{name}, {folds}", table=Table(columns))
    means = [(*of, *fewer) for of, fewer in averages(rows)]
    if not means:
        return
    folds, ways, names, problems, nodes = zip(*means, strict=True)
    columns = [
        Column("folds", folds, "words"),
        Column("way", ways, "words"),
        Column("data", names, "words"),
        Column("fewer problems", [percent(one, 3) for one in problems]),
        Column("fewer nodes", [percent(one, 3) for one in nodes]),
    ]
    yield Section("Mean over γ", table=Table(columns))
