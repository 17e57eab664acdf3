"""Units of work in threads, in processes and on a cluster: each once, in any order, and stopped."""

from __future__ import annotations

import _thread
import gc
import os
import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from joblib import parallel_config
from support.inside import CLOCK, Limits, StopFlag

from sparsecv.cv.executor import run_units
from sparsecv.solvers import Status

pytest.importorskip("distributed")


class Shared:
    def __init__(self, number: int) -> None:
        self.number = number


def product(shared: Shared, factor: int, limits: Limits) -> tuple[int, Any, float | None]:
    return shared.number * factor, (os.getpid(), id(shared)), limits.remaining()


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
    assert (os.getpid() in dict(places)) == ((way == "threads" and count > 0) or count == 1)
    for _, _, seconds in found.values():
        assert seconds is not None
        assert 900.0 < seconds <= 1000.0
    assert all(0.0 < left <= max(count, 1) for left in rounds if count)


def test_what_is_shared_is_sent_once(client: Any) -> None:
    before = held_there(client)  # what other tests keep alive
    shared, places = Shared(1), set()
    with parallel_config("dask", client=client):
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


@pytest.mark.usefixtures("way")
def test_an_error_is_raised_here() -> None:
    units = run_units(fails, Shared(1), [(i,) for i in range(5)], allot=no_limits)
    with pytest.raises(ValueError, match="γ is too small"):
        list(units)


def test_ctrl_c_is_answered_at_once_and_units_end_at_their_deadline(client: Any) -> None:
    with parallel_config("dask", client=client):
        tasks: list[tuple[Any, ...]] = [()] * 8
        units = run_units(until_stopped, Shared(1), tasks, allot=lambda _: Limits(3.0))
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            leave(units, client)
        assert time.monotonic() - started < 2.5
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
    deadline = time.monotonic() + 20.0  # Of eight units two have begun, each of 3 seconds.
    while time.monotonic() < deadline:
        if not any(client.processing().values()) and not any(client.run(executing).values()):
            return
        time.sleep(0.05)
    raise AssertionError("units go on after nobody waits for them")


def executing(dask_worker: Any) -> int:
    return len(dask_worker.state.executing)


def compiles(shared: Shared, seconds: float, limits: Limits) -> str:
    CLOCK.leave_out(seconds)
    return "x"


def test_compiling_elsewhere_is_no_time_here() -> None:
    limits, started = Limits(), time.perf_counter()
    with parallel_config("loky", n_jobs=2):
        for wanted in (4.0, 3.0):
            before = CLOCK.seconds_compiling
            tasks = [(wanted,), (0.0,), (0.0,), (0.0,)]
            assert len(list(run_units(compiles, Shared(1), tasks, allot=no_limits))) == 4
            assert CLOCK.seconds_compiling - before == pytest.approx(wanted)
    spent = time.perf_counter() - started
    assert limits.elapsed() == pytest.approx(spent - 7.0, abs=0.5)


def test_limits_travel_as_what_is_left() -> None:
    limits = Limits(100.0, 7, StopFlag())
    limits._deadline = limits._deadline and limits._deadline - 40.0
    other = pickle.loads(pickle.dumps(limits))
    assert other.node_limit == 7
    assert other.remaining() == pytest.approx(60.0, abs=1.0)
    assert pickle.loads(pickle.dumps(Limits())).remaining() is None
