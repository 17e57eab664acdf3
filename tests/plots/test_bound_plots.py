"""Pictures and films of the bounds, and the benchmark command."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest

from sparsecv.cli.main import main
from sparsecv.cv.engine import cross_validate
from sparsecv.cv.results import GammaResult
from sparsecv.cv.settings import Settings
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.errors import InputError
from sparsecv.plots import search_bounds as bound_plots
from sparsecv.tables.synthetic import make_synthetic


@pytest.fixture(scope="module")
def searched() -> GammaResult:
    made = make_synthetic(40, 8, 4, 0.7, 1.0, seed=1)
    data = RowFolds(made.X, made.y, make_folds("loo", 40), False)
    settings = Settings("search", bounds="paper", tol=0.0)
    return cross_validate(data, [0.1], np.arange(1, 9), settings).by_gamma[0]


def test_a_frame_for_every_problem(searched: GammaResult) -> None:
    every = list(bound_plots.frames(searched))
    assert [frame.solved for frame in every] == list(range(searched.n_mio + 1))
    for before, after in itertools.pairwise(every):
        assert (after.lower >= before.lower - 1e-12).all()
        assert (after.upper <= before.upper + 1e-12).all()
    np.testing.assert_allclose(every[-1].lower, searched.lower)
    np.testing.assert_allclose(every[-1].upper, searched.upper)


def test_film_has_the_frames_asked_for(searched: GammaResult, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "bounds.gif"
    written = bound_plots.animate_bounds(searched, str(path), "t", 5)
    assert written == 5
    with image.open(path) as film:
        assert film.n_frames == 5


def test_without_a_history_there_is_nothing_to_draw(tmp_path: Path) -> None:
    made = make_synthetic(20, 4, 2, 0.5, 1.0, seed=1)
    data = RowFolds(made.X, made.y, make_folds("loo", 20), False)
    one = cross_validate(data, [0.1], [1, 2]).by_gamma[0]
    with pytest.raises(InputError, match="needs the history"):
        bound_plots.plot_bounds(one, str(tmp_path / "b.png"), "t")


def test_command_draws_bounds_and_films(tmp_path: Path) -> None:
    arguments = ["cv", "diabetes", "--gamma", "1", "--tau", "8:10", "--method", "search", "--quiet"]
    for name in ("b.png", "b.gif"):
        assert main([*arguments, "--plot", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 5_000


@pytest.mark.slow
def test_benchmark_compares_the_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "b.csv", tmp_path / "b.png"
    arguments = ["benchmark", "--datasets", "diabetes", "--folds", "size:40,5", "--gamma", "1"]
    assert main([*arguments, "--csv", str(table), "--plot", str(picture)]) == 0
    assert "fewer" in capsys.readouterr().out
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["way"] for row in rows] == 2 * ["grid", "paper", "paper-exact", "best", "exact"]
    assert {row["n"] for row in rows} == {"442"}
    for folds, k in (("size:40", 11), ("5", 5)):
        here = {row["way"]: row for row in rows if row["folds"] == folds}
        assert int(here["grid"]["mio"]) == 9 * k
        exact = float(here["exact"]["cv_error"])
        for row in here.values():
            assert float(row["lower"]) <= exact * (1 + 1e-9)
            assert int(row["mio"]) <= 9 * k + 9
            assert row["status"] == "optimal"
    assert picture.stat().st_size > 5_000
