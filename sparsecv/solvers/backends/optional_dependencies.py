"""Outside solvers that come with an extra, and what to say where one is missing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Nothing on the process's standard error meanwhile: for libraries that cannot be told."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


SCIP = "pyscipopt>=5.6"  # from there on constraints can say which way they lock their variables
EXTRAS = {
    "gurobipy": "gurobi",
    "mosek": "mosek",
    "pyscipopt": "scip",
    "cvxpy": "conic",
}


class SolverUnavailable(ValueError):
    """An outside solver's package or licence is missing; one line says which."""


def no_mosek_licence(text: str) -> str:
    """What to say where MOSEK finds no licence.

    text: MOSEK's own message.
    """
    return f"MOSEK has no licence here (set MOSEKLM_LICENSE_FILE, or use another backend): {text}"


def missing(*packages: str) -> str | None:
    """Which of the packages is not installed and how to get it; None where all are there.

    *packages: Names, also with a least version: "cvxpy>=1.8".
    """
    for asked in packages:
        package, _, least = asked.partition(">=")
        if find_spec(package) is None:
            extra = EXTRAS.get(package)
            by_extra = f' (or its extra, pip install "sparsecv[{extra}]")' if extra else ""
            return f"{package} is not installed: pip install {package}{by_extra}"
        if least and _older(package, least):
            return f"{package} is older than {least}: pip install -U {package}"
    return None


def _older(package: str, least: str) -> bool:
    try:
        found = version(package)
    except PackageNotFoundError:  # installed under another name
        return False
    here, there = (re.findall(r"\d+", text)[:2] for text in (found, least))
    return list(map(int, here)) < list(map(int, there))


def required(package: str) -> Any:
    """Import an outside solver.

    Returns, module.
    Raises SolverUnavailable: It is not installed.
    """
    lacking = missing(package)
    if lacking is not None:
        raise SolverUnavailable(lacking)
    return import_module(package)
