"""StabilityCV: nested, stability-regularised selection of hyperparameters for any learner."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from ..design.folds import check_groups
from ..errors import InputError
from ..report.progress import telling
from ..schedule import REFIT_SECONDS
from ..stability.algorithm import checked_lambdas, criterion, select
from ..stability.fold_losses import Array, Learner, PartialErrors, losses_of, partial_errors
from ..stability.learners import EstimatorLearner, folds_for, weight_params
from ..stability.losses import LOSSES, Loss, checked_loss
from ..stability.sparse_ridge import SparseRidgeLearner
from .sparse_ridge import SparseRidge
from .validation import checked_weights


class StabilityCV(BaseSearchCV):  # type: ignore[misc]
    """Choose hyperparameters by cross-validation error plus λ times instability.

    The criterion is (7) of "Stability Regularized Cross-Validation": the k-fold error plus λ μ̂_h,
    where μ̂_h is the largest mean change of the losses on all rows when a fold is left out. A
    candidate is a choice of all hyperparameters. λ is chosen by nested
    cross-validation (Algorithm 1 of that paper): what is chosen without an outer fold has not seen
    the rows of the fold.

    Parameters
    ----------
    estimator : scikit-learn regressor or classifier
    param_grid : dict of str to sequence
        Values of every hyperparameter, at least one of each; candidates are their product, in the
        order of scikit-learn's ParameterGrid.
    cv : int, str, splitter or iterable
        Folds that hold out every row once: K (stratified for classifiers), "loo", "size:M", a
        splitter or pairs of indices.
    lambdas : float or sequence of float, optional
        Weights λ ≥ 0; 0 and ten values from 1e-4 to 1e4 by default. A single value is taken without
        nesting; 0 alone is ordinary cross-validation.
    loss : str or callable
        "squared", "absolute", "zero-one", "hinge", "log", or a function (y, ŷ) → losses of every
        row. "auto": squared for regressors, zero-one for classifiers.
    n_jobs : int, optional
        Number of workers of joblib, which share the fits (folds left out, candidates); None is one.
    random_state : int, RandomState or None
        Seed of the shuffle of K folds.

    Attributes
    ----------
    best_params_, best_index_ : dict, int
        The chosen hyperparameters, and their position in ``cv_results_``.
    best_estimator_ : estimator
        The chosen model, fitted to all rows.
    lambda_ : float
        The chosen weight λ of the stability.
    nested_error_ : float or None
        Least nested error over λ, which Algorithm 1 returns; None for a single λ. The rows that
        measure this error chose nothing but λ, so that the error is a little too low.
    cv_results_ : dict of arrays over candidates
        "params", "cv_error", "stability", "criterion" at the chosen λ, "corrected" (the
        bias-corrected error), and "param_NAME" for each hyperparameter NAME.
    lambda_results_ : dict of arrays over λ
        "lambda", and with several λ "nested_error", "outer_error" (shape (λ, outer fold)) and the
        "params" that are chosen on all rows.
    folds_ : sparsecv.design.folds.Folds
        Which rows were held out together.
    loss_ : str
        Name of the loss, "auto" resolved.
    n_features_in_, classes_ : int, ndarray
        Of ``best_estimator_``; the classes only of a classifier.

    Notes
    -----
    ``SparseRidge`` with a grid over ``tau`` and ``gamma``, both numbers, and the squared loss is
    fitted along whole paths: up to 20 columns to optimality, as far as its ``time_limit`` for each
    model allows, and beyond by forward steps and swaps, where the final model is the best that 10 s
    of ``SparseRidge`` find. With an outside ``backend``, ``time_limit=0``, ``missing`` or fit
    parameters besides weights every model is fitted alone, as any other estimator's.

    Examples
    --------
    >>> from sparsecv import SparseRidge, StabilityCV
    >>> X, y = [[i, i % 2] for i in range(6)], list(range(6))
    >>> StabilityCV(SparseRidge(), {"tau": [1, 2]}, cv=3, random_state=0).fit(X, y).best_params_
    {'tau': 1}
    """

    refit = True  # BaseSearchCV predicts by the model of all rows where this is true.

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]],
        *,
        cv: Any = 5,
        lambdas: ArrayLike | None = None,
        loss: str | Callable[[Any, Any], Any] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.lambdas = lambdas
        self.loss = loss
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> StabilityCV:
        """Choose λ and the hyperparameters, and fit the model on all rows.

        Parameters
        ----------
        X : array-like, shape (n, p)
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Weights ≥ 0 of the rows, in the estimator's ``fit`` and in all means of losses: a whole
            number counts as that many copies of a row in one fold. In a Pipeline every step that
            takes weights gets them.
        groups : array-like, shape (n,), optional
            Rows of one group are held out together. The estimator's ``fit`` does not get them.
        **fit_params
            Handed to the estimator's ``fit``.

        Returns
        -------
        StabilityCV

        Raises
        ------
        InputError
            Folds that are no partition, an unknown loss or hyperparameter, λ < 0, weights below 0
            or for an estimator that takes none.
        ValueError
            No y.
        """
        lambdas, loss = checked_lambdas(self.lambdas), checked_loss(self.loss, self.estimator)
        grid = self._checked_grid()
        if y is None:  # scikit-learn's check_estimator wants these words.
            raise ValueError("requires y to be passed, but the target y is None")
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        n = _num_samples(X)
        if n < 2:
            raise InputError("at least 2 rows are needed; there is 1 (n_samples = 1)")
        row_weights = None if sample_weight is None else checked_weights(sample_weight, n)
        if row_weights is not None:
            fit_params |= weight_params(self.estimator, row_weights)
        if groups is not None:
            check_groups(groups, n)
            groups = np.asarray(groups)
        folds = folds_for(self.estimator, self.cv, X, y, self.random_state, groups)
        learner = learner_of(self.estimator, grid, X, y, loss, fit_params)
        candidates = list(ParameterGrid(grid))  # The learner numbers them alike.
        with telling("fitting the folds of every candidate"), warnings.catch_warnings():
            # Folds may lack a row or a column; the final fit warns of what all rows lack.
            warnings.simplefilter("ignore", category=UserWarning)
            errors = partial_errors(
                learner,
                folds.label,
                len(candidates),
                nested=lambdas.size > 1,  # A single λ is taken without nesting.
                weights=row_weights,
                fit=partial(losses_of, learner, n_jobs=self.n_jobs),
            )
        self._choose(errors, candidates, lambdas)
        self.folds_, self.loss_ = folds, loss.name
        params = dict(self.best_params_)
        if isinstance(learner, SparseRidgeLearner) and learner.solver != "exact":
            params["time_limit"] = REFIT_SECONDS
        model = clone(self.estimator).set_params(**params)
        self.best_estimator_ = model.fit(X, y, **fit_params)
        return self

    def _checked_grid(self) -> dict[str, Sequence[Any]]:
        """The values of every hyperparameter, by its name, once validated."""
        grid, known = dict(self.param_grid), self.estimator.get_params()
        if not grid or not all(map(len, grid.values())):
            raise InputError("param_grid needs at least one value for every hyperparameter")
        for name in grid:
            if name not in known:
                raise InputError(f"param_grid names {name!r}, which the estimator does not have")
        return grid

    def _choose(
        self, errors: PartialErrors, candidates: list[dict[str, Any]], lambdas: Array
    ) -> None:
        """Choose λ and a candidate, and set the attributes that describe all candidates.

        errors: With losses of two folds left out where there are several λ.
        candidates: The hyperparameters of every candidate, in the order of ``errors``.
        lambdas: The values of λ; a single one is taken.
        """
        selection = select(errors, lambdas) if lambdas.size > 1 else None
        self.lambda_ = float(lambdas[0]) if selection is None else selection.lambda_
        values = criterion(errors, self.lambda_)
        self.nested_error_ = None if selection is None else float(selection.nested_error.min())
        self.best_index_ = int(np.argmin(values))
        self.best_params_ = candidates[self.best_index_]
        self.cv_results_: dict[str, Any] = {
            "params": candidates,
            "cv_error": errors.cv_error,
            "stability": errors.stability,
            "criterion": values,
            "corrected": errors.corrected,
        }
        for name in candidates[0]:
            every = np.array([one[name] for one in candidates], dtype=object)
            self.cv_results_[f"param_{name}"] = every
        self.lambda_results_: dict[str, Any] = {"lambda": lambdas}
        if selection is not None:
            self.lambda_results_ |= {
                "nested_error": selection.nested_error,
                "outer_error": selection.outer,
                "params": [candidates[c] for c in selection.choice.tolist()],
            }

    def score(self, X: Any, y: Any) -> float:
        """Score of the chosen model.

        Parameters
        ----------
        X, y : array-like, shape (n, p) and (n,)

        Returns
        -------
        float
        """
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))

    # A search chooses a model that predicts, also where the estimator transforms, too.
    transform = inverse_transform = property()

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.target_tags, tags.input_tags = deepcopy(inner.target_tags), inner.input_tags
        tags.target_tags.multi_output = False
        return tags

    # The fit of a StabilityCV routes no metadata to scorers, which it does not have.
    get_metadata_routing = BaseEstimator.get_metadata_routing


def learner_of(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any,
    loss: Loss,
    fit_params: dict[str, Any],
) -> Learner:
    """The learner that fits the most candidates together.

    A grid over τ and γ of SparseRidge is fitted along paths, which give all candidates at once; of
    every other estimator a clone is fitted for each candidate.

    grid: The values of every hyperparameter; candidates are numbered as by ParameterGrid.
    loss: The loss that errors are measured by.
    fit_params: Further arguments of the estimator's ``fit``, weights of the rows among them.
    """
    if not (
        type(estimator) is SparseRidge
        and sorted(grid) == ["gamma", "tau"]
        and loss is LOSSES["squared"]  # The learner of paths returns squared errors.
        and set(fit_params) <= {"sample_weight"}
        and estimator.backend in ("auto", "native")  # Paths call no other back end.
        and estimator.time_limit != 0  # Paths prove what they find.
        and estimator.missing is None  # Paths fill no missing values.
    ):
        return EstimatorLearner(estimator, list(ParameterGrid(dict(grid))), X, y, loss, fit_params)
    # A clone is asked, because the check of the rows sets attributes of the estimator.
    ready = clone(estimator)._prepared(X, y)
    rows, response = ready.source.load()
    return SparseRidgeLearner(
        rows,
        response,
        list(grid["tau"]),
        list(grid["gamma"]),
        fit_intercept=estimator.fit_intercept,
        standardize=estimator.standardize,
        asked=ready.design.asked,
        weights=fit_params.get("sample_weight"),
        time_limit=estimator.time_limit,
    )
