"""What every search returns for a size: a support, a bound on every objective, how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .leaves import Leaves


class Status(StrEnum):
    """How a solve ended. In every state the lower bound and the support returned are valid.

    The values are strings:

    - "optimal": the support is proved to be the best one, to the tolerance asked for;
    - "time limit", "node limit", "MIO limit": a limit on seconds, nodes or mixed-integer problems
      stopped the search;
    - "interrupted": Ctrl-C stopped the search;
    - "precision limit": the search ended, but rounding leaves a larger gap;
    - "not proved": no limit was met, and no more proofs were asked for;
    - "solver failure": an outside solver contradicted what is known to hold.
    """

    # Worst first: :meth:`worst` reads the order.
    FAILED = "solver failure"
    INTERRUPTED = "interrupted"
    TIME_LIMIT = "time limit"
    NODE_LIMIT = "node limit"
    PRECISION = "precision limit"
    UNPROVED = "not proved"
    OPTIMAL = "optimal"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def worst(cls, statuses: Iterable[Status]) -> Status:
        """How several searches ended taken together: the first status of this class that occurs.

        Returns: OPTIMAL where there are none.
        """
        return min(statuses, key=list(cls).index, default=cls.OPTIMAL)

    @property
    def remedy(self) -> str:
        """What a user can do for a proof after a search that has ended so."""
        if self is Status.PRECISION:  # More time proves nothing here.
            return "give a gamma > 0, or leave out columns that others nearly determine"
        if self is Status.UNPROVED:
            return "take fewer columns"
        return "raise time_limit, or take fewer columns"


class Work(NamedTuple):
    """What a solve has cost, and how its gap shrank.

    Attributes
    ----------
    n_nodes : int
        Branch-and-bound nodes whose bound was computed.
    seconds : float
        Wall time.
    n_branched : int
        Nodes that were branched on; 0 where a solver does not count them.
    history : tuple of (float, float, float)
        Seconds, objective and lower bound of the branch-and-bound tree, whenever the gap between
        objective and bound had shrunk noticeably; empty for other solvers.
    """

    n_nodes: int = 0
    seconds: float = 0.0
    n_branched: int = 0
    history: tuple[tuple[float, float, float], ...] = ()


NO_WORK, NO_COEFFICIENTS = Work(), np.empty(0)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a search says of one size: a support, its objective, and a bound for every support.

    Attributes
    ----------
    size : int
        The size asked for: how many columns, or groups of columns, a support may have.
    support : ndarray of intp, shape (s,)
        Columns with a coefficient, in increasing order.
    objective : float
        ||y − Xβ||² + (γ/2)||β||² at the ridge fit on the support.
    lower_bound : float
        Proved lower bound on the optimum; the rounding margin is already taken off.
    status : Status
        How the search ended; optimal where the support is proved to be the best one.
    work : Work
        What the search has cost; ``n_nodes``, ``seconds`` and ``history`` are read from it.
    rounding : float
        What rounding may have added to the objective, where a search knows that number.
    leaves : Leaves or None
        The nodes that are still open: every better support lies below one of them. None where a
        search keeps none, or the support is proved to be the best one.
    coef : ndarray of float, shape (p,)
        Coefficients, zero outside the support. Only :func:`~sparsecv.solvers.solve` returns them;
        of other searches the array is empty.
    """

    size: int
    support: NDArray[np.intp]
    objective: float
    lower_bound: float
    status: Status
    work: Work = NO_WORK
    rounding: float = 0.0
    leaves: Leaves | None = field(default=None, repr=False, compare=False)
    coef: NDArray[np.float64] = field(default_factory=lambda: NO_COEFFICIENTS, compare=False)

    @classmethod
    def nothing_known(cls, size: int) -> Answer:
        """The answer before any search: no support, and a lower bound of 0."""
        nothing, status = np.empty(0, dtype=np.intp), Status.UNPROVED
        return cls(size=size, support=nothing, objective=np.inf, lower_bound=0.0, status=status)

    def joined(self, later: Answer, work: Work) -> Answer:
        """This answer, which is not proved, and that of a later search for the same size.

        It has the better support, the larger bound and the later status. ``rounding`` and ``coef``
        are those of single searches, which joined answers lack.

        work: Nodes and time of the joined answer.
        """
        better = later if later.objective <= self.objective else self
        bound = min(max(self.lower_bound, later.lower_bound), better.objective)
        leaves = self.leaves if later.leaves is None else later.leaves
        return Answer(
            size=self.size,
            support=better.support,
            objective=better.objective,
            lower_bound=bound,
            status=later.status,
            work=work,
            leaves=None if later.proved else leaves,
        )

    @property
    def proved(self) -> bool:
        """Whether the support is proved to be the best one."""
        return self.status is Status.OPTIMAL

    @property
    def gap(self) -> float:
        """(objective − lower_bound) / objective; 0 when the objective is 0."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def n_nodes(self) -> int:
        """Branch-and-bound nodes whose bound was computed."""
        return self.work.n_nodes

    @property
    def seconds(self) -> float:
        """Wall time of the solve."""
        return self.work.seconds

    @property
    def history(self) -> tuple[tuple[float, float, float], ...]:
        """Seconds, objective and lower bound of the branch-and-bound tree as its gap shrank."""
        return self.work.history


def relative_gap(objective: float, lower_bound: float) -> float:
    """(objective − lower_bound) / objective, at least 0; 0 at the objective 0, 1 at ∞."""
    if objective <= 0.0:
        return 0.0
    if np.isinf(objective):
        return 1.0
    return max(0.0, (objective - lower_bound) / objective)
