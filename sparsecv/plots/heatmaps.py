"""Draws Figures 1 and 2 of the stability paper: errors over a grid of two hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .curves import save, without_formulas
from .style import in_style, new_figure


@in_style
def plot(job: Any, path: str, title: str) -> None:
    """Draw heatmaps of the CV error, and of the test error where rows were held out for a test.

    The pair of least error and the chosen pair are marked, as in the stability paper.

    Raises InputError: The search was not over a grid of two hyperparameters, or the file cannot be
        written.
    """
    found = job.search
    names = list(found.param_grid)
    if len(names) != 2 or found.search != "grid":
        raise InputError("--plot needs a grid of two hyperparameters: sparse-ridge, --search grid")
    shape = tuple(len(found.param_grid[name]) for name in names)
    panels = [("cross-validation error", found.cv_results_["cv_error"])]
    if job.surface is not None:
        panels.append(("test error", job.surface))
    figure, axes = new_figure(1, len(panels), figsize=(5.6 * len(panels), 4.4))
    chosen = np.unravel_index(found.best_index_, shape)
    mark = {"color": "red", "markersize": 10, "fillstyle": "none", "linestyle": "none"}
    for panel, (head, values) in zip(axes[0], panels, strict=True):
        surface = np.log10(np.maximum(np.reshape(values, shape), 1e-300))
        image = panel.imshow(surface, origin="lower", aspect="auto", cmap="viridis_r")
        least = np.unravel_index(int(np.argmin(values)), shape)
        panel.plot(least[1], least[0], marker="x", label="least", **mark)
        panel.plot(chosen[1], chosen[0], marker="o", label="chosen", **mark)
        panel.set_title(f"{head} (log10)", fontsize=10)
        for axis, name in ((panel.xaxis, names[1]), (panel.yaxis, names[0])):
            grid = found.param_grid[name]
            ticks = np.unique(np.linspace(0, len(grid) - 1, 6).round().astype(int))
            axis.set_ticks(ticks, [f"{grid[t]:.3g}" for t in ticks])
            axis.set_label_text({"gamma": "γ", "tau": "τ"}.get(name, name))
        figure.colorbar(image, ax=panel)
    axes[0][0].legend(fontsize=8)
    figure.suptitle(without_formulas(title))
    save(figure, path)
