"""Wide tables whose columns are made when they are read give the fits of a whole copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csc_array

from sparsecv import SparseRidgeCV
from sparsecv.design import fold_data
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import Folds, make_folds
from sparsecv.solvers import support_path
from sparsecv.tables.rows_in_memory import RowSubset

pytestmark = pytest.mark.filterwarnings("ignore")
Array = NDArray[np.float64]
N, P = 40, 400


def table(seed: int = 0, offset: float = 1e8) -> tuple[Array, Array]:
    """A wide table with an offset, a constant column, and columns of all scales."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) * 10.0 ** rng.integers(-6, 7, P)
    X[:, 3:20] += offset * (X[:, 3:20].std(axis=0) if offset < 1e8 else 1.0)
    X[:, 25] = 0.1
    y = (X / X.std(axis=0))[:, [0, 5, 30, 60]] @ [3.0, -3.0, 2.0, 2.0] + rng.standard_normal(N)
    return X, y


def read_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_data, "MAX_BYTES_OF_A_COPY", 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kind", ["array", "float32", "some rows", "sparse"])
def test_columns_are_those_of_a_copy(
    monkeypatch: pytest.MonkeyPatch, kind: str, centred: bool, weighted: bool
) -> None:
    """Products and fits equal those of the array that numpy makes, and that of copied rows."""
    X, y = table()
    if not centred:
        X = X - X.mean(axis=0)
    given: Any = X.astype(np.float32) if kind == "float32" else X
    if kind == "some rows":
        given = RowSubset(np.vstack([X, X + 1.0]), np.arange(N))
    if kind == "sparse":
        X[:, 60:] *= np.random.default_rng(4).random((N, P - 60)) < 0.3
        given = RowSubset(csc_array(np.vstack([X + 1.0, X])), np.arange(N, 2 * N))
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float) if weighted else None
    scale = np.where(X.std(axis=0) > 1e-12, X.std(axis=0), 1.0)
    make = make_folds(4, N, seed=0)
    whole = RowFolds(np.asarray(given[:], dtype=np.float64), y, make, centred, weights, scale)
    copies = [(whole.problem(j), whole.held_out(min(j, 3))) for j in range(5)]
    read_by_columns(monkeypatch)
    by_columns = RowFolds(given, y, make, centred, weights, scale)
    v, beta = np.random.default_rng(2).standard_normal((2, P))
    beta[7:] = 0.0
    for j, (copy, (rows, targets)) in enumerate(copies):
        problem, (H, t) = by_columns.problem(j), by_columns.held_out(min(j, 3))
        assert not isinstance(problem.data.X, np.ndarray)
        made, known = np.asarray(problem.data.X), np.asarray(copy.data.X)
        close = {"rtol": 1e-12, "atol": 1e-13 * np.abs(known).max()}
        np.testing.assert_allclose(made, known, **close)
        np.testing.assert_allclose(problem.data.y, copy.data.y, rtol=1e-12)
        np.testing.assert_allclose(problem.squared_lengths, copy.squared_lengths, rtol=1e-10)
        m = made.shape[0]
        np.testing.assert_allclose(v[:m] @ problem.data.X, v[:m] @ made, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(problem.data.X @ beta, made @ beta, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(problem.data.X[:, [7, 2, 300]], made[:, [7, 2, 300]])
        np.testing.assert_allclose(H[:, :], rows, **close)
        np.testing.assert_allclose(t, targets, rtol=1e-12)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"fit_intercept": False, "rule": "projected"},
        {"cv": 3, "rule": "minimum", "gammas": [0.1, 10.0], "weighted": True},
        {"rule": "stability", "gammas": [1.0]},
    ],
)
def test_a_mapped_file_gives_the_fit_of_an_array(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: dict[str, Any]
) -> None:
    X, y = table(seed=3, offset=100.0)  # In 32 bits a larger one would make columns equal.
    if not how.get("fit_intercept", True):
        X -= X.mean(axis=0)
    X, options = X.astype(np.float32), {name: how[name] for name in how if name != "weighted"}
    weights = np.random.default_rng(1).random(N) if "weighted" in how else None
    model = SparseRidgeCV(taus=range(1, 7), time_limit=0, **options)
    copied = model.fit(X.astype(np.float64), y, sample_weight=weights)
    known = copied.support_, copied.coef_, copied.intercept_, dict(copied.cv_results_)
    read_by_columns(monkeypatch)
    np.save(tmp_path / "X.npy", X)
    model.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y, sample_weight=weights)
    np.testing.assert_array_equal(model.support_, known[0])
    np.testing.assert_allclose(model.coef_, known[1], rtol=1e-10)
    np.testing.assert_allclose(model.intercept_, known[2], rtol=1e-6)
    for name in ("cv_error", "lower", "upper"):
        np.testing.assert_allclose(model.cv_results_[name], known[3][name], rtol=1e-7)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_fold_does_not_see_the_rows_that_it_holds_out(
    monkeypatch: pytest.MonkeyPatch, sparse: bool
) -> None:
    read_by_columns(monkeypatch)
    X, y = table()
    folds, scale = make_folds(4, N, seed=0), X.std(axis=0)
    scale[25] = 1.0
    other = X.copy(), y.copy()
    held_out = folds.split(0)[1]
    other[0][held_out], other[1][held_out] = 7.0 - 30.0 * X[held_out], 1e3
    found = []
    for given, response in ((X, y), other):
        rows = RowSubset(csc_array(given), np.arange(N)) if sparse else given
        data = RowFolds(rows, response, folds, True, None, scale)
        one = data.one_fold(folds.split(0)[0], held_out)
        for problem in (data.training(0), one.training(0)):
            path = support_path(problem, [0.1, 5.0], [1, 4, 9], solver="heuristic")
            found.append((path.supports, path.coef, path.objective))
    for some in zip(*found, strict=True):
        for one in some[1:]:
            np.testing.assert_array_equal(some[0], one)


def test_what_needs_the_whole_array_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is read by columns can be proved, and its array goes with ``release``."""
    read_by_columns(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 60))
    y = 3.0 * X[:, 1] - 2.0 * X[:, 40] + 0.1 * rng.standard_normal(30)
    model = SparseRidgeCV(taus=[1, 2], gammas=[1.0], rule="minimum", time_limit=None).fit(X, y)
    assert model.support_.tolist() == [1, 40]
    assert model.certified_
    problem = RowFolds(X, y, Folds.whole(30), True).full()
    assert problem.rows.shape == (30, 61)
    problem.data.release()
    np.testing.assert_allclose(problem.rows[:, :-1], X - X.mean(axis=0), rtol=1e-10, atol=1e-12)
