"""Sparse ridge regression for fold pairs without k² independent solves of every (γ, τ).

On every subset of the folds one tree, or one path of swaps, gives the supports of all τ at a γ; it
starts from the supports at the γ before, never from those of other rows: what is chosen without a
fold must not have seen it. The predictions of a support come from one small factorisation, of the
Gram matrix unless γ is tiny.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..design.design import Design, Summary, make_design
from ..design.design import Protocol as Layout
from ..errors import InputError
from ..selection.partial_errors import Array, Index
from ..solvers import (
    TREE_ONLY,
    Relaxation,
    SparseRidgeProblem,
    best_by_enumeration,
    few_supports,
    gamma_path,
    heuristic_path,
    perspective_relaxation,
    solve_sizes,
)
from ..solvers.branching.enumeration import SOUND
from ..solvers.kernels.compiled import kernel

SOLVERS = ("auto", "exact", "heuristic", "rounding")
EXACT_COLUMNS = 20  # up to which "auto" solves every problem to optimality
GRAM_COLUMNS = 1000  # up to which coefficients come from the Gram matrix, where γ allows it
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
        gram = (problem.G, problem.b) if problem.p <= GRAM_COLUMNS else None
        found = np.empty((wanted.size, self.y.size))
        positions = [np.flatnonzero(a == g) for g in np.unique(a)]
        gammas = [float(self.gammas[a[at[0]]]) for at in positions]
        sizes = [np.unique(self.taus[b[at]]) for at in positions]
        chosen = self._supports(problem, gammas, sizes)
        for gamma, at, supports in zip(gammas, positions, chosen, strict=True):
            every = [supports[int(self.taus[t])] for t in b[at]]
            columns, coef = _coefficients(problem.replace(gamma=gamma), gram, every)
            found[at] = design.y_shift + coef @ rows[:, columns].T
        return found

    def _prepared(self, training: Index) -> tuple[Design, SparseRidgeProblem]:
        """The subset's own centring and scaling, and its problem."""
        X, y = self.X[training], self.y[training]
        names = [f"column {j}" for j in range(X.shape[1])]
        design = make_design(Summary.of(X, y), self.layout, names, warn=False)
        problem = SparseRidgeProblem(*design.apply(X, y), gamma=1.0, tau=1)
        return design, problem.compressed() if y.size > 2 * design.p else problem

    def _supports(
        self, problem: SparseRidgeProblem, gammas: list[float], sizes: list[NDArray[np.intp]]
    ) -> list[dict[int, Support]]:
        """A support for every γ and size; sizes beyond the columns left take all of them."""
        p = problem.p
        inside = [np.unique(np.minimum(wanted, p)) for wanted in sizes]
        found: list[dict[int, Support]] = []
        if self.solver == "exact" and p <= TREE_ONLY and len({w.tobytes() for w in inside}) == 1:
            paths = gamma_path(problem, gammas, inside[0])
            found = [dict(zip(inside[0].tolist(), path, strict=True)) for path in paths]
        else:
            known: list[Support] = []
            for gamma, wanted in zip(gammas, inside, strict=True):
                at_gamma = problem.replace(gamma=gamma)
                if self.solver == "exact" and p > TREE_ONLY and few_supports(at_gamma, wanted):
                    best = best_by_enumeration(at_gamma, wanted, starts=known)
                    one = dict(zip(wanted.tolist(), best, strict=True))
                elif self.solver == "exact":
                    tree = solve_sizes(at_gamma, sizes=wanted, warm_starts=known)
                    one = dict(zip(wanted.tolist(), tree.supports, strict=True))
                elif self.solver == "heuristic":
                    one = heuristic_path(at_gamma, wanted, warm_starts=known)
                else:
                    one = rounded_supports(at_gamma, wanted)
                known = list(one.values())
                found.append(one)
        return [
            {int(size): one[min(int(size), p)] for size in wanted}
            for one, wanted in zip(found, sizes, strict=True)
        ]


def _coefficients(
    problem: SparseRidgeProblem, gram: tuple[Array, Array] | None, supports: list[Support]
) -> tuple[Index, Array]:
    """Columns that any support has, and the coefficients on them of the fit on each (c, columns).

    From the Gram matrix where γ leaves it enough digits.
    """
    columns = np.unique(np.concatenate(supports))
    inside = np.full((len(supports), max(s.size for s in supports)), -1, dtype=np.int64)
    for c, support in enumerate(supports):
        inside[c, : support.size] = np.searchsorted(columns, support)
    coef = np.zeros((len(supports), columns.size))
    if gram is None or problem.gamma < SOUND * float(np.diag(gram[0]).max()):
        for c, support in enumerate(supports):
            at = inside[c, : support.size]
            coef[c, at] = problem.replace(tau=support.size).fit(support).coef
    else:
        G = np.ascontiguousarray(gram[0][np.ix_(columns, columns)])
        ridge_coefficients(G, gram[1][columns], problem.gamma / 2.0, inside, coef)
    return columns, coef


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


@kernel
def ridge_coefficients(G, b, ridge, supports, coef):  # type: ignore[no-untyped-def]
    """Solve (G_S + ridge I) β_S = b_S for every row of ``supports``, ended by −1, into ``coef``."""
    most = supports.shape[1]
    L, x = np.empty((most, most)), np.empty(most)
    for c in range(supports.shape[0]):
        k = 0
        while k < most and supports[c, k] >= 0:
            k += 1
        for i in range(k):
            for j in range(i + 1):
                total = G[supports[c, i], supports[c, j]]
                for q in range(j):
                    total -= L[i, q] * L[j, q]
                if j < i:
                    L[i, j] = total / L[j, j]
                else:
                    L[i, i] = np.sqrt(total + ridge)
            total = b[supports[c, i]]
            for q in range(i):
                total -= L[i, q] * x[q]
            x[i] = total / L[i, i]
        for i in range(k - 1, -1, -1):
            total = x[i]
            for q in range(i + 1, k):
                total -= L[q, i] * x[q]
            x[i] = total / L[i, i]
            coef[c, supports[c, i]] = x[i]
