"""CV errors under constraints on columns equal those by enumeration, fold by fold."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from support.constrained import Rules, best_of_every_size, random_rules

from sparsecv import SparseRidgeCV

# What is asked, alone and together.
ASKED = (
    ("include",),
    ("exclude",),
    ("groups",),
    ("positive",),
    ("bounds",),
    ("groups", "positive"),
    ("groups", "bounds"),
    ("include", "exclude", "groups", "positive"),
)
PROBLEMS = 9  # of every kind: 72 in all


def errors_by_enumeration(
    X: np.ndarray, y: np.ndarray, gamma: float, rules: Rules, folds: Any, sizes: list[int]
) -> list[set[float]]:
    """The CV errors that optimal supports of every size give; several where optima tie."""
    spread = X.std(axis=0)
    by_fold = []
    for train, test in folds:
        best = best_of_every_size(X[train], y[train], gamma, rules, spread)
        rows = np.column_stack([X[test] / spread, np.ones(test.size)])
        by_fold.append(
            [[float(np.sum((y[test] - rows @ b) ** 2)) for _, b in best[s][1]] for s in sizes]
        )
    return [
        {sum(one) / y.size for one in product(*(fold[t] for fold in by_fold))}
        for t in range(len(sizes))
    ]


@pytest.mark.parametrize("kinds", ASKED, ids="-".join)
def test_cv_errors_equal_enumeration(kinds: tuple[str, ...]) -> None:
    rng = np.random.default_rng([ord(c) for c in "".join(kinds)])
    for number in range(PROBLEMS):
        p, n = int(rng.integers(2, 7)), int(rng.integers(9, 14))
        X = rng.normal(size=(n, p)) * rng.choice([0.2, 1.0, 5.0], size=p) + rng.normal(size=p)
        y = X @ rng.normal(size=p) + rng.normal(size=n)
        rules = random_rules(rng, p, kinds)
        gamma = float(10.0 ** rng.uniform(-2, 2))
        cv = "loo" if number % 3 == 0 else int(rng.integers(2, 5))
        model = SparseRidgeCV(
            cv=cv,
            gammas=[gamma],
            rule="minimum",
            method=("auto", "grid")[number % 2],
            **rules.keywords,
        )
        model.fit(X, y)
        folds = [model.folds_.split(j) for j in range(model.folds_.k)]
        sizes = model.surface_["tau"].tolist()
        right = errors_by_enumeration(X, y, gamma, rules, folds, sizes)
        assert model.surface_["exact"].all()
        for error, known in zip(model.surface_["cv_error"][0], right, strict=True):
            assert min(abs(error - one) for one in known) <= 1e-8 * (1.0 + abs(error)), (
                kinds,
                number,
            )
        spread = X.std(axis=0)
        best = best_of_every_size(X, y, gamma, rules, spread)
        assert set(sizes) == set(best)
        least, optima = best[model.tau_]
        assert model.objective_ == pytest.approx(least, rel=1e-8)
        right_coef = dict(optima)[tuple(model.support_.tolist())]
        np.testing.assert_allclose(model.coef_ * spread, right_coef[:-1], atol=1e-6)


@pytest.mark.filterwarnings("ignore:not every fold")
@pytest.mark.parametrize("kinds", ASKED, ids="-".join)
def test_search_brackets_and_finds_the_least_error(kinds: tuple[str, ...]) -> None:
    rng = np.random.default_rng([1, *(ord(c) for c in "".join(kinds))])
    for number in range(4):
        p, n = int(rng.integers(2, 7)), int(rng.integers(12, 20))
        X = rng.normal(size=(n, p)) + rng.normal(size=p)
        y = X @ rng.normal(size=p) + rng.normal(size=n)
        rules = random_rules(rng, p, kinds)
        gamma, cv = float(10.0 ** rng.uniform(-2, 2)), "loo" if number == 0 else 3 + number
        common = {"cv": cv, "gammas": [gamma], "rule": "minimum", **rules.keywords}
        exact = SparseRidgeCV(**common).fit(X, y).surface_
        right, slack = exact["cv_error"][0], 1e-7 * (1.0 + exact["cv_error"][0])
        for tol in (0.01, 0.99):
            model = SparseRidgeCV(method="search", tol=tol, **common).fit(X, y)
            lower, upper = model.surface_["lower"][0], model.surface_["upper"][0]
            assert (lower <= right + slack).all(), (kinds, number, tol)
            assert (right <= upper + slack).all(), (kinds, number, tol)
            if tol == 0.01:
                assert model.certified_
                assert model.status_ == "optimal"
                assert model.gap_ <= 2e-6
                at = model.surface_["tau"].tolist().index(model.tau_)
                assert right[at] <= right.min() / (1.0 - 0.01) + slack[at]
