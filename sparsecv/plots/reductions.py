"""Figures 2 and 3 of the main paper: how many fewer problems and nodes than the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .curves import pyplot, save


def plot(rows: Sequence[Any], path: str) -> None:
    """Draw the distributions of the reductions over γ (Figures 2 and 3, main paper).

    Parameters
    ----------
    rows : sequence of Row
        As :func:`sparsecv.cli.comparison.run` yields them.
    path : str

    Raises
    ------
    InputError
        matplotlib is missing or the file cannot be written.
    """
    plt = pyplot()
    kinds = list(dict.fromkeys(row.folds for row in rows))
    ways = [w for w in ("paper", "paper-exact", "best") if any(row.way == w for row in rows)]
    names = list(dict.fromkeys(row.dataset for row in rows))
    figure, axes = plt.subplots(
        len(kinds), 2, figsize=(10.0, 3.4 * len(kinds)), squeeze=False, layout="constrained"
    )
    for line, kind in zip(axes, kinds, strict=True):
        for panel, field, head in zip(
            line, ("reduction", "node_reduction"), ("problems", "nodes"), strict=True
        ):
            _boxes(panel, [row for row in rows if row.folds == kind], names, ways, field)
            panel.set_title(f"{kind}: fewer {head} than the grid", fontsize=10)
    axes[0][0].legend(fontsize=8)
    save(figure, path)


def _boxes(panel: Any, rows: Sequence[Any], names: list[str], ways: list[str], field: str) -> None:
    for w, way in enumerate(ways):
        values = [
            [
                100.0 * getattr(row, field)
                for row in rows
                if row.dataset == name and row.way == way and np.isfinite(getattr(row, field))
            ]
            for name in names
        ]
        at = np.arange(len(names)) + 0.25 * (w - (len(ways) - 1) / 2.0)
        boxes = panel.boxplot(values, positions=at, widths=0.2, patch_artist=True)
        for box in boxes["boxes"]:
            box.set_facecolor(f"C{w}")
        panel.plot([], [], "s", color=f"C{w}", label=way)
    panel.set_xticks(range(len(names)), names)
    panel.set_ylabel("reduction in %")
