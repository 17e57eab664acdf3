"""Draws CV error and distance of the rule projected's models against size (extra ``plot``)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..cv.results import Array
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds
from ..selection.projection import Projection
from .curves import label_sizes, save, star, without_formulas
from .style import BLUE, GREEN, VERMILION, in_style, new_figure


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
    if not isinstance(data, RowFolds) or data.weights is not None or data.missing is not None:
        return {}
    from sklearn.linear_model import LassoCV, Ridge

    X, y, centre = data.X, data.y, data.refit_intercept
    alphas = np.geomspace(1e-3, 1e4, 40)
    lasso, ridge = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The lasso may not converge at its least λ.
        for folds in every:
            pairs = [folds.split(j) for j in range(folds.k)]
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


@in_style
def plot_sizes(
    found: Projection, path: str, title: str, *, peers: dict[str, Array] | None = None
) -> None:
    """Draw CV error and distance to the average against size, with a star at the chosen size.

    path: The suffix chooses the format (.png, .pdf, .svg).
    peers: Errors of other models at the same sizes (:func:`linear_peers`).
    Raises InputError: matplotlib is missing, or the file cannot be written in that format.
    """
    figure, ((axes,),) = new_figure(figsize=(7.0, 4.4))
    sizes, t = found.sizes, found.chosen
    error, spread = found.of_size(found.cv_error), found.of_size(found.std_error)
    low, high = found.reference - found.reference_std, found.reference + found.reference_std
    axes.axhspan(low, high, color=BLUE, alpha=0.12)
    axes.axhline(found.reference, color=BLUE, label="average of all models ± s.e.")
    axes.plot(sizes, error, "o-", color="black", markersize=4, label="projected onto τ columns")
    for (name, values), style in zip((peers or {}).items(), ("--", ":"), strict=False):
        axes.plot(sizes, values, style, color=VERMILION, label=name)
    star(axes, (sizes[t], error[t], spread[t]), f"chosen: τ = {sizes[t]}")
    top = min(float(error.max()), 2.0 * float(np.median(error)))
    axes.set_ylim(0.9 * min(low, float(error.min())), 1.05 * max(top, high, error[t] + spread[t]))
    label_sizes(axes)
    axes.set_ylabel("cross-validation error")
    second = axes.twinx()
    second.grid(visible=False)  # Two grids of other steps would confuse.
    second.plot(sizes, found.of_size(found.distance), color=GREEN, linewidth=1.0)
    second.set_ylabel("held-out distance to the average", color=GREEN)
    second.set_ylim(bottom=0.0)
    axes.set_title(without_formulas(title))
    axes.legend(fontsize=7)
    save(figure, path)
