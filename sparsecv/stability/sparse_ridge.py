"""Sparse ridge regression for fold pairs without k² independent solves of every (γ, τ).

On every subset of the folds one tree, or one path of swaps, gives the supports of all τ at a γ; it
starts from the supports at the γ before, never from those of other rows: what is chosen without a
fold must not have seen it. The predictions of a support come from one small factorisation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..design import Design, Summary, make_design
from ..design import Protocol as Layout
from ..errors import InputError
from ..partial_errors import Array, Index
from ..solvers import (
    Relaxation,
    SparseRidgeProblem,
    heuristic_path,
    perspective_relaxation,
    solve_sizes,
)

SOLVERS = ("auto", "exact", "heuristic", "rounding")
EXACT_COLUMNS = 20  # up to which "auto" solves every problem to optimality
GRAM_COLUMNS = 1000  # up to which coefficients come from the Gram matrix,
SOUND = 1e-7  # where γ is not below this share of its diagonal: at least nine digits are left
Support = NDArray[np.intp]


def largest_tau(n: int, p: int) -> int:
    """The largest τ with τ log τ ≤ n (both papers' numerics), at most p."""
    tau = 1
    while tau < p and (tau + 1) * np.log(tau + 1) <= n:
        tau += 1
    return tau


class SparseRidgeLearner:
    """Losses of sparse ridge models for every γ and τ of a grid.

    A candidate is number a·|τ| + b for γ_a and τ_b. A model is what ``SparseRidge(tau, gamma).fit``
    gives on the same rows: columns scaled by the standard deviations of those rows, with an
    intercept.

    Parameters
    ----------
    X, y : ndarray, shape (n, p) and (n,)
    taus : sequence of int
    gammas : sequence of float
        In our convention, γ/2 ||β||².
    solver : str
        "exact": every problem to optimality. "rounding": the relaxation's largest entries, as in
        the stability paper. "heuristic": forward selection, swaps, warm starts along τ. "auto":
        exact up to 20 columns, then heuristic.
    fit_intercept, standardize : bool

    Raises
    ------
    InputError
        An unknown solver, γ ≤ 0 or τ out of range.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        taus: Sequence[int] | NDArray[np.intp],
        gammas: Sequence[float] | Array,
        *,
        solver: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
    ) -> None:
        if solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(SOLVERS)}; got {solver!r}")
        self.X, self.y = X, y
        self.taus = np.asarray(taus, dtype=np.intp)
        self.gammas = np.asarray(gammas, dtype=np.float64)
        if not ((self.gammas > 0.0).all() and np.isfinite(self.gammas).all()):
            raise InputError(f"gamma must be > 0; got {self.gammas.min():g}")
        if self.taus.size == 0 or self.taus.min() < 1 or self.taus.max() > X.shape[1]:
            raise InputError(f"tau must lie between 1 and p = {X.shape[1]}")
        self.layout = Layout(
            "honest", "unit-variance" if standardize else "none", intercept=fit_intercept
        )
        few = X.shape[1] <= EXACT_COLUMNS
        self.solver = ("exact" if few else "heuristic") if solver == "auto" else solver

    @property
    def size(self) -> int:
        """Number of candidates."""
        return int(self.taus.size * self.gammas.size)

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """Squared errors (c, n); see :class:`~sparsecv.partial_errors.Learner`."""
        return np.asarray((self.y - self.predictions(training, candidates)) ** 2)

    def predictions(self, training: Index, candidates: Sequence[int]) -> Array:
        """Predictions (c, n) on all rows of the models fitted to some."""
        wanted = np.asarray(candidates, dtype=np.intp)
        a, b = np.divmod(wanted, self.taus.size)
        design, problem = self._prepared(training)
        rows, _ = design.apply(self.X, self.y)
        gram = None
        if problem.p <= GRAM_COLUMNS:
            gram = (problem.G, problem.b, float(np.diag(problem.G).max()))
        found = np.empty((wanted.size, self.y.size))
        start: list[Support] = []
        for g in np.unique(a):
            gamma = float(self.gammas[g])
            sizes = np.unique(self.taus[b[a == g]])
            supports = self._supports(problem, gamma, sizes, start)
            start = list(supports.values())
            for c in np.flatnonzero(a == g):
                support = supports[int(self.taus[b[c]])]
                if gram is None or gamma < SOUND * gram[2]:
                    coef = problem.replace(gamma=gamma, tau=support.size).fit(support).coef
                else:
                    K = gram[0][np.ix_(support, support)]
                    K[np.diag_indices_from(K)] += gamma / 2.0
                    coef = np.asarray(np.linalg.solve(K, gram[1][support]), dtype=np.float64)
                found[c] = design.y_shift + rows[:, support] @ coef
        return found

    def _prepared(self, training: Index) -> tuple[Design, SparseRidgeProblem]:
        """The subset's own centring and scaling, and its problem."""
        X, y = self.X[training], self.y[training]
        names = [f"column {j}" for j in range(X.shape[1])]
        design = make_design(Summary.of(X, y), self.layout, names, warn=False)
        problem = SparseRidgeProblem(*design.apply(X, y), gamma=1.0, tau=1)
        return design, problem.compressed() if y.size > 2 * design.p else problem

    def _supports(
        self,
        problem: SparseRidgeProblem,
        gamma: float,
        sizes: NDArray[np.intp],
        known: list[Support],
    ) -> dict[int, Support]:
        """A support for every size; sizes beyond the columns that are left take all of them."""
        p = problem.p
        inside = np.unique(np.minimum(sizes, p))
        known = [support for support in known if support.size and support.max() < p]
        at_gamma = problem.replace(gamma=gamma)
        if self.solver == "exact":
            tree = solve_sizes(at_gamma, sizes=inside, warm_starts=known)
            found = dict(zip(inside.tolist(), tree.supports, strict=True))
        elif self.solver == "heuristic":
            found = heuristic_path(at_gamma, inside, warm_starts=known)
        else:
            found = rounded_supports(at_gamma, inside)
        return {int(size): found[min(int(size), p)] for size in sizes}


def rounded_supports(problem: SparseRidgeProblem, sizes: NDArray[np.intp]) -> dict[int, Support]:
    """The τ largest entries of the perspective relaxation, for every τ (greedy rounding)."""
    found: dict[int, Support] = {}
    relaxed: Relaxation | None = None
    for size in sizes.tolist():
        at_size = problem.replace(tau=size)
        relaxed = perspective_relaxation(at_size, warm_start=relaxed, gap=1e-5)
        order = np.lexsort((-np.abs(relaxed.beta), -relaxed.z))
        found[size] = np.sort(order[:size]).astype(np.intp)
    return found
