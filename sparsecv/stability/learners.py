"""Learners that Algorithm 1 is run with: any scikit-learn estimator, and the ready-made ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from ..design.design import Protocol as Layout
from ..design.design import Summary, make_design
from ..design.folds import Folds, make_folds
from ..errors import InputError
from ..estimators import SparseRidge, SparseRidgeCV
from ..selection.learner import SparseRidgeLearner
from ..selection.partial_errors import Array, Index, Learner
from ..solvers.backends.optional_dependencies import missing
from .coordinate import Grid
from .losses import LOSSES, Loss


class EstimatorLearner:
    """Losses of clones of an estimator with a candidate's hyperparameters.

    Parameters
    ----------
    estimator : scikit-learn estimator
    grid : Grid
    X, y : array-like
        All rows.
    loss : Loss
    fit_params : dict, optional
        Handed to ``fit``; those with one value per row are cut to the rows fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.stability import EstimatorLearner, Grid, checked_loss
    >>> X, y = np.eye(4), np.arange(4.0)
    >>> grid, loss = Grid({"alpha": [0.1, 1.0]}), checked_loss("squared")
    >>> learner = EstimatorLearner(Ridge(), grid, X, y, loss)
    >>> learner(np.array([0, 1, 2]), [0, 1]).shape  # candidates, all rows
    (2, 4)
    """

    def __init__(
        self,
        estimator: Any,
        grid: Grid,
        X: Any,
        y: Any,
        loss: Loss,
        fit_params: dict[str, Any] | None = None,
    ) -> None:
        self.estimator, self.grid, self.X, self.y, self.loss = estimator, grid, X, y, loss
        self.fit_params = fit_params or {}

    def model(self, training: Index, params: dict[str, Any]) -> Any:
        """A fitted clone.

        Parameters
        ----------
        training : ndarray of int
            Rows.
        params : dict
            Hyperparameters.

        Returns
        -------
        scikit-learn estimator
        """
        model = clone(self.estimator).set_params(**params)
        rows, response = _safe_indexing(self.X, training), _safe_indexing(self.y, training)
        fit_params = _check_method_params(self.X, self.fit_params, indices=training)
        return model.fit(rows, response, **fit_params)

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """See :class:`~sparsecv.partial_errors.Learner`."""
        models = (self.model(training, self.grid.params(c)) for c in candidates)
        return np.stack([self.loss(model, self.X, self.y) for model in models])


@dataclass(frozen=True)
class Recipe:
    """A learner with the grids of the papers.

    Attributes
    ----------
    estimator : scikit-learn estimator
    param_grid : dict
    start : dict
        Where coordinate descent begins.
    """

    estimator: Any
    param_grid: dict[str, list[Any]]
    start: dict[str, Any] = field(default_factory=dict)


def cart(classification: bool = False, seed: int = 0) -> Recipe:
    """CART with the grids of the stability paper's Section 3.2.

    Depth 1..10 and the least number of rows a node is split at 2..10, from depth 5.

    Parameters
    ----------
    classification : bool
        The response holds labels.
    seed : int

    Returns
    -------
    Recipe

    Examples
    --------
    >>> from sparsecv.stability import cart
    >>> cart().start
    {'max_depth': 5}
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeClassifier if classification else DecisionTreeRegressor
    grid: dict[str, list[Any]] = {
        "max_depth": list(range(1, 11)),
        "min_samples_split": list(range(2, 11)),
    }
    return Recipe(kind(random_state=seed), grid, {"max_depth": 5})


def xgboost(classification: bool = False, seed: int = 0) -> Recipe:
    """XGBoost with the grids of the stability paper's Section 3.2.

    Depth 1..10 and subsample .01..1 in steps of .01, from depth 5.

    Parameters
    ----------
    classification : bool
        The response holds labels.
    seed : int

    Returns
    -------
    Recipe

    Raises
    ------
    InputError
        The extra ``trees`` is not installed.
    """
    if missing("xgboost"):
        raise InputError("xgboost is not installed: pip install xgboost")
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if classification else XGBRegressor
    grid: dict[str, list[Any]] = {
        "max_depth": list(range(1, 11)),
        "subsample": [round(0.01 * i, 2) for i in range(1, 101)],
    }
    return Recipe(kind(random_state=seed, n_jobs=1), grid, {"max_depth": 5})


def svm(classification: bool = False, p: int = 1, n: int = 100, seed: int = 0) -> Recipe:
    """Support vector machines with a sigmoid kernel (Section 7 of the corrected-CV paper).

    The paper minimises the mean loss plus γ_m ||f||, γ_m from 0.1 to 100; scikit-learn's C is
    1/(2nγ_m), here on 20 values of γ_m spaced in the logarithm. Columns are standardised first.

    Parameters
    ----------
    classification : bool
        The response holds labels.
    p, n, seed : int
        Columns and rows of the data, which the kernel's width and C are scaled to; and a seed.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> from sparsecv.stability import svm
    >>> len(svm(p=3, n=100).param_grid["svr__C"])
    20
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    options: dict[str, Any] = {"kernel": "sigmoid", "gamma": 1.0 / p}
    machine = SVC(random_state=seed, **options) if classification else SVR(**options)
    name = "svc__C" if classification else "svr__C"
    weights = np.geomspace(0.1, 100.0, 20)
    grid: dict[str, list[Any]] = {name: (1.0 / (2.0 * n * weights)).tolist()}
    return Recipe(make_pipeline(StandardScaler(), machine), grid, {name: grid[name][0]})


def default_loss(estimator: Any) -> str:
    """Squared error, or the share of wrong labels for a classifier."""
    return "zero-one" if is_classifier(estimator) else "squared"


def folds_for(estimator: Any, cv: Any, X: Any, y: Any, seed: Any) -> Folds:
    """Folds a user asked for; K of them are stratified for a classifier.

    X, y, shape (n, p) and (n,).
    Raises InputError: Folds that cannot be made of these rows.
    """
    n = len(y)
    if isinstance(cv, str) and cv.strip().isdecimal():
        cv = int(cv)
    if not isinstance(cv, Integral) or not is_classifier(estimator):
        return make_folds(cv, n, seed=seed, X=X, y=y)
    splitter = check_cv(int(cv), y, classifier=True)
    splitter.shuffle, splitter.random_state = True, seed
    try:
        pairs = list(splitter.split(np.zeros((n, 1)), y))
    except ValueError as error:  # more folds than rows
        raise InputError(" ".join(str(error).split())) from None
    return make_folds(pairs, n)


class ProjectedSizes(EstimatorLearner):
    """Losses of the average's projections onto the sizes of a grid: one fit gives all of them.

    estimator, grid, X, y, loss, fit_params: As for :class:`EstimatorLearner`, the grid over
        ``taus``, one size each. A size above the number of columns that vary on the training rows
        counts as that number.
    """

    at_once = True

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """See :class:`~sparsecv.partial_errors.Learner`."""
        table = clone(self.estimator)._checked_rows(self.X, self.y)
        rows = Summary.of(table.X[training], table.y[training])
        names = [f"column {j}" for j in range(table.X.shape[1])]
        most = make_design(rows, Layout("honest", "none", intercept=True), names, warn=False).p
        taus = [min(int(self.grid.params(c)["taus"]), most) for c in candidates]
        model = self.model(training, {"taus": np.unique(taus)})
        return np.stack([self.loss(model.at_size(tau), self.X, self.y) for tau in taus])


class Renumbered:
    """A path over (γ, τ) behind the numbers of a grid.

    grid: Over "tau" and "gamma", in any order.
    """

    at_once = True

    def __init__(self, path: SparseRidgeLearner, grid: Grid) -> None:
        self.path = path
        b = grid.names.index("tau")
        points = np.array([np.unravel_index(c, grid.shape) for c in range(grid.size)])
        self.number = points[:, 1 - b] * path.taus.size + points[:, b]

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """See :class:`~sparsecv.partial_errors.Learner`."""
        return self.path(training, self.number[np.asarray(candidates, dtype=np.intp)].tolist())


def learner_of(
    estimator: Any,
    grid: Grid,
    X: Any,
    y: Any,
    loss: Loss,
    fit_params: dict[str, Any],
    solver: str,
) -> Learner:
    """The learner that fits most at once: paths, projections, or clones one by one.

    solver: Of :class:`~sparsecv.estimators.SparseRidge`.
    Raises InputError: A solver for what is not fitted along paths.
    """
    names = set(grid.names)
    path = (
        type(estimator) is SparseRidge
        and names == {"tau", "gamma"}
        and loss is LOSSES["squared"]
        and not fit_params
        and estimator.backend in ("auto", "native")  # others are asked for a reason
        and estimator.time_limit is None
    )
    if path:
        table = clone(estimator)._checked_rows(X, y)  # it notes their number
        gammas = grid.values[grid.names.index("gamma")]
        taus = grid.values[grid.names.index("tau")]
        learner = SparseRidgeLearner(
            table.X,
            table.y,
            taus,
            gammas,
            solver=solver,
            fit_intercept=estimator.fit_intercept,
            standardize=estimator.standardize,
        )
        return Renumbered(learner, grid)
    if solver != "auto":
        raise InputError(
            "solver belongs to SparseRidge with a grid over tau and gamma alone, the squared "
            "loss, and no backend, time limit or parameters of fit"
        )
    sizes = type(estimator) is SparseRidgeCV and estimator.rule == "projected" and names == {"taus"}
    if sizes and all(isinstance(tau, Integral) for tau in grid.values[0]):
        return ProjectedSizes(estimator, grid, X, y, loss, fit_params)
    return EstimatorLearner(estimator, grid, X, y, loss, fit_params)
