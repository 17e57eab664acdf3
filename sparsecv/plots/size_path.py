"""Draws the models of every size: CV errors or training objectives, and coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..design.design import Array
from ..design.model import SizeModels
from ..errors import InputError
from .curves import focus, label_sizes, save, star, without_formulas
from .style import BLUE, GREEN, GREY, in_style, matplotlib, new_figure


def draw_errors(axes: Any, sizes: SizeModels, chosen: int | None, peers: dict[str, Array]) -> None:
    """Draw the CV error of every size on axes, with a star at a chosen size.

    chosen: Position of the chosen size; None draws no star.
    peers: CV errors of lasso and ridge at the same sizes; it may be empty.
    """
    error, spread = sizes.cv_error, sizes.std_error
    axes.fill_between(
        sizes.tau, error - spread, error + spread, color=BLUE, alpha=0.15, linewidth=0
    )
    # A picture of more sizes has no dots, which would hide the line. Forty dots were chosen.
    dots = "o-" if sizes.tau.size <= 40 else "-"
    axes.plot(sizes.tau, error, dots, color=BLUE, markersize=4, label="best subset ± s.e.")
    styles = {"lasso": (GREEN, "--"), "ridge": (GREY, ":")}
    for name, values in peers.items():
        colour, line = styles[name]
        axes.plot(sizes.tau, values, line, color=colour, label=name)
    if chosen is not None:
        at = sizes.tau[chosen], error[chosen], spread[chosen]
        star(axes, at, f"chosen: {sizes.tau[chosen]}")
    known = [error - spread, *(values[np.isfinite(values)] for values in peers.values())]
    focus(axes, [values.min() for values in known], error)
    label_sizes(axes)
    axes.set_ylabel("CV error")
    axes.legend(loc="upper right")


def draw_objectives(axes: Any, sizes: SizeModels) -> None:
    """Draw the training objective of every size on axes; open marks are not proved."""
    objective = np.array([model.objective for model in sizes.models])
    proved = np.array([model.proved for model in sizes.models])
    axes.plot(sizes.tau, objective, "-", color=BLUE, label="best subset")
    for here, filled, what in ((proved, "full", "proved"), (~proved, "none", "not proved")):
        if here.any():
            marks = {"color": BLUE, "fillstyle": filled, "label": what}
            axes.plot(sizes.tau[here], objective[here], "o", **marks)
    label_sizes(axes)
    axes.set_ylabel("training objective")
    axes.legend()


def draw_effects(axes: Any, sizes: SizeModels, spread: Array, names: Sequence[str]) -> None:
    """Draw the coefficients of every size on axes, times the standard deviations of their columns.

    spread, shape (p_raw,): The standard deviations.
    names: Names of all columns.
    """
    effects = np.array([model.coef * spread for model in sizes.models])
    order = np.argsort(-np.abs(effects[-1]), kind="stable")
    used = [c for c in order.tolist() if effects[:, c].any()]
    colours = matplotlib().colormaps["tab20"].colors
    for i, c in enumerate(used):
        # At most this many columns are named, those of the largest effects in the largest model.
        # Their legend is as high as the picture.
        named = i < 12
        style: dict[str, Any] = {"color": colours[i % 20] if named else GREY}
        style["label"] = without_formulas(names[c]) if named else None
        style["markevery"] = np.flatnonzero(effects[:, c]).tolist()  # Models with this column.
        axes.plot(sizes.tau, effects[:, c], "o-", markersize=4, linewidth=1.2, **style)
    label_sizes(axes)
    axes.set_ylabel("coefficient × standard deviation of its column")
    axes.set_title("in the model of each size")
    if used:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_sizes(
    ax: Any, sizes: SizeModels, chosen: int | None, spread: Array, names: Sequence[str]
) -> Any:
    """Draw errors by size, and coefficients by size, on axes of the user, and return the axes.

    ax: Axes for the errors; or a pair of axes, for errors and coefficients. With None, pyplot opens
        a figure with two axes, as the session of the user shows figures.
    chosen, spread, names: As in :func:`draw_errors` and :func:`draw_effects`.
    Raises InputError: matplotlib is missing, or ``ax`` is neither one nor two axes.
    """
    matplotlib()
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    panels = list(np.ravel(np.array(ax, dtype=object)))
    if not 1 <= len(panels) <= 2 or not all(hasattr(panel, "errorbar") for panel in panels):
        raise InputError(f"ax must be None, axes of matplotlib or a pair of axes; got {ax!r}")
    if np.isnan(sizes.cv_error).all():
        draw_objectives(panels[0], sizes)
    else:
        draw_errors(panels[0], sizes, chosen, {})
    for panel in panels[1:]:
        draw_effects(panel, sizes, spread, names)
    return ax


@in_style
def plot_errors(
    sizes: SizeModels, chosen: int | None, peers: dict[str, Array], path: str, title: str
) -> None:
    """Draw the CV error of every size, and write the picture to ``path``.

    chosen, peers: As in :func:`draw_errors`.
    Raises InputError: matplotlib is missing, or the file cannot be written in that format.
    """
    figure, ((axes,),) = new_figure(figsize=(7.0, 4.4))
    draw_errors(axes, sizes, chosen, peers)
    axes.set_title(without_formulas(title))
    save(figure, path)


@in_style
def plot_size_path(
    sizes: SizeModels, spread: Array, names: Sequence[str], path: str, title: str
) -> None:
    """Draw the objective of the best subset of every size, and the effects by size.

    spread, names: As in :func:`draw_effects`.
    path: The suffix chooses the format (.png, .pdf, .svg).
    Raises InputError: matplotlib is missing, or the file cannot be written in that format.
    """
    figure, ((left, right),) = new_figure(1, 2, figsize=(9.6, 4.2))
    draw_objectives(left, sizes)
    left.set_title(without_formulas(title))
    draw_effects(right, sizes, spread, names)
    save(figure, path)
