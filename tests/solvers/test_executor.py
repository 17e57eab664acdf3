"""Units of work in threads, in processes and on a cluster: each once, in any order, and stopped."""

from __future__ import annotations

import _thread
import gc
import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from support.clusters import local_cluster

from sparsecv.errors import ClusterError, InputError
from sparsecv.solvers import Status, on_client
from sparsecv.solvers.cluster import Run, stop_run, unit_there
from sparsecv.solvers.core.limits import Limits, StopFlag
from sparsecv.solvers.executor import run_units
from sparsecv.solvers.kernels.compiled import seconds_compiling

pytest.importorskip("distributed")


class Shared:
    def __init__(self, number: int) -> None:
        self.number = number


def product(shared: Shared, factor: int, limits: Limits) -> tuple[int, Any, float | None]:
    return shared.number * factor, (os.getpid(), id(shared)), limits.remaining()


def total(shared: Shared, array: Any, limits: Limits) -> float:
    return float(shared.number + array.sum())


def until_stopped(shared: Shared, limits: Limits) -> Status | None:
    while (reached := limits.reached(0)) is None:
        time.sleep(0.01)
    return reached


def fails(shared: Shared, number: int, limits: Limits) -> int:
    if number == 2:
        raise ValueError("γ is too small")
    return number


@pytest.fixture(params=["threads", "processes", "cluster"])
def way(request: Any, client: Any) -> Iterator[str]:
    backend = {
        "threads": {"backend": "threading", "n_jobs": 2},
        "processes": {"backend": "loky", "n_jobs": 2},
        "cluster": {"backend": "dask", "client": client},
    }[request.param]
    with parallel_config(**backend):
        yield request.param


@pytest.mark.parametrize("count", [0, 1, 7])
def test_every_unit_once(count: int, way: str) -> None:
    tasks = [(i,) for i in range(count)]
    rounds = []

    def allot(left: float) -> Limits:
        rounds.append(left)
        return Limits(1000.0)

    found = dict(run_units(product, Shared(3), tasks, allot=allot))
    assert sorted(found) == list(range(count))
    assert [found[i][0] for i in range(count)] == [3 * i for i in range(count)]
    places = {place for _, place, _ in found.values()}
    assert len({process for process, _ in places}) == len(places)  # one object in each process
    assert (os.getpid() in dict(places)) == (
        way == "threads" or (way == "processes" and count == 1)
    ) * (count > 0)
    for _, _, seconds in found.values():
        assert seconds is not None
        assert 900.0 < seconds <= 1000.0
    assert all(0.0 < left <= max(count, 1) for left in rounds if count)


def test_what_is_shared_is_sent_once(client: Any) -> None:
    before = held_there(client)  # what other tests keep alive
    shared, places = Shared(1), set()
    with on_client(client):
        for _ in range(3):
            found = dict(run_units(product, shared, [(i,) for i in range(8)], allot=no_limits))
            assert [found[i][0] for i in range(8)] == list(range(8))
            places |= {place for _, place, _ in found.values()}
    assert len(places) == len({process for process, _ in places})
    assert held_there(client) - before
    del shared
    deadline = time.monotonic() + 10.0
    while held_there(client) - before and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.05)
    assert held_there(client) <= before


def no_limits(_: float) -> Limits:
    return Limits()


def held_there(client: Any) -> set[str]:
    return {str(key) for keys in client.has_what().values() for key in keys}


def test_large_arguments_are_sent_once_and_lazy_ones_computed_there(client: Any) -> None:
    da = pytest.importorskip("dask.array")
    big = np.ones(50_000)
    with on_client(client):
        tasks = [(big,), (big,), (da.ones(10, chunks=10).sum(),)]
        found = dict(run_units(total, Shared(1), tasks, allot=no_limits))
    assert found == {0: 50_001.0, 1: 50_001.0, 2: 11.0}


@pytest.mark.usefixtures("way")
def test_an_error_is_raised_here() -> None:
    units = run_units(fails, Shared(1), [(i,) for i in range(5)], allot=no_limits)
    with pytest.raises(ValueError, match="γ is too small"):
        list(units)


def test_leaving_stops_what_runs_elsewhere(client: Any) -> None:
    with on_client(client):
        tasks: list[tuple[Any, ...]] = [(), (), ()]
        units = run_units(until_stopped, Shared(1), tasks, allot=lambda _: Limits(60.0))
        with pytest.raises(KeyboardInterrupt):
            leave(units, client)
    wait_until_idle(client)


def leave(units: Any, client: Any) -> None:
    """Close the loop while two units run, as Ctrl-C does."""

    def interrupt() -> None:
        while not any(client.processing().values()):
            time.sleep(0.01)
        time.sleep(0.3)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    try:
        next(units)
    finally:
        units.close()


def wait_until_idle(client: Any) -> None:
    deadline = time.monotonic() + 20.0  # of the units' 60 seconds
    while time.monotonic() < deadline:
        if not any(client.processing().values()) and not any(client.run(executing).values()):
            return
        time.sleep(0.05)
    raise AssertionError("units go on after nobody waits for them")


def executing(dask_worker: Any) -> int:
    return len(dask_worker.state.executing)


def test_a_flag_ends_the_units_of_its_run() -> None:
    stop_run("a")
    assert unit_there(until_stopped, None, (), 60.0, "a")[0] is Status.INTERRUPTED
    assert unit_there(until_stopped, None, (), 0.05, "b")[0] is Status.TIME_LIMIT


def test_another_version_is_refused() -> None:
    with pytest.raises(ClusterError, match="install the same version everywhere"):
        unit_there(product, Shared(1), (1,), None, "c", "0.0")


def test_compiling_elsewhere_is_no_time_here() -> None:
    run, before = Run(), seconds_compiling()
    limits = Limits(5.0)
    for compiled in (3.0, 4.0, 3.5):  # what one process, another one and the first one had compiled
        assert run.take(("x", compiled)) == "x"
    assert seconds_compiling() - before == pytest.approx(4.0)  # side by side: the longest
    left = limits.remaining()
    assert left is not None
    assert left > 8.9


def test_limits_travel_as_what_is_left() -> None:
    limits = Limits(100.0, 7, StopFlag())
    limits._deadline = limits._deadline and limits._deadline - 40.0
    other = pickle.loads(pickle.dumps(limits))
    assert other.node_limit == 7
    assert other.remaining() == pytest.approx(60.0, abs=1.0)
    assert pickle.loads(pickle.dumps(Limits())).remaining() is None


def test_no_dask_and_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = pytest.raises(InputError, match="no Dask scheduler answers at tcp://127")
    with refused, on_client("tcp://127.0.0.1:1"):
        pass
    with pytest.raises(InputError, match="client must be"), on_client(3):
        pass
    monkeypatch.setitem(sys.modules, "distributed", None)
    missing = pytest.raises(InputError, match=r'pip install "sparsecv\[distributed\]"')
    with missing, on_client("tcp://127.0.0.1:1"):
        pass


def test_the_cluster_is_left_as_it_was() -> None:
    with local_cluster(1) as client:
        address = client.scheduler.address
        with on_client(address):
            assert dict(run_units(product, Shared(2), [(4,)], allot=no_limits))[0][0] == 8
        port = int(address.rsplit(":", 1)[1])
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 1.0)
