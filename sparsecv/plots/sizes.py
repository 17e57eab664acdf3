"""Error and distance of projections against their size (extra ``plot``)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..cv.results import Array
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds
from ..selection.projection import Projection
from .curves import pyplot, save


def linear_peers(
    data: FoldData, every: Sequence[Folds], sizes: NDArray[np.intp]
) -> dict[str, Array]:
    """CV errors of the lasso with at most so many columns, and of ridge regression.

    data: Rows in memory; where there are none, or rows have weights, nothing is compared.
    every: Partitions whose errors are averaged.
    sizes, shape (τ,).
    Returns, shape (τ,): The lasso's λ is the one of least error among those that leave at most so
        many columns on all rows; ridge has all columns, whatever the size.
    """
    if not isinstance(data, RowFolds) or data.weights is not None:
        return {}
    from sklearn.linear_model import LassoCV, Ridge

    X, y, centre = data.X, data.y, data.refit_intercept
    lasso, ridge = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the lasso's convergence at its least λ
        for folds in every:
            pairs = [folds.split(j) for j in range(folds.k)]
            size = np.array([test.size for _, test in pairs]) / folds.sizes.sum()
            fit = LassoCV(cv=pairs, fit_intercept=centre).fit(X, y)
            error = fit.mse_path_ @ size
            columns = (np.abs(fit.path(X, y, alphas=fit.alphas_)[1]) > 0.0).sum(axis=0)
            few = columns[None, :] <= np.asarray(sizes)[:, None]
            lasso.append(np.where(few, error, np.inf).min(axis=1))
            total = np.zeros(40)
            for a, alpha in enumerate(np.geomspace(1e-3, 1e4, total.size)):
                model = Ridge(alpha, fit_intercept=centre)
                for train, test in pairs:
                    predicted = model.fit(X[train], y[train]).predict(X[test])
                    total[a] += np.square(y[test] - predicted).sum()
            ridge.append(np.full(len(sizes), total.min() / folds.sizes.sum()))
    return {"lasso": np.mean(lasso, axis=0), "ridge": np.mean(ridge, axis=0)}


def plot_sizes(
    found: Projection, path: str, title: str, *, peers: dict[str, Array] | None = None
) -> None:
    """Draw CV error and distance to the average against size, the chosen one starred.

    Parameters
    ----------
    found : Projection
    path : str
        The suffix chooses the format (.png, .pdf, .svg).
    title : str
    peers : dict of str to ndarray, optional
        Errors of other models at the same sizes (:func:`linear_peers`).

    Raises
    ------
    InputError
        matplotlib is missing, or the file cannot be written in that format.
    """
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.0, 4.4), layout="constrained")
    sizes, t = found.sizes, found.chosen
    error, spread = found.of_size(found.cv_error), found.of_size(found.std_error)
    low, high = found.reference - found.reference_std, found.reference + found.reference_std
    axes.axhspan(low, high, color="tab:blue", alpha=0.12)
    axes.axhline(found.reference, color="tab:blue", label="average of all models ± s.e.")
    axes.plot(sizes, error, "o-", color="black", markersize=4, label="projected onto τ columns")
    for (name, values), style in zip((peers or {}).items(), ("--", ":"), strict=False):
        axes.plot(sizes, values, style, color="tab:orange", label=name)
    axes.errorbar(
        sizes[t],
        error[t],
        yerr=spread[t],
        color="crimson",
        marker="*",
        markersize=15,
        capsize=4,
        linestyle="none",
        zorder=5,
        label=f"chosen: τ = {sizes[t]}",
    )
    top = min(float(error.max()), 2.0 * float(np.median(error)))
    axes.set_ylim(0.9 * min(low, float(error.min())), 1.05 * max(top, high, error[t] + spread[t]))
    axes.set_xlabel("size τ")
    axes.set_ylabel("cross-validation error")
    axes.xaxis.get_major_locator().set_params(integer=True)
    second = axes.twinx()
    second.plot(sizes, found.of_size(found.distance), color="tab:green", linewidth=1.0)
    second.set_ylabel("held-out distance to the average", color="tab:green")
    second.set_ylim(bottom=0.0)
    axes.set_title(title.replace("$", r"\$"))  # a name is not a formula
    axes.legend(fontsize=7)
    save(figure, path)
