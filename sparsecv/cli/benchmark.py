"""The command ``sparsecv benchmark``, which compares the grid, Algorithm 1 and shared trees.

This is the comparison of the first paper's Section 4.1 (Tables 1 and 2).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count, groupby, product
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cv.engine import cross_validate
from ..cv.progress import Report
from ..cv.settings import Settings
from ..design.design import Protocol
from ..design.prepare import prepare
from ..errors import InputError, file_faults
from ..report import screen
from ..report.sections import Column, Section, Table, percent
from ..tables.datasets import resolve
from . import grids, outputs
from .console import names_in, open_console, progress
from .options import Exit

# The largest τ of a data set in Section 4.1 of the first paper, where that is not the number of
# columns.
LARGEST_TAU = {"diabetes11": 10}
# A way is a method with its bounds. The ways run in this order.
WAYS = {
    "grid": ("grid", "best"),
    "paper": ("search", "paper"),
    "paper-exact": ("search", "paper-exact"),
    "best": ("search", "best"),
    "exact": ("exact", "best"),
}


@dataclass(frozen=True)
class Row:
    """The work and the result of one way for one data set, one kind of folds and one γ.

    mio: Number of mixed-integer problems: one for every fold and τ that was branched on, and one
        for every τ of a tree of all rows. A shared tree ("exact") serves all τ and counts once.
    reduction: 1 − problems / problems of the grid; NaN where the grid was not run.
    node_reduction: 1 − nodes / nodes of the grid; NaN where the grid was not run.
    """

    dataset: str
    n: int
    p: int
    folds: str
    gamma: float
    way: str
    mio: int
    nodes: int
    seconds: float
    reduction: float
    node_reduction: float
    tau: int
    cv_error: float
    lower: float
    status: str


def benchmark(**given: Any) -> Exit:
    """Compare the grid with Algorithm 1 and the shared trees: problems, nodes, seconds."""
    asked, rows = SimpleNamespace(**given), list[Row]()
    console = open_console(asked.quiet)
    outputs.check(asked)
    gammas = grids.parse_gammas(asked.gamma)
    if gammas is None:
        raise InputError("--gamma auto: a benchmark needs values of gamma")
    settings: dict[str, Any] = {name: given[name] for name in ("backend", "time_limit", "tol")}
    settings["n_jobs"] = asked.jobs
    Settings(**settings)  # Settings that are not allowed are refused before any table is read.
    names = names_in(asked.datasets), names_in(asked.folds), gammas, names_in(asked.ways)
    with progress(asked.quiet) as bar:
        for row in run(*names, scale=asked.scale, report=bar, **settings):
            rows.append(row)
            if asked.csv_file is None:
                continue
            # An interrupted run leaves the rows it has finished.
            with (
                file_faults(f"--csv {asked.csv_file}"),
                asked.csv_file.open("w", newline="", encoding="utf-8") as file,
            ):
                table = csv.DictWriter(file, list(asdict(row)))
                table.writeheader()
                table.writerows(map(asdict, rows))
    screen.show(console, _sections(rows))
    proved = all(row.status == "optimal" for row in rows)
    return Exit.DONE if proved else Exit.GAP


def run(
    datasets: Sequence[str],
    folds: Sequence[str],
    gammas: Sequence[float] | NDArray[np.float64],
    ways: Sequence[str],
    *,
    scale: str = "unit-norm",
    backend: str = "auto",
    report: Report = lambda *_: None,
    **settings: Any,
) -> Iterator[Row]:
    """Run every way on every data set, kind of folds and γ, by the paper's protocol.

    The sizes τ begin at 2, because the paper's tables count k(p − 1) problems of k folds and p
    columns, and end at p or at ``LARGEST_TAU``.

    folds: "loo", numbers K and "size:M", as :func:`~sparsecv.design.folds.make_folds` takes them.
    gammas: The ridge weights, each cross-validated by itself.
    ways: Of "grid", "paper", "paper-exact", "best" and "exact".
    scale: "unit-norm" or "unit-variance"; the paper does not name the scale of its columns.
    backend: Solver of single problems.
    report: Takes what is being done, the number of ways done and the number of all ways.
    settings: ``tol`` of Algorithm 1 and ``time_limit``, in seconds for each way at each γ.
    Raises InputError: A way, a data set or a kind of folds is unknown, before anything is searched.
    """
    for what, given in (("--datasets", datasets), ("--folds", folds), ("--ways", ways)):
        if not given:
            raise InputError(f"{what} names nothing")
    if unknown := [way for way in ways if way not in WAYS]:
        raise InputError(f"--ways knows {', '.join(WAYS)}; got {unknown[0]!r}")
    report("reading the data sets", 0, 1)
    protocol, sources = Protocol("paper", scale), {name: resolve(name) for name in datasets}
    tables = [(s, kind, prepare(sources[s], kind, protocol)) for s, kind in product(sources, folds)]
    used = [way for way in WAYS if way in ways]
    total, done = len(tables) * len(gammas) * len(used), count()
    for (name, kind, prepared), gamma in product(tables, map(float, gammas)):
        n, p, of_grid = prepared.source.n, prepared.design.p, (np.nan, np.nan)
        taus = np.arange(min(2, p), min(LARGEST_TAU.get(name, p), p) + 1)
        for way in used:
            report(f"{name}, folds {kind}, γ = {gamma:g}, {way}", next(done), total)
            method, bounds = WAYS[way]
            single = backend if method != "exact" else "auto"
            how = Settings(method, single, bounds=bounds, **settings)
            result = cross_validate(prepared.data, [gamma], taus, how)
            one, best = result.by_gamma[0], result.best()
            of_grid = (one.n_mio, one.n_nodes) if way == "grid" else of_grid
            fewer = 1.0 - one.n_mio / of_grid[0], 1.0 - one.n_nodes / of_grid[1]
            work = one.n_mio, one.n_nodes, one.seconds, *fewer
            error = best.tau, best.cv_error, best.lower_bound, one.status
            yield Row(name, n, p, kind, gamma, way, *work, *error)


def _sections(rows: Sequence[Row]) -> Iterator[Section]:
    """Yield a table of the work of every way, and a table of the mean reductions over γ."""
    for (name, folds), some in groupby(rows, key=lambda row: (row.dataset, row.folds)):
        runs = list(some)
        columns = [
            Column("γ", [row.gamma for row in runs]),
            Column("way", [row.way for row in runs], "words"),
            Column("problems", [f"{row.mio:,}" for row in runs]),
            Column("fewer", [percent(row.reduction, 3) for row in runs]),
            Column("nodes", [f"{row.nodes:,}" for row in runs]),
            Column("fewer", [percent(row.node_reduction, 3) for row in runs]),
            Column("s", [f"{row.seconds:.3g}" for row in runs]),
        ]
        yield Section(f"{name}, {folds}", table=Table(columns))
    means = [(*of, *map(percent, fewer, (3, 3))) for of, fewer in averages(rows)]
    if means:
        heads = ("folds", "way", "data", "fewer problems", "fewer nodes")
        cells = zip(*means, strict=True)
        kinds = ("words", "words", "words", "number", "number")
        columns = [Column(*one) for one in zip(heads, cells, kinds, strict=True)]
        yield Section("Mean over γ", table=Table(columns))


def averages(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str, str], NDArray[np.float64]]]:
    """Yield the mean reductions over γ of every kind of folds, way and data set.

    Each item is (folds, way, data set) and (mean of ``reduction``, mean of ``node_reduction``). The
    data set "all" has the means over data sets.
    """
    for folds, way in dict.fromkeys((row.folds, row.way) for row in rows if row.way != "grid"):
        here: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if (row.folds, row.way) == (folds, way):
                here.setdefault(row.dataset, []).append((row.reduction, row.node_reduction))
        means = {name: np.mean(pairs, axis=0) for name, pairs in here.items()}
        means["all"] = np.mean(list(means.values()), axis=0)
        yield from (((folds, way, name), mean) for name, mean in means.items())
