"""Compares the grid, Algorithm 1 and shared trees: mixed-integer problems, nodes and seconds.

This is the comparison of the first paper's Section 4.1 (Tables 1 and 2).

Without it the command ``sparsecv benchmark`` is gone, and nothing of a fit changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.design import Protocol
from ..design.prepare import prepare
from ..errors import InputError
from ..tables.table import Table
from .executor import Report
from .grid_errors import cross_validate
from .settings import Settings

# A way is a method with its bounds. The ways run in this order.
WAYS = {
    "grid": ("grid", "best"),
    "paper": ("search", "paper"),
    "paper-exact": ("search", "paper-exact"),
    "best": ("search", "best"),
    "exact": ("exact", "best"),
}


class Case(NamedTuple):
    """What every way is run on: a data set of n rows and p columns, a kind of folds and one γ."""

    dataset: str
    n: int
    p: int
    folds: str
    gamma: float


class Row(NamedTuple):
    """The work and the result of one way on one case.

    mio: Number of mixed-integer problems: one for every fold and τ that was branched on, and one
        for every τ of a tree of all rows. A shared tree ("exact") serves all τ and counts once.
    nodes, seconds: Nodes of all searches, and the seconds that the searches at γ took.
    reduction: 1 − problems / problems of the grid; NaN where the grid was not run, or the time
        limit ended it before its first problem.
    node_reduction: 1 − nodes / nodes of the grid; NaN likewise, where the grid has no node.
    tau, cv_error: The size of least CV error at this γ, and that error, the mean of squared errors
        in the units of the response that the paper's protocol solves.
    lower: A lower bound on the least CV error of all sizes at this γ, in the same units.
    status: "optimal" where every fold and model is proved ("search": the least error is known to
        the tolerance), else the limit that was met.
    """

    case: Case
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

    def entries(self) -> dict[str, Any]:
        """All numbers and names by their names, those of the case first."""
        own = self._asdict()
        del own["case"]
        return self.case._asdict() | own


def run(
    tables: Sequence[Table],
    folds: Sequence[str],
    gammas: Sequence[float] | NDArray[np.float64],
    ways: Sequence[str],
    *,
    scale: str = "unit-norm",
    backend: str = "auto",
    taus: Sequence[int] | None = None,
    report: Report = lambda *_: None,
    **settings: Any,
) -> Iterator[Row]:
    """Run every way on every table, kind of folds and γ, by the paper's protocol.

    Parameters
    ----------
    tables : sequence of Table
        Each is named by its ``name``.
    folds : sequence of str
        "loo", numbers K, "size:M" and "time:K", as :func:`~sparsecv.design.folds.make_folds` takes
        them.
    gammas : array-like
        The ridge weights, each cross-validated by itself.
    ways : sequence of str
        Of "grid", "paper", "paper-exact", "best" and "exact".
    scale : str
        "unit-norm" or "unit-variance"; the paper does not name the scale of its columns.
    backend : str
        Solver of single problems.
    taus : sequence of int, optional
        The sizes. By default they begin at 2, because the paper's tables count k(p − 1) problems
        of k folds and p columns, and end at p.
    report : callable
        Is called before each way with four arguments: the data set and its folds as text, the
        number of ways done, the number of all ways, and γ and the way as text.
    **settings
        ``tol`` of Algorithm 1 and ``time_limit``, in seconds for each way at each γ.

    Yields
    ------
    Row

    Raises
    ------
    InputError
        A way or a kind of folds is unknown. The error comes as the first row is asked for, before
        anything is searched.
    """
    for what, given in (("--folds", folds), ("--ways", ways)):
        if not given:
            raise InputError(f"{what} names nothing")
    if unknown := [way for way in ways if way not in WAYS]:
        raise InputError(f"--ways knows {', '.join(WAYS)}; got {unknown[0]!r}")
    protocol = Protocol("paper", scale)
    ready = [(kind, prepare(one, kind, protocol)) for one, kind in product(tables, folds)]
    used = [way for way in WAYS if way in ways]
    total, done = len(ready) * len(gammas) * len(used), count()
    for (kind, prepared), gamma in product(ready, map(float, gammas)):
        name, n, p = prepared.source.name, prepared.source.n, prepared.design.p
        of_grid = (np.nan, np.nan)
        sizes = np.arange(min(2, p), p + 1) if taus is None else np.asarray(taus)
        for way in used:
            report(f"{name}, folds {kind}", next(done), total, f"γ = {gamma:g}, {way}")
            method, bounds = WAYS[way]
            single = backend if method != "exact" else "auto"
            how = Settings(method, single, bounds=bounds, prove="all", **settings)
            result = cross_validate(prepared.data, [gamma], sizes, how)
            one, best = result.by_gamma[0], result.best()
            if way == "grid":  # A time limit may leave the grid without a problem.
                of_grid = one.n_mio or np.nan, one.n_nodes or np.nan
            yield Row(
                Case(name, n, p, kind, gamma),
                way,
                mio=one.n_mio,
                nodes=one.n_nodes,
                seconds=one.seconds,
                reduction=1.0 - one.n_mio / of_grid[0],
                node_reduction=1.0 - one.n_nodes / of_grid[1],
                tau=best.tau,
                cv_error=best.cv_error,
                lower=best.lower_bound,
                status=one.status,
            )


def averages(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str, str], NDArray[np.float64]]]:
    """Yield the mean reductions over γ of every kind of folds, way and data set.

    Each item is (folds, way, data set) and (mean of ``reduction``, mean of ``node_reduction``). The
    data set "all" has the means over data sets.
    """
    kinds = ((row.case.folds, row.way) for row in rows if row.way != "grid")
    for folds, way in dict.fromkeys(kinds):
        here: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if (row.case.folds, row.way) == (folds, way):
                fewer = row.reduction, row.node_reduction
                here.setdefault(row.case.dataset, []).append(fewer)
        means = {name: np.mean(pairs, axis=0) for name, pairs in here.items()}
        means["all"] = np.mean(list(means.values()), axis=0)
        yield from (((folds, way, name), mean) for name, mean in means.items())
