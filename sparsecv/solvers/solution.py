"""One training problem solved for whoever calls Python, with coefficients and a certificate.

Without it fits are the same, as they call :func:`~sparsecv.solvers.api.best_support` themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from .api import best_support
from .certificate import given_certificate
from .core.certificate_file import Certificate
from .core.limits import StopFlag
from .core.problem import SparseRidgeProblem
from .core.result import Answer


@dataclass(frozen=True, kw_only=True)
class Solution(Answer):
    """What :func:`solve` returns: an answer with coefficients, whose proof can be written down.

    Attributes
    ----------
    problem : SparseRidgeProblem
        The problem that was solved.
    """

    problem: SparseRidgeProblem = field(repr=False, compare=False)

    def certificate(self) -> Certificate:
        """Return a proof that no other support of this size is better by a millionth.

        ``sparsecv verify`` checks it with whole numbers alone, and so does ``verify.py``, which
        needs nothing but Python. The proof is searched for anew, with the support known.

        Returns
        -------
        Certificate
            Its ``save`` writes the proof and the table that the proof is about.

        Raises
        ------
        InputError
            The solution is not proved; or the problem was not made from X and y, has constraints,
            γ = 0 or more than 500 columns, or its tree is too large.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv.solvers import SparseRidgeProblem, solve
        >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
        >>> print(solve(problem).certificate().claim[1])
        Columns with the objective 5.33333333323: x1, x2
        """
        if not self.proved:
            raise InputError(f"a certificate needs a proved solution; this one is: {self.status}")
        return given_certificate(self.problem, self.support)


def solve(
    problem: SparseRidgeProblem,
    *,
    backend: str = "native",
    time_limit: float | None = None,
    node_limit: int | None = None,
    tol: float = 1e-6,
    warm_start: ArrayLike | None = None,
    stop: StopFlag | None = None,
    n_jobs: int | None = None,
) -> Solution:
    """Solve min ||y − Xβ||² + (γ/2)||β||² s.t. ||β||₀ ≤ τ (eq. 1, first paper).

    Parameters
    ----------
    problem : SparseRidgeProblem
    backend : str
        "native" searches the all-sizes tree for few columns and branches on the perspective
        relaxation for more. "highs" and "gurobi" prove by outer approximation
        (generalised Benders decomposition). "mosek" gets the perspective model. Or a registered
        one.
    time_limit : float, optional
        Seconds; the incumbent and a valid bound are returned when it is reached.
    node_limit : int, optional
        Branch-and-bound nodes.
    tol : float
        Relative gap at which the search may stop; 0 proves optimality up to rounding.
    warm_start : array of int, optional
        A support to start from.
    stop : StopFlag, optional
        Lets another thread end the search.
    n_jobs : int, optional
        Threads that share one branch-and-bound tree, as in joblib; 1 by default. The all-sizes
        tree of few columns and HiGHS have one.

    Returns
    -------
    Solution
        An answer with coefficients; its method ``certificate`` writes the proof to a file.

    Raises
    ------
    SolverUnavailable
        An outside solver's package or licence is missing; also a ValueError.
    ValueError
        Unknown backend, a negative tolerance or limit, or a warm start outside 0..p−1.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, solve
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> found = solve(problem)
    >>> found.support, str(found.status)
    (array([1, 2]), 'optimal')
    """
    limited: dict[str, Any] = {"time_limit": time_limit, "node_limit": node_limit, "stop": stop}
    found = best_support(
        problem, backend=backend, tol=tol, warm_start=warm_start, n_jobs=n_jobs, **limited
    )
    # A search at γ = 0 fits columns of length 1, so that its objective has other rounding errors.
    fit, coef = problem.fit(found.support), np.zeros(problem.p)
    coef[found.support] = fit.coef
    return Solution(
        size=problem.tau,
        support=found.support,
        objective=fit.objective,
        lower_bound=min(found.lower_bound, fit.objective),
        status=found.status,
        work=found.work,
        coef=coef,
        problem=problem,
    )
