"""Draws the CV error against τ, and holds functions that all pictures use (extra ``plot``)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cv.results import Array, CVResult, bounds_to_show
from ..errors import InputError
from .style import VERMILION, in_style, matplotlib, new_figure


def check_writable(path: str) -> None:
    """Refuse a picture whose format matplotlib does not know, before any work is done.

    path: As --plot has it; ``refuse_unwritable`` looks at the folder.
    Raises InputError: matplotlib is missing, or the suffix is no known format.
    """
    figure, _ = new_figure(figsize=(1.0, 1.0))
    kinds = figure.canvas.get_supported_filetypes()
    suffix = Path(path).suffix.lstrip(".").lower()
    if suffix not in kinds:
        known = ", ".join("." + kind for kind in sorted(kinds))
        raise InputError(f"--plot {path}: no such picture format; use one of {known}")


def save(figure: Any, path: str) -> None:
    """Write a figure to a file; InputError if the file cannot be written."""
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:  # An unknown format is a ValueError.
        raise InputError(f"--plot {Path(path)}: {error}") from None


def without_formulas(text: str) -> str:
    """A title whose dollar signs, as in a file's name, are printed rather than begin a formula."""
    return text.replace("$", r"\$")


def say(axes: Any, title: str) -> None:
    """Write a sentence above axes, in lines that are as wide as the axes."""
    size = 9.0
    width = 72.0 * axes.get_window_extent().width / axes.get_figure().dpi
    # Characters are about 0.55 times as wide as they are high.
    text = title.replace(" %", "\N{NO-BREAK SPACE}%")  # No line begins with the sign of a number.
    lines = textwrap.wrap(text, max(20, int(width / (0.55 * size))))
    axes.set_title(without_formulas("\n".join(lines)), fontsize=size, loc="left")


def label_sizes(axes: Any, taus: NDArray[np.intp]) -> None:
    """Label the horizontal axis as the size, of features or coefficients, with whole numbers.

    taus: The sizes that are drawn, at least one.
    """
    axes.set_xlabel("size τ")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if taus.size == 1:  # An axis of length 0 would be marked at fractions.
        axes.set_xlim(taus[0] - 1, taus[0] + 1)


def star(axes: Any, tau: int, error: float, std_error: float, label: str) -> None:
    """Draw a star at the size and the CV error of the chosen model, with its standard error."""
    shape = {"marker": "*", "markersize": 15, "capsize": 4, "linestyle": "none"}
    axes.errorbar(tau, error, yerr=std_error, color=VERMILION, zorder=5, label=label, **shape)


def mark(axes: Any, tau: int, error: float, marker: str, what: str) -> None:
    """Mark the CV error of a model of size ``tau`` that is not chosen.

    marker: The shape, by matplotlib's name. ``what`` describes the model in the legend.
    """
    shape = {"marker": marker, "markersize": 8, "fillstyle": "none", "linestyle": "none"}
    axes.plot(tau, error, label=f"{what}: τ = {tau}", color=VERMILION, zorder=5, **shape)


def focus(axes: Any, low: Iterable[float], errors: Array, shown: float = -np.inf) -> None:
    """Limit the vertical axis, so that a few large errors or bounds do not flatten the curves.

    The axis ends at most six times as far above its lower end as the median error lies (or 2 % of
    the lower end, if that is more), plus 6 % of the axis. The numbers are choices.

    low: Values of which the least is the lower end; at least one.
    errors: The errors that are drawn, finite and at least one.
    shown: The axis contains this value.
    """
    end, median = float(min(low)), float(np.median(errors))
    top = min(float(errors.max()), end + 6.0 * max(median - end, 0.02 * abs(end)))
    top = max(top, shown)
    pad = 0.06 * (top - end) or 0.05 * abs(end) or 1.0
    axes.set_ylim(end - pad, top + pad)


@in_style
def plot_cv(
    result: CVResult, path: str, title: str, *, chosen: tuple[int, int] | None = None
) -> None:
    """Draw the CV error against τ, one curve per γ, and write it to ``path``.

    A star marks the chosen pair; other marks show the least error and the one-standard-error
    choice. Where errors are not proved, the area between their bounds is shaded, if the bounds are
    close enough to the errors.

    Parameters
    ----------
    result : CVResult
    path : str
        The suffix chooses the format (.png, .pdf, .svg).
    title : str
    chosen : pair of int, optional
        Positions of the chosen γ and τ; by default the pair of least error is chosen.

    Raises
    ------
    InputError
        matplotlib is missing, or the file cannot be written in that format.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sparsecv.cv.grid_errors import cross_validate
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.design.row_table import RowTable
    >>> from sparsecv.plots.curves import plot_cv
    >>> data = RowFolds(RowTable(np.eye(20)[:, :3], np.arange(20.0)), make_folds("loo", 20))
    >>> with tempfile.NamedTemporaryFile(suffix=".png") as file:
    ...     plot_cv(cross_validate(data, [1.0], [1, 2, 3]), file.name, "CV error of made data")
    """
    best = result.best()
    g_star, t_star = chosen or (best.gamma_index, best.tau_index)
    figure, ((axes,),) = new_figure(figsize=(7.0, 4.4))
    # The place of every γ in their order, from 0 to 1: large γ are light.
    rank = result.gammas.argsort().argsort() / max(len(result.gammas) - 1, 1)
    colours = matplotlib().colormaps["viridis"](0.9 * rank)
    # Of more curves the legend names the chosen one, and says which γ the others have, because a
    # longer legend covers the curves. The number is a choice.
    names_all = len(result.gammas) <= 12
    for g, one in enumerate(result.by_gamma):
        bold = g == g_star
        axes.plot(
            one.taus,
            one.cv_error,
            color=colours[g],
            linewidth=2.2 if bold else 1.0,
            zorder=3 if bold else 2,
            marker="o",
            markersize=3,
            label=f"γ = {one.gamma:.4g}" if bold or names_all else None,
        )
        if not one.exact.all():
            low, high = bounds_to_show(one.lower, one.cv_error, one.upper)
            axes.fill_between(one.taus, low, high, color=colours[g], alpha=0.15)
    if not names_all:
        low, high = result.gammas.min(), result.gammas.max()
        text = f"{len(result.gammas) - 1} other γ, {low:.2g} (dark) to {high:.2g} (light)"
        axes.plot([], [], color=colours[int(rank.size // 2)], linewidth=1.0, label=text)
    one, t = result.by_gamma[g_star], t_star
    label = f"chosen: τ = {one.taus[t]}" + ("" if one.exact[t] else " (an estimate)")
    star(axes, one.taus[t], one.cv_error[t], one.std_error[t], label)
    if (g_star, t_star) != (best.gamma_index, best.tau_index):
        mark(axes, best.tau, best.cv_error, "o", "least error")
    one = result.by_gamma[best.one_se_gamma_index]
    error = float(one.cv_error[one.taus == best.one_se][0])
    mark(axes, best.one_se, error, "D", "one standard error")
    label_sizes(axes, result.taus)
    axes.set_ylabel("CV error")
    errors, spread = result.table("cv_error"), best.std_error
    focus(axes, (errors.min(), best.cv_error - spread), errors, best.cv_error + spread)
    say(axes, title)
    axes.legend(fontsize=7, ncols=2)
    save(figure, path)
