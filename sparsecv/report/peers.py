"""CV errors of lasso and ridge on the folds of a study, beside which best subsets are shown."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..cv.results import Array
from ..design.fold_data import FoldData
from ..design.folds import Folds


def linear_peers(
    data: FoldData, every: Sequence[Folds], sizes: NDArray[np.intp]
) -> dict[str, Array]:
    """CV errors of the lasso and of ridge regression at every size, by the learner's name.

    At a size the lasso has the penalty of least CV error among the penalties that select at most
    this many columns on all rows. Ridge regression has all columns at every size.

    data: The rows; the result is empty where they are not in memory, have weights or lack values.
    every: Partitions into folds; the errors are averaged over the partitions.
    sizes: Numbers of columns.
    """
    if (rows := data.unweighted_rows) is None:
        return {}
    from sklearn.linear_model import LassoCV, Ridge

    (X, y), centre = rows, data.refit_intercept
    alphas = np.geomspace(1e-3, 1e4, 40)
    lasso, ridge = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The lasso may not converge at its least λ.
        for folds in every:
            pairs = list(folds.splits())
            fit = LassoCV(cv=pairs, fit_intercept=centre).fit(X, y)
            error = fit.mse_path_ @ (folds.sizes / folds.sizes.sum())
            columns = (np.abs(fit.path(X, y, alphas=fit.alphas_)[1]) > 0.0).sum(axis=0)
            few = columns[None, :] <= np.asarray(sizes)[:, None]
            lasso.append(np.where(few, error, np.inf).min(axis=1))
            model, total = Ridge(alphas, fit_intercept=centre), np.zeros(alphas.size)
            for train, test in pairs:  # The response is repeated for every α.
                model.fit(X[train], np.tile(y[train, None], alphas.size))
                total += np.square(y[test, None] - model.predict(X[test])).sum(axis=0)
            ridge.append(np.full(len(sizes), total.min() / folds.sizes.sum()))
    return {"lasso": np.mean(lasso, axis=0), "ridge": np.mean(ridge, axis=0)}
