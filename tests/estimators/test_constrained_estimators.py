"""Constraints as parameters of scikit-learn estimators."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone

from sparsecv import Constraints, SparseRidge, SparseRidgeCV, StabilityCV
from sparsecv.errors import InputError

NAMES = ["a", "b", "c", "d", "a:b"]
ASKED: dict[str, Any] = {
    "constraints": Constraints(
        include=["d"],
        exclude=("c",),
        groups={"pair": ["b", "d"]},
        positive=["a"],
        bounds={"d": (-1, 0.5)},
    ),
}


@pytest.fixture
def frame() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 4)), columns=NAMES[:4])
    X["a:b"] = X["a"] * X["b"]
    return X, X["a"] - X["b"] + 0.4 * X["d"] + X["a:b"] + 0.3 * rng.normal(size=50)


@pytest.mark.parametrize("kind", [SparseRidge, SparseRidgeCV])
def test_parameters_are_kept_as_they_came(kind: Any, frame: Any) -> None:
    options = {} if kind is SparseRidge else {"gammas": [0.1, 1.0], "rule": "minimum"}
    model = kind(**ASKED, **options)
    assert {name: model.get_params()[name] for name in ASKED} == ASKED
    for name, value in ASKED.items():
        assert getattr(model, name) is value
    model.fit(*frame)
    for name, value in ASKED.items():
        assert getattr(model, name) is value
    again = pickle.loads(pickle.dumps(clone(model).fit(*frame)))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert {"b", "d"} <= set(model.get_feature_names_out())
    assert "c" not in set(model.get_feature_names_out())
    assert model.coef_[0] >= 0.0
    assert -1.0 <= model.coef_[3] <= 0.5
    with config_context(transform_output="pandas"):
        assert list(model.transform(frame[0]).columns) == list(model.get_feature_names_out())
    assert model.set_params(constraints=None).fit(*frame).coef_ is not None


def test_names_or_positions(frame: Any) -> None:
    X, y = frame
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"include": ["d"]}, {"include": [3]}),
        ({"exclude": ["a", "b"]}, {"exclude": np.array([True, True, False, False, False])}),
        ({"positive": ["a:b"]}, {"positive": [4]}),
        ({"bounds": {"a": (0, 0.2)}}, {"bounds": {0: (0.0, 0.2)}}),
        ({"groups": {"x": ["a", "c"]}}, {"groups": ["x", None, "x", "y", "z"]}),
    ]
    for named, placed in pairs:
        one = SparseRidge(2, constraints=Constraints(**named, count="groups")).fit(X, y)
        other = SparseRidge(2, constraints=Constraints(**placed, count="groups")).fit(
            X.to_numpy(), y
        )
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.status_ == "optimal"
    with pytest.raises(InputError, match="the columns have no names here"):
        SparseRidge(2, constraints=Constraints(include=["d"])).fit(X.to_numpy(), y)


def test_weights_count_copies_of_rows(frame: Any) -> None:
    X, y = frame
    weights = np.random.default_rng(1).integers(0, 4, size=len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    one = SparseRidge(3, **ASKED).fit(X, y, sample_weight=weights)
    other = SparseRidge(3, **ASKED).fit(X.iloc[copies], y.iloc[copies])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-8, atol=1e-10)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)
    model = SparseRidgeCV(cv=3, gammas=[1.0], rule="minimum", **ASKED)
    folds = np.arange(len(y)) % 3
    pairs = [(np.flatnonzero(folds != j), np.flatnonzero(folds == j)) for j in range(3)]
    model.set_params(cv=pairs).fit(X, y, sample_weight=weights)
    repeated = folds[copies]
    pairs = [(np.flatnonzero(repeated != j), np.flatnonzero(repeated == j)) for j in range(3)]
    other = clone(model).set_params(cv=pairs).fit(X.iloc[copies], y.iloc[copies])
    np.testing.assert_allclose(model.surface_["cv_error"], other.surface_["cv_error"], rtol=1e-9)


def test_stability_fits_what_is_asked(frame: Any) -> None:
    X, y = frame
    grid = {"gamma": [0.1, 1.0], "tau": [1, 2, 3]}
    model = SparseRidge(constraints=Constraints(include=["d"], positive=["b"]))
    slow_model = clone(model).set_params(time_limit=100.0)
    fast = StabilityCV(model, grid, cv=4, random_state=0).fit(X, y)
    slow = StabilityCV(slow_model, grid, cv=4, random_state=0).fit(X, y)
    for name in ("cv_error", "stability"):
        np.testing.assert_allclose(fast.cv_results_[name], slow.cv_results_[name], rtol=1e-7)
    with pytest.raises(InputError, match="a size of 1 is too small"):
        StabilityCV(SparseRidge(constraints=Constraints(include=["a", "d"])), grid, cv=4).fit(X, y)


@pytest.mark.parametrize("rule", ["minimum", "projected"])
def test_coefficients_keep_their_bounds_to_the_last_digit(rule: str) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 4)) * rng.uniform(0.1, 30.0, size=4)
        y = X @ rng.normal(size=4) + rng.normal(size=30)
        low, high = -rng.uniform(0.01, 0.5, size=4), rng.uniform(0.01, 0.5, size=4)
        bounds = {j: (low[j], high[j]) for j in range(4)}
        model = SparseRidgeCV(
            gammas=[0.1, 1.0], rule=rule, constraints=Constraints(bounds=bounds)
        ).fit(X, y)
        alone = SparseRidge(tau=4, constraints=Constraints(bounds=bounds)).fit(X, y)
        sizes = [model.at_size(size).coef_ for size in model.path_["tau"]]
        for coef in (model.coef_, alone.coef_, sizes):
            np.testing.assert_array_equal(coef, np.clip(coef, low, high))


def test_a_group_keeps_its_columns_or_its_name_is_refused() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
    table["town"] = rng.choice(["u", "v", "w"], 40)
    y = table["a"] + table["b"]
    for groups in ({"town": ["b", "c"]}, [None, "town", "town", None]):
        with pytest.raises(InputError, match="'town' is a column of the table that is a group"):
            SparseRidge(2, constraints=Constraints(groups=groups)).fit(table, y)
    own = Constraints(groups={"town": ["town", "c"], "b": ["b"]}, count="groups")
    assert len(SparseRidge(1, constraints=own).fit(table, y).importance()) == 3
