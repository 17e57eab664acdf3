"""Sparse regression for PySINDy: the equations of a system, each proved to be the best of its size.

PySINDy is an extra: ``pip install "sparsecv[pysindy]"``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, UnprovedWarning
from ..solvers.api import solve
from ..solvers.budget import solve_budget
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Proof, Status, Work, relative_gap

try:
    from pysindy.optimizers.base import BaseOptimizer
except ImportError as error:
    raise ImportError(
        "sparsecv.integrations.pysindy needs PySINDy: pip install 'sparsecv[pysindy]'"
    ) from error

Array = NDArray[np.float64]


class SparseRidgeOptimizer(BaseOptimizer):  # type: ignore[misc]
    """Best subsets of library terms for SINDy, with a proof and without a licence.

    Minimises Σ_i ‖y_i − X w_i‖² + α‖w_i‖² over coefficients w_i of each equation i, with at most
    ``target_sparsity`` nonzero coefficients in all equations together, or at most
    ``group_sparsity[i]`` in equation i. Parameters have the names and meaning of PySINDy's MIOSR,
    which asks Gurobi.

    Parameters
    ----------
    target_sparsity : int or None
        Most nonzero coefficients in all equations together.
    group_sparsity : sequence of int, optional
        Most nonzero coefficients of each equation. With ``target_sparsity`` both hold.
    alpha : float
        Ridge weight α ≥ 0.
    regression_timeout : float
        Seconds: for all equations together with ``target_sparsity``, else for each.
    constraint_lhs : array, shape (n_constraints, n_features · n_targets), optional
        Rows with one entry that is not zero: each fixes a coefficient. A coefficient that is fixed
        to another value than 0 counts as one of the coefficients allowed.
    constraint_rhs : array, shape (n_constraints,), optional
    constraint_order : {"target", "feature"}
        Whether columns of ``constraint_lhs`` run over the features of the first target first, or
        over the targets of the first feature.
    normalize_columns : bool
        Divide the columns of X by their lengths first; α then weighs the scaled coefficients.
    copy_X : bool
    initial_guess : array, shape (n_targets, n_features), optional
        Coefficients whose support the search starts from.
    verbose : bool
        Print how the fit ended.
    unbias : bool
        Fit the chosen terms once more without α.

    Attributes
    ----------
    coef_ : ndarray, shape (n_targets, n_features)
    ind_ : ndarray of bool, shape (n_targets, n_features)
        Which coefficients are not zero.
    gap_, status_, proved_ : float, str and bool, or lists of them
        Relative gap, how the search ended, and whether the equations are proved to be the best:
        one for all with ``target_sparsity``, else one for each equation.
    objective_, lower_bound_ : float, or lists of float
        What was minimised, and a lower bound on it, in the units of y².

    Raises
    ------
    InputError
        A constraint with several entries, contradictory constraints, or parameters out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.integrations.pysindy import SparseRidgeOptimizer  # doctest: +SKIP
    >>> X = np.random.default_rng(0).standard_normal((50, 4))  # doctest: +SKIP
    >>> opt = SparseRidgeOptimizer(target_sparsity=2).fit(X, X[:, :2])  # doctest: +SKIP
    >>> opt.proved_  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        target_sparsity: int | None = 5,
        group_sparsity: Any = None,
        alpha: float = 0.01,
        regression_timeout: float = 10,
        constraint_lhs: ArrayLike | None = None,
        constraint_rhs: ArrayLike | None = None,
        constraint_order: str = "target",
        normalize_columns: bool = False,
        copy_X: bool = True,
        initial_guess: Array | None = None,
        verbose: bool = False,
        unbias: bool = False,
    ) -> None:
        super().__init__(
            normalize_columns=normalize_columns,
            copy_X=copy_X,
            initial_guess=initial_guess,
            unbias=unbias,
        )
        self.target_sparsity = target_sparsity
        self.group_sparsity = group_sparsity
        self.alpha = alpha
        self.regression_timeout = regression_timeout
        self.constraint_lhs = constraint_lhs
        self.constraint_rhs = constraint_rhs
        self.constraint_order = constraint_order
        self.verbose = verbose
        if target_sparsity is not None and (
            isinstance(target_sparsity, bool)
            or not isinstance(target_sparsity, int | np.integer)
            or target_sparsity <= 0
        ):
            raise InputError(f"target_sparsity must be a whole number > 0; got {target_sparsity!r}")
        if constraint_order not in ("target", "feature"):
            raise InputError(
                f"constraint_order must be 'target' or 'feature'; got {constraint_order!r}"
            )
        if not alpha >= 0:
            raise InputError(f"alpha must be >= 0; got {alpha}")
        if unbias and constraint_lhs is not None:
            raise InputError("unbias refits every coefficient: it excludes constraints")

    def _reduce(self, x: Array, y: Array) -> None:
        """Find the coefficients; PySINDy calls this with checked rows."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        n_features, n_targets = x.shape[1], y.shape[1]
        self.objective_: Any
        self.lower_bound_: Any
        self.gap_: Any
        self.status_: Any
        self.proved_: Any
        caps = self._caps(n_features, n_targets)
        fixed = self._fixed(n_features, n_targets)
        equations = [
            _Equation(x, y[:, t], self.alpha, caps[t], fixed[t], self._guess(t))
            for t in range(n_targets)
        ]
        if self.target_sparsity is None:
            found = [each.solved(self.regression_timeout) for each in equations]
            objectives = [p.objective + e.constant for p, e in zip(found, equations, strict=True)]
            bounds = [p.lower_bound + e.constant for p, e in zip(found, equations, strict=True)]
            self.objective_, self.lower_bound_ = objectives, bounds
            self.gap_ = [relative_gap(f, b) for f, b in zip(objectives, bounds, strict=True)]
            self.status_ = [str(proof.status) for proof in found]
            self.proved_ = [proof.status is Status.OPTIMAL for proof in found]
            all_proved = all(self.proved_)
        else:
            found = self._jointly(equations, int(self.target_sparsity))
            all_proved = self.proved_
        coef = np.array([e.coef(p) for e, p in zip(equations, found, strict=True)])
        self.coef_, self.ind_ = coef, coef != 0.0
        if self.verbose:
            print(f"sparsecv: {self.status_}, objective {self.objective_}, gap {self.gap_}")
        if not all_proved:
            warnings.warn(
                f"not proved to be the best: {self.status_}, relative gap {self.gap_}",
                UnprovedWarning,
                stacklevel=4,
            )

    def _jointly(self, equations: list[_Equation], target_sparsity: int) -> list[Proof]:
        """All equations with one budget."""
        total = target_sparsity - sum(each.used for each in equations)
        if total < 0:
            raise InputError(
                "the constraints fix more coefficients than target_sparsity allows: raise it"
            )
        free = [each for each in equations if each.problem is not None and total > 0]
        allocation = solve_budget(
            [each.problem for each in free if each.problem is not None],
            total,
            time_limit=self.regression_timeout,
            warm_starts=[each.guess for each in free],
        )
        proofs = iter(allocation.proofs)
        found = [next(proofs) if each in free else each.nothing for each in equations]
        idle = sum(each.nothing.objective for each in equations if each not in free)
        constant = idle + sum(each.constant for each in equations)
        self.objective_ = allocation.objective + constant
        self.lower_bound_ = allocation.lower_bound + constant
        self.gap_ = relative_gap(self.objective_, self.lower_bound_)
        self.status_ = str(allocation.status)
        self.proved_ = allocation.status is Status.OPTIMAL
        return found

    def _caps(self, n_features: int, n_targets: int) -> list[int]:
        if self.group_sparsity is None:
            if self.target_sparsity is None:
                raise InputError("target_sparsity or group_sparsity is needed")
            return [n_features] * n_targets
        caps = [int(k) for k in np.ravel(self.group_sparsity)]
        if len(caps) != n_targets or min(caps) < 0:
            raise InputError(
                f"group_sparsity needs a whole number >= 0 for each of {n_targets} equations; "
                f"got {self.group_sparsity!r}"
            )
        return caps

    def _guess(self, t: int) -> Array | None:
        return None if self.initial_guess is None else np.asarray(self.initial_guess)[t]

    def _fixed(self, n_features: int, n_targets: int) -> list[dict[int, float]]:
        """Per equation, the coefficients that the constraints fix."""
        fixed: list[dict[int, float]] = [{} for _ in range(n_targets)]
        if self.constraint_lhs is None or self.constraint_rhs is None:
            return fixed
        left = np.atleast_2d(np.asarray(self.constraint_lhs, dtype=float))
        right = np.atleast_1d(np.asarray(self.constraint_rhs, dtype=float))
        if left.shape != (right.size, n_features * n_targets):
            raise InputError(
                f"constraint_lhs must be ({right.size}, {n_features * n_targets}), a row for each "
                f"entry of constraint_rhs; got {left.shape}"
            )
        for i, (row, value) in enumerate(zip(left, right, strict=True)):
            at = np.flatnonzero(row)
            if at.size != 1:
                raise InputError(
                    f"constraint {i} has {at.size} entries: only constraints on one coefficient, "
                    "which they fix, are supported"
                )
            place = divmod(int(at[0]), n_features)
            if self.constraint_order == "feature":
                feature, target = divmod(int(at[0]), n_targets)
                place = target, feature
            wanted = float(value / row[at[0]])
            if fixed[place[0]].setdefault(place[1], wanted) != wanted:
                raise InputError(f"constraint {i} contradicts another one")
        return fixed

    @property
    def complexity(self) -> int:
        """How many coefficients are not zero."""
        return int(np.count_nonzero(self.coef_))


class _Equation:
    """One equation, the coefficients that are fixed taken out."""

    def __init__(
        self,
        x: Array,
        y: Array,
        alpha: float,
        cap: int,
        fixed: dict[int, float],
        guess: Array | None,
    ) -> None:
        self.fixed, self.n_features = fixed, x.shape[1]
        self.used = sum(value != 0.0 for value in fixed.values())
        self.constant = alpha * sum(value * value for value in fixed.values())
        self.free = np.setdiff1d(np.arange(x.shape[1]), list(fixed)).astype(np.intp)
        self.guess = None if guess is None else guess[self.free]
        left = y - x[:, list(fixed)] @ np.array(list(fixed.values())) if fixed else y
        most = min(cap - self.used, self.free.size)
        if most < 0:
            raise InputError("the constraints fix more coefficients than group_sparsity allows")
        yy = float(left @ left)
        self.nothing = Proof(np.empty(0, dtype=np.intp), yy, yy, Status.OPTIMAL, Work())
        self.problem = None
        if most > 0:
            self.problem = SparseRidgeProblem(x[:, self.free], left, gamma=2.0 * alpha, tau=most)

    def solved(self, seconds: float) -> Proof:
        """The best coefficients of this equation alone."""
        if self.problem is None:
            return self.nothing
        guess = None if self.guess is None else np.flatnonzero(self.guess)
        if guess is not None and not 0 < guess.size <= self.problem.tau:
            guess = None
        return solve(self.problem, time_limit=seconds, warm_start=guess)

    def coef(self, proof: Proof) -> Array:
        """Coefficients of all features, fixed ones included."""
        coef = np.zeros(self.n_features)
        coef[list(self.fixed)] = list(self.fixed.values())
        if self.problem is not None and proof.support.size:
            coef[self.free[proof.support]] = self.problem.fit(proof.support).coef
        return coef
