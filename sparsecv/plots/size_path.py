"""Draws the models of every size at one γ: their training objectives and their coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..design.design import Array
from ..selection.sizes import SizeModels
from .curves import label_sizes, save, without_formulas
from .style import BLUE, GREY, VERMILION, in_style, pyplot

# At most this many columns are named, those of the largest effects in the largest model. The legend
# of twice as many names would be higher than the picture.
MAX_NAMES = 12


@in_style
def plot_size_path(
    sizes: SizeModels,
    steps: dict[str, Any],
    effects: Array,
    names: Sequence[str],
    path: str,
    title: str,
) -> None:
    """Draw the objective of the best subset and of forward steps by size, and the effects by size.

    steps: What :func:`sparsecv.selection.sizes.forward_steps` returns for these sizes.
    effects, shape (sizes, p_raw): Coefficients times the standard deviations of their columns.
    names: Names of all columns.
    path: The suffix chooses the format (.png, .pdf, .svg).
    Raises InputError: matplotlib is missing, or the file cannot be written in that format.
    """
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    left.plot(sizes.tau, steps["best"], "-", color=BLUE, label="best subset")
    proved = steps["proved"]
    for here, filled, what in ((proved, "full", "proved"), (~proved, "none", "not proved")):
        if here.any():
            values = np.asarray(steps["best"])[here]
            left.plot(sizes.tau[here], values, "o", color=BLUE, fillstyle=filled, label=what)
    left.plot(sizes.tau, steps["objective"], ":", color=VERMILION, label="forward steps")
    label_sizes(left)
    left.set_ylabel("training objective")
    left.set_title(without_formulas(title))
    left.legend()
    order = np.argsort(-np.abs(effects[-1]), kind="stable")
    used = [c for c in order.tolist() if effects[:, c].any()]
    colours = pyplot().get_cmap("tab20").colors
    for i, c in enumerate(used):
        named = i < MAX_NAMES
        style: dict[str, Any] = {"color": colours[i % 20] if named else GREY}
        style["label"] = without_formulas(names[c]) if named else None
        style["markevery"] = np.flatnonzero(effects[:, c]).tolist()  # Models with this column.
        right.plot(sizes.tau, effects[:, c], "o-", markersize=4, linewidth=1.2, **style)
    label_sizes(right)
    right.set_ylabel("coefficient × standard deviation of its column")
    right.set_title("in the model of each size")
    if used:
        right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)
