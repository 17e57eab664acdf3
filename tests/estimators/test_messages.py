"""What users pass by mistake is named in one line that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import PredefinedSplit
from support.problems import regression

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError

QUICK: dict[str, Any] = {"gammas": [1.0], "taus": [1], "rule": "minimum"}


def rows(n: int = 30, p: int = 3) -> tuple[Any, Any]:
    return regression(n, p, {0: 1.0})


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("never", [0, 5])
def test_fold_numbers_are_those_of_predefined_split(kind: Any, never: int) -> None:
    X, y = rows()
    numbers = np.arange(30) % 3
    numbers[:never] = -1
    found = SparseRidgeCV(cv=kind(numbers), **QUICK).fit(X, y)
    same = SparseRidgeCV(cv=PredefinedSplit(numbers), **QUICK).fit(X, y)
    assert found.folds_.k == 3
    assert found.cv_error_ == same.cv_error_
    for j in range(3):
        np.testing.assert_array_equal(found.folds_.split(j)[1], np.flatnonzero(numbers == j))


def test_a_generator_draws_the_folds() -> None:
    X, y = rows()
    found = [
        SparseRidgeCV(random_state=np.random.default_rng(seed), **QUICK).fit(X, y).folds_.label
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("text", [False, True])
def test_a_number_means_the_column_of_that_name(text: bool) -> None:
    X, y = rows()
    table = pd.DataFrame(X, columns=[2, 1, 0])
    if text:
        table[7] = ["Bern", "Rome", "Oslo"] * 10
    model = SparseRidge(tau=1, constraints=Constraints(include=[2])).fit(table, y)
    assert model.support_.tolist() == [0]
    last = SparseRidge(tau=1, constraints=Constraints(include=[0])).fit(table, y)
    assert last.support_.tolist() == [2]
    with pytest.raises(InputError, match="there is no column 3"):
        SparseRidge(tau=1, constraints=Constraints(include=[3])).fit(table, y)
