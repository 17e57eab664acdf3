"""Speed-up on a Dask cluster of this machine, overhead per unit of work, one worker against none.

    python experiments/executors.py [columns] [workers]

Starts and stops worker processes on this machine alone. With fewer columns (30 by default) the job
is shorter: on two quiet cores the default takes about two minutes in one process.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np
from common import machine

from sparsecv.cv.engine import cross_validate
from sparsecv.cv.results import CVResult
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.solvers import Limits, on_client, run_units

FOLDS, UNITS = 20, 400


def job(p: int) -> tuple[RowFolds, list[float], list[int]]:
    """Twenty folds at ten γ; every fold of a comparable size of tree."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, p)) + 0.5 * rng.standard_normal((200, 1))
    y = X[:, :8].sum(axis=1) + 6.0 * rng.standard_normal(200)
    data = RowFolds(X, y, make_folds(FOLDS, 200), True)
    return data, np.geomspace(0.1, 100.0, 10).tolist(), list(range(1, p + 1))


def nothing(shared: Any, number: int, limits: Limits) -> int:
    """A unit without work."""
    return number


def timed(client: Any, p: int) -> tuple[float, CVResult]:
    """Seconds of the job in this process (no client) or on a cluster."""
    started = time.perf_counter()
    with on_client(client):
        found = cross_validate(*job(p))
    return time.perf_counter() - started, found


def overhead(client: Any) -> float:
    """Milliseconds per unit without work."""
    started = time.perf_counter()
    with on_client(client):
        tasks = [(i,) for i in range(UNITS)]
        assert sum(i for i, _ in run_units(nothing, None, tasks, allot=lambda _: Limits())) > 0
    return 1e3 * (time.perf_counter() - started) / UNITS


def main() -> None:
    from distributed import Client, LocalCluster

    p = int(sys.argv[1]) if len(sys.argv) > 1 else 36
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    print(machine())
    timed(None, 12)  # kernels
    plain, expected = timed(None, p)
    print(f"{FOLDS} folds, 10 γ, p = {p}: {plain:.1f} s in one process")
    for workers in sorted({1, most}):
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            Client(cluster) as client,
        ):
            timed(client, 12)  # kernels are loaded
            here = [timed(None, p)[0]]  # plain again: the machine's mood changes
            seconds, found = timed(client, p)
            here.append(timed(None, p)[0])
            beside = statistics.mean(here)
            same = np.array_equal(found.table("cv_error"), expected.table("cv_error"))
            print(
                f"{workers} worker{'s' if workers > 1 else ''}: {seconds:.1f} s, plain beside it "
                f"{beside:.1f} s: {beside / seconds:.2f} times as fast, same bits {same}, "
                f"{overhead(client):.2f} ms per unit without work"
            )


if __name__ == "__main__":
    main()
