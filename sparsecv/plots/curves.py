"""The picture of the CV error against τ, and what all pictures share (extra ``plot``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..cv.results import CVResult, bounds_to_show
from ..errors import InputError

# Where more curves than this are drawn, only the chosen curve has a label in the legend. A legend
# of twice as many labels would hide the curves.
MAX_LABELS = 12


def pyplot() -> Any:
    """The module matplotlib.pyplot, set up for writing files.

    Raises InputError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise InputError("pictures need matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def check_writable(path: str, *, film: bool = False) -> None:
    """Refuse a picture file that could not be written, before any work is done.

    film: Allows .gif, which only newer versions of matplotlib write as a still picture.
    Raises InputError: matplotlib is missing, or the suffix or folder does not exist.
    """
    plt = pyplot()
    kinds = set(plt.figure().canvas.get_supported_filetypes()) | ({"gif"} if film else set())
    plt.close()
    suffix = Path(path).suffix.lstrip(".").lower()
    if suffix not in kinds:
        known = ", ".join("." + kind for kind in sorted(kinds))
        raise InputError(f"--plot {path}: no such picture format; use one of {known}")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"--plot {path}: the folder does not exist")


def save(figure: Any, path: str) -> None:
    """Write a figure and close it.

    Raises InputError: The file cannot be written in that format.
    """
    with closing(figure, path):
        figure.savefig(path, dpi=150)


@contextmanager
def closing(figure: Any, path: str) -> Iterator[None]:
    """Close a figure once it is written; a file that cannot be written is an InputError."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"--plot {Path(path)}: {error}") from None
    finally:
        pyplot().close(figure)


def plain(text: str) -> str:
    """A title as it is: a dollar sign in a file's name begins no formula."""
    return text.replace("$", r"\$")


def label_sizes(axes: Any) -> None:
    """Label the horizontal axis as the number of features, with whole numbers."""
    axes.set_xlabel("number of features τ")
    axes.xaxis.get_major_locator().set_params(integer=True)


def star(axes: Any, at: tuple[float, float, float], label: str) -> None:
    """Mark the chosen model; ``at`` is its size, its error and the error's standard error."""
    axes.errorbar(
        *at, color="crimson", zorder=5, linestyle="none", marker="*", markersize=15, capsize=4,
        label=label,
    )  # fmt: skip


def plot_cv(
    result: CVResult, path: str, title: str, *, chosen: tuple[int, int] | None = None
) -> None:
    """Draw the CV error against τ, one curve per γ, and write it to ``path``.

    The chosen pair is starred; the least error and the one-standard-error choice are marked. Where
    errors are not proved, the interval between their bounds is shaded, unless it is very wide.

    Parameters
    ----------
    result : CVResult
    path : str
        The suffix chooses the format (.png, .pdf, .svg).
    title : str
    chosen : pair of int, optional
        Positions of the chosen γ and τ; by default the pair of least error is chosen.

    Raises
    ------
    InputError
        matplotlib is missing, or the file cannot be written in that format.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sparsecv.cv.engine import cross_validate
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.plots.curves import plot_cv
    >>> data = RowFolds(np.eye(20)[:, :3], np.arange(20.0), make_folds("loo", 20), False)
    >>> with tempfile.NamedTemporaryFile(suffix=".png") as file:
    ...     plot_cv(cross_validate(data, [1.0], [1, 2, 3]), file.name, "CV error of made data")
    """
    plt = pyplot()
    best = result.best()
    g_star, t_star = chosen or (best.gamma_index, best.tau_index)
    figure, axes = plt.subplots(figsize=(7.0, 4.4), layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.9, len(result.gammas)))
    for g, one in enumerate(result.by_gamma):
        bold = g == g_star
        axes.plot(
            one.taus,
            one.cv_error,
            color=colours[g],
            linewidth=2.2 if bold else 1.0,
            zorder=3 if bold else 2,
            marker="o",
            markersize=3,
            label=f"γ = {one.gamma:.4g}" if bold or len(result.gammas) <= MAX_LABELS else None,
        )
        if not one.exact.all():
            low, high = bounds_to_show(one.lower, one.cv_error, one.upper)
            axes.fill_between(one.taus, low, high, color=colours[g], alpha=0.15)
    one, t = result.by_gamma[g_star], t_star
    label = f"chosen: τ = {one.taus[t]}" + ("" if one.exact[t] else " (an estimate)")
    star(axes, (one.taus[t], one.cv_error[t], one.std_error[t]), label)
    if (g_star, t_star) != (best.gamma_index, best.tau_index):
        _mark(axes, best.tau, best.cv_error, "o", "least error")
    one = result.by_gamma[best.one_se_gamma_index]
    error = float(one.cv_error[one.taus == best.one_se][0])
    _mark(axes, best.one_se, error, "D", "one standard error")
    label_sizes(axes)
    axes.set_ylabel("cross-validation error")
    _focus(axes, result)
    axes.set_title(plain(title))
    axes.legend(fontsize=7, ncols=2)
    save(figure, path)


def _mark(axes: Any, tau: int, error: float, marker: str, what: str) -> None:
    """Mark the error of another model than the chosen one."""
    shape = {"marker": marker, "markersize": 8, "fillstyle": "none", "linestyle": "none"}
    axes.plot(tau, error, label=f"{what}: τ = {tau}", color="crimson", zorder=5, **shape)


def _focus(axes: Any, result: CVResult) -> None:
    """Keep a wild curve or interval from flattening the others."""
    errors = result.table("cv_error")
    best = result.best()
    low, high = float(errors.min()), float(errors.max())
    shown = min(high, low + 6.0 * max(float(np.median(errors)) - low, 0.02 * abs(low)))
    low = min(low, best.cv_error - best.std_error)
    shown = max(shown, best.cv_error + best.std_error)
    pad = 0.06 * (shown - low) or 0.05 * abs(low) or 1.0
    axes.set_ylim(low - pad, shown + pad)
