"""Draws what the columns of a model hang on: their lead by row, and how often each is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design.features import cut_name
from .curves import without_formulas
from .size_path import LONGEST_LABEL, MAX_NAMED
from .style import BLUE, GREY, VERMILION


def draw_influence(axes: Any, found: Any) -> None:
    """Draw on axes the lead of a model's columns over others without each row.

    found: What ``row_influence`` of an estimator returns.
    """
    lead, stays = 100.0 * found["lead"].to_numpy(), found["stays"].to_numpy()
    place = np.arange(lead.size)
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    for here, colour, what in ((stays, BLUE, "same columns"), (~stays, VERMILION, "other columns")):
        axes.plot(place[here], lead[here], "o", color=colour, markersize=3, label=what)
    for i in np.argsort(np.where(stays, np.inf, lead))[: min(MAX_NAMED, (~stays).sum())]:
        how = {"fontsize": 7, "textcoords": "offset points", "xytext": (4, 2)}
        axes.annotate(str(found.index[i]), (place[i], lead[i]), **how)
    axes.set_xlabel(f"{found.index.name} left out")
    axes.set_ylabel("lead, % of the objective, at least")
    axes.legend()


def draw_inclusion(axes: Any, found: Any) -> None:
    """Draw on axes how often the rule of a fit, and the criterion of stability, choose a column.

    found: What ``partitions`` of an estimator returns: a row for every column of the table. The
        second column, named for the rule, and "stability" hold the shares of partitions, 0 to 1.
    """
    own, place = str(found.columns[1]), np.arange(len(found))
    axes.barh(place, found[own], color=BLUE, label=own)
    if "stability" in found and own != "stability":
        axes.plot(found["stability"], place, "D", color=VERMILION, markersize=4, label="stability")
    names = [without_formulas(cut_name(str(name), LONGEST_LABEL)) for name in found.index]
    axes.set_yticks(place, names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("share of other partitions that choose it")
    # The bars may fill all of the axes.
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
