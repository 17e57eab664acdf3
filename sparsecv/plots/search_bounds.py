"""Draws how Algorithm 1 tightens its bounds on the CV error h(γ, τ), as a picture or a film."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.results import GammaResult
from ..errors import InputError
from .curves import label_sizes, picture_faults, save, without_formulas
from .style import BLUE, VERMILION, in_style, new_figure

Array = NDArray[np.float64]


# A film has at most this many frames, which are evenly spread over the search. The number is a
# choice.
MAX_FRAMES = 300


class Frame(NamedTuple):
    """Lower and upper bounds on h at every τ, once ``solved`` mixed-integer problems are solved."""

    solved: int
    lower: Array
    upper: Array


def frames(result: GammaResult) -> list[Frame]:
    """The bounds after phase 1 of Algorithm 1, then the bounds after every step of phase 2.

    Each entry of ``result.history`` is [mixed-integer problems solved, index of τ, lower bound,
    upper bound] and replaces the bounds of this τ. Phase 1 has written the first entries, one for
    every τ, so that the first frame is complete after as many entries as there are τ.

    Raises InputError: The result has no history: it is not of ``method="search"`` or ``"bounds"``.
    """
    if not result.history:
        raise InputError(
            "a picture of the bounds needs the history of --method search or --method bounds"
        )
    size, found = result.taus.size, []
    lower, upper = np.zeros(size), np.full(size, np.inf)
    for i, (solved, t, least, most) in enumerate(result.history):
        lower[int(t)], upper[int(t)] = least, most
        if i >= size - 1:
            found.append(Frame(int(solved), lower.copy(), upper.copy()))
    return found


@in_style
def plot_bounds(result: GammaResult, path: str, title: str) -> None:
    """Draw the bounds against τ after phase 1 and at the end (the first paper's Figure 1).

    Parameters
    ----------
    result : GammaResult
        Result of a search of the best τ (``method="search"`` or ``"bounds"``).
    path : str
        The suffix chooses the format.
    title : str

    Raises
    ------
    InputError
        matplotlib is missing, the result has no history, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from sparsecv.cv.engine import cross_validate
    >>> from sparsecv.cv.settings import Settings
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.plots.search_bounds import plot_bounds
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> made = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(made.X, made.y, make_folds("loo", 20), False)
    >>> found = cross_validate(data, [0.1], [1, 2, 3], Settings("search", bounds="paper"))
    >>> with tempfile.NamedTemporaryFile(suffix=".png") as file:
    ...     plot_bounds(found.by_gamma[0], file.name, "bounds of made data")
    """
    every = frames(result)
    figure, (axes,) = new_figure(1, 2, figsize=(9.6, 4.0))
    figure.suptitle(without_formulas(f"{title}, γ = {result.gamma:.4g}"))
    for panel, frame in zip(axes, (every[0], every[-1]), strict=True):
        _draw(panel, result.taus, frame, _top(every))
    save(figure, path)


@in_style
def animate_bounds(
    result: GammaResult, path: str, title: str, most_frames: int | None = None
) -> int:
    """Write a GIF of the bounds that Algorithm 1 has after every problem it solves.

    Parameters
    ----------
    result : GammaResult
    path : str
        Ends in .gif.
    title : str
    most_frames : int, optional
        A film of more frames shows this many of them, evenly spread from the first to the last.

    Returns
    -------
    int
        Number of frames written.

    Raises
    ------
    InputError
        The result has no history, matplotlib is missing, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from sparsecv.cv.engine import cross_validate
    >>> from sparsecv.cv.settings import Settings
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.plots.search_bounds import animate_bounds
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> made = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(made.X, made.y, make_folds("loo", 20), False)
    >>> found = cross_validate(data, [0.1], [1, 2, 3], Settings("search", bounds="paper"))
    >>> with tempfile.NamedTemporaryFile(suffix=".gif") as file:
    ...     frames = animate_bounds(found.by_gamma[0], file.name, "bounds of made data", 2)
    >>> frames <= 2
    True
    """
    every = frames(result)
    if most_frames is not None and len(every) > most_frames:
        kept = np.unique(np.linspace(0, len(every) - 1, most_frames).round().astype(int))
        every = [every[i] for i in kept]
    figure, ((axes,),) = new_figure(figsize=(6.0, 3.8))
    figure.suptitle(without_formulas(f"{title}, γ = {result.gamma:.4g}"))
    from matplotlib.animation import FuncAnimation, PillowWriter

    def draw(i: int) -> list[Any]:
        axes.clear()
        _draw(axes, result.taus, every[i], _top(every))
        return [axes]

    draw(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")  # All frames have the layout of the first.
    film = FuncAnimation(figure, draw, frames=len(every))
    with picture_faults(path):
        # A frame is shown for an eighth of a second, which is a choice.
        film.save(path, writer=PillowWriter(fps=8), dpi=90)
    return len(every)


def _draw(axes: Any, taus: NDArray[np.intp], frame: Frame, top: float) -> None:
    """Draw the bounds of a frame on empty axes whose vertical axis ends at ``top``."""
    high = np.minimum(frame.upper, 2.0 * top)
    axes.plot(taus, high, "v-", markersize=4, color=VERMILION, label="upper")
    axes.plot(taus, frame.lower, "^-", markersize=4, color=BLUE, label="lower")
    near = frame.upper <= 2.0 * top  # Larger bounds lie far above the axis.
    grey = {"color": "grey", "alpha": 0.2, "linewidth": 0}
    axes.fill_between(taus, frame.lower, high, where=near, **grey)
    axes.set(ylim=(0.0, top), ylabel="bounds on the CV error")
    axes.set_title(f"problems solved: {frame.solved:,}", fontsize=10)
    axes.legend(fontsize=8)
    label_sizes(axes)


def _top(every: list[Frame]) -> float:
    """The upper end of the vertical axis: 1.1 times the largest bound that the axis must contain.

    These are the last frame's upper bounds and the median of the first frame's upper bounds, each
    cut to 8 times the least upper bound of the last frame.
    """
    last = every[-1].upper[np.isfinite(every[-1].upper)]
    first = every[0].upper[np.isfinite(every[0].upper)]
    least = float(last.min()) if last.size else 1.0
    middle = float(np.median(first)) if first.size else least
    return 1.1 * max(min(float(last.max(initial=least)), 8.0 * least), min(middle, 8.0 * least))
