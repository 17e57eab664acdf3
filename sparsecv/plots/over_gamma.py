"""Draws what is proved over a range of γ: the least CV error, and every optimal support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..cv.results import GlobalMinimum, rounded_bound
from ..errors import InputError
from ..selection.claims import range_is_proved
from ..solvers.leaps.gamma_range import SupportInterval
from .curves import save, without_formulas
from .style import VERMILION, in_style, new_figure

# Errors above so many times the least error all have the last colour. The number is a choice.
MOST_OF_THE_LEAST = 1.5
# γ = 0 has no place on a logarithmic axis. Where supports are known from 0 on, the axis begins at
# this share of the least γ > 0 at which an interval ends. The number is a choice.
SHARE_OF_A_RANGE_FROM_0 = 1e-2


def _edges(gammas: Any) -> Any:
    """The ends of strips around m increasing γ > 0, halfway in the logarithm, shape (m + 1,)."""
    logs = np.log10(gammas)
    inner = 0.5 * (logs[1:] + logs[:-1])
    return 10.0 ** np.concatenate([logs[:1], inner, logs[-1:]])


@in_style
def plot_minimum(minimum: GlobalMinimum, path: str, title: str = "") -> None:
    """Draw h(γ, τ) over a range of γ; pairs that are proved to have larger errors are pale.

    γ = 0 has no place on the logarithmic axis and is not drawn.

    Parameters
    ----------
    minimum : GlobalMinimum
        What :func:`sparsecv.cv.global_gamma.global_minimum` returned.
    path : str
        The picture, in a format known by its suffix.
    title : str

    Raises
    ------
    InputError
        matplotlib is missing, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from sparsecv.cv.global_gamma import global_minimum
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.design.row_table import RowTable
    >>> from sparsecv.plots.over_gamma import plot_minimum
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> X, y, _ = make_synthetic(n=20, p=3, tau_true=1)
    >>> found = global_minimum(RowFolds(RowTable(X, y), make_folds("loo", 20)), [1, 2, 3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_minimum(found, f"{folder}/h.png", "synthetic")
    """
    figure, ((axis,),) = new_figure(figsize=(8.0, 1.8 + 0.28 * minimum.shown.taus.size))
    draw_minimum(figure, axis, minimum)
    lower, upper = rounded_bound(minimum.lower, up=False), rounded_bound(minimum.upper, up=True)
    bounds = f"{lower} ≤ min h ≤ {upper}; pale: proved to be larger"
    axis.set_title("\n".join(filter(None, [without_formulas(title), bounds])), fontsize=10)
    save(figure, path)


def draw_minimum(figure: Any, axis: Any, minimum: GlobalMinimum) -> None:
    """Draw h(γ, τ) over a range of γ on empty axes, without a title."""
    curve, taus = minimum.shown, minimum.shown.taus
    shown = curve.gammas > 0.0
    gammas = curve.gammas[shown]
    least = max(minimum.upper, 1e-300)  # The least error may be 0, by which nothing is divided.
    share = np.clip(curve.cv_error[shown] / least, 1.0, MOST_OF_THE_LEAST)
    excess = 100.0 * (share - 1.0)
    # The rows of the picture are the sizes in order.
    edges, rows = _edges(gammas), np.arange(taus.size + 1) - 0.5
    image = axis.pcolormesh(edges, rows, excess.T, cmap="viridis_r", rasterized=True)
    figure.colorbar(image, ax=axis, label="h above the least, %")
    for t, tau in enumerate(taus):
        axis.fill_between(edges[[0, -1]], t - 0.5, t + 0.5, color="white", alpha=0.55, linewidth=0)
        # A row of ``left`` has a τ and the ends of a range of γ that is not excluded.
        for _, low, high in minimum.left[minimum.left[:, 0] == tau]:
            span = np.clip([low, high], edges[0], edges[-1])
            axis.fill_between(span, t - 0.5, t + 0.5, color=VERMILION, linewidth=0, zorder=2)
    if minimum.gamma > 0.0:
        best = minimum.gamma, int(np.flatnonzero(taus == minimum.tau)[0])
        label = "certified least" if range_is_proved(minimum) else "least known"
        axis.plot(*best, marker="*", color=VERMILION, mec="black", ms=14, ls="none", label=label)
    axis.fill_between([], [], color=VERMILION, label="not excluded")
    axis.set(xscale="log", xlim=edges[[0, -1]], xlabel="γ", ylabel="τ")
    axis.set_yticks(range(taus.size), [str(tau) for tau in taus])
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.0, -0.18), ncols=3)


@in_style
def plot_supports(
    along: Mapping[int, Sequence[SupportInterval]],
    path: str,
    title: str = "",
    *,
    names: Sequence[str] = (),
) -> None:
    """Draw every optimal support against γ, in a panel for each size.

    γ = 0 has no place on the logarithmic axis. Of a range that begins there the axis shows two
    decades below the least γ > 0 at which a support ends.

    Parameters
    ----------
    along : dict of int to list of SupportInterval
        By size the intervals that :func:`sparsecv.solvers.supports_along_gamma` returned.
    path : str
        The picture, in a format known by its suffix.
    title : str
    names : sequence of str, optional
        Names of the columns, from column 0 on.

    Raises
    ------
    InputError
        matplotlib is missing, the range has no γ > 0, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sparsecv.plots.over_gamma import plot_supports
    >>> from sparsecv.solvers import SparseRidgeProblem, supports_along_gamma
    >>> X, y = np.diag([1.0, 9.0, 2.0]), np.array([3.0, 2.0, 1.0])
    >>> along, _ = supports_along_gamma(SparseRidgeProblem(X, y, gamma=1.0, tau=2), 0.01, 100.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_supports(along, f"{folder}/supports.png")
    """
    every = [end for intervals in along.values() for one in intervals for end in one[:2]]
    ends = [end for end in every if end > 0.0]
    if not ends or min(ends) == max(ends):
        raise InputError("the picture needs supports over a range of gamma > 0")
    if min(every) == 0.0:
        ends.append(min(ends) * SHARE_OF_A_RANGE_FROM_0)
    supports = [one.support for part in along.values() for one in part if one.support is not None]
    p = max([len(names), *(int(support.max()) + 1 for support in supports)])
    # The picture shows supports at 400 γ, evenly spaced in log γ: a choice.
    gammas = np.geomspace(min(ends), max(ends), 400)
    count = len(along)
    figure, axes = new_figure(count, sharex=True, figsize=(8.0, 1.0 + 0.16 * p * count))
    for axis, (tau, intervals) in zip(axes[:, 0], along.items(), strict=True):
        inside = np.zeros((p, gammas.size))
        for one in intervals:
            here = (gammas >= one.low) & (gammas <= one.high)
            if one.support is not None:
                inside[np.ix_(one.support, here)] = 1.0
        rows = np.arange(p + 1) - 0.5
        axis.pcolormesh(_edges(gammas), rows, inside, cmap="Blues", vmax=1.3, rasterized=True)
        labels = [names[j] if j < len(names) else str(j) for j in range(p)]
        axis.set_yticks(range(p), [without_formulas(label) for label in labels], fontsize=5)
        axis.set_ylabel(f"τ = {tau}", fontsize=7)
    axes[-1, 0].set(xscale="log", xlabel="γ")
    figure.suptitle(without_formulas(title))
    save(figure, path)
