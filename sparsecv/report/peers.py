"""CV errors of lasso and ridge on the folds of a study, beside which best subsets are shown."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from ..cv.results import Array
from ..design.fold_data import FoldData


def linear_peers(data: FoldData, sizes: NDArray[np.intp]) -> dict[str, Array]:
    """CV errors of "lasso" and "ridge", scikit-learn's, on the folds of ``data`` at every size.

    At a size the lasso has the penalty of least CV error among the penalties that select at most
    this many features on all rows. Ridge regression has all columns at every size. The dictionary
    is empty where the rows are not in memory, have weights or lack values.

    sizes, shape (s,): Numbers of features. The errors have the same shape.
    """
    if (rows := data.unweighted_rows()) is None:
        return {}
    from sklearn.linear_model import LassoCV, Ridge  # Few calls need what this imports.

    X, y, centre, folds = rows[:, :-1], rows[:, -1], data.refit_intercept, data.folds
    pairs = list(folds.splits())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The lasso may not converge at its least penalty.
        fit = LassoCV(cv=pairs, fit_intercept=centre).fit(X, y)
        # A fold counts with its rows, as in the CV error of a subset.
        error = fit.mse_path_ @ (folds.sizes / folds.sizes.sum())
        used = np.abs(fit.path(X, y, alphas=fit.alphas_)[1]) > 0.0
        # A factor counts once, as in a size, however many of its columns have a coefficient.
        features = sum(used[own].any(axis=0).astype(int) for own in data.constraints.columns)
        few = np.asarray(features)[None, :] <= sizes[:, None]
        lasso = np.where(few, error, np.inf).min(axis=1)
        # scikit-learn's alpha is γ/2. The range is a choice.
        alphas = np.geomspace(1e-3, 1e4, 40)
        ridge, total = Ridge(alphas, fit_intercept=centre), np.zeros(alphas.size)
        for train, test in pairs:  # Ridge takes one alpha for each copy of the response.
            ridge.fit(X[train], np.tile(y[train, None], alphas.size))
            total += np.square(y[test, None] - ridge.predict(X[test])).sum(axis=0)
    return {"lasso": lasso, "ridge": np.full(sizes.size, total.min() / folds.sizes.sum())}
