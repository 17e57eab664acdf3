"""Sparse matrices and arrays of scipy are made dense: the answers are those of the dense table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.stand_ins import StandIn

import sparsecv
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
def test_fit_is_that_of_the_dense_table(form: Any) -> None:
    X, y = table()
    weights = np.random.default_rng(5).integers(0, 4, y.size)
    for model in (SparseRidge(tau=3), SparseRidgeCV(cv=4, gammas=[0.5, 5.0], rule="minimum")):
        dense = model.fit(X, y, sample_weight=weights)
        expected = dense.coef_, dense.intercept_, dense.objective_, dense.predict(X)
        sparse = model.fit(form(X), y, sample_weight=weights)
        found = sparse.coef_, sparse.intercept_, sparse.objective_, sparse.predict(form(X))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_default_fit_beyond_trees_and_what_follows_a_fit() -> None:
    X, y = table(40, 60)
    dense, sparse = SparseRidgeCV(cv=4), SparseRidgeCV(cv=4)
    dense.fit(X, y), sparse.fit(sp.csc_array(X), y)
    np.testing.assert_array_equal(sparse.coef_, dense.coef_)
    rows = sp.csr_array(X[:5])
    np.testing.assert_array_equal(sparse.predict_interval(rows), dense.predict_interval(X[:5]))
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
    loaded = sparsecv.load(tmp_path / "model.json")
    np.testing.assert_allclose(loaded.predict(sp.csr_array(X)), model.predict(frame), rtol=1e-9)


def test_missing_values_are_those_that_are_stored() -> None:
    X, y = table()
    X[[0, 7, 9], [1, 1, 4]] = np.nan
    with pytest.raises(InputError, match="column 'x1'"):
        SparseRidge(tau=2).fit(sp.csr_array(X), y)
    options: dict[str, Any] = {"cv": 3, "gammas": 1.0, "missing": "mean"}
    dense = SparseRidgeCV(**options).fit(X, y)
    sparse = SparseRidgeCV(**options).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(sparse.coef_, dense.coef_)
    np.testing.assert_array_equal(sparse.predict(sp.csc_array(X)), dense.predict(X))
    # A cell that is stored in two parts, one of them missing, is missing.
    twice = sp.csr_array((np.array([2.0, np.nan]), np.array([1, 1]), np.array([0, 2])), (1, 8))
    np.testing.assert_array_equal(sparse.predict(twice), dense.predict(twice.toarray()))


def test_stability_takes_them() -> None:
    X, y = table()
    model = StabilityCV(SparseRidge(), {"tau": [1, 3], "gamma": [1.0]}, cv=3, random_state=0)
    dense = model.fit(X, y).best_params_, model.best_estimator_.coef_
    model.fit(sp.csr_array(X), y)
    assert model.best_params_ == dense[0]
    np.testing.assert_array_equal(model.best_estimator_.coef_, dense[1])


def test_a_table_too_large_to_be_made_dense_is_refused(stand_in: StandIn) -> None:
    X, y = table()
    fitted = SparseRidge(tau=2).fit(sp.csc_array(X), y)
    stand_in(MAX_DENSE_BYTES=8 * 60 * 8 - 1)
    for model in (SparseRidge(tau=2), SparseRidgeCV(cv="loo"), SparseRidgeCV(missing="mean")):
        with pytest.raises(
            InputError, match=r"60 rows and 8 columns .* SelectKBest and SparseRidge"
        ):
            model.fit(sp.csc_array(X), y)
    with pytest.raises(InputError, match="pass fewer rows at a time"):
        fitted.predict(sp.csc_array(X))
    assert fitted.predict(sp.csr_array(X)[:50]).shape == (50,)


def test_a_table_too_large_for_a_proof_gets_the_best_support_known(
    stand_in: StandIn,
) -> None:
    X, y = table(40, 500)
    best = SparseRidge(tau=2).fit(X, y)
    assert best.status_ == "optimal"
    # There is no room for the products of the columns.
    stand_in(MAX_BYTES_OF_A_MATRIX=8 * 40 * 501)
    with pytest.warns(UnprovedWarning, match="too large for a proof"):
        found = SparseRidge(tau=8, gamma=0.01).fit(X, y)
    assert found.status_ == "not proved"
    assert found.support_.size == 8
    assert 0.0 <= found.lower_bound_ < found.objective_
    easy = SparseRidge(tau=2).fit(X, y)
    assert easy.lower_bound_ <= best.objective_ * (1 + 1e-9)
    assert easy.support_.tolist() == best.support_.tolist()
