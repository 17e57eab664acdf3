"""This script measures speed-up, and overhead per unit of work, of a Dask cluster.

    python -m experiments.scale.executors [columns] [workers] [folds]

The script starts and stops worker processes on this machine alone. With fewer columns (36 by
default) or folds (20) the job is shorter; ``40 2 130`` takes about two minutes in one process.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from joblib import parallel_config

from experiments.common import local_cluster, machine
from sparsecv.cv.executor import run_units
from sparsecv.cv.grid_errors import cross_validate
from sparsecv.cv.results import CVResult
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.row_table import RowTable
from sparsecv.solvers.core.limits import Limits

# The overhead is measured on this many units of work that do nothing.
EMPTY_UNITS = 400


def job(p: int, folds: int) -> tuple[RowFolds, list[float], list[int]]:
    """So many folds at ten γ; every fold of a comparable size of tree."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, p)) + 0.5 * rng.standard_normal((200, 1))
    y = X[:, :8].sum(axis=1) + 6.0 * rng.standard_normal(200)
    data = RowFolds(RowTable(X, y, True), make_folds(folds, 200))
    return data, np.geomspace(0.1, 100.0, 10).tolist(), list(range(1, p + 1))


def nothing(shared: Any, number: int, limits: Limits) -> int:
    """A unit without work."""
    return number


class Clock:
    """Seconds, and processor time: of this process and the busiest worker, and of all."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.started, self.here, self.there = time.perf_counter(), *self.spent()

    def spent(self) -> tuple[float, dict[str, float]]:
        there = {} if self.client is None else self.client.run(time.process_time)
        return time.process_time(), there

    def read(self) -> tuple[float, float, float]:
        seconds = time.perf_counter() - self.started
        here, there = self.spent()
        own, workers = here - self.here, [there[w] - self.there[w] for w in there]
        return seconds, own + max(workers, default=0.0), own + sum(workers)


def on(client: Any) -> Any:
    """A context in which units of work run on a cluster; in this process without a client."""
    return nullcontext() if client is None else parallel_config("dask", client=client)


def timed(client: Any, *of: int) -> tuple[float, float, CVResult]:
    """Seconds of the job, here or on a cluster: on the wall, and of what runs in turn."""
    clock = Clock(client)
    with on(client):
        found = cross_validate(*job(*of))
    seconds, in_turn, _ = clock.read()
    return seconds, in_turn, found


def overhead(client: Any) -> tuple[float, float]:
    """Milliseconds per unit without work: on the wall, and of all processors."""
    clock = Clock(client)
    with on(client):
        tasks = [(i,) for i in range(EMPTY_UNITS)]
        assert sum(i for i, _ in run_units(nothing, None, tasks, allot=lambda _: Limits())) > 0
    seconds, _, processors = clock.read()
    return 1e3 * seconds / EMPTY_UNITS, 1e3 * processors / EMPTY_UNITS


def main() -> None:
    from distributed import Client

    given = [int(text) for text in sys.argv[1:]]
    p, most, folds = (*given, *(36, 2, 20)[len(given) :])
    print(machine())
    timed(None, 12, 20)  # kernels
    before = timed(None, p, folds)
    expected = before[2]
    print(f"{folds} folds, 10 γ, p = {p}: {before[0]:.1f} s in one process")
    for workers in sorted({2, most}):
        with (
            local_cluster(workers) as cluster,
            Client(cluster) as client,
        ):
            timed(client, 12, 20)  # kernels are loaded
            # plain before and after: the machine's mood changes
            seconds, after = timed(client, p, folds), timed(None, p, folds)
            wall, cpu = (statistics.mean(pair) for pair in zip(before[:2], after[:2], strict=True))
            before = after
            same = np.array_equal(seconds[2].table("cv_error"), expected.table("cv_error"))
            each, processors = overhead(client)
            print(
                f"{workers} workers: {seconds[0]:.1f} s, plain "
                f"beside it {wall:.1f} s: {wall / seconds[0]:.2f} times as fast "
                f"({cpu / seconds[1]:.2f} by processor time of what runs in turn), same bits "
                f"{same}; a unit without work {each:.2f} ms, {processors:.2f} ms of processors"
            )


if __name__ == "__main__":
    main()
