"""Puts this folder on the import path; hypothesis draws the same examples in every run.

``pytest --hypothesis-profile fresh`` draws others each time: a failing one is printed with what
repeats it, and kept below .hypothesis/. A shell's background job ignores Ctrl-C, until a solver's
library puts back what is not there and the run ends without a word: a handler is set in any case.
"""

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

COMMON = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("repeatable", COMMON, derandomize=True, database=None)
settings.register_profile("fresh", COMMON, print_blob=True)
settings.load_profile("repeatable")
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """A Dask cluster of two processes on this machine, for all tests that need one."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as one,
    ):
        one.amm.stop()  # it would drop copies of what was sent, on a worker that waits
        yield one
