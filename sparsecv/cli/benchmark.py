"""The command ``sparsecv benchmark``: exact cross-validation timed on data sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from ..errors import InputError
from .options import DONE, GAP, BackendName, Dask, Quiet, names_in, open_console, progress

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

    The main paper's Section 4.1 under its own protocol (standardised once, no intercept in the
    folds). The data sets are read from the folder SPARSECV_DATA names.
    """
    from ..cv.settings import Settings
    from ..plots import curves as plots
    from ..plots import reductions
    from ..solvers.executor import on_client
    from . import comparison
    from . import grids as options

    console = open_console(quiet)
    if plot is not None:
        plots.check_writable(str(plot))
    if csv_file is not None and not csv_file.absolute().parent.is_dir():
        raise InputError(f"--csv {csv_file}: the folder does not exist")
    gammas = options.parse_gammas(gamma)
    if gammas is None:
        raise InputError("--gamma auto: a benchmark needs values of gamma")
    Settings(backend=backend, time_limit=time_limit, tol=tol)
    rows = []
    with on_client(dask), progress(quiet) as bar:
        found = comparison.run(
            names_in(names),
            names_in(folds),
            gammas,
            names_in(ways),
            scale=scale,
            tol=tol,
            backend=backend,
            time_limit=time_limit,
        )
        for row in found:
            rows.append(row)
            bar(f"{row.dataset} {row.folds} γ = {row.gamma:g} {row.way}", len(rows), len(rows) + 1)
            if csv_file is not None:  # a run of hours that is cut short keeps what it has
                comparison.write_csv(rows, csv_file)
    _show(console, rows)
    if plot is not None:
        reductions.plot(rows, str(plot))
    raise typer.Exit(DONE if all(row.status == "optimal" for row in rows) else GAP)


def _show(console: Console, rows: Sequence[Any]) -> None:
    """Print every run, and the mean reductions over γ."""
    from rich.table import Table

    from .comparison import averages

    for name, folds in dict.fromkeys((row.dataset, row.folds) for row in rows):
        table = Table(title=f"{name}, {folds}", title_justify="left")
        for head in ("γ", "way", "problems", "fewer", "nodes", "fewer", "s"):
            justify: Any = "left" if head == "way" else "right"
            table.add_column(head, justify=justify, no_wrap=True)
        before = None
        for row in rows:
            if (row.dataset, row.folds) != (name, folds):
                continue
            table.add_row(
                "" if row.gamma == before else f"{row.gamma:.6g}",
                row.way,
                f"{row.mio:,}",
                _percent(row.reduction),
                f"{row.nodes:,}",
                _percent(row.node_reduction),
                f"{row.seconds:.3g}",
            )
            before = row.gamma
        console.print(table)
    summary = Table(title="mean over γ")
    for head in ("folds", "way", "data", "fewer problems", "fewer nodes"):
        summary.add_column(head, justify="left" if head in ("folds", "way", "data") else "right")
    for folds, way, name, problems, nodes in averages(rows):
        summary.add_row(folds, way, name, _percent(problems), _percent(nodes))
    console.print(summary)


def _percent(value: float) -> str:
    """A share in percent; empty where there is none."""
    return "" if np.isnan(value) else f"{100.0 * value:.1f} %"
