"""Workers that are killed, schedulers that restart: nothing finished is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from support.clusters import local_cluster, same_results
from support.fresh import rounds

from sparsecv.cv.engine import cross_validate
from sparsecv.cv.results import CVResult
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.errors import ClusterError
from sparsecv.solvers import cluster as cluster_module
from sparsecv.solvers import on_client
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.executor import run_units

distributed = pytest.importorskip("distributed")

GAMMAS = [0.3, 1.0, 3.0]
K = 30
P = 24  # columns: every tree of a unit ends, after some hundredths of a second


def problem() -> tuple[RowFolds, list[float], np.ndarray[Any, Any]]:
    """Thirty units of work."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, P)) + 0.5 * rng.standard_normal((200, 1))
    y = X[:, :8].sum(axis=1) + 6.0 * rng.standard_normal(200)
    return RowFolds(X, y, make_folds(K, 200), True), GAMMAS, np.arange(1, P + 1)


@pytest.fixture(scope="module")
def expected() -> CVResult:
    return cross_validate(*problem())


def pids(client: Any) -> list[int]:
    for _ in range(600):
        found = client.run(os.getpid, on_error="return").values()
        if all(isinstance(pid, int) for pid in found):
            return list(found)
        time.sleep(1.0)  # one that was killed is still on the scheduler's list
    raise AssertionError("the killed worker does not come back")


def two_workers(client: Any) -> None:
    """Wait for them; Dask's nanny now and then does not bring a killed one back."""
    try:
        client.wait_for_workers(2, timeout=30)
    except TimeoutError:  # one and the same from Python 3.11 on
        client.cluster.scale(len(client.cluster.workers) + 1)
        client.wait_for_workers(2, timeout=600)


def kill_one(victims: list[int], after: float) -> threading.Thread:
    def work() -> None:
        time.sleep(after)
        os.kill(victims[0], signal.SIGKILL)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_worker_is_killed_at_random_moments(expected: CVResult) -> None:
    rng = np.random.default_rng(7)
    with local_cluster(2) as client:
        for _ in range(2):  # kernels are loaded the first time
            started = time.monotonic()
            with on_client(client):
                same_results(cross_validate(*problem()), expected)
            seconds = time.monotonic() - started
        for _ in range(rounds(10)):
            two_workers(client)
            killer = kill_one(list(rng.permutation(pids(client))), seconds * rng.random())
            with on_client(client):
                same_results(cross_validate(*problem()), expected)
            killer.join()


def test_the_only_worker_is_killed(expected: CVResult) -> None:
    """What was sent to it is sent again."""
    with local_cluster(1) as client, on_client(client):
        killer = kill_one(pids(client), 0.5)
        same_results(cross_validate(*problem()), expected)
        killer.join()


def ends_its_worker(shared: Any, limits: Limits) -> None:
    os.kill(os.getpid(), signal.SIGKILL)  # as the system does where memory ends


@pytest.mark.slow
def test_a_unit_that_ends_every_worker_is_given_up() -> None:
    import dask

    none = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    given_up = pytest.raises(ClusterError, match="memory may be too small")
    with none, local_cluster(1) as client, on_client(client), given_up:
        list(run_units(ends_its_worker, None, [()], allot=lambda _: Limits()))


def slow(shared: Any, number: int, limits: Limits) -> int:
    time.sleep(0.3)
    return number


@pytest.mark.slow
def test_a_cluster_that_restarts_is_sent_the_rest() -> None:
    with local_cluster(1) as client, on_client(client):
        units = run_units(slow, None, [(i,) for i in range(4)], allot=lambda _: Limits())
        found = [next(units)]
        client.restart()
        found += list(units)
    assert sorted(found) == [(i, i) for i in range(4)]


def test_a_cluster_without_workers_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "SECONDS_WITHOUT_WORKER", 1.0)
    nobody = pytest.raises(ClusterError, match="has had no worker for 1 s")
    with local_cluster(0) as client, on_client(client), nobody:
        next(run_units(slow, None, [(0,)], allot=lambda _: Limits()))


def test_a_lost_scheduler_is_a_sentence() -> None:
    import dask

    timeout = {"distributed.comm.timeouts.connect": "2s"}
    with dask.config.set(timeout), local_cluster(1) as client, on_client(client):
        units = run_units(slow, None, [(i,) for i in range(40)], allot=lambda _: Limits())
        next(units)
        client.cluster.close()
        with pytest.raises(ClusterError, match="scheduler is lost"):
            list(units)
