"""Sparse matrices and arrays of scipy: the answers are those of the dense table."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sparsecv import SparseRidge, SparseRidgeCV, StabilityCV
from sparsecv.errors import InputError, UnprovedWarning

FORMATS = (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array, sp.lil_matrix)
pd = pytest.importorskip("pandas")


def table(n: int = 60, p: int = 8) -> tuple[Any, Any]:
    """A table of which about two thirds are zeros, and a response of three of its columns."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.35)
    return X, X[:, :3] @ [3.0, -2.0, 1.0] + 0.3 * rng.standard_normal(n) + 4.0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_fit_is_that_of_the_dense_table(form: Any, standardize: bool, intercept: bool) -> None:
    X, y = table()
    weights = np.random.default_rng(5).integers(0, 4, y.size)
    options = {"standardize": standardize, "fit_intercept": intercept}
    for model in (
        SparseRidge(tau=3, **options),
        SparseRidgeCV(cv=4, gammas=[0.5, 5.0], rule="minimum", **options),
    ):
        for given in (None, weights):
            dense = model.fit(X, y, sample_weight=given)
            expected = dense.coef_, dense.intercept_, dense.objective_, dense.predict(X)
            errors = getattr(dense, "cv_error_", 0.0)
            sparse = model.fit(form(X), y, sample_weight=given)
            found = sparse.coef_, sparse.intercept_, sparse.objective_, sparse.predict(X)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
            assert getattr(sparse, "cv_error_", 0.0) == pytest.approx(errors, rel=1e-12)
            np.testing.assert_allclose(sparse.predict(form(X)), expected[-1], rtol=1e-9)


def test_default_fit_beyond_trees_and_what_follows_a_fit() -> None:
    X, y = table(40, 60)
    dense, sparse = SparseRidgeCV(cv=4), SparseRidgeCV(cv=4)
    dense.fit(X, y), sparse.fit(sp.csc_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-12)
    rows = sp.csr_array(X[:5])
    np.testing.assert_allclose(
        sparse.predict_interval(rows), dense.predict_interval(X[:5]), rtol=1e-9
    )
    np.testing.assert_array_equal(sparse.transform(rows).toarray(), dense.transform(X[:5]))
    np.testing.assert_allclose(sparse.to_sklearn().predict(rows), dense.predict(X[:5]), rtol=1e-9)


def test_frames_and_a_saved_model(tmp_path: Any) -> None:
    X, y = table()
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=names)
    model = SparseRidge(tau=3).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.coef_, SparseRidge(tau=3).fit(X, y).coef_)
    np.testing.assert_allclose(model.predict(frame), model.predict(frame.sparse.to_dense()))
    SparseRidge(tau=3).fit(X, y).save(tmp_path / "model.json")
    loaded = SparseRidge.load(tmp_path / "model.json")
    np.testing.assert_allclose(loaded.predict(sp.csr_array(X)), model.predict(frame), rtol=1e-9)


def test_missing_values_are_those_that_are_stored() -> None:
    X, y = table()
    X[[0, 7, 9], [1, 1, 4]] = np.nan
    with pytest.raises(InputError, match="column 'x1'"):
        SparseRidge(tau=2).fit(sp.csr_array(X), y)
    options: dict[str, Any] = {"cv": 3, "gammas": 1.0, "missing": "mean"}
    dense = SparseRidgeCV(**options).fit(X, y)
    sparse = SparseRidgeCV(**options).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-12)
    for form in FORMATS:
        np.testing.assert_allclose(sparse.predict(form(X)), dense.predict(X), rtol=1e-9)
    # A cell that is stored in two parts, one of them missing, is missing.
    twice = sp.csr_array((np.array([2.0, np.nan]), np.array([1, 1]), np.array([0, 2])), (1, 8))
    np.testing.assert_allclose(sparse.predict(twice), dense.predict(twice.toarray()), rtol=1e-9)
    assert np.isnan(twice.data[1])  # Prediction leaves what it was given as it was.


def test_stability_takes_them() -> None:
    X, y = table()
    model = StabilityCV(SparseRidge(), {"tau": [1, 3], "gamma": [1.0]}, cv=3, random_state=0)
    dense = model.fit(X, y).best_params_, model.best_estimator_.coef_
    model.fit(sp.csr_array(X), y)
    assert model.best_params_ == dense[0]
    np.testing.assert_array_equal(model.best_estimator_.coef_, dense[1])


@pytest.mark.filterwarnings("ignore::sparsecv.errors.ConstantColumnWarning")
def test_wide_tables_whose_columns_are_made_when_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The products with all columns come from the stored numbers, and the fits are the same."""
    X, y = table(60, 300)
    X[:, 5] += 1e6  # A column without zeros, far from 0.
    X[:, 7] = 0.0
    weights = np.random.default_rng(5).integers(0, 4, y.size)
    models = (
        SparseRidge(tau=2, gamma=0.1),
        SparseRidgeCV(cv=4, taus=range(1, 7)),
        SparseRidgeCV(cv=3, taus=[1, 2], gammas=[1.0], rule="minimum", fit_intercept=False),
    )
    for model in models:
        for given in (weights, None):
            dense = model.fit(X, y, sample_weight=given)
            expected = dense.coef_, dense.intercept_, dense.status_
            with monkeypatch.context() as patch:
                patch.setattr("sparsecv.design.fold_data.MAX_BYTES_OF_A_COPY", 0)
                sparse = model.fit(sp.csr_array(X), y, sample_weight=given)
            np.testing.assert_allclose(sparse.coef_, expected[0], rtol=1e-7)
            assert sparse.intercept_ == pytest.approx(expected[1], rel=1e-6)
            assert sparse.status_ == expected[2]
    intervals = models[1].predict_interval(sp.csr_array(X[:5]))
    np.testing.assert_allclose(intervals, models[1].fit(X, y).predict_interval(X[:5]), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sparsecv.errors.UnprovedWarning")
@pytest.mark.parametrize("shape", [(300, 60_000), (250_000, 60)])
def test_fits_make_no_dense_copy_of_a_large_table(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array(shape, density=0.02, format="csr", rng=rng)
    y = 5.0 * X[:, [3]].toarray()[:, 0] + rng.standard_normal(shape[0])
    tracemalloc.start()
    SparseRidgeCV(cv=3, taus=[1, 2], gammas=[1.0], time_limit=0).fit(X, y)
    if shape[0] > shape[1]:  # A proof for a wide table copies it.
        SparseRidge(tau=1).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * shape[0] * shape[1] / 2


def test_what_needs_a_dense_copy_that_is_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table(60, 8)
    monkeypatch.setattr("sparsecv.tables.rows_in_memory.MAX_HELD_BYTES", 1000)
    for model in (SparseRidge(tau=2), SparseRidgeCV(cv="loo"), SparseRidgeCV(missing="mean")):
        with pytest.raises(InputError, match=r"a dense copy of \d+ rows and 8 columns"):
            model.fit(sp.csc_array(X), y)


def test_a_table_too_large_for_a_proof_gets_the_best_support_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table(40, 500)
    best = SparseRidge(tau=2).fit(X, y)
    assert best.status_ == "optimal"
    monkeypatch.setattr("sparsecv.design.fold_data.MAX_BYTES_OF_A_COPY", 0)
    for most in (1000, 8 * 40 * 501):  # There is no room for X, and then none for the products.
        monkeypatch.setattr("sparsecv.solvers.core.plan.MAX_BYTES_OF_A_MATRIX", most)
        with pytest.warns(UnprovedWarning, match="too large for a proof"):
            found = SparseRidge(tau=8, gamma=0.01).fit(sp.csr_array(X), y)
        assert found.status_ == "not proved"
        assert found.support_.size == 8
        assert 0.0 <= found.lower_bound_ < found.objective_
        for given in (sp.csr_array(X), X):
            easy = SparseRidge(tau=2).fit(given, y)
            assert easy.lower_bound_ <= best.objective_ * (1 + 1e-9)
            assert easy.support_.tolist() == best.support_.tolist()


def test_prediction_is_not_made_dense() -> None:
    X, y = table()
    model = SparseRidge(tau=3).fit(X, y)
    many = sp.random_array((400_000, 8), density=1e-4, format="csr", rng=np.random.default_rng(0))
    wide = sp.hstack([many] * 10, format="csr")
    wider = SparseRidge(tau=3).fit(np.hstack([X + j for j in range(10)]), y)
    tracemalloc.start()
    model.predict(many), wider.predict(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * wide.shape[0] * wide.shape[1] / 10
