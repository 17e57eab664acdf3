"""The n best subsets of every size that an estimator keeps, and their CV errors."""

from __future__ import annotations

import pickle
import time
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from support.brute_force import Data, enumerate_all
from support.problems import regression, scaled, three_matter

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import UnprovedWarning


@pytest.mark.parametrize("rule", ["minimum", "corrected", "projected"])
def test_they_equal_enumeration_with_errors_on_the_same_folds(rule: str) -> None:
    X, y = three_matter()
    folds = KFold(4, shuffle=True, random_state=1)
    model = SparseRidgeCV(cv=folds, gammas=[0.5, 20.0], rule=rule).fit(X, y)
    found = model.alternatives(3)
    assert (found["tau"][0], found["columns"][0]) == (0, [])  # The mean alone has no other model.
    found = found.iloc[1:].reset_index(drop=True)
    np.testing.assert_array_equal(found["tau"], np.repeat(np.arange(1, 7), [3, 3, 3, 3, 3, 1]))
    assert found["proved"].all()
    spread = X.std(axis=0)
    splits = [model.folds_.split(j) for j in range(model.folds_.k)]
    for i, (tau, gamma) in enumerate(zip(found["tau"], found["gamma"], strict=True)):
        every = enumerate_all(Data(*scaled(X, y), float(gamma)))[int(tau)]
        columns, rank = found["columns"][i], int(found["rank"][i])
        assert found["objective"][i] == pytest.approx(np.sort(every.objective)[rank - 1])
        assert every.of(columns)[0] == pytest.approx(found["objective"][i])
        total = 0.0
        for train, test in splits:
            own = (X / spread)[:, columns]
            ridge = Ridge(gamma / 2.0).fit(own[train], y[train])
            total += float(np.square(y[test] - ridge.predict(own[test])).sum())
        assert found["cv_error"][i] == pytest.approx(total / len(y), rel=1e-8)


def test_a_constant_column_shifts_no_numbers() -> None:
    X, y = three_matter()
    wide = np.insert(X, 1, 3.0, axis=1)
    with pytest.warns(UserWarning, match="constant"):
        found = SparseRidge(tau=2).fit(wide, y).alternatives(2)
    plain = SparseRidge(tau=2).fit(X, y).alternatives(2)
    for columns, others in zip(found["columns"], plain["columns"], strict=True):
        assert columns == [c + (c > 0) for c in others]


def test_what_a_pickle_holds() -> None:
    X, y = three_matter()
    model = SparseRidgeCV(gammas=1.0).fit(X, y)
    assert model.alternatives(2)["tau"].size == 12
    again = pickle.loads(pickle.dumps(model))
    assert again.alternatives(2)["tau"].size == 12
    with pytest.raises(AttributeError, match="needs the rows"):
        again.alternatives(3)
    assert model.fit(X, y).alternatives(1)["tau"].size == 7


def test_they_have_the_time_limit_for_themselves() -> None:
    """The seconds that have passed since the fit began are not taken off."""
    X, y = three_matter()
    model = SparseRidgeCV(gammas=[0.5], time_limit=1.0, rule="minimum").fit(X, y)
    time.sleep(1.0)
    assert model.alternatives(2)["proved"].all()


@pytest.mark.parametrize("with_groups", [False, True])
def test_a_time_limit_bounds_their_search(with_groups: bool) -> None:
    X, y = regression(20, 60, [1.0, 1.0, 1.0])
    groups = np.arange(60) // 2 if with_groups else None
    model = SparseRidgeCV(
        taus=range(1, 9),
        gammas=[1.0],
        rule="minimum",
        time_limit=0.02,
        constraints=Constraints(groups=groups, count="groups"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        model.fit(X, y)
    started = time.monotonic()
    found = model.alternatives(2)
    assert time.monotonic() - started < 30.0  # Without a limit the search takes minutes.
    assert set(found["tau"]) == set(range(1, 9))  # One subset of every size is known anyway.
    assert not found["proved"].all()
