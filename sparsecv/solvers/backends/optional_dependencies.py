"""Outside solvers that come with an extra, and what to say where one is missing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, TextIO

from ...errors import not_installed
from ..core.threads import SharedByThreads

SCIP = "pyscipopt>=5.6"  # The oldest version that the back end was tested with.
EXTRAS = {
    "highspy": "highs",
    "gurobipy": "gurobi",
    "mosek": "mosek",
    "pyscipopt": "scip",
    "cvxpy": "mosek",
    "xgboost": "trees",
}


class SolverUnavailable(ValueError):
    """An outside solver's package or licence is missing; the message is one line."""


def _silence(stream: TextIO, number: int) -> Callable[[], object]:
    """Silence standard output or error, of this file number; return what lets it speak again."""
    stream.flush()
    before, nowhere = os.dup(number), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)

    def restore() -> None:
        os.dup2(before, number)
        os.close(before)

    return restore


# For libraries that cannot be told to be silent: ``with quiet_stderr():``.
quiet_stdout = SharedByThreads(lambda: _silence(sys.stdout, 1))
quiet_stderr = SharedByThreads(lambda: _silence(sys.stderr, 2))


@contextmanager
def mosek_guarded() -> Iterator[None]:
    """Turn MOSEK's complaints about its licence into one line."""
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())
        if "license" not in text.lower():
            raise
        raise SolverUnavailable(
            f"MOSEK has no licence here (set MOSEKLM_LICENSE_FILE, or use another backend): {text}"
        ) from error


def missing(*packages: str) -> str | None:
    """Which of the packages is not installed and how to get it; None where all are there.

    *packages: Names, also with a least version of two numbers: "cvxpy>=1.8".
    """
    for wanted in packages:
        package, _, least = wanted.partition(">=")
        if find_spec(package) is None:
            extra = EXTRAS.get(package)
            if extra is None:
                return f"{package} is not installed: pip install {package}"
            return not_installed(package, extra)
        with suppress(PackageNotFoundError):  # The package may be installed under another name.
            if least and _numbers(version(package)) < _numbers(least):
                return f"{package} is older than {least}: pip install -U {package}"
    return None


def _numbers(release: str) -> list[int]:
    """The first two numbers of a version."""
    return [int(number) for number in re.findall(r"\d+", release)[:2]]


def required(package: str) -> Any:
    """Import the package of an outside solver and return its module.

    package: The name by which Python imports it, without a version.
    Raises SolverUnavailable: The package is not installed; the message says how to install it.
    """
    lacking = missing(package)
    if lacking is not None:
        raise SolverUnavailable(lacking)
    return import_module(package)
