"""Models without any error: the fewest columns are chosen, whatever rounding leaves of errors."""

from __future__ import annotations

import numpy as np
import pytest
from support.inside import RULES

from sparsecv import SparseRidge, SparseRidgeCV

Array = np.ndarray


def sum_of_three(seed: int, columns: int = 8) -> tuple[Array, Array]:
    """50 rows; the response is the sum of the first three columns."""
    X = np.random.default_rng(seed).normal(size=(50, columns))
    return X, X[:, :3].sum(axis=1)


def test_the_least_error_takes_the_columns_that_there_are() -> None:
    for seed in range(40):
        for table in (2, seed):
            model = SparseRidgeCV(gammas=[0.0], rule="minimum", random_state=seed)
            model.fit(*sum_of_three(table))
            assert model.tau_ == 3, (table, seed)
            assert model.support_.tolist() == [0, 1, 2]
            assert model.certified_


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_takes_the_columns_that_there_are(rule: str) -> None:
    for seed in range(6):
        X, y = sum_of_three(seed)
        model = SparseRidgeCV(gammas=[0.0], rule=rule, random_state=seed).fit(X, 1e6 * y)
        assert model.support_.tolist() == [0, 1, 2], seed
        assert model.at_size(5).tau_ == 5


def test_a_small_error_is_no_rounding() -> None:
    """A fourth column that explains a millionth of the others' length is found."""
    for seed in range(6):
        X, y = sum_of_three(seed)
        model = SparseRidgeCV(gammas=[0.0], rule="minimum").fit(X, y + 1e-6 * X[:, 3])
        assert model.support_.tolist() == [0, 1, 2, 3]


def test_criteria_of_perfect_fits_are_equal() -> None:
    for seed in range(6):
        found = SparseRidge(tau=6, gamma=0.0).fit(*sum_of_three(seed)).criteria_
        for name in ("aic", "bic", "ebic"):
            assert np.isfinite(found[name][:2]).all()
            assert (found[name][2:] == -np.inf).all()
            assert int(np.argmin(found[name])) == 2
        assert (found["rss"][2:] == 0.0).all()
        assert np.isnan(found["cp"]).all()  # No column leaves an error to compare with.
