"""Sparse regression for PySINDy: the equations of a system, each proved to be the best of its size.

:class:`SparseRidgeOptimizer` takes the sizes, as PySINDy's MIOSR does; in
:class:`SparseRidgeCVOptimizer` cross-validation chooses the sizes.

PySINDy is an extra: ``pip install "sparsecv[pysindy]"``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..design.folds import check_groups, make_folds
from ..errors import InputError, UnprovedWarning, first_line, not_installed, warn_caller
from ..estimators.sparse_ridge_cv import SparseRidgeCV
from ..report.progress import tell, telling
from ..schedule import GRACE_SHARE
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer, Status, relative_gap
from ..solvers.solution import solve
from ..tables.columns import is_integer
from .budget import solve_budget

try:
    from pysindy.optimizers.base import BaseOptimizer
except ImportError as error:
    raise ImportError(not_installed("PySINDy", "pysindy")) from error

Array = NDArray[np.float64]


def _numbers(given: ArrayLike, what: str) -> NDArray[Any]:
    """An array of floats, or of complex numbers, which PySINDy refuses itself.

    what: What the numbers are, for the message.
    Raises InputError: The array holds something other than numbers.
    """
    try:
        found = np.asarray(given)
        return found if np.iscomplexobj(found) else found.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must hold numbers; {first_line(error)}") from None


def _weights(given: ArrayLike | None, n: int) -> Array:
    """The weights of n rows, shape (n,); all are 1 where none are given.

    given: One number for every row, or one for each.
    Raises InputError: The weights are not finite numbers >= 0, or there are not n.
    """
    if given is None:
        return np.ones(n)
    weights = _numbers(given, "sample_weight")
    if weights.shape not in ((), (n,)):
        raise InputError(
            f"sample_weight needs one number, or one for each of {n} rows; got shape "
            f"{weights.shape}"
        )
    if np.iscomplexobj(weights) or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise InputError("sample_weight must be finite numbers >= 0")
    return np.broadcast_to(weights, (n,)).copy()


class _Optimizer(BaseOptimizer):  # type: ignore[misc]
    """What both optimizers share: checks before the fit, and scikit-learn's rules on parameters."""

    initial_guess: Any

    def _check(self) -> None:
        """Raise an InputError where a parameter is out of range."""
        raise NotImplementedError

    def set_params(self, **params: Any) -> Any:
        """Set parameters and return the optimizer; PySINDy's own method returns nothing."""
        super().set_params(**params)
        return self

    def fit(self, x_: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Find the coefficients of every equation.

        Parameters
        ----------
        x_ : array-like, shape (n_samples, n_features)
            Library terms. Rows with NaN are left out, here and in ``y``.
        y : array-like, shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float >= 0 or array-like, shape (n_samples,), optional
            Weights of the squared errors, for the rows as they are given.

        Returns
        -------
        self

        Raises
        ------
        InputError
            A parameter is out of range or does not fit the data; the data are no numbers; the
            weights are not finite numbers >= 0, one for each row; or a column is zero in the rows
            that count, and ``normalize_columns`` divides by its length.
        """
        self._check()
        x, y = _numbers(x_, "the library"), _numbers(y, "the response")
        # Which rows are in use, for ``_reduce``, which PySINDy calls below; deleted at the end.
        self._kept: Any = slice(None)
        if x.ndim == 2 and 1 <= y.ndim <= 2 and x.shape[0] == y.shape[0]:
            self._kept = ~(
                np.isnan(x).any(axis=1) | np.isnan(y.reshape(y.shape[0], -1)).any(axis=1)
            )
            weights = _weights(sample_weight, x.shape[0])[self._kept]
            x, y = x[self._kept], y[self._kept]
            sample_weight = None if sample_weight is None else weights
            # PySINDy divides by the same lengths, in which the squares of tiny numbers are 0.
            lengths = np.linalg.norm(np.sqrt(weights)[:, None] * x, axis=0)
            zero = np.flatnonzero(lengths == 0.0)
            if self.normalize_columns and zero.size:
                raise InputError(
                    f"column {zero[0]} of the library is zero, or nearly, in the rows whose weight "
                    "is not, and normalize_columns divides by its length: leave the column out"
                )
        guess = self.initial_guess
        try:
            # PySINDy asks for two dimensions; the parameter itself stays as it was given
            self.initial_guess = None if guess is None else np.atleast_2d(np.asarray(guess, float))
            with telling("fitting the equations"):
                super().fit(x, y, sample_weight=sample_weight)
        finally:
            self.initial_guess = guess
            del self._kept
        self.ind_ = self.coef_ != 0.0
        return self

    def _unbias(self, x: Array, y: Array) -> None:
        """Fit the chosen terms once more without α; PySINDy calls this where ``unbias`` is set."""
        self.ind_ = self.coef_ != 0.0  # PySINDy would lose coefficients below 1e-14
        super()._unbias(x, y)

    @property
    def complexity(self) -> int:
        """How many coefficients are not zero."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.coef_))


class SparseRidgeOptimizer(_Optimizer):
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
        Seconds for all equations together, also where each has a size of its own.
    constraint_lhs : array, shape (n_constraints, n_features · n_targets), optional
        Rows with one entry that is not zero: each fixes a coefficient. A coefficient that is fixed
        to another value than 0 counts as one of the coefficients allowed.
    constraint_rhs : array, shape (n_constraints,), optional
    constraint_order : {"target", "feature"}
        Whether columns of ``constraint_lhs`` run over the features of the first target first, or
        over the targets of the first feature.
    normalize_columns : bool
        Divide the columns of X by their lengths first; α then weighs the scaled coefficients, and
        constraints go on meaning the unscaled ones.
    copy_X : bool
    initial_guess : array, shape (n_targets, n_features) or (n_features,), optional
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
        super().__init__(normalize_columns=normalize_columns, copy_X=copy_X, unbias=unbias)
        self.initial_guess = initial_guess  # as given: scikit-learn's clone compares
        self.target_sparsity = target_sparsity
        self.group_sparsity = group_sparsity
        self.alpha = alpha
        self.regression_timeout = regression_timeout
        self.constraint_lhs = constraint_lhs
        self.constraint_rhs = constraint_rhs
        self.constraint_order = constraint_order
        self.verbose = verbose
        self._check()

    def _check(self) -> None:
        """Raise an InputError where a parameter is out of range."""
        total = self.target_sparsity
        if total is not None and (not is_integer(total) or total <= 0):
            raise InputError(f"target_sparsity must be a whole number > 0; got {total!r}")
        if self.constraint_order not in ("target", "feature"):
            raise InputError(
                f"constraint_order must be 'target' or 'feature'; got {self.constraint_order!r}"
            )
        if not 0.0 <= self.alpha < np.inf:
            raise InputError(f"alpha must be >= 0 and finite; got {self.alpha}")
        if self.unbias and self.constraint_lhs is not None:
            raise InputError("unbias refits every coefficient: it excludes constraints")

    def _reduce(self, x: Array, y: Array) -> None:
        """Find the coefficients; PySINDy calls this with checked rows."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        n_features, n_targets = x.shape[1], y.shape[1]
        caps = self._caps(n_features, n_targets)
        fixed = self._fixed(n_features, n_targets)
        guesses = [None] * n_targets if self.initial_guess is None else self.initial_guess
        equations = [
            _Equation(x, y[:, t], self.alpha, caps[t], fixed[t], guesses[t])
            for t in range(n_targets)
        ]
        if self.target_sparsity is None:
            answers = self._one_by_one(equations)
        else:
            answers = self._jointly(equations, int(self.target_sparsity))
        coef = np.array([one.coef(each) for one, each in zip(equations, answers, strict=True)])
        self.coef_, self.ind_ = coef, coef != 0.0
        if self.verbose:
            print(f"sparsecv: {self.status_}, objective {self.objective_}, gap {self.gap_}")
        if not np.all(self.proved_):
            text = f"not proved to be the best: {self.status_}, relative gap {self.gap_}"
            warn_caller(text, UnprovedWarning)

    def _one_by_one(self, equations: list[_Equation]) -> list[Answer]:
        """Solve every equation by itself, and store what is proved of each in lists.

        Returns: The solution of every equation, in their order.
        """
        answers = list[Answer]()
        shares = _shares(self.regression_timeout, len(equations))
        for one, seconds in zip(equations, shares, strict=True):
            tell("fitting the equations", len(answers), len(equations))
            answers.append(one.solved(seconds))
        pairs = list(zip(answers, equations, strict=True))
        objectives = [answer.objective + one.constant for answer, one in pairs]
        bounds = [answer.lower_bound + one.constant for answer, one in pairs]
        gaps = [relative_gap(f, b) for f, b in zip(objectives, bounds, strict=True)]
        self._store(objectives, bounds, gaps, [answer.status for answer in answers])
        return answers

    def _jointly(self, equations: list[_Equation], target_sparsity: int) -> list[Answer]:
        """Solve all equations together, with one budget of nonzero coefficients.

        The sum of the equations' objectives is minimised, and its bound, gap and status are stored.

        equations: The regression of every response, some with coefficients that constraints fix.
        target_sparsity: The budget; coefficients that constraints fix at other values than 0 count.
        Returns: The solution of every equation, in their order.
        Raises InputError: The fixed coefficients alone exceed the budget.
        """
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
        searched = iter(allocation.answers)
        answers = [next(searched) if each in free else each.nothing for each in equations]
        # What the objectives of the searches lack: other equations, and penalties that are fixed.
        constant = sum(each.nothing.objective for each in equations if each not in free)
        constant += sum(each.constant for each in equations)
        objective, bound = allocation.objective + constant, allocation.lower_bound + constant
        self._store(objective, bound, relative_gap(objective, bound), allocation.status)
        return answers

    def _store(self, objective: Any, lower_bound: Any, gap: Any, status: Any) -> None:
        """Set the attributes that say what is proved, each a value or a list of values."""
        self.objective_, self.lower_bound_, self.gap_ = objective, lower_bound, gap
        if isinstance(status, list):
            self.status_: Any = [str(one) for one in status]
            self.proved_: Any = [one is Status.OPTIMAL for one in status]
        else:
            self.status_, self.proved_ = str(status), status is Status.OPTIMAL

    def _caps(self, n_features: int, n_targets: int) -> list[int]:
        """The most coefficients other than 0 that each equation may have.

        Where only the equations together have a limit, ``target_sparsity``, each may have all.

        n_features, n_targets: Numbers of terms that an equation chooses from, and of equations.
        """
        if self.group_sparsity is None:
            if self.target_sparsity is None:
                raise InputError("target_sparsity or group_sparsity is needed")
            return [n_features] * n_targets
        caps: list[int] = np.ravel(self.group_sparsity).tolist()
        if len(caps) != n_targets or not all(is_integer(k) and k >= 0 for k in caps):
            raise InputError(
                f"group_sparsity needs a whole number >= 0 for each of {n_targets} equations; "
                f"got {self.group_sparsity!r}"
            )
        return caps

    def _fixed(self, n_features: int, n_targets: int) -> list[dict[int, float]]:
        """Per equation, the coefficients that the constraints fix, by their features.

        With ``normalize_columns`` they are those of the columns divided by their lengths.

        Raises InputError: Constraints have wrong shapes, several entries, or contradict another.
        """
        fixed: list[dict[int, float]] = [{} for _ in range(n_targets)]
        if self.constraint_lhs is None:
            return fixed
        if self.constraint_rhs is None:
            raise InputError("constraint_lhs needs constraint_rhs, one number for each of its rows")
        scale = np.ones(n_features)
        if self.normalize_columns:
            scale = np.linalg.norm(self.Theta_, axis=0)
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
            target, feature = divmod(int(at[0]), n_features)
            if self.constraint_order == "feature":
                feature, target = divmod(int(at[0]), n_targets)
            wanted = float(value / row[at[0]] * scale[feature])
            if fixed[target].setdefault(feature, wanted) != wanted:
                raise InputError(f"constraint {i} contradicts another one")
        return fixed


def _shares(seconds: float | None, n_equations: int) -> Iterator[float | None]:
    """The seconds of each equation in turn, an equal share of those that are left.

    A search ends between two steps of its work, so that an equation may take longer than its share.
    A share of the limit (``GRACE_SHARE``), or the longest delay of the equations before, is kept
    free, so that the last equation ends in time.

    seconds: The limit of all equations together; None gives every equation None.
    """
    limits, delay = Limits(seconds), GRACE_SHARE * (seconds or 0.0)
    for equations_left in range(n_equations, 0, -1):
        left = limits.remaining()
        if left is None:
            yield None
            continue
        share, began = max(0.0, left - delay) / equations_left, limits.elapsed()
        yield share
        delay = max(delay, limits.elapsed() - began - share)


class _Equation:
    """One equation, the coefficients that are fixed taken out.

    x, y, shape (n, p) and (n,): The library terms and the response.
    alpha: Weight of the penalty α‖w‖².
    cap: The most coefficients other than 0, fixed ones included.
    fixed: The values of coefficients that constraints fix, by their features.
    guess, shape (p,): Coefficients whose support the search starts from, or None.

    used: How many coefficients are fixed at another value than 0.
    constant: The penalty of fixed coefficients, which every objective of ``problem`` lacks.
    nothing: The answer where no other coefficient enters.
    problem: The regression on the free columns; None where none may enter.
    Raises InputError: More coefficients are fixed than ``cap`` allows.
    """

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
        # What the fixed coefficients leave of the response.
        left = y - x[:, list(fixed)] @ np.array(list(fixed.values())) if fixed else y
        most = min(cap - self.used, self.free.size)
        if most < 0:
            raise InputError("the constraints fix more coefficients than group_sparsity allows")
        yy = float(left @ left)
        self.nothing = Answer(
            size=0,
            support=np.empty(0, dtype=np.intp),
            objective=yy,
            lower_bound=yy,
            status=Status.OPTIMAL,
        )
        self.problem = None
        if most > 0:
            self.problem = SparseRidgeProblem(x[:, self.free], left, gamma=2.0 * alpha, tau=most)

    def solved(self, seconds: float | None) -> Answer:
        """The best support of this equation alone, found within so many seconds."""
        if self.problem is None:
            return self.nothing
        # A guess of too many columns is no support that the solver may start from.
        guess = None if self.guess is None else np.flatnonzero(self.guess)
        if guess is not None and not 0 < guess.size <= self.problem.tau:
            guess = None
        return solve(self.problem, time_limit=seconds, warm_start=guess)

    def coef(self, answer: Answer) -> Array:
        """Coefficients of all features, shape (p,): those fixed, and those of a support."""
        coef = np.zeros(self.n_features)
        coef[list(self.fixed)] = list(self.fixed.values())
        if self.problem is not None and answer.support.size:
            coef[self.free[answer.support]] = self.problem.fit(answer.support).coef
        return coef


class SparseRidgeCVOptimizer(_Optimizer):
    """Best subsets of library terms for SINDy, their sizes chosen by exact cross-validation.

    Each equation has its own size and α, those that :class:`sparsecv.SparseRidgeCV` chooses from
    the CV error over held-out trajectories, or over held-out stretches of one trajectory.

    Parameters
    ----------
    cv : int, splitter or iterable
        How many folds, or what :class:`sparsecv.SparseRidgeCV` takes. Row numbers are those of the
        rows that are given, of which rows with NaN are then left out.
    groups : array-like, shape (n_samples,), optional
        The trajectory of each row, in the order in which PySINDy stacks trajectories: the rows of a
        trajectory are held out together. Without it, ``cv`` consecutive blocks of rows are folds.
    max_size : int or None
        Most terms in an equation; None means 10, or as many as there are.
    alphas : sequence of float
        Ridge weights α ≥ 0 to choose from.
    rule : str
        "one-se" takes the fewest terms whose CV error is within one standard error of the least,
        "minimum" the least CV error; the other rules of :class:`sparsecv.SparseRidgeCV` work, too.
    regression_timeout : float or None
        Seconds for all equations together, each of which has an equal share of those that are left,
        less a twentieth of the limit or the longest time by which an equation before was late; what
        is not proved by then is an estimate.
    normalize_columns : bool
        Divide the columns of X by their lengths first; α then weighs the scaled coefficients.
    copy_X : bool
    verbose : bool
        Print what is done.
    unbias : bool
        Fit the chosen terms once more without α.

    Attributes
    ----------
    coef_ : ndarray, shape (n_targets, n_features)
    ind_ : ndarray of bool, shape (n_targets, n_features)
    sizes_ : list of int
        How many terms each equation has.
    alpha_, cv_error_, proved_ : list of float, float and bool, one for each equation
        The ridge weight chosen, the CV error of the choice, and whether the choice and the terms
        are proved.
    models_ : list of SparseRidgeCV
        The fits with all their attributes; None where a response is zero.

    Raises
    ------
    InputError
        Parameters out of range, or groups that do not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.integrations.pysindy import SparseRidgeCVOptimizer  # doctest: +SKIP
    >>> X = np.random.default_rng(0).standard_normal((50, 4))  # doctest: +SKIP
    >>> SparseRidgeCVOptimizer().fit(X, X[:, :2]).sizes_  # doctest: +SKIP
    [1, 1]
    """

    def __init__(
        self,
        cv: Any = 5,
        groups: ArrayLike | None = None,
        max_size: int | None = None,
        alphas: ArrayLike = (0.0, 1e-5, 1e-2),
        rule: str = "one-se",
        regression_timeout: float | None = 20,
        normalize_columns: bool = False,
        copy_X: bool = True,
        verbose: bool = False,
        unbias: bool = False,
    ) -> None:
        super().__init__(normalize_columns=normalize_columns, copy_X=copy_X, unbias=unbias)
        self.cv = cv
        self.groups = groups
        self.max_size = max_size
        self.alphas = alphas
        self.rule = rule
        self.regression_timeout = regression_timeout
        self.verbose = verbose
        self._check()

    def _check(self) -> None:
        """Raise an InputError where a parameter is out of range."""
        if self.max_size is not None and (not is_integer(self.max_size) or self.max_size <= 0):
            raise InputError(f"max_size must be a whole number > 0; got {self.max_size!r}")
        if is_integer(self.cv) and self.cv < 2:
            raise InputError(f"cv must be at least 2; got {self.cv}")

    def _reduce(self, x: Array, y: Array) -> None:
        """Find the coefficients; PySINDy calls this with checked rows."""
        n, n_targets = x.shape[0], y.shape[1]
        cv, groups = self._folds(n)
        there = int(x.any(axis=0).sum())
        most = min(there, 10 if self.max_size is None else int(self.max_size))
        self.models_: list[SparseRidgeCV | None] = []
        self.proved_: list[bool] = []
        coef = np.zeros((n_targets, x.shape[1]))
        for t, seconds in enumerate(_shares(self.regression_timeout, n_targets)):
            tell("fitting the equations", t, n_targets)
            if most == 0 or not y[:, t].any():
                self.models_.append(None)
                self.proved_.append(True)
                continue
            model = SparseRidgeCV(
                cv=cv,
                taus=np.arange(1, most + 1),
                gammas=2.0 * np.atleast_1d(np.asarray(self.alphas, dtype=float)),
                fit_intercept=False,
                standardize=False,
                rule=self.rule,
                time_limit=seconds,
                verbose=1 if self.verbose else None,
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(x, y[:, t], groups=groups)
            unproved = [w for w in caught if issubclass(w.category, UnprovedWarning)]
            for each in caught:
                warn_caller(f"equation {t}: {each.message}", each.category)
            self.models_.append(model)
            self.proved_.append(not unproved)
            coef[t] = model.coef_
        self.coef_, self.ind_ = coef, coef != 0.0
        self.sizes_ = [int(size) for size in np.count_nonzero(coef, axis=1)]
        known = [(0.0, 0.0) if m is None else (m.gamma_ / 2.0, m.cv_error_) for m in self.models_]
        self.alpha_ = [float(alpha) for alpha, _ in known]
        self.cv_error_ = [float(error) for _, error in known]

    def _folds(self, n: int) -> tuple[Any, Any]:
        """The ``cv`` and ``groups`` of SparseRidgeCV for n rows in use.

        Rows of a group are held out together, so that "loo" leaves out one group at a time: a
        trajectory, or, without groups, one of ``cv`` blocks of consecutive rows.
        """
        groups = None if self.groups is None else np.asarray(self.groups)
        every = np.ones(n, dtype=bool) if isinstance(self._kept, slice) else self._kept
        if groups is not None:
            check_groups(groups, every.size)
        cv: Any = self.cv
        if not (is_integer(cv) or isinstance(cv, str) or every.all()):
            # Folds name rows as they were given, and some of these are left out.
            place = np.cumsum(every) - 1
            pairs = make_folds(cv, every.size, groups=groups).splits()
            cv = [[place[rows[every[rows]]] for rows in pair] for pair in pairs]
        groups = None if groups is None else groups[every]
        if not is_integer(cv):
            return cv, groups
        if groups is None:
            return "loo", np.arange(n) * min(self.cv, n) // n
        there = np.unique(groups).size
        if there < 2:
            raise InputError(
                "groups holds one trajectory, so none can be held out: leave groups out, and "
                "consecutive blocks of rows are folds"
            )
        return ("loo" if there <= self.cv else int(self.cv)), groups
