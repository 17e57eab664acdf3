"""This script draws Figure 1 of the first paper: bounds on the leave-one-out error by Algorithm 1.

    python -m experiments.paper.figure_one

The data have n = 200, p = 20, τ_true = 10, ρ = 0.7 and ν = 1; γ is 1/√n and τ is 2..19. The paper
solved 1,694 of 3,600 problems (53 % fewer). The paper's draw of the data is not known, so the
script draws five data sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.common import RESULTS, fold_rows, machine, run
from sparsecv.cv.results import GammaResult
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol
from sparsecv.plots.curves import label_sizes, save
from sparsecv.plots.style import BLUE, VERMILION, in_style, new_figure

Array = NDArray[np.float64]


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
    """
    size, every = result.taus.size, []
    lower, upper = np.zeros(size), np.full(size, np.inf)
    for i, (solved, t, least, most) in enumerate(result.history):
        lower[int(t)], upper[int(t)] = least, most
        if i >= size - 1:
            every.append(Frame(int(solved), lower.copy(), upper.copy()))
    return every


@in_style
def plot_bounds(result: GammaResult, path: str, title: str) -> None:
    """Draw the bounds against τ after phase 1 and at the end."""
    every = frames(result)
    figure, (axes,) = new_figure(1, 2, figsize=(9.6, 4.0))
    figure.suptitle(f"{title}, γ = {result.gamma:.4g}")
    for panel, frame in zip(axes, (every[0], every[-1]), strict=True):
        draw(panel, result.taus, frame, top(every))
    save(figure, path)


@in_style
def animate_bounds(result: GammaResult, path: str, title: str) -> None:
    """Write a GIF of the bounds that Algorithm 1 has after every problem it solves."""
    every = frames(result)
    figure, ((axes,),) = new_figure(figsize=(6.0, 3.8))
    figure.suptitle(f"{title}, γ = {result.gamma:.4g}")
    from matplotlib.animation import FuncAnimation, PillowWriter

    def draw_frame(i: int) -> list[Any]:
        axes.clear()
        draw(axes, result.taus, every[i], top(every))
        return [axes]

    draw_frame(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")  # All frames have the layout of the first.
    film = FuncAnimation(figure, draw_frame, frames=len(every))
    # A frame is shown for an eighth of a second, which is a choice.
    film.save(path, writer=PillowWriter(fps=8), dpi=90)


def draw(axes: Any, taus: NDArray[np.intp], frame: Frame, top: float) -> None:
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
    label_sizes(axes, taus)


def top(every: list[Frame]) -> float:
    """The upper end of the vertical axis: 1.1 times the largest bound that the axis must contain.

    These are the last frame's upper bounds and the median of the first frame's upper bounds, each
    cut to 8 times the least upper bound of the last frame.
    """
    last = every[-1].upper[np.isfinite(every[-1].upper)]
    first = every[0].upper[np.isfinite(every[0].upper)]
    least = float(last.min()) if last.size else 1.0
    middle = float(np.median(first)) if first.size else least
    return 1.1 * max(min(float(last.max(initial=least)), 8.0 * least), min(middle, 8.0 * least))


def main() -> None:
    print(machine())
    gamma, taus = 1.0 / np.sqrt(200.0), np.arange(2, 20)
    for scale in ("unit-variance", "unit-norm"):
        for seed in range(5):
            data = fold_rows(f"synthetic:200,20,10,0.7,1,{seed}", "loo", Protocol("paper", scale))
            exact = run(data, [gamma], None, taus).by_gamma[0]
            line = f"{scale:<13} draw {seed}:"
            for bounds in ("paper", "paper-exact", "best"):
                result = run(data, [gamma], Settings("search", bounds=bounds), taus)
                one, best = result.by_gamma[0], result.best()
                good = exact.cv_error[best.tau_index] <= exact.cv_error.min() / 0.99
                line += (
                    f"  {bounds} {one.n_mio:>5,} ({100 * (1 - one.n_mio / 3600):.1f} % fewer"
                    f"{'' if good else ', WRONG τ'})"
                )
                if seed == 0 and scale == "unit-norm":
                    title = f"n = 200, p = 20, {bounds}"
                    plot_bounds(one, str(RESULTS / f"figure_one_{bounds}.png"), title)
                    if bounds == "best":
                        animate_bounds(one, str(RESULTS / "figure_one.gif"), title)
            print(line, flush=True)


if __name__ == "__main__":
    main()
