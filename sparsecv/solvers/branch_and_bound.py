"""Branch-and-bound for one problem at fixed (γ, τ), at any p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import branch_and_bound_kernels as kernels
from ._linalg import Array
from .greedy import forward_order
from .limits import Limits
from .problem import SparseRidgeProblem
from .solution import Status, relative_gap

COMPLETE_COLUMNS = 600  # free columns up to which more than two picks are enumerated
COMPLETE_LEVELS = 4
CHUNK_WORK = 3e6
SECONDS_PER_SUPPORT = 3e-9
WORST_GAP = 2e-6  # left by rounding alone; beyond it a finished search is not a proof
MOST_AT_ONCE = 1e8  # supports enumerated between two looks at the clock


@dataclass(frozen=True)
class GramForm:
    """Gram matrices of a problem and the diagonal extracted from them, for any γ and τ.

    ``D`` (p,) is a diagonal with G − D ⪰ 0: moved into the separable part of the objective it
    makes the perspective relaxation far tighter where n > p.
    """

    G: Array
    b: Array
    yy: float
    D: Array

    @classmethod
    def of(cls, problem: SparseRidgeProblem) -> GramForm:
        """Form the matrices; O(np²) and one symmetric eigenvalue problem."""
        G = problem.G
        return cls(G, problem.b, problem.yy, extraction(G, problem.rank_bound))

    def rounding(self, ridge: float) -> float:
        """Absolute error allowed for in every bound and enumerated objective.

        20 ulp of yᵀy times a bound on the variance inflation of any support.
        """
        inflation = (np.diag(self.G).max() + ridge) / (self.D.min() + ridge)
        return float(max(1e-12, 20.0 * np.finfo(float).eps * inflation) * self.yy)


@dataclass(frozen=True)
class SearchResult:
    """Support, its objective, a valid lower bound and how the search ended."""

    support: NDArray[np.intp]
    objective: float
    lower_bound: float
    status: Status
    n_nodes: int
    seconds: float


def branch_and_bound(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    limits: Limits | None = None,
    gram: GramForm | None = None,
) -> SearchResult:
    """Solve eq. (1), main paper, at the problem's γ and τ.

    Parameters
    ----------
    problem : SparseRidgeProblem
    warm_starts : supports
        Of at most τ columns.
    tol : float
        Relative gap at which the search stops.
    limits : Limits, optional
    gram : GramForm, optional
        Of the same data, to share among several γ and τ.

    Returns
    -------
    SearchResult
        The lower bound holds at whatever moment the search stops.
    """
    limits = limits or Limits()
    p, tau = problem.p, problem.tau
    gram = gram or GramForm.of(problem)
    state = _new_state(gram, problem.gamma / 2.0, tau, tol)
    order = forward_order(problem._base[:, :p], problem._base[:, p], tau, problem.gamma)
    for start in [order, *warm_starts]:
        _enter(state, start, order)
    chunk = max(1, int(CHUNK_WORK / (p * max(p, 50))))
    status = Status.OPTIMAL
    while True:
        reached = limits.reached(int(state.ints[kernels.NODES]))
        if reached is not None:
            status = reached
            break
        # a search that drags on may spend a third of its time on enumerating large nodes
        state.reals[kernels.ALLOWED] = min(
            0.3 * limits.elapsed() / SECONDS_PER_SUPPORT,
            state.reals[kernels.SPENT] + MOST_AT_ONCE,
        )
        left = limits.nodes_left(int(state.ints[kernels.NODES]), chunk)
        code = kernels.explore(state, left)
        if code == 0:
            break
        if code == 2:
            state = _deeper(state)
    support = np.sort(state.support).astype(np.intp)
    objective = problem.objective(support)
    top = int(state.ints[kernels.TOP])
    pending = state.stack_bound[:top].min(initial=np.inf)
    bound = min(objective, float(state.reals[kernels.SLACK]), float(pending))
    bound = max(0.0, bound - 1e-9 * bound - gram.rounding(problem.gamma / 2.0))
    if status is Status.OPTIMAL and relative_gap(objective, bound) > max(tol, WORST_GAP):
        status = Status.PRECISION
    return SearchResult(
        support, objective, bound, status, int(state.ints[kernels.NODES]), limits.elapsed()
    )


def extraction(G: Array, rank: int) -> Array:
    """Diagonal D with G − D ⪰ 0, from the least eigenvalue; 0 where G is singular by shape."""
    p = G.shape[0]
    if rank < p:
        return np.zeros(p)
    values = np.linalg.eigvalsh(G)
    least = values[0] - 1e-9 * values[-1]
    return np.full(p, max(0.0, float(least)))


def _new_state(gram: GramForm, ridge: float, tau: int, tol: float) -> kernels.SearchState:
    G, b, yy, D = gram.G, gram.b, gram.yy, gram.D
    p = b.size
    w = ridge + D
    levels = 1 if p > COMPLETE_COLUMNS else min(max(tau - 1, 1), COMPLETE_LEVELS)
    depth = min(p + 3, 512)
    values = np.sort(b * b / w)[::-1]
    lam = 0.5 * float(np.sqrt(values[min(tau, p) - 1]))
    return kernels.SearchState(
        G=np.ascontiguousarray(G),
        Q=np.ascontiguousarray(G - np.diag(D)),
        w=w,
        b=b,
        support=np.arange(tau, dtype=np.int64),
        ints=np.array([1, 0, 0, 0], dtype=np.int64),
        reals=np.array([np.inf, np.inf, max(tol, 1e-9), gram.rounding(ridge), yy, ridge, 0.0, 0.0]),
        stack=np.zeros((depth, p), dtype=np.int8),
        stack_beta=np.zeros((depth, p)),
        stack_bound=np.zeros(depth),
        stack_lam=np.full(depth, lam),
        state=np.zeros(p, dtype=np.int8),
        beta=np.zeros(p),
        g=np.zeros(p),
        lam=np.array([lam]),
        best=np.zeros(2),
        top=np.zeros(tau + 1),
        limits=np.array([np.inf, 1e-5, 60.0, 0.3]),
        active=np.zeros(p, dtype=np.int64),
        columns=np.zeros(p, dtype=np.int64),
        scratch=np.zeros(max(p, tau + 1)),
        chosen=np.zeros(max(tau, 1), dtype=np.int64),
        V=np.empty((tau + 1, p)),
        c=np.empty(p),
        d=np.empty(p),
        L=np.empty((tau + 1, tau + 1)),
        C=np.empty((levels, p, p)),
        unit=np.empty((levels, p)),
        picks=np.zeros(tau + 1, dtype=np.int64),
        found=np.zeros(tau + 1, dtype=np.int64),
        anywhere=np.ones(p, dtype=np.int8),
    )


def _enter(state: kernels.SearchState, start: NDArray[np.intp], order: NDArray[np.intp]) -> None:
    tau = state.support.size
    support = np.unique(start)[:tau]
    if support.size < tau:
        spare = order[~np.isin(order, support)]
        support = np.concatenate([support, spare])[:tau]
    if support.size < tau:
        spare = np.setdiff1d(np.arange(state.b.size), support)
        support = np.concatenate([support, spare])[:tau]
    state.found[:tau] = support
    kernels.enter(state, 100)


def _deeper(state: kernels.SearchState) -> kernels.SearchState:
    """The same search with room for twice as many open nodes."""
    grown = {}
    for name in ("stack", "stack_beta", "stack_bound", "stack_lam"):
        old = getattr(state, name)
        new = np.zeros((2 * old.shape[0], *old.shape[1:]), dtype=old.dtype)
        new[: old.shape[0]] = old
        grown[name] = new
    return state._replace(**grown)
