"""Draws Figures 2 and 3 of the first paper: the reduction of problems and nodes by Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .curves import save
from .style import in_style, new_figure


@in_style
def plot(rows: Sequence[Any], path: str) -> None:
    """Draw the distributions over γ of the reductions against the grid.

    rows: The rows that :func:`sparsecv.cli.benchmark.run` yields.
    Raises InputError: matplotlib is missing or the file cannot be written.
    """
    kinds = list(dict.fromkeys(row.folds for row in rows))
    ways = [w for w in ("paper", "paper-exact", "best") if any(row.way == w for row in rows)]
    figure, axes = new_figure(len(kinds), 2, figsize=(10.0, 3.4 * len(kinds)))
    fields = (("reduction", "problems"), ("node_reduction", "nodes"))
    for line, kind in zip(axes, kinds, strict=True):
        here = [row for row in rows if row.folds == kind]
        for panel, (field, what) in zip(line, fields, strict=True):
            _boxes(panel, here, ways, field)
            panel.set_title(f"{kind}: fewer {what} than the grid", fontsize=10)
    axes[0][0].legend(fontsize=8)
    save(figure, path)


def _boxes(panel: Any, rows: Sequence[Any], ways: list[str], field: str) -> None:
    """Draw a box for every data set and every way to bound errors (paper, paper-exact, best).

    field: A share of work saved, one in each row, which is drawn in percent unless it is not known.
    """
    names = list(dict.fromkeys(row.dataset for row in rows))
    for w, way in enumerate(ways):
        values: dict[str, list[float]] = {name: [] for name in names}
        for row in rows:
            if row.way == way and np.isfinite(getattr(row, field)):
                values[row.dataset].append(100.0 * getattr(row, field))
        at = np.arange(len(names)) + 0.25 * (w - (len(ways) - 1) / 2.0)
        boxes = panel.boxplot(list(values.values()), positions=at, widths=0.2, patch_artist=True)
        for box in boxes["boxes"]:
            box.set_facecolor(f"C{w}")
        panel.plot([], [], "s", color=f"C{w}", label=way)
    panel.set_xticks(range(len(names)), names)
    panel.set_ylabel("reduction in %")
