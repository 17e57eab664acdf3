"""Outside solvers that come with an extra, and what to say where one is missing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from ...errors import not_installed
from ..core.threads import SharedByThreads

SCIP = "pyscipopt>=5.6"  # In older versions constraints cannot say which way they lock variables.
EXTRAS = {
    "gurobipy": "gurobi",
    "mosek": "mosek",
    "pyscipopt": "scip",
    "cvxpy": "mosek",
    "xgboost": "trees",
}


class SolverUnavailable(ValueError):
    """An outside solver's package or licence is missing; the message is one line."""


def _silence_stderr() -> Callable[[], object]:
    """Silence the process's standard error; return the function that lets it speak again."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)

    def restore() -> None:
        os.dup2(kept, 2)
        os.close(kept)

    return restore


# For libraries that cannot be told to be silent: ``with quiet_stderr():``.
quiet_stderr = SharedByThreads(_silence_stderr)


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

    *packages: Names, also with a least version: "cvxpy>=1.8".
    """
    for asked in packages:
        package, _, least = asked.partition(">=")
        if find_spec(package) is None:
            extra = EXTRAS.get(package)
            if extra is None:
                return f"{package} is not installed: pip install {package}"
            return not_installed(package, extra)
        if least and _older(package, least):
            return f"{package} is older than {least}: pip install -U {package}"
    return None


def _older(package: str, least: str) -> bool:
    """Whether the installed version, by its first two numbers, is older than ``least``."""
    try:
        found = version(package)
    except PackageNotFoundError:  # The package was installed under another name.
        return False
    here, there = (re.findall(r"\d+", text)[:2] for text in (found, least))
    return list(map(int, here)) < list(map(int, there))


def required(package: str) -> Any:
    """Import an outside solver.

    Raises SolverUnavailable: The package is not installed.
    """
    lacking = missing(package)
    if lacking is not None:
        raise SolverUnavailable(lacking)
    return import_module(package)
