"""Outside solvers that come with an extra, and what to say where one is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ...errors import SolverUnavailable, not_installed
from ..core.threads import SharedByThreads

# For every package the extra of sparsecv that installs it.
EXTRAS = {
    "highspy": "highs",
    "gurobipy": "gurobi",
    "mosek": "mosek",
    "cvxpy": "mosek",
}


def _silence() -> Callable[[], object]:
    """Silence standard output; return what lets it speak again."""
    sys.stdout.flush()
    before, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)

    def restore() -> None:
        os.dup2(before, 1)
        os.close(before)

    return restore


# For libraries that cannot be told to be silent: ``with quiet_stdout():``.
quiet_stdout = SharedByThreads(_silence)


@contextmanager
def mosek_guarded() -> Iterator[None]:
    """Turn errors of MOSEK whose text has the word license into a SolverUnavailable of one line."""
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
    """Which of the packages is not installed and how to get it; None where all are there."""
    for package in packages:
        if find_spec(package) is None:
            return not_installed(package, EXTRAS[package])
    return None


def required(package: str) -> Any:
    """Import the package of an outside solver and return its module.

    package: The name by which Python imports it.
    Raises SolverUnavailable: The package is not installed; the message says how to install it.
    """
    lacking = missing(package)
    if lacking is not None:
        raise SolverUnavailable(lacking)
    return import_module(package)
