"""Draws the models of every size: CV errors or training objectives, and coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..design.design import Array
from ..design.features import cut_name
from ..design.model import Model, values_of
from ..errors import InputError
from ..selection.sizes import SizeMarks
from .curves import focus, label_sizes, mark, save, say, star, without_formulas
from .style import BLUE, GREEN, GREY, VERMILION, in_style, matplotlib, new_figure

# A legend as high as a picture of usual size has room for so many names. The number is a choice.
MAX_NAMED = 14
# A legend and an axis show names of at most so many characters, about a quarter of a picture of
# usual size. The number is a choice.
LONGEST_LABEL = 32


def draw_errors(
    axes: Any, sizes: Sequence[Model], marks: SizeMarks, peers: dict[str, Array]
) -> None:
    """Draw the CV error of every size on axes, with a star at the chosen size.

    Other marks show the size of least CV error, where another is chosen, and the smallest size
    within one standard error of it.

    peers: CV errors of lasso and ridge at the same sizes; it may be empty.
    """
    tau, error, spread = (values_of(sizes, name) for name in ("tau", "cv_error", "std_error"))
    axes.fill_between(tau, error - spread, error + spread, color=BLUE, alpha=0.15, linewidth=0)
    # A picture of more sizes has no dots, which would hide the line. Forty dots were chosen.
    dots = "o-" if tau.size <= 40 else "-"
    axes.plot(tau, error, dots, color=BLUE, markersize=4, label="best subset ± s.e.")
    styles = {"lasso": (GREEN, "--"), "ridge": (GREY, ":")}
    drawn = dict[str, Any]()
    for name, values in peers.items():
        colour, line = styles[name]
        (drawn[name],) = axes.plot(tau, values, line, color=colour, label=name)
    shown = [-np.inf]  # Errors that the axis contains in any case.
    if (t := marks.chosen) is not None:
        star(axes, tau[t], error[t], spread[t], f"chosen: τ = {tau[t]}")
        shown.append(float(error[t] + spread[t]))
    others = (marks.least, "o", "least"), (marks.one_se, "D", "one standard error")
    for t, shape, what in others:
        # A diamond around the star says that the chosen size is that within one standard error.
        if t is not None and (t != marks.chosen or shape == "D"):
            mark(axes, int(tau[t]), float(error[t]), shape, what)
            shown.append(float(error[t]))
    # The lasso's error is infinite at a size where no penalty selects so few columns.
    known = [error - spread, *(values[np.isfinite(values)] for values in peers.values())]
    focus(axes, [values.min(initial=np.inf) for values in known], error, max(shown))
    for name, line in drawn.items():
        line.set_label(_label_of_peer(name, peers[name], top=axes.get_ylim()[1]))
    label_sizes(axes, tau)
    axes.set_ylabel("CV error")
    axes.legend(fontsize=7)


def _label_of_peer(name: str, errors: Array, top: float) -> str:
    """What the legend calls the line of lasso or ridge: it says so where the line is not seen.

    errors: CV errors at all sizes, infinite where the lasso has no penalty of so few columns.
    top: The upper end of the axis.
    """
    if (errors <= top).any():
        return name
    least = errors.min()
    if not np.isfinite(least):
        return f"{name}: selects more columns"
    return f"{name}: above the picture, {least:.4g} at least"


def draw_objectives(axes: Any, sizes: Sequence[Model]) -> None:
    """Draw the training objective of every size on axes; open marks are not proved."""
    tau, objective, proved = (values_of(sizes, name) for name in ("tau", "objective", "proved"))
    axes.plot(tau, objective, "-", color=BLUE, label="best subset")
    for here, filled, what in ((proved, "full", "proved"), (~proved, "none", "not proved")):
        if here.any():
            marks = {"color": BLUE, "fillstyle": filled, "label": what}
            axes.plot(tau[here], objective[here], "o", **marks)
    label_sizes(axes, tau)
    axes.set_ylabel("training objective")
    axes.legend()


def draw_effects(
    axes: Any, sizes: Sequence[Model], chosen: int | None, every: Array, names: Sequence[str]
) -> None:
    """Draw the effects of the features of every size on axes.

    The line of a feature has gaps at the sizes whose models lack it. Features of the chosen
    model have names first, and then those of the largest effects at any size; all others are grey.

    chosen: Position of the chosen size, which a dotted line marks; None marks none.
    every, shape (sizes, k): The effects of all features, NaN where a model lacks one.
    names: Names of all features.
    """
    tau = values_of(sizes, "tau")
    inside = ~np.isnan(every)
    used = np.flatnonzero(inside.any(axis=0))
    inside, effects = inside[:, used], np.nan_to_num(every[:, used])
    own = np.zeros(used.size) if chosen is None else np.abs(effects[chosen])
    named = np.lexsort((-np.abs(effects).max(axis=0), -own))[:MAX_NAMED]
    others = np.setdiff1d(np.arange(used.size), named)
    shown = np.where(inside, effects, np.nan)
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    if chosen is not None:
        axes.axvline(tau[chosen], color=VERMILION, linestyle=":", label="chosen")
    both = matplotlib().colormaps["tab20"].colors  # Pairs of a dark and a light colour.
    colours = [*both[:14:2], *both[16::2], *both[1::2]]  # Without the dark grey, the eighth pair's.
    for i, c in enumerate(named.tolist()):
        label = without_formulas(cut_name(names[used[c]], LONGEST_LABEL))
        style: dict[str, Any] = {"color": colours[i], "label": label}
        axes.plot(tau, shown[:, c], "o-", markersize=4, linewidth=1.2, zorder=3, **style)
    if others.size:
        style = {"color": GREY, "markersize": 2, "linewidth": 0.6}
        lines = axes.plot(tau, shown[:, others], "o-", **style)
        lines[0].set_label("1 other feature" if len(lines) == 1 else f"{len(lines)} other features")
    label_sizes(axes, tau)
    axes.set_ylabel("effect of one standard deviation")
    say(axes, "The effect of each feature in the model of each size")
    if used.size:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_sizes(
    ax: Any,
    sizes: Sequence[Model],
    marks: SizeMarks,
    every: Array,
    names: Sequence[str],
    why: str = "",
) -> Any:
    """Draw errors by size, and coefficients by size, on axes of the user, and return the axes.

    ax: Axes for the errors; or a pair of axes, for errors and coefficients. With None, pyplot opens
        a figure with two axes, as the session of the user shows figures.
    marks, every, names: As in :func:`draw_errors` and :func:`draw_effects`.
    why: A sentence that says why the star is where it is, where rows were held out.
    Raises InputError: matplotlib is missing, or ``ax`` is neither one nor two axes.
    """
    matplotlib()
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    panels = list(np.ravel(np.array(ax, dtype=object)))
    if not 1 <= len(panels) <= 2 or not all(hasattr(panel, "errorbar") for panel in panels):
        raise InputError(f"ax must be None, axes of matplotlib or a pair of axes; got {ax!r}")
    held_out = not np.isnan(values_of(sizes, "cv_error")).all()
    if held_out:
        draw_errors(panels[0], sizes, marks, peers={})
        say(panels[0], why)
    else:
        draw_objectives(panels[0], sizes)
    for panel in panels[1:]:
        # Of a plain fit the last size is the model, which needs no line.
        draw_effects(panel, sizes, marks.chosen if held_out else None, every, names)
    return ax


@in_style
def plot_errors(
    sizes: Sequence[Model], marks: SizeMarks, peers: dict[str, Array], path: str, title: str
) -> None:
    """Draw the CV error of every size, and write the picture to ``path``.

    marks, peers: As in :func:`draw_errors`.
    Raises InputError: matplotlib is missing, or the file cannot be written in that format.
    """
    figure, ((axes,),) = new_figure(figsize=(7.0, 4.4))
    draw_errors(axes, sizes, marks, peers)
    say(axes, title)
    save(figure, path)


@in_style
def plot_size_path(
    sizes: Sequence[Model], every: Array, names: Sequence[str], path: str, title: str
) -> None:
    """Draw the objective of the best subset of every size, and the effects by size.

    every, names: As in :func:`draw_effects`.
    path: The suffix chooses the format (.png, .pdf, .svg).
    Raises InputError: matplotlib is missing, or the file cannot be written in that format.
    """
    figure, ((left, right),) = new_figure(1, 2, figsize=(9.6, 4.2))
    draw_objectives(left, sizes)
    say(left, title)
    draw_effects(right, sizes, chosen=None, every=every, names=names)
    save(figure, path)
