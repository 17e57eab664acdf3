"""Sparse ridge with (τ, γ) chosen by exact cross-validation, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..cv.alternating import alternate
from ..cv.engine import Settings, checked_gammas, cross_validate, default_taus
from ..cv.results import CVResult
from ..design.design import Array, Design
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import make_folds
from ..errors import UnprovedWarning
from ..selection.evidence import REPEATS, checked_repeats, partition_again
from ..selection.rule_run import Ruled, run_by_rule
from ..selection.rules import checked_rule, chosen_model
from ..solvers import SparseRidgeProblem, worst
from .base import SparseLinearModel


class SparseRidgeCV(SparseLinearModel):
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
        (:func:`sparsecv.cv.alternating.alternate`), which visits ten values and more from 1e-4
        to 1e4.
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
