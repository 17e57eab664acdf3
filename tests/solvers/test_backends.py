"""Outside solvers where users meet them: folds, estimators, command line, benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.commands import complaint
from support.tables import write_csv

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.cv.engine import cross_validate
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.solvers import SolverUnavailable, available_backends
from sparsecv.solvers import api as backends
from sparsecv.solvers import backends as outside_backends
from sparsecv.solvers.api import checked_backend
from sparsecv.tables.synthetic import make_synthetic

Array = NDArray[np.float64]
OUTSIDE = [name for name in available_backends() if name != "native"]


def made(n: int = 30, p: int = 6) -> tuple[Array, Array]:
    data = make_synthetic(n, p, 3, 0.5, 0.5, seed=1)
    return data.X, data.y


def folds_of(kind: str, n: int = 30, p: int = 6) -> RowFolds:
    X, y = made(n, p)
    design = make_design(Summary.of(X, y), Protocol(), [f"x{j}" for j in range(p)])
    return RowFolds(*design.apply(X, y), make_folds(kind, n, seed=0), True)


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("method", ["grid", "search", "auto"])
def test_folds_solved_by_each_backend(name: str, method: str) -> None:
    data = folds_of("5")
    taus = np.arange(1, 7)
    exact = cross_validate(data, [0.5], taus, Settings("exact")).by_gamma[0]
    settings = Settings(method, backend=name, tol=0.0)
    result = cross_validate(data, [0.5], taus, settings)
    one = result.by_gamma[0]
    if method == "search":
        assert result.best().tau == int(taus[np.argmin(exact.cv_error)])
        assert one.lower.min() <= exact.cv_error.min() * (1.0 + 1e-9)
        return
    assert one.exact.all()
    np.testing.assert_allclose(one.cv_error, exact.cv_error, rtol=1e-9)
    assert one.n_mio == 30  # the grid, also where the method was left open
    assert one.n_nodes >= 0


@pytest.mark.parametrize("name", [n for n in ("highs", "gurobi", "scip") if n in OUTSIDE])
def test_threads(name: str) -> None:
    data = folds_of("10")
    taus = np.arange(1, 7)
    exact = cross_validate(data, [0.1], taus, Settings("exact")).by_gamma[0]
    settings = Settings("grid", backend=name, n_jobs=2)
    one = cross_validate(data, [0.1], taus, settings).by_gamma[0]
    np.testing.assert_allclose(one.cv_error, exact.cv_error, rtol=1e-9)


def test_estimators() -> None:
    X, y = made()
    plain = SparseRidge(2, gamma=0.3).fit(X, y)
    plain_cv = SparseRidgeCV(cv=4, gammas=[0.1, 1.0], random_state=0).fit(X, y)
    for name in OUTSIDE:
        one = SparseRidge(2, gamma=0.3, backend=name).fit(X, y)
        np.testing.assert_array_equal(one.support_, plain.support_)
        assert one.status_ == "optimal"
        assert one.lower_bound_ <= plain.objective_ * (1.0 + 1e-12)
    found = SparseRidgeCV(cv=4, gammas=[0.1, 1.0], backend="highs", random_state=0).fit(X, y)
    assert (found.tau_, found.gamma_) == (plain_cv.tau_, plain_cv.gamma_)
    assert found.cv_error_ == pytest.approx(plain_cv.cv_error_, rel=1e-9)


def test_a_backend_that_cannot_run_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if outside_backends.lacking("mosek") is None:
        pytest.skip("MOSEK can run here")
    table = write_csv(tmp_path / "t.csv", *made())
    for command in (["cv"], ["fit", "--tau", "2"]):
        complaint(capsys, [*command, str(table), "--backend", "mosek"], ["error: backend mosek: "])
    with pytest.raises(ValueError, match="mosek"):
        checked_backend("mosek")


def test_a_licence_too_small_for_a_fold_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(*_: Any, **__: Any) -> Any:
        raise SolverUnavailable("Gurobi's pip licence is too small for this problem")

    monkeypatch.setitem(backends._BACKENDS, "highs", small)
    table = write_csv(tmp_path / "t.csv", *made())
    for command in (
        ["cv", "--method", "grid"],
        ["cv", "--method", "search"],
        ["fit", "--tau", "2"],
    ):
        more = [*command, str(table), "--backend", "highs", "--quiet"]
        complaint(capsys, more, ["licence is too small"])
