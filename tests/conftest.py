"""Settings of all tests: imports of helpers, examples of hypothesis, processes, clusters.

This folder is on the import path, so that ``support`` can be imported. Hypothesis draws the same
examples in every run.

Tests run in one process per core (pytest-xdist; with ``-n 0`` in one process), so numpy's linear
algebra keeps to one thread in each process. Tests that start clusters, send signals or look at a
clock share one process, where they follow one another.

``pytest --hypothesis-profile fresh`` draws new examples in every run. A failing example is printed
with the decorator that repeats it, and kept below .hypothesis/.

A shell starts a background job with Ctrl-C ignored. A solver's library may then restore a handler
that is not there, and the run ends without a message. The tests therefore always set a handler.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read once, where numpy is imported

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from support.clusters import local_cluster  # noqa: E402
from support.fresh import PLAIN_RUN_EXAMPLES  # noqa: E402
from support.stand_ins import StandIn, until_closed  # noqa: E402

COMMON = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "repeatable", COMMON, derandomize=True, database=None, max_examples=PLAIN_RUN_EXAMPLES
)
settings.register_profile("fresh", COMMON, max_examples=60, print_blob=True)
settings.load_profile("repeatable")
signal.signal(signal.SIGINT, signal.default_int_handler)


ONE_AFTER_THE_OTHER = {
    "test_screen.py",
    "test_cluster_faults.py",
    "test_compiled.py",
    "test_executor.py",
    "test_executors.py",
    "test_limits.py",
    "test_process.py",
    "test_reduction.py",
    "test_snippets.py",
}
# Each of these files makes something that takes seconds, once in every process that runs its tests.
MADE_ONCE = {"test_kernels_in_python.py", "test_layers.py"}


@pytest.fixture(autouse=True)
def _no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine commands may take long enough for lines that a test does not expect."""
    monkeypatch.setattr("sparsecv.cli.console.FIRST_LINE_SECONDS", 600.0, raising=False)


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    """Parts of the package that are others until the test ends (``support/stand_ins.py``)."""
    with ExitStack() as stack:
        yield until_closed(stack)


ROOT = Path(__file__).resolve().parents[1]
WARMED = "SPARSECV_WARMED_COPY"


def pytest_configure(config: pytest.Config) -> None:
    """Before the workers of a fresh clone start, compile every kernel once.

    A copy of the package and of what was compiled serves test_nothing_is_compiled_after_warmup.
    """
    package = ROOT / "sparsecv"
    several = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not several or "NUMBA_DISABLE_JIT" in os.environ or any(package.rglob("*.nbi")):
        return
    if not package.is_dir():  # the tests of an installed package
        return
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.check_call([sys.executable, "-m", "sparsecv", "warmup"], env=environment)
    copy = tempfile.mkdtemp(prefix="sparsecv-warmed-")
    shutil.copytree(package, Path(copy) / "sparsecv")
    os.environ[WARMED] = copy  # workers inherit it


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and WARMED in os.environ:
        shutil.rmtree(os.environ.pop(WARMED), ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the files whose tests share one process; any free process runs the other tests."""
    for item in items:
        if item.path.name in ONE_AFTER_THE_OTHER:
            item.add_marker(pytest.mark.xdist_group("clusters, signals and clocks"))
        elif item.path.name in MADE_ONCE:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """A Dask cluster of two processes on this machine, for all tests that need one."""
    pytest.importorskip("distributed")
    with local_cluster(2) as one:
        one.amm.stop()  # Dask would drop a waiting worker's copy of what was sent
        yield one
