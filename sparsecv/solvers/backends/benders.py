"""Generalised Benders decomposition (EC.1, main paper): a master over supports, cuts from fits.

Before the master starts, columns are screened, a good support is found by rounding the relaxation
and swaps, the diagonal that XᵀX can spare is moved into f (``diagonal``), and cuts are made at the
relaxations of a tree's leaves. The master, an outside solver, proves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..branching.single import WORST_GAP
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof
from .cuts import CutForm
from .oracle import PRECISION, MasterResult, Oracle
from .presolve import prepare

ROOT_CUTS = 1000
Master = Callable[[Oracle, Limits, int], MasterResult]


def outer_approximation(
    problem: SparseRidgeProblem,
    master: Master,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    limits: Limits | None = None,
    n_jobs: int = 1,
    root_cuts: int = ROOT_CUTS,
    plain: bool = False,
) -> Proof:
    """Solve eq. (1), main paper, by outer approximation of f(z).

    Parameters
    ----------
    problem : SparseRidgeProblem
    master : callable
        :func:`~sparsecv.solvers.backends.highs.solve_highs`, or Gurobi's or SCIP's.
    warm_starts : supports
        Of at most τ columns.
    tol : float
        Relative gap at which to stop; masters prove no less than 1e-7.
    limits : Limits, optional
        Nodes are the master's.
    n_jobs : int
        Threads of the master, where it has them.
    root_cuts : int
        Leaves of the tree whose relaxations are cut at before the master starts.
    plain : bool
        The scheme as it is usually written, to compare with: no screening, no diagonal moved into
        f, and one cut, at the incumbent, before the master starts.

    Returns
    -------
    Proof
        ``n_nodes`` are the master's, 0 where the relaxation alone was enough. The lower bound holds
        whenever the master stops, with its own tolerances taken off.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, outer_approximation
    >>> from sparsecv.solvers.backends.highs import solve_highs
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> outer_approximation(problem, solve_highs).support
    array([1, 2])
    """
    limits = limits or Limits()
    ready = prepare(problem, warm_starts, tol, limits, screening=not plain)
    if ready.done is not None:
        return ready.done
    form = CutForm(problem, ready.columns, ready.gram, extract=not plain)
    oracle = Oracle(form, ready.objective, ready.support, ready.bound, tol)
    if not plain:
        oracle.grow(root_cuts, limits)
    oracle.enter([ready.support])
    result = master(oracle, limits, n_jobs)
    return ready.proof(
        oracle.support,
        result.bound,
        result.status,
        result.n_nodes,
        max(WORST_GAP, 2.0 * (oracle.loss + PRECISION)),
        form.margin,
    )
