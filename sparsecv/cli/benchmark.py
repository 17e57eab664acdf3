"""The command ``sparsecv benchmark``, which times exact cross-validation on data sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from ..errors import InputError
from .options import BackendName, Dask, Exit, Quiet, check_files, names_in, open_console, progress

if TYPE_CHECKING:
    from rich.console import Console


def benchmark(
    names: Annotated[
        str, typer.Option("--datasets", help="Data sets, comma-separated.")
    ] = "diabetes11,housing,servo,autompg",
    folds: Annotated[str, typer.Option(help="loo, K or size:M, comma-separated.")] = "loo,size:10",
    gamma: Annotated[str, typer.Option(help="As in cv.")] = "0.01,0.02,0.05,0.1,0.2,0.5,1",
    ways: Annotated[
        str, typer.Option(help="Of grid, paper, paper-exact, best (Algorithm 1) and exact.")
    ] = "grid,paper,paper-exact,best,exact",
    scale: Annotated[
        Literal["unit-norm", "unit-variance"], typer.Option(help="Scale of the columns.")
    ] = "unit-norm",
    tol: Annotated[float, typer.Option(help="Relative tolerance of Algorithm 1.")] = 0.01,
    backend: BackendName = "auto",
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for each way at each γ.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the table here.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the reductions over γ (Figures 2 and 3).")
    ] = None,
    dask: Dask = None,
    quiet: Quiet = False,
) -> None:
    """Compare the grid with Algorithm 1 and the shared trees: problems, nodes, seconds.

    This repeats Section 4.1 of the first paper by the paper's protocol: columns are standardised
    once and folds have no intercept. The data sets are in the folder SPARSECV_DATA.
    """
    from ..cv.settings import Settings
    from ..plots import curves, reductions
    from ..solvers.executor import on_client
    from . import comparison, grids

    console = open_console(quiet)
    if plot is not None:
        curves.check_writable(str(plot))
    check_files(csv=csv_file, plot=plot)
    gammas = grids.parse_gammas(gamma)
    if gammas is None:
        raise InputError("--gamma auto: a benchmark needs values of gamma")
    settings: dict[str, Any] = {"backend": backend, "time_limit": time_limit, "tol": tol}
    Settings(**settings)  # Settings that are not allowed are refused before any table is read.
    asked, rows = (names_in(names), names_in(folds), gammas, names_in(ways)), []
    with on_client(dask), progress(quiet) as bar:
        for row in comparison.run(*asked, scale=scale, report=bar, **settings):
            rows.append(row)
            if csv_file is not None:  # An interrupted run leaves the rows that it has finished.
                comparison.write_csv(rows, csv_file)
    _show(console, rows)
    if plot is not None:
        reductions.plot(rows, str(plot))
    proved = all(row.status == "optimal" for row in rows)
    raise typer.Exit(Exit.DONE if proved else Exit.GAP)


def _show(console: Console, rows: Sequence[Any]) -> None:
    """Print the work of every way, and the mean reductions over γ.

    rows: The rows that :func:`sparsecv.cli.comparison.run` yields.
    """
    from .comparison import averages
    from .report import make_table

    columns = ("γ", "way", "problems", "fewer", "nodes", "fewer", "s")
    for (name, folds), runs in groupby(rows, key=lambda row: (row.dataset, row.folds)):
        table = make_table(columns, left=("way",), title=f"{name}, {folds}")
        for gamma, ways in groupby(runs, key=lambda row: row.gamma):
            for i, row in enumerate(ways):
                problems, nodes = _percent(row.reduction), _percent(row.node_reduction)
                first = f"{gamma:.6g}" if i == 0 else ""
                counts = f"{row.mio:,}", problems, f"{row.nodes:,}", nodes
                table.add_row(first, row.way, *counts, f"{row.seconds:.3g}")
        console.print(table)
    names = ("folds", "way", "data")
    means = ((*of, *map(_percent, fewer)) for of, fewer in averages(rows))
    heads = (*names, "fewer problems", "fewer nodes")
    console.print(make_table(heads, means, left=names, title="mean over γ"))


def _percent(value: float) -> str:
    """A share in percent; empty where the share is NaN."""
    return "" if np.isnan(value) else f"{100.0 * value:.1f} %"
