"""StabilityCV: nested, stability-regularised selection of hyperparameters for any learner."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from ..cv.progress import Report, TimedReport
from ..errors import InputError
from ..estimators.validation import checked_weights, with_old_names
from ..selection.learner import SOLVERS, SparseRidgeLearner
from ..selection.partial_errors import (
    Array,
    FoldLosses,
    Task,
    checked_lambdas,
    checked_partition,
    criterion,
    subsets,
)
from ..solvers.core.limits import Limits
from .algorithm import AlgorithmOne, Minimiser, descent, exhaustion
from .kept_losses import KeptLosses, kept_losses
from .learners import folds_for, learner_of, weight_params
from .losses import checked_loss

SEARCHES = ("grid", "coordinate")
# Where the folds' models were not proved, as their solver was not "exact", the search for the final
# sparse ridge model of all rows ends after this many seconds with the best model it has found. A
# fit has one such search. The number is a choice.
REFIT_SECONDS = 10.0


class StabilityCV(BaseSearchCV):  # type: ignore[misc]
    """Choose hyperparameters by cross-validation error plus λ times instability.

    The criterion is (7) of "Stability Regularized Cross-Validation": the k-fold error plus λ μ̂_h,
    the largest mean change of the losses on all rows when a fold is left out. λ is chosen by nested
    cross-validation (Algorithm 1 of that paper): what is chosen without an outer fold has not seen
    the rows of the fold.

    Parameters
    ----------
    estimator : scikit-learn regressor or classifier
    param_grid : dict of str to sequence
        Values of every hyperparameter; candidates are their product, in the order of scikit-learn's
        ParameterGrid.
    cv : int, str, splitter or iterable
        Folds that hold out every row once: K (stratified for classifiers), "loo", "size:M", a
        splitter or pairs of indices.
    lambdas : float or sequence of float, optional
        Weights λ ≥ 0; 0 and ten values from 1e-4 to 1e4 by default. A single value is taken without
        nesting; 0 alone is ordinary cross-validation.
    loss : str or callable
        "squared", "absolute", "zero-one", "hinge", "log", or a function (y, ŷ) → losses of every
        row. "auto": squared for regressors, zero-one for classifiers.
    search : str
        "grid": every candidate, fits shared by all λ. "coordinate": cyclic descent over the
        hyperparameters for every λ and outer fold; fits are kept by (folds left out, candidate).
    start : dict, optional
        Where the descent begins; the hyperparameters not named are minimised over first.
    rescale : str, optional
        A ridge weight (γ) to multiply by n / n_train in the final fit, as folds were fitted to
        fewer rows (Liu & Dobriban).
    refit : bool, fit the chosen model on all rows
    n_jobs : int, optional, joblib workers over (folds left out, candidates)
    random_state : int, RandomState or None, of the shuffle of K folds
    checkpoint : str or path, optional
        Folder that keeps finished fits; another run on the same data goes on from it.
    verbose : int
    solver : str
        Of ``SparseRidge``: "exact", "heuristic" (forward steps, swaps, warm starts along τ),
        "rounding" (the relaxation's largest entries, as in the stability paper), or "auto": exact
        up to 20 columns, then heuristic.

    Attributes
    ----------
    best_params_, best_index_ : dict, int
        The chosen hyperparameters, and their position in ``cv_results_``.
    best_estimator_ : estimator
        With ``refit``: the chosen model, fitted to all rows.
    lambda_ : float
        The chosen weight λ of the stability.
    nested_error_ : float or None
        Least nested error over λ, which Algorithm 1 returns; None for a single λ. The rows that
        measure this error chose nothing but λ, so that the error is a little too low.
    cv_results_ : dict of arrays over candidates
        "params", "cv_error", "stability", "criterion" at the chosen λ, "corrected" (the
        bias-corrected error), and "param_NAME" for each hyperparameter NAME; with
        search="coordinate" of the candidates visited.
    lambda_results_ : dict of arrays over λ
        "lambda", "nested_error", "outer_error" (l, k), "params" chosen on all rows, where known.
    params_without_stability_ : dict
        Chosen at λ = 0, to compare with.
    folds_ : sparsecv.design.folds.Folds
        Which rows were held out together.
    loss_ : str
        Name of the loss, "auto" resolved.
    n_fits_ : int
        How many models were fitted to choose: one for each candidate and set of folds left out.
    n_features_in_, classes_ : int, ndarray
        Of ``best_estimator_``; the classes only of a classifier.

    Notes
    -----
    ``SparseRidge`` with a grid over ``tau`` and ``gamma`` and the squared loss is fitted along
    whole paths (``SparseRidgeLearner``), by ``solver``. Where that proves nothing, the final model
    is the best that 10 s of ``SparseRidge`` find. With a backend or a time limit of its own every
    model is fitted alone, as any other estimator's.

    ``SparseRidgeCV(rule="projected")`` with a grid over ``taus``, one size each, is fitted once for
    all sizes, its average and projections cross-validated inside every subset of the folds.

    Examples
    --------
    >>> from sparsecv import SparseRidge, StabilityCV
    >>> X, y = [[i, i % 2] for i in range(6)], list(range(6))
    >>> StabilityCV(SparseRidge(), {"tau": [1, 2]}, cv=3, random_state=0).fit(X, y).best_params_
    {'tau': 1}
    """

    # The command has its progress told to a function in place of printed lines.
    _report: Report | None = None

    @with_old_names
    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]],
        *,
        cv: Any = 5,
        lambdas: ArrayLike | None = None,
        loss: str | Callable[[Any, Any], Any] = "auto",
        search: str = "grid",
        start: Mapping[str, Any] | None = None,
        rescale: str | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
        solver: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.lambdas = lambdas
        self.loss = loss
        self.search = search
        self.start = start
        self.rescale = rescale
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.solver = solver

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> StabilityCV:
        """Choose λ and the hyperparameters, and fit the model on all rows.

        Parameters
        ----------
        X : array-like, shape (n, p)
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Weights ≥ 0 of the rows, in the estimator's ``fit`` and in all means of losses: a whole
            number counts as that many copies of a row in one fold. In a Pipeline every step that
            takes weights gets them.
        **fit_params
            Handed to the estimator's ``fit``.

        Returns
        -------
        StabilityCV

        Raises
        ------
        InputError
            Folds that are no partition, an unknown loss, search or hyperparameter, λ < 0, weights
            below 0 or for an estimator that takes none.
        ValueError
            No y.
        """
        lambdas, loss = checked_lambdas(self.lambdas), checked_loss(self.loss, self.estimator)
        grid, minimise = self._checked_search()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        n = _num_samples(X)
        if n < 2:
            raise InputError("at least 2 rows are needed; there is 1 (n_samples = 1)")
        row_weights = checked_weights(sample_weight, n)
        if row_weights is not None:
            fit_params |= weight_params(self.estimator, row_weights)
        folds = folds_for(self.estimator, self.cv, X, y, self.random_state)
        # With several λ, Algorithm 1 also leaves out pairs of folds, which needs three folds.
        label, _ = checked_partition(folds.label, n, lambdas.size > 1, row_weights)
        learner = learner_of(self.estimator, grid, X, y, loss, fit_params, self.solver)
        others = {name: v for name, v in fit_params.items() if v is not row_weights}
        kept = self._kept_losses((X, y, label, loss.name, row_weights), others)

        # The limits end nothing: reports need their clock.
        told = TimedReport(self._report or self._printed, Limits())

        def fit(tasks: list[Task]) -> Iterator[tuple[int, Array]]:
            return kept_losses(learner, tasks, kept, self.n_jobs, told)

        # Some learners, as SparseRidgeLearner, fit all candidates in about the time of one.
        at_once = self.search == "grid" and getattr(learner, "at_once", False)
        candidates = list(ParameterGrid(grid))
        losses = FoldLosses(label, len(candidates), fit, at_once, row_weights)
        with warnings.catch_warnings():
            # Folds may lack a row or a column; the final fit warns of what all rows lack.
            warnings.simplefilter("ignore", category=UserWarning)
            self._choose(AlgorithmOne(losses, minimise), candidates, lambdas)
        self.__dict__.pop("best_estimator_", None)
        self.folds_, self.loss_ = folds, loss.name
        if self.refit:
            params = dict(self.best_params_)
            if self.rescale is not None:
                params[self.rescale] *= n / (n - float(folds.sizes.mean()))
            if isinstance(learner, SparseRidgeLearner) and learner.solver != "exact":
                params["time_limit"] = REFIT_SECONDS
            model = clone(self.estimator).set_params(**params)
            told("the model of all rows", 0, 1)
            self.best_estimator_ = model.fit(X, y, **fit_params)
        return self

    def _printed(self, what: str, done: int, total: int) -> None:
        if self.verbose:
            print(f"{what}: {done} of {total}")

    def _checked_search(self) -> tuple[dict[str, Sequence[Any]], Minimiser]:
        """The values of all hyperparameters and the search over candidates, once validated."""
        if self.solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(SOLVERS)}; got {self.solver!r}")
        if self.search not in SEARCHES:
            raise InputError(f"search must be one of {', '.join(SEARCHES)}; got {self.search!r}")
        grid, known = dict(self.param_grid), self.estimator.get_params()
        if not grid or not all(map(len, grid.values())):
            raise InputError("param_grid needs at least one value for every hyperparameter")
        for name in grid:
            if name not in known:
                raise InputError(f"param_grid names {name!r}, which the estimator does not have")
        if self.rescale is not None and self.rescale not in grid:
            raise InputError(f"rescale names {self.rescale!r}, which param_grid does not have")
        down = descent(grid, self.start)
        return grid, down if self.search == "coordinate" else exhaustion(len(ParameterGrid(grid)))

    def _kept_losses(self, rows: tuple[Any, ...], others: dict[str, Any]) -> KeptLosses | None:
        """The folder of losses, or None without a checkpoint.

        rows: X, y, the folds, the name of the loss and the weights of the rows.
        others: Parameters of ``fit`` beside weights.
        Raises InputError: Runs with these settings cannot be recognised by their settings alone.
        """
        if self.checkpoint is None:
            return None
        random = isinstance(self.cv, (Integral, str)) and self.cv != "loo"
        if random and self.random_state is None:
            raise InputError("a checkpoint needs random_state: without, every run has new folds")
        if callable(self.loss) or others:
            raise InputError(
                "a checkpoint needs a loss by its name and no parameters of fit but sample_weight"
            )
        kind, grid = type(self.estimator), sorted(self.param_grid.items())
        estimator = (kind.__module__, kind.__qualname__, self.estimator.get_params(deep=True))
        settings = (estimator, grid, self.solver)
        return KeptLosses(self.checkpoint, (*rows, settings))

    def _choose(
        self, search: AlgorithmOne, candidates: list[dict[str, Any]], lambdas: Array
    ) -> None:
        """Choose λ and a candidate θ, and set the attributes that describe all candidates."""
        losses, nested, every = search.losses, lambdas.size > 1, self.search == "grid"
        if every:
            losses.need(subsets(losses.k, nested), range(len(candidates)))
        selection = search.select(lambdas, every) if nested else None
        self.lambda_ = float(lambdas[0]) if selection is None else selection.lambda_
        chosen, plain = search.outside(self.lambda_), search.outside(0.0)
        fitted = (losses.known[subset] for subset in subsets(losses.k, nested=False))
        at = sorted(set.intersection(*fitted))
        errors = losses.errors(at, nested=False)
        self.n_fits_ = losses.n_fits
        self.nested_error_ = None if selection is None else float(selection.nested_error.min())
        self.best_params_, self.best_index_ = candidates[chosen], at.index(chosen)
        self.params_without_stability_ = candidates[plain]
        self.cv_results_: dict[str, Any] = {
            "params": [candidates[c] for c in at],
            "cv_error": errors.cv_error,
            "stability": errors.stability,
            "criterion": criterion(errors, self.lambda_),
            "corrected": errors.corrected,
        }
        for name in candidates[0]:
            values = np.array([candidates[c][name] for c in at], dtype=object)
            self.cv_results_[f"param_{name}"] = values
        self.lambda_results_: dict[str, Any] = {"lambda": lambdas}
        if selection is not None:
            self.lambda_results_ |= {
                "nested_error": selection.nested_error,
                "outer_error": selection.outer,
                "params": [candidates[c] if c >= 0 else None for c in selection.choice.tolist()],
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
