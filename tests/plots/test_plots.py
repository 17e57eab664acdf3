"""Pictures of the CV error."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecv.cv.engine import cross_validate
from sparsecv.cv.results import CVResult
from sparsecv.cv.settings import Settings
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.errors import InputError
from sparsecv.plots import curves as plots

pytest.importorskip("matplotlib")


def result(
    p: int = 6, gammas: tuple[float, ...] = (0.01, 1.0, 100.0), limit: float | None = None
) -> CVResult:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, p)) + rng.standard_normal((40, 1))
    y = X[:, : min(p, 3)].sum(axis=1) + 3.0 * rng.standard_normal(40)
    data = RowFolds(X - X.mean(axis=0), y - y.mean(), make_folds(5, 40), True)
    return cross_validate(data, gammas, np.arange(1, p + 1), Settings(time_limit=limit))


class Drawn:
    """Catches the figure instead of losing it when it is closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plt = plots.pyplot()
        self.figures: list[Any] = []
        monkeypatch.setattr(plt, "close", self.figures.append)
        self.real_close = plt.close

    @property
    def axes(self) -> Any:
        return self.figures[-1].axes[0]


@pytest.mark.parametrize(
    ("suffix", "head"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")]
)
def test_formats(suffix: str, head: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"curve{suffix}"
    plots.plot_cv(result(), str(path), "title")
    assert path.read_bytes().startswith(head)
    assert path.stat().st_size > 3000


def test_one_curve_per_gamma_with_the_choice_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cv = result()
    drawn = Drawn(monkeypatch)
    plots.plot_cv(cv, str(tmp_path / "a.png"), "some title")
    axes, best = drawn.axes, cv.best()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    for gamma in cv.gammas:
        assert f"γ = {gamma:.4g}" in labels
    assert f"chosen: τ = {best.tau}" in labels
    assert f"one standard error: τ = {best.one_se}" in labels
    curves = {line.get_label(): line for line in axes.get_lines()}
    for one in cv.by_gamma:
        line = curves[f"γ = {one.gamma:.4g}"]
        np.testing.assert_array_equal(line.get_xdata(), one.taus)
        np.testing.assert_array_equal(line.get_ydata(), one.cv_error)
    assert axes.get_title(loc="left") == "some title"
    low, high = axes.get_ylim()
    assert low < best.cv_error < high


def test_unproved_errors_are_shaded_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cv = result(p=30, limit=1e-9)
    assert not cv.best().certified
    drawn = Drawn(monkeypatch)
    plots.plot_cv(cv, str(tmp_path / "a.png"), "t")
    labels = [text.get_text() for text in drawn.axes.get_legend().get_texts()]
    assert f"chosen: τ = {cv.best().tau} (an estimate)" in labels
    assert len(drawn.axes.collections) > 0


def test_an_interval_that_says_nothing_is_not_shaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cv = result(p=30, gammas=(1.0,), limit=1e-9)
    (one,) = cv.by_gamma
    one.lower[:], one.upper[:] = 0.0, 2.5e10
    one.lower[4:7], one.upper[4:7] = 0.9 * one.cv_error[4:7], 1.1 * one.cv_error[4:7]
    one.exact[:] = False
    drawn = Drawn(monkeypatch)
    plots.plot_cv(cv, str(tmp_path / "a.png"), "t")
    (slab,) = (c for c in drawn.axes.collections if type(c).__name__ != "LineCollection")
    corners = np.concatenate([path.vertices for path in slab.get_paths()])
    assert set(corners[:, 0]) == {5.0, 6.0, 7.0}
    assert corners[:, 1].max() < 2.0 * one.cv_error.max()


@pytest.mark.parametrize(
    "cv", [(1, (1.0,)), (2, (1e-8, 1e8)), (6, tuple(10.0**k for k in range(12)))]
)
def test_few_and_many_curves(cv: tuple[int, tuple[float, ...]], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.plot_cv(result(*cv), str(tmp_path / "a.png"), "t")


def test_zero_errors(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((8, 2))
    data = RowFolds(X - X.mean(axis=0), np.zeros(8), make_folds(2, 8), True)
    plots.plot_cv(cross_validate(data, [1.0], [1, 2]), str(tmp_path / "a.png"), "t")
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize("title", ["$x$ and $\\frac$", "100$ a$b", "a_b^c", "<name> [bold]"])
def test_titles_are_plain_text(title: str, tmp_path: Path) -> None:
    """File names are titles: a dollar sign in one is not mathematics."""
    plots.plot_cv(result(), str(tmp_path / "a.png"), title)
    assert (tmp_path / "a.png").exists()


def test_refusals(tmp_path: Path) -> None:
    cv = result()
    with pytest.raises(InputError, match=r"--plot .*\.xyz"):
        plots.plot_cv(cv, str(tmp_path / "a.xyz"), "t")
    with pytest.raises(InputError, match="--plot") as caught:
        plots.plot_cv(cv, str(tmp_path / "missing" / "a.png"), "t")
    assert "missing" in str(caught.value)


def test_matplotlib_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        plots.pyplot()
