"""Pictures of Algorithm 1 at work: bounds on h against τ, before, after and in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cv.results import GammaResult
from ..errors import InputError
from .curves import pyplot, save

Array = NDArray[np.float64]
DELAY = 120  # milliseconds a frame is shown
MOST_FRAMES = 300  # of the command line's films


@dataclass(frozen=True)
class Frame:
    """Bounds at every τ after ``solved`` mixed-integer problems."""

    solved: int
    lower: Array
    upper: Array


def frames(result: GammaResult) -> Iterator[Frame]:
    """The bounds of phase 1, then one frame for every step of phase 2.

    Raises InputError: The result has no history: it is not of ``method="search"`` or ``"bounds"``.
    """
    if not result.history:
        raise InputError(
            "a picture of the bounds needs the history of --method search or --method bounds"
        )
    size = result.taus.size
    lower, upper = np.zeros(size), np.full(size, np.inf)
    for i, (solved, t, least, most) in enumerate(result.history):
        lower[int(t)], upper[int(t)] = least, most
        if i >= size - 1:
            yield Frame(int(solved), lower.copy(), upper.copy())


def plot_bounds(result: GammaResult, path: str, title: str) -> None:
    """Draw the bounds against τ after phase 1 and at the end (the main paper's Figure 1).

    Parameters
    ----------
    result : GammaResult
        Of a search of the best τ.
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
    >>> from sparsecv.plots.intervals import plot_bounds
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> made = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(made.X, made.y, make_folds("loo", 20), False)
    >>> found = cross_validate(data, [0.1], [1, 2, 3], Settings("search", bounds="paper"))
    >>> with tempfile.NamedTemporaryFile(suffix=".png") as file:
    ...     plot_bounds(found.by_gamma[0], file.name, "bounds of made data")
    """
    every = list(frames(result))
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), sharey=True, layout="constrained")
    top = _top(every)
    for panel, frame in zip(axes, (every[0], every[-1]), strict=True):
        _Panel(panel, result.taus, top).show(frame)
    axes[0].set_ylabel("bounds on the CV error")
    axes[0].legend(fontsize=8)
    figure.suptitle(_plain(f"{title}, γ = {result.gamma:.4g}"))
    save(figure, path)


def animate_bounds(
    result: GammaResult, path: str, title: str, most_frames: int | None = None
) -> int:
    """Write a GIF of the bounds closing, one frame for every problem solved.

    Parameters
    ----------
    result : GammaResult
    path : str
        Ends in .gif.
    title : str
    most_frames : int, optional
        Show about so many of them, evenly spread, the first and the last among them.

    Returns
    -------
    int
        Frames written.

    Raises
    ------
    InputError
        No history, matplotlib is missing, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from sparsecv.cv.engine import cross_validate
    >>> from sparsecv.cv.settings import Settings
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.plots.intervals import animate_bounds
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> made = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(made.X, made.y, make_folds("loo", 20), False)
    >>> found = cross_validate(data, [0.1], [1, 2, 3], Settings("search", bounds="paper"))
    >>> with tempfile.NamedTemporaryFile(suffix=".gif") as file:
    ...     frames = animate_bounds(found.by_gamma[0], file.name, "bounds of made data", 2)
    >>> frames <= 2
    True
    """
    every = list(frames(result))
    if most_frames is not None and len(every) > most_frames:
        kept = np.unique(np.linspace(0, len(every) - 1, most_frames).round().astype(int))
        every = [every[i] for i in kept]
    plt = pyplot()
    from matplotlib.animation import FuncAnimation, PillowWriter

    figure, axes = plt.subplots(figsize=(6.0, 3.8), layout="constrained")
    axes.set_ylabel("bounds on the CV error")
    figure.suptitle(_plain(f"{title}, γ = {result.gamma:.4g}"))
    panel = _Panel(axes, result.taus, _top(every))
    panel.show(every[0])
    axes.legend(fontsize=8)
    film = FuncAnimation(figure, lambda i: panel.show(every[i]), frames=len(every))
    try:
        film.save(path, writer=PillowWriter(fps=1000 // DELAY), dpi=90)
    except (OSError, ValueError) as error:
        raise InputError(f"--plot {Path(path)}: {error}") from None
    finally:
        plt.close(figure)
    return len(every)


class _Panel:
    """Bounds of one moment; the artists are kept and moved."""

    def __init__(self, axes: Any, taus: NDArray[np.intp], top: float) -> None:
        self.axes, self.taus, self.top = axes, taus, top
        (self.upper,) = axes.plot(taus, taus, "v-", markersize=4, color="crimson", label="upper")
        (self.lower,) = axes.plot(taus, taus, "^-", markersize=4, color="steelblue", label="lower")
        self.between: Any = None
        axes.set_xlabel("number of features τ")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylim(0.0, top)

    def show(self, frame: Frame) -> list[Any]:
        """Move everything to one frame."""
        high = np.minimum(frame.upper, 2.0 * self.top)
        self.upper.set_ydata(high)
        self.lower.set_ydata(frame.lower)
        if self.between is not None:
            self.between.remove()
        self.between = self.axes.fill_between(
            *(self.taus, frame.lower, high),
            where=frame.upper <= 2.0 * self.top,  # no slab where the upper bound says nothing
            color="grey",
            alpha=0.2,
            linewidth=0,
        )
        word = "problem" if frame.solved == 1 else "problems"
        self.axes.set_title(f"{frame.solved:,} {word} solved", fontsize=10)
        return [self.upper, self.lower, self.between]


def _top(every: list[Frame]) -> float:
    """Where the axis ends: all of the last bounds, and the first ones as far as they fit."""
    last = every[-1].upper[np.isfinite(every[-1].upper)]
    first = every[0].upper[np.isfinite(every[0].upper)]
    least = float(last.min()) if last.size else 1.0
    middle = float(np.median(first)) if first.size else least
    return 1.1 * max(min(float(last.max(initial=least)), 8.0 * least), min(middle, 8.0 * least))


def _plain(text: str) -> str:
    return text.replace("$", r"\$")  # a name is not a formula
