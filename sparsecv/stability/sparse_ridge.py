"""Sparse ridge regression on many subsets of the rows, at all γ and τ of a subset together.

On every subset of the rows one path gives the models of all γ and τ. A model's search starts from
the supports at the γ before on the same rows. The search does not start from supports of other
rows, as a model that is chosen without a fold must not have seen the fold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..cv.settings import checked_gammas, checked_taus
from ..design.design import Protocol
from ..design.prepare import rows_design
from ..errors import InputError
from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.limits import Limits
from ..solvers.core.rounding import exact_margin, left_of_perfect_fits
from ..solvers.paths import support_path
from .fold_losses import Array, Index

SOLVERS = ("auto", "exact", "heuristic", "rounding")


def largest_tau(n: int, p: int) -> int:
    """The largest τ with τ log τ ≤ n (both papers' numerics), at most p.

    Parameters
    ----------
    n, p : int
        Rows and columns.

    Returns
    -------
    int

    Examples
    --------
    >>> from sparsecv.stability import largest_tau
    >>> largest_tau(10, 20)
    5
    """
    tau = 1
    while tau < p and (tau + 1) * np.log(tau + 1) <= n:
        tau += 1
    return tau


class SparseRidgeLearner:
    """Losses of sparse ridge models for every γ and τ of a grid.

    The candidate of γ_a and τ_b has the number a·|τ| + b, where a and b count from 0 in the order
    in which γ and τ were given, and |τ| is how many τ were given. A model is what
    ``SparseRidge(tau, gamma).fit`` gives on the same rows, but for subsets that fit perfectly, of
    which it may be another: columns are scaled by their standard deviations on these rows, and an
    intercept is fitted.

    Parameters
    ----------
    X, y : ndarray, shape (n, p) and (n,)
    taus : sequence of int
        Sizes from 0 to p; a size above the largest that constraints allow is lowered to that.
    gammas : sequence of float
        Weights of the penalty γ/2 ||β||², at least 0.
    solver : str
        "exact": every problem to optimality. "rounding": the relaxation's largest entries, as in
        the stability paper. "heuristic": forward selection, swaps, warm starts along τ. "auto":
        exact up to 20 columns, then heuristic.
    fit_intercept, standardize : bool
        Whether models have an intercept, and whether columns are divided by their standard
        deviations on the rows that a model is fitted to.
    asked : ResolvedRules, optional
        Constraints of the columns of X.
    weights : ndarray, shape (n,), optional
        Weights of the squared errors that models are fitted by.
    time_limit : float, optional
        Seconds for each model. The models of the same rows are searched for together, and share
        the sum of their seconds. It limits :meth:`predictions` and calls of the learner.

    Raises
    ------
    InputError
        An unknown solver, γ < 0 or τ out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.stability import SparseRidgeLearner
    >>> X, y = np.eye(4)[:, :3], np.arange(4.0)
    >>> learner = SparseRidgeLearner(X, y, taus=[1, 2], gammas=[1.0])
    >>> learner(np.array([0, 1, 2]), [0, 1]).shape  # candidates, all rows
    (2, 4)
    """

    at_once = True  # All candidates of some rows are one unit of work: one path gives all.

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
        asked: ResolvedRules | None = None,
        weights: Array | None = None,
        time_limit: float | None = None,
    ) -> None:
        if solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(SOLVERS)}; got {solver!r}")
        self.X, self.y, self.asked, self.weights = X, y, asked, weights
        self.time_limit = time_limit
        checked_taus(taus, X.shape[1], least=0)
        self.taus, self.gammas = np.asarray(taus, dtype=np.intp), checked_gammas(gammas)
        if asked is not None:  # Sizes that are too large are lowered, as SparseRidge does.
            rules = asked.constraints
            rules.checked_size(min(int(self.taus.min()), rules.max_size))
        self.protocol = Protocol(
            "honest", "unit-variance" if standardize else "none", intercept=fit_intercept
        )
        # Up to this many columns the solver "auto" of a SparseRidgeLearner solves every problem to
        # optimality; with more columns heuristics give good supports without a proof.
        few = X.shape[1] <= 20
        self.solver = ("exact" if few else "heuristic") if solver == "auto" else solver

    @property
    def size(self) -> int:
        """Number of candidates."""
        return int(self.taus.size * self.gammas.size)

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """Squared errors (c, n); see :class:`~sparsecv.stability.fold_losses.Learner`."""
        return np.asarray((self.y - self.predictions(training, candidates)) ** 2)

    def losses_within(
        self, training: Index, candidates: Sequence[int], limits: Limits
    ) -> tuple[Array, bool]:
        """Squared errors (c, n), as a call of the learner returns them, and whether all are exact.

        limits: Limits of all models together; ``time_limit`` does not count here.

        They are exact where all models are proved, and rounding moves no sum of errors over all
        rows by more than :func:`exact_margin` allows.

        Where the learner's solver is "exact", the solver "auto" takes its place, which estimates
        what it does not prove within the limits (:func:`~sparsecv.solvers.paths.support_path`).
        """
        solver = "auto" if self.solver == "exact" else self.solver
        found, exact = self._predictions(training, candidates, limits, solver, claims=True)
        return np.asarray((self.y - found) ** 2), exact

    def predictions(self, training: Index, candidates: Sequence[int]) -> Array:
        """Predictions (c, n) on all n rows of c models that are fitted to some of the rows.

        Parameters
        ----------
        training : ndarray of int
            Rows fitted to.
        candidates : sequence of int
            Positions in the grid of γ and τ, γ by γ.

        Returns
        -------
        ndarray, shape (c, n)
        """
        seconds = None if self.time_limit is None else self.time_limit * len(candidates)
        return self._predictions(training, candidates, Limits(seconds), self.solver)[0]

    def _predictions(
        self,
        training: Index,
        candidates: Sequence[int],
        limits: Limits,
        solver: str,
        claims: bool = False,
    ) -> tuple[Array, bool]:
        """Predictions (c, n), and whether all are exact, as of :meth:`losses_within`.

        training: Rows fitted to.
        limits: Those of the models of all candidates together.
        solver: That of :func:`~sparsecv.solvers.paths.support_path`.
        claims: Whether it is asked if they are exact; else nothing is claimed.

        Of the pairs (γ, τ) of the candidates, models of every γ and every τ are fitted at once. A
        size that constraints do not allow on these rows is replaced by the nearest that they allow.
        """
        gamma_of, tau_of = np.divmod(candidates, self.taus.size)
        X, y = self.X[training], self.y[training]
        weights = None if self.weights is None else self.weights[training]
        design, _ = rows_design(X, y, self.protocol, weights, asked=self.asked)
        problem = design.problem(X, y, weights)
        rows, targets = design.apply(self.X, self.y)
        gammas, at_gamma = np.unique(gamma_of, return_inverse=True)
        least = max(int(self.taus.min() > 0), problem.constraints.min_size)
        most = problem.constraints.max_size
        sizes, at_size = np.unique(np.clip(self.taus[tau_of], least, most), return_inverse=True)
        path = support_path(problem, self.gammas[gammas], sizes, solver=solver, limits=limits)
        found = np.asarray(design.y_shift + path.predict(rows)[at_gamma, at_size])
        exact = claims and bool(path.proved.all())
        if exact:
            errors = path.squared_errors(rows, targets)
            moved = path.moved(problem, rows, targets)
            margins = path.error_margins(problem, rows, targets, errors, moved)
            room = left_of_perfect_fits(targets.size, float(targets @ targets))
            exact = bool((margins <= exact_margin(errors, room)).all())
        return found, exact
