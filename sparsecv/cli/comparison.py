"""Grid against Algorithm 1 and the shared trees: problems solved, nodes and seconds.

The comparison of the main paper's Section 4.1 (Tables 1 and 2, Figures 2 and 3).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..cv.engine import cross_validate
from ..cv.results import GammaResult
from ..cv.settings import Settings
from ..design.design import Protocol
from ..design.prepare import Prepared, prepare
from ..errors import InputError, file_faults
from ..tables.datasets import resolve

TOP = {"diabetes11": 10}  # the largest τ there where it is not p
RUNS: tuple[tuple[str, Settings], ...] = (
    ("grid", Settings("grid")),
    ("paper", Settings("search", bounds="paper")),
    ("paper-exact", Settings("search", bounds="paper-exact")),
    ("best", Settings("search")),
    ("exact", Settings("exact")),
)


@dataclass(frozen=True)
class Row:
    """One way at one data set, folding and γ.

    ``mio`` counts mixed-integer problems, one per fold and τ that was branched on and one per τ
    for trees of all rows; the shared tree ("exact") serves all τ and counts once. ``reduction``
    and ``node_reduction`` are relative to the grid, NaN where that was not run.
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


def run(
    datasets: Sequence[str],
    folds: Sequence[str],
    gammas: Sequence[float] | NDArray[np.float64],
    ways: Sequence[str],
    *,
    scale: str = "unit-norm",
    tol: float = 0.01,
    backend: str = "auto",
    time_limit: float | None = None,
) -> Iterator[Row]:
    """Run every way on every data set, folding and γ, under the paper's protocol.

    ways: Of "grid", "paper", "paper-exact", "best" and "exact".
    scale: "unit-norm" or "unit-variance": the paper does not say which.
    tol: Of Algorithm 1.
    backend: Solver of single problems.
    time_limit: Seconds for each way at each γ.
    Yields: One for every data set, folding, way and γ.
    Raises InputError: An unknown way, data set or folding.
    """
    known = dict(RUNS)
    for way in ways:
        if way not in known:
            raise InputError(f"--ways knows {', '.join(known)}; got {way!r}")
    for name in datasets:
        source = resolve(name)
        for kind in folds:
            prepared = prepare(source, kind, Protocol("paper", scale))
            p = prepared.design.p
            taus = np.arange(min(2, p), min(TOP.get(name, p), p) + 1)
            for gamma in gammas:
                yield from _one_gamma(
                    prepared, name, kind, float(gamma), taus, ways, tol, backend, time_limit
                )


def _one_gamma(
    prepared: Prepared,
    name: str,
    kind: str,
    gamma: float,
    taus: NDArray[np.intp],
    ways: Sequence[str],
    tol: float,
    backend: str,
    time_limit: float | None,
) -> Iterator[Row]:
    grid: GammaResult | None = None
    for way in [way for way, _ in RUNS if way in ways]:
        base = dict(RUNS)[way]
        single = backend if base.method != "exact" else "auto"
        settings = replace(base, backend=single, time_limit=time_limit, tol=tol)
        result = cross_validate(prepared.data, [gamma], taus, settings)
        one, best = result.by_gamma[0], result.best()
        grid = one if way == "grid" else grid
        yield Row(
            name,
            prepared.folds.n,
            prepared.design.p,
            kind,
            gamma,
            way,
            one.n_mio,
            one.n_nodes,
            one.seconds,
            1.0 - one.n_mio / grid.n_mio if grid is not None else float("nan"),
            1.0 - one.n_nodes / grid.n_nodes if grid is not None else float("nan"),
            best.tau,
            best.cv_error,
            best.lower_bound,
            one.status,
        )


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as a table.

    Raises InputError: The file cannot be written.
    """
    with file_faults(f"--csv {path}"), path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(Row.__dataclass_fields__))
        table.writeheader()
        table.writerows(asdict(row) for row in rows)


def averages(rows: Sequence[Row]) -> list[tuple[str, str, str, float, float]]:
    """Mean reductions over γ: (folds, way, data set or "all", problems, nodes)."""
    found = []
    for folds in dict.fromkeys(row.folds for row in rows):
        for way in dict.fromkeys(row.way for row in rows if row.way != "grid"):
            here = [row for row in rows if (row.folds, row.way) == (folds, way)]
            names = list(dict.fromkeys(row.dataset for row in here))
            means = []
            for name in names:
                mine = [row for row in here if row.dataset == name]
                mean = (
                    float(np.mean([row.reduction for row in mine])),
                    float(np.mean([row.node_reduction for row in mine])),
                )
                means.append(mean)
                found.append((folds, way, name, *mean))
            overall = np.mean(means, axis=0)
            found.append((folds, way, "all", float(overall[0]), float(overall[1])))
    return found
