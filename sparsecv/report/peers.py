"""CV errors of lasso and ridge on the folds of a study, beside which best subsets are shown."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cv.results import Array
from ..design.fold_data import FoldData

# The values of scikit-learn's alpha for ridge regression, which is γ/2. The range is a choice.
RIDGE_ALPHAS = np.geomspace(1e-3, 1e4, 40)


def linear_peers(data: FoldData, sizes: NDArray[np.intp]) -> dict[str, Array]:
    """CV errors of "lasso" and "ridge", scikit-learn's, on the folds of ``data`` at every size.

    At a size the lasso has the penalty of least CV error among the penalties that select at most
    this many features on all rows. Ridge regression has all columns at every size. The dictionary
    is empty where the rows are not in memory, have weights or lack values.

    sizes, shape (s,): Sizes, counted as the constraints of ``data`` count them. The errors, mean
        squares of held-out rows, have the same shape; the lasso's is infinite at a size where no
        penalty selects so few.
    """
    if (rows := data.unweighted_rows()) is None:
        return {}
    X, y, folds = rows[:, :-1], rows[:, -1], data.folds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The lasso may not converge at its least penalty.
        fit = _lasso(data, X, y)
        # A fold counts with its rows, as in the CV error of a subset.
        error = fit.mse_path_ @ (folds.sizes / folds.sizes.sum())
        used = np.abs(fit.path(X, y, alphas=fit.alphas_)[1]) > 0.0
        # A factor counts as in a size, however many of its columns have a coefficient.
        asked = data.constraints
        units = zip(asked.columns, asked.cost.tolist(), strict=True)
        features = sum(used[own].any(axis=0) * cost for own, cost in units)
        few = np.asarray(features)[None, :] <= sizes[:, None]
        lasso = np.where(few, error, np.inf).min(axis=1)
        ridge = _ridge_errors(data, X, y)
    return {"lasso": lasso, "ridge": np.full(sizes.size, ridge.min())}


def fitted_peers(data: FoldData) -> dict[str, Array]:
    """Coefficients of solved columns, shape (p,), of the mean, the lasso and ridge regression.

    Lasso and ridge have the penalties of least CV error on the folds of ``data``, and are fitted to
    all rows. Where rows have weights or lack values, the mean stands alone.
    """
    found = {"mean": np.zeros(data.p)}
    if (rows := data.unweighted_rows()) is None:
        return found
    from sklearn.linear_model import Ridge

    X, y = rows[:, :-1], rows[:, -1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The lasso may not converge at its least penalty.
        best = RIDGE_ALPHAS[int(_ridge_errors(data, X, y).argmin())]
        ridge = Ridge(best, fit_intercept=data.refit_intercept).fit(X, y)
        return found | {"lasso": _lasso(data, X, y).coef_, "ridge": ridge.coef_}


def _lasso(data: FoldData, X: Array, y: Array) -> Any:
    """scikit-learn's LassoCV on the folds of the data, fitted."""
    from sklearn.linear_model import LassoCV  # Few calls need what this imports.

    return LassoCV(cv=list(data.folds.splits()), fit_intercept=data.refit_intercept).fit(X, y)


def _ridge_errors(data: FoldData, X: Array, y: Array) -> Array:
    """The CV errors of ridge regression at RIDGE_ALPHAS."""
    from sklearn.linear_model import Ridge

    folds, total = data.folds, np.zeros(RIDGE_ALPHAS.size)
    ridge = Ridge(RIDGE_ALPHAS, fit_intercept=data.refit_intercept)
    for train, test in folds.splits():  # Ridge takes one alpha for each copy of the response.
        ridge.fit(X[train], np.tile(y[train, None], RIDGE_ALPHAS.size))
        total += np.square(y[test, None] - ridge.predict(X[test])).sum(axis=0)
    return np.asarray(total / folds.sizes.sum())
