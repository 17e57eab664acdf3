"""The picture of ``sparsecv fit --plot``: objectives and coefficients of every size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecv import SparseRidge
from sparsecv.cli.main import main
from sparsecv.plots import curves
from sparsecv.tables.datasets import load_dataset

pytest.importorskip("matplotlib")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are drawn."""
    found: list[Any] = []
    save = curves.save

    def kept(figure: Any, path: str) -> None:
        found.append([list(axes.lines) for axes in figure.axes])
        save(figure, path)

    monkeypatch.setattr("sparsecv.plots.size_path.save", kept)
    return found


def lines(axes: list[Any]) -> dict[str, Any]:
    return {line.get_label(): line for line in axes}


def test_the_picture_shows_every_size(figures: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "path.png"
    command = ["fit", "diabetes", "--tau", "5", "--gamma", "2", "--quiet"]
    assert main([*command, "--plot", str(path)]) == 0
    assert path.stat().st_size > 5000
    source = load_dataset("diabetes")
    X, y = source.load()
    model = SparseRidge(tau=5, gamma=2.0).fit(X, y)
    left, right = map(lines, figures[0])
    best = [model.at_size(size).objective_ for size in range(1, 6)]
    np.testing.assert_allclose(left["best subset"].get_ydata(), best)
    np.testing.assert_allclose(left["proved"].get_ydata(), best)
    forward = model.forward_steps_["objective"]
    np.testing.assert_allclose(left["forward steps"].get_ydata(), forward)
    used = {source.feature_names[c]: c for columns in model.path_["columns"] for c in columns}
    assert set(used) == set(right)
    for name, c in used.items():
        effects = np.array(model.path_["coef"])[:, c] * X[:, c].std()
        np.testing.assert_allclose(right[name].get_ydata(), effects, atol=1e-9)


def test_sizes_that_are_not_proved_have_open_marks(figures: list[Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 50)) + rng.standard_normal((60, 1))
    y = X[:, :9].sum(axis=1) + 9.0 * rng.standard_normal(60)
    np.save(tmp_path / "t.npy", np.column_stack([X, y]))
    options = ["--tau", "8", "--time-limit", "0", "--plot", str(tmp_path / "p.svg"), "--quiet"]
    assert main(["fit", str(tmp_path / "t.npy"), *options]) == 1
    open_marks = lines(figures[0][0])["not proved"]
    assert open_marks.get_fillstyle() == "none"
    assert len(open_marks.get_ydata()) > 1


def test_one_size_under_constraints(figures: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "p.pdf"
    command = ["fit", "diabetes", "--tau", "2", "--include", "sex,age", "--plot", str(path)]
    assert main([*command, "--quiet"]) == 0
    assert path.read_bytes().startswith(b"%PDF")
    left, right = map(lines, figures[0])
    assert left["best subset"].get_xdata().tolist() == [2]
    assert set(right) == {"sex", "age"}
