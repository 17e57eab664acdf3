"""Columns and parameters of the estimators: what is refused, and how it is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.multioutput import MultiOutputRegressor
from support.tables import NAMES_OF_FIVE as NAMES
from support.tables import five_columns

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import ConstantColumnWarning, InputError, LoweredSizeWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def test_feature_names() -> None:
    X, y = five_columns()
    pandas, polars = pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)
    plain = SparseRidge(tau=2).fit(X, y)
    assert not hasattr(plain, "feature_names_in_")
    for frame in (pandas, polars):
        chosen = SparseRidgeCV(cv=3, gammas=1.0, taus=[2], rule="minimum")
        for model in (SparseRidge(tau=2), chosen):
            model.fit(frame, y)
            assert model.feature_names_in_.tolist() == NAMES
            assert model.n_features_in_ == 5
            np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)
            np.testing.assert_allclose(model.predict(frame), plain.predict(X), rtol=1e-10)
    series = SparseRidge(tau=2).fit(polars, pl.Series(y))
    np.testing.assert_allclose(series.coef_, plain.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        SparseRidge(tau=2).fit(pandas, y).predict(pandas[NAMES[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        SparseRidge(tau=2).fit(polars, y).predict(polars[NAMES[::-1]])


def test_other_column_types() -> None:
    X, y = five_columns()
    frame = pd.DataFrame(X, columns=NAMES)
    frame["age"] = [True, False] * 20
    frame["b c"] = pd.array([1, 2, 4, 5] * 10, dtype="Int64")
    frame["größe"] = [1, 3, 5, 7] * 10
    assert SparseRidge().fit(frame, y).support_.size == 5
    frame["x_3"] = pd.date_range("2020-01-01", periods=40, tz="UTC")
    with pytest.raises(InputError, match="'x_3'"):
        SparseRidge().fit(frame, y)


def test_constant_columns() -> None:
    X, y = five_columns()
    X[:, 1] = 4.0
    frame = pd.DataFrame(X, columns=NAMES)
    for model in (SparseRidge(), SparseRidgeCV(cv=3, gammas=1.0, random_state=0)):
        with pytest.warns(ConstantColumnWarning, match="'b c'") as caught:
            model.fit(frame, y)
        assert len(caught) == 1
        assert model.coef_[1] == 0.0
        assert 1 not in model.support_
        assert model.coef_.shape == (5,)
        assert model.n_features_in_ == 5
        kept = [0, 2, 3, 4]
        without = clone(model).fit(X[:, kept], y)
        np.testing.assert_allclose(model.coef_[kept], without.coef_, rtol=1e-12)
        np.testing.assert_allclose(model.predict(frame), without.predict(X[:, kept]), rtol=1e-12)
    with pytest.warns(LoweredSizeWarning, match="tau = 4 is used"):
        model = SparseRidge(tau=5).fit(frame, y)
    assert (model.tau_, len(model.support_)) == (4, 4)


def test_constant_response() -> None:
    X, _ = five_columns()
    for model in (SparseRidge(), SparseRidgeCV(cv=3, gammas=1.0)):
        with pytest.warns(ConstantColumnWarning, match=r"the response is 0\.1 in every row"):
            model.fit(X, np.full(40, 0.1))
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-12)
        np.testing.assert_allclose(model.predict(X), 0.1)


def test_two_rows() -> None:
    X, y = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([1.0, 2.0])
    assert np.isfinite(SparseRidge().fit(X, y).coef_).all()
    model = SparseRidgeCV(cv="loo").fit(X, y)
    # each fold trains on one row: it predicts that row's response
    np.testing.assert_allclose(model.cv_error_, 1.0)


# ---------------------------------------------------------------------------- parameters


@pytest.mark.parametrize("model", [SparseRidge(tau=2), SparseRidgeCV(cv=3, gammas=1.0)], ids=repr)
def test_a_model_explains_one_response(model: Any) -> None:
    X, y = five_columns()
    Y = np.column_stack([y, X[:, 1] - y])
    words = r"^y has 2 columns, .* fit sklearn\.multioutput\.MultiOutputRegressor of this"
    for given in (Y, pd.DataFrame(Y), pl.DataFrame(Y)):
        with pytest.raises(InputError, match=words):
            model.fit(X, given)
    with pytest.warns(DataConversionWarning):
        column = clone(model).fit(X, y[:, None])
    alone = clone(model).fit(X, y)
    np.testing.assert_array_equal(column.coef_, alone.coef_)
    assert column.predict(X).shape == y.shape
    with pytest.raises(ValueError, match="y"):
        model.fit(X, np.stack([Y, Y], axis=2))
    each = MultiOutputRegressor(model).fit(X, Y)
    np.testing.assert_array_equal(each.estimators_[0].coef_, alone.coef_)
