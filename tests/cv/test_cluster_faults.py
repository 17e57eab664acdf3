"""Workers that are killed change no bit of a result."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from support.clusters import local_cluster, same_results
from support.fresh import rounds
from support.inside import CVResult, RowFolds, RowTable, cross_validate, make_folds
from support.problems import regression

distributed = pytest.importorskip("distributed")

GAMMAS = [0.3, 1.0, 3.0]
K = 30
P = 24  # columns: every tree of a unit ends, after some hundredths of a second


def problem() -> tuple[RowFolds, list[float], np.ndarray[Any, Any]]:
    """Thirty units of work."""
    X, y = regression(200, P, [1.0] * 8, noise=6.0, shared=0.5)
    return RowFolds(RowTable(X, y, True), make_folds(K, 200)), GAMMAS, np.arange(1, P + 1)


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
            with parallel_config("dask", client=client):
                same_results(cross_validate(*problem()), expected)
            seconds = time.monotonic() - started
        for _ in range(rounds(10)):
            two_workers(client)
            killer = kill_one(list(rng.permutation(pids(client))), seconds * rng.random())
            with parallel_config("dask", client=client):
                same_results(cross_validate(*problem()), expected)
            killer.join()


def test_a_worker_is_killed_in_the_middle(expected: CVResult) -> None:
    """Its units, and the rows that it alone may have held, are sent again."""
    with local_cluster(2) as client, parallel_config("dask", client=client):
        victims, killers = pids(client), list[threading.Thread]()

        def kill_after_three(what: str, done: int, *_: object) -> None:
            if what.startswith("fitting the folds") and done == 3 and not killers:
                killers.append(kill_one(victims, 0.0))

        same_results(cross_validate(*problem(), progress=kill_after_three), expected)
        (killer,) = killers
        killer.join()
        assert set(pids(client)) != set(victims)
