"""Outside solvers that come with an extra, and what to say where one is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Nothing on the process's standard error meanwhile: for libraries that cannot be told.

    Yields
    ------
    None
    """
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


EXTRAS = {
    "gurobipy": "gurobi",
    "mosek": "mosek",
    "pyscipopt": "scip",
    "cvxpy": "conic",
    "clarabel": "conic",
    "scs": "conic",
}


class SolverUnavailable(ValueError):
    """An outside solver's package or licence is missing; one line says which."""


def no_mosek_licence(text: str) -> str:
    """What to say where MOSEK finds no licence.

    Parameters
    ----------
    text : str
        MOSEK's own message.

    Returns
    -------
    str
    """
    return f"MOSEK has no licence here (set MOSEKLM_LICENSE_FILE, or use another backend): {text}"


def missing(*packages: str) -> str | None:
    """Which of the packages is not installed and how to get it; None where all are there.

    Parameters
    ----------
    *packages : str

    Returns
    -------
    str or None
    """
    for package in packages:
        if find_spec(package) is None:
            extra = EXTRAS.get(package)
            by_extra = f' (or its extra, pip install "sparsecv[{extra}]")' if extra else ""
            return f"{package} is not installed: pip install {package}{by_extra}"
    return None


def required(package: str) -> Any:
    """Import an outside solver.

    Parameters
    ----------
    package : str

    Returns
    -------
    module

    Raises
    ------
    SolverUnavailable
        It is not installed.
    """
    lacking = missing(package)
    if lacking is not None:
        raise SolverUnavailable(lacking)
    return import_module(package)
