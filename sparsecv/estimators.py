"""scikit-learn estimators: sparse ridge at given (τ, γ), and with both chosen by exact CV."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .alternating import alternate
from .cross_validation import (
    Settings,
    checked_gammas,
    checked_jobs,
    cross_validate,
    default_taus,
)
from .design import Array, Design, Protocol, Summary, make_design
from .errors import InputError, UnprovedWarning
from .estimator_input import (
    blas_threads,
    checked_number,
    checked_tau,
    frame_names,
    known_backend,
    refuse_bad_columns,
)
from .fold_data import FoldData, RowFolds
from .folds import make_folds
from .model import FittedModel, fitted_model
from .results import CVResult
from .rule_evidence import REPEATS, checked_repeats, partition_again
from .rule_run import Ruled, run_by_rule
from .selection_rules import checked_rule, chosen_model
from .solvers import SparseRidgeProblem, Status, solve, worst


class _SparseLinearModel(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: input checks, units, prediction."""

    coef_: Array
    intercept_: float
    fit_intercept: bool
    standardize: bool

    def predict(self, X: ArrayLike) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like, shape (n, p)

        Returns
        -------
        ndarray, shape (n,)
        """
        check_is_fitted(self)
        given, fitted = frame_names(X), getattr(self, "feature_names_in_", None)
        with warnings.catch_warnings():
            if given is not None and fitted is not None:
                # older scikit-learn cannot read the names of every frame library
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            values = validate_data(self, X, reset=False, dtype=np.float64)
        if given is not None and fitted is not None and given != list(fitted):
            raise InputError("the feature names should match those passed to fit, in their order")
        return np.asarray(values @ self.coef_ + self.intercept_)

    def _checked_rows(self, X: Any, y: Any) -> tuple[Array, Array, list[str]]:
        """Rows as float64, and a name for every column."""
        refuse_bad_columns(X)
        frame = X
        if getattr(np.asarray(y), "dtype", np.dtype(float)).kind in "mM":
            raise InputError("y holds dates: it must be numeric")
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            y_numeric=True,
            ensure_min_samples=2,
            ensure_all_finite=False,
        )
        y = y.astype(np.float64)
        given = frame_names(frame)
        if given is not None and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(given, dtype=object)
        names = getattr(self, "feature_names_in_", None)
        labels = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(s) for s in names]
        for j in np.flatnonzero(~np.isfinite(X).all(axis=0)):
            kind = "NaN" if np.isnan(X[:, j]).any() else "inf"
            raise InputError(
                f"Input X contains {kind} in column {labels[j]!r}: drop or impute those rows"
            )
        if not np.isfinite(y).all():
            kind = "NaN" if np.isnan(y).any() else "inf"
            raise InputError(f"Input y contains {kind}: drop those rows")
        return X, y, labels

    def _design(self, X: Array, y: Array, names: list[str]) -> tuple[Design, Array, Array]:
        scale = "unit-variance" if self.standardize else "none"
        protocol = Protocol("honest", scale, bool(self.fit_intercept))
        design = make_design(Summary.of(X, y), protocol, names)
        return design, *design.apply(X, y)

    def _store(
        self,
        design: Design,
        problem: SparseRidgeProblem,
        support: NDArray[np.intp],
        lower_bound: float,
        proved: bool,
    ) -> None:
        self._keep(fitted_model(design, problem, support, lower_bound, proved))

    def _keep(self, model: FittedModel) -> None:
        self.coef_, self.intercept_, self.support_ = model.coef, model.intercept, model.support
        self.objective_, self.lower_bound_, self.gap_ = (
            model.objective,
            model.lower_bound,
            model.gap,
        )


class SparseRidge(_SparseLinearModel):
    """Best-subset ridge regression, solved to proven optimality.

    Minimises ||y − Xβ||² + (γ/2)||β||² over ||β||₀ ≤ τ (eq. 1, main paper) on centred columns of
    unit variance.

    Parameters
    ----------
    tau : int or None
        Largest number of features; None means min(p, 10).
    gamma : float
        Ridge weight γ > 0; scikit-learn's Ridge ``alpha`` is γ/2.
    fit_intercept : bool
        Centre X and y first.
    standardize : bool
        Divide every column by its standard deviation (ddof = 0) first. Coefficients are in the
        original units either way.
    backend : str
        "auto" or a name from :func:`sparsecv.solvers.available_backends`.
    time_limit : float or None
        Seconds. When it is reached the best model so far is kept, ``lower_bound_`` still holds
        and ``status_`` says so.
    tol : float
        Relative gap at which the search may stop.
    n_jobs : int or None
        Threads that search beyond 35 columns, as in joblib, and of the linear algebra library;
        None means one and leaves the library alone.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
        Coefficients in original units.
    intercept_ : float
    support_ : ndarray of int
        Selected columns, increasing.
    objective_, lower_bound_, gap_ : float
        Training objective on the scaled columns, its proved lower bound, their relative gap.
    status_ : str
        "optimal" or the limit that was reached.
    n_nodes_ : int
        Branch-and-bound nodes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.
    """

    def __init__(
        self,
        tau: int | None = None,
        gamma: float = 1.0,
        *,
        fit_intercept: bool = True,
        standardize: bool = True,
        backend: str = "auto",
        time_limit: float | None = None,
        tol: float = 1e-6,
        n_jobs: int | None = None,
    ) -> None:
        self.tau = tau
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.backend = backend
        self.time_limit = time_limit
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> SparseRidge:
        """Fit the model.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Numbers; a pandas or polars frame gives its column names.
        y : array-like, shape (n,)

        Raises
        ------
        InputError
            A ValueError with one line that names the column or parameter at fault.
        """
        rows, response, names = self._checked_rows(X, y)
        gamma = checked_number("gamma", self.gamma, above=0.0)
        tol = checked_number("tol", self.tol, least=0.0)
        limit = (
            None
            if self.time_limit is None
            else checked_number("time_limit", self.time_limit, above=0.0)
        )
        known_backend(self.backend)
        checked_jobs(self.n_jobs)
        design, A, b = self._design(rows, response, names)
        tau = min(design.p, 10) if self.tau is None else checked_tau(self.tau, design.p)
        with blas_threads(self.n_jobs):
            problem = SparseRidgeProblem(A, b, gamma=gamma, tau=tau)
            try:
                solution = solve(
                    problem,
                    backend=self.backend,
                    time_limit=limit,
                    tol=tol,
                    n_jobs=self.n_jobs,
                )
            except ValueError as error:  # γ below what double precision can tell from zero
                raise InputError(str(error)) from error
        proved = solution.status is Status.OPTIMAL
        self._store(design, problem, solution.support, solution.lower_bound, proved)
        self.status_ = str(solution.status)
        self.n_nodes_ = solution.n_nodes
        if solution.status is not Status.OPTIMAL:
            warnings.warn(
                f"{solution.status} reached with a relative gap of {self.gap_:.2g}: the support "
                "may not be the best one",
                UnprovedWarning,
                stacklevel=2,
            )
        return self


class SparseRidgeCV(_SparseLinearModel):
    """Best-subset ridge regression with τ and γ chosen by exact cross-validation.

    Every fold's mixed-integer problem is solved or bounded; h(γ, τ) of the main paper's eq. (2)
    is exact wherever ``cv_results_["exact"]`` says so, and lies in [lower, upper] always.

    Parameters
    ----------
    cv : int, "loo", "size:M", splitter or iterable
        Folds; K folds are shuffled with ``random_state``, once for the whole grid.
    taus : array of int or None
        Sparsities; None means 1..p (beyond 160 columns: up to the largest τ with
        τ log τ ≤ min(n, p)).
    gammas : float, array of float or None
        Ridge weights; None alternates between τ and γ
        (:func:`sparsecv.alternating.alternate`), which visits ten values and more from 1e-4 to 1e4.
    method : str
        "exact" (trees that serve all τ at once), "search" (only the best τ, by Algorithm 1 of the
        main paper), "bounds" (its first phase), "grid" (one problem per fold and τ) or "auto".
    backend : str
        Solver of single problems, for ``method="grid"`` and "search"; an outside one makes
        "auto" a grid.
    fit_intercept : bool
        Refit the intercept inside every fold.
    standardize : bool
        Scale columns by the standard deviations of the data passed to ``fit``.
    time_limit : float or None
        Seconds for everything.
    n_jobs : int or None
        Threads over folds, as in joblib.
    random_state : int, RandomState or None
        For the shuffle of K folds.
    verbose : int
        1 prints a line per γ.
    tol : float
        Relative tolerance of the least CV error, for ``method="search"``.
    rule : str
        How the final model is chosen: "auto" ("repeated" where K folds are drawn here, up to 30
        columns, without a time limit and where one partition is solved quickly, in 5 million nodes;
        else "minimum"), "minimum" (least CV error), "one-se"
        (least τ within one
        standard error of it), "stability" (least CV error + λ·stability, λ by nested folds),
        "corrected" (least bias-corrected error), "repeated" (least CV error on average over
        several partitions into folds) or "averaged" (no pair: the average of the grid's models,
        weighted by that error; it has more columns than each of them).
    repeats : int
        Partitions of the rules repeated and averaged, the first among them; the time limit is
        shared.

    Attributes
    ----------
    tau_, gamma_ : the chosen pair
        With the rule averaged, the number of columns in the average, and NaN.
    rule_ : str
        The rule, "auto" resolved.
    choices_ : dict of str to sparsecv.selection_rules.Choice
        What every rule would choose; those that cost further fits where asked for or cheap.
    cv_error_ : float
        Its h(γ, τ), in the units of y²; of an average, a bound on its error over the partitions.
    tau_1se_ : int
        Smallest τ within one standard error of the least CV error, at the γ of that.
    certified_ : bool
        Whether no pair of the grid can be better by the rule's criterion; of one-se and averaged,
        whether everything looked at is proved.
    cv_results_ : dict of arrays
        "gamma" (γ,) and "tau" (τ,) are the axes; "cv_error", "std_error", "lower", "upper",
        "exact" and "mio_by_tau" have shape (γ, τ); "n_mio", "n_nodes", "seconds" shape (γ,).
    folds_ : sparsecv.folds.Folds
    trace_ : list of sparsecv.results.Step
        Iterations of the alternation, where ``gammas`` is None.
    coef_, intercept_, support_, objective_, lower_bound_, gap_
        Of the final model, as in :class:`SparseRidge`; an average has no objective: NaN.
    status_ : str
        "optimal" where every fold and every model is proved, else the limit that was reached.
    n_nodes_ : int
        Nodes of all searches the rule asked for.
    """

    def __init__(
        self,
        *,
        cv: Any = 5,
        taus: ArrayLike | None = None,
        gammas: ArrayLike | None = None,
        method: str = "auto",
        backend: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        tol: float = 0.01,
        rule: str = "auto",
        repeats: int = REPEATS,
    ) -> None:
        self.cv = cv
        self.taus = taus
        self.gammas = gammas
        self.method = method
        self.backend = backend
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.tol = tol
        self.rule = rule
        self.repeats = repeats

    def fit(self, X: ArrayLike, y: ArrayLike) -> SparseRidgeCV:
        """Cross-validate, choose (τ, γ) and fit the model on all rows.

        Parameters
        ----------
        X : array-like, shape (n, p)
        y : array-like, shape (n,)

        Raises
        ------
        InputError
            A ValueError with one line that names the column or parameter at fault.
        """
        rows, response, names = self._checked_rows(X, y)
        settings = Settings(self.method, self.backend, self.time_limit, self.n_jobs, self.tol)
        checked_rule(self.rule)
        gammas = None if self.gammas is None else checked_gammas(cast(Any, self.gammas))
        design, A, b = self._design(rows, response, names)
        folds = make_folds(self.cv, b.size, seed=self.random_state, X=rows, y=response)
        taus = default_taus(b.size, design.p) if self.taus is None else cast(Any, self.taus)
        data = RowFolds(A, b, folds, design.protocol.refit_intercept)
        finished = _print_line if self.verbose else None
        repeats = checked_repeats(self.repeats)

        def first(own: Settings) -> CVResult:
            if gammas is None:
                return alternate(data, taus, own, finished=finished)
            return cross_validate(data, gammas, taus, own, finished=finished)

        def again(number: int, asked: bool) -> RowFolds:
            # comparisons that nobody asked for draw nothing from the user's random numbers
            other = partition_again(folds, self.random_state if asked else 0, number)
            return RowFolds(A, b, other, design.protocol.refit_intercept)

        def more(other: FoldData, values: Array, own: Settings, name: str, asked: bool) -> CVResult:
            shown = finished if asked else None
            if shown is not None:
                print(name)
            return cross_validate(other, values, taus, own, finished=shown)

        ruled = run_by_rule(data, self.rule, repeats, settings, first=first, more=more, again=again)
        if gammas is None:
            self.trace_ = ruled.result.trace
        self.rule_, self.choices_ = ruled.rule, ruled.choices
        self._choose(ruled, design, data.full())
        return self

    def _choose(self, ruled: Ruled, design: Design, full: SparseRidgeProblem) -> None:
        result = ruled.result
        best, choice = result.best(), self.choices_[self.rule_]
        self.tau_, self.gamma_, self.cv_error_ = choice.tau, choice.gamma, choice.cv_error
        self.tau_1se_ = best.one_se
        self.certified_ = choice.certified
        self.folds_ = result.folds
        self.cv_results_: dict[str, Any] = {"gamma": result.gammas, "tau": result.taus}
        for name in ("cv_error", "std_error", "lower", "upper", "exact", "mio_by_tau"):
            self.cv_results_[name] = result.table(name)
        for name in ("n_mio", "n_nodes", "seconds"):
            self.cv_results_[name] = result.table(name)
        model = chosen_model(design, full, result, choice)
        self._keep(model)
        self.status_ = str(worst([result.status, ruled.status]))
        self.n_nodes_ = int(self.cv_results_["n_nodes"].sum()) + ruled.n_nodes
        if not self.certified_:
            what = (
                f"the least CV error on the grid is at least {best.lower_bound:.6g}, that of the "
                f"chosen pair at most {best.upper:.6g}"
                if self.rule_ == "minimum"
                else f"rule {self.rule_} might choose otherwise"
            )
            warnings.warn(
                f"not every fold and model was proved: {what}",
                UnprovedWarning,
                stacklevel=3,
            )
        elif not model.proved:
            warnings.warn(
                f"the final model has a relative gap of {self.gap_:.2g} ({self.status_}): its "
                "support may not be the best one",
                UnprovedWarning,
                stacklevel=3,
            )


def _print_line(result: Any) -> None:
    t = int(np.argmin(result.cv_error))
    print(
        f"gamma {result.gamma:.4g}: CV error {result.cv_error[t]:.6g} at tau {result.taus[t]}, "
        f"{result.n_nodes} nodes, {result.seconds:.2f} s"
    )
