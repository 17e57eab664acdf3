"""What a solver returns: the support, the proof, and how the search ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Status(str, Enum):
    """How a solve ended. In every state the lower bound and the support returned are valid."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit"
    NODE_LIMIT = "node limit"
    MIO_LIMIT = "MIO limit"
    INTERRUPTED = "interrupted"
    PRECISION = "precision limit"  # searched to the end, but rounding leaves a gap
    UNPROVED = "not proved"  # No limit was met: the caller has asked for no more proofs.
    FAILED = "solver failure"  # an outside solver contradicted what is known to hold

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Solution:
    """A best-subset ridge solution with its certificate.

    Attributes
    ----------
    support : ndarray of intp, shape (s,)
        Columns with a coefficient, in increasing order.
    coef : ndarray of float, shape (p,)
        Coefficients, zero outside the support.
    objective : float
        ||y − Xβ||² + (γ/2)||β||² at ``coef``.
    lower_bound : float
        Proved lower bound on the optimum, rounding margin already taken off.
    gap : float
        (objective − lower_bound) / objective; 0 when the objective is 0.
    status : Status
        How the search ended.
    n_nodes : int
        Branch-and-bound nodes whose bound was computed.
    seconds : float
        Wall time of the solve.
    history : tuple of (float, float, float)
        Seconds, objective and lower bound of the branch-and-bound tree, whenever the gap between
        them had shrunk noticeably; empty for other solvers.
    """

    support: NDArray[np.intp]
    coef: NDArray[np.float64]
    objective: float
    lower_bound: float
    gap: float
    status: Status
    n_nodes: int
    seconds: float
    history: tuple[tuple[float, float, float], ...] = ()


def worst(statuses: Iterable[Status]) -> Status:
    """How several searches ended taken together: the first of time, node limit, … that occurs.

    Returns: OPTIMAL where there are none.
    """
    order = [
        Status.FAILED,
        Status.INTERRUPTED,
        Status.TIME_LIMIT,
        Status.NODE_LIMIT,
        Status.MIO_LIMIT,
        Status.PRECISION,
        Status.UNPROVED,
        Status.OPTIMAL,
    ]
    return min(statuses, key=order.index, default=Status.OPTIMAL)


def relative_gap(objective: float, lower_bound: float) -> float:
    """Return (objective − lower_bound) / objective, and 0 where the objective is 0.

    Returns: At least 0.
    """
    if objective <= 0.0:
        return 0.0
    return max(0.0, (objective - lower_bound) / objective)
