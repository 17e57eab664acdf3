"""Random small tables as people have them, in folds of twelve kinds, that attack CV errors.

Money stands beside shares and beside a factor with a rare level; rows may have weights, and cells
may be missing. Rational numbers and every support of every fold judge what is called exact, every
interval and the choice. Attacks are as in ``attacks``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ShuffleSplit

from .attacks import Attack
from .fold_attacks import random_pairs
from .heldout_attacks import Table, exact_errors, money, wrong_claims
from .inside import Folds, RowFolds, RowTable, Settings, cross_validate, make_folds

Array = NDArray[np.float64]


def folds_of_kind(rng: np.random.Generator, kind: int, n: int) -> Folds:
    """Folds of one of twelve kinds, numbered from 0."""
    groups = np.append(np.arange(4), rng.integers(4, size=n - 4))
    named = ["loo", 2, 3, 5, "size:2", "size:4", "time:3", "time:5"]
    if kind < len(named):
        return make_folds(named[kind], n, seed=kind)
    if kind == 8:
        return make_folds(3, n, seed=kind, groups=groups)
    if kind == 9:
        return make_folds("loo", n, groups=groups)
    if kind == 10:
        return make_folds(ShuffleSplit(3, test_size=0.3, random_state=int(rng.integers(99))), n)
    return make_folds(random_pairs(rng, n), n)


def columns(rng: np.random.Generator, n: int) -> Array:
    """Money, a share and the levels of a factor, of which one stands in one row or two."""
    level = rng.integers(2, size=n)
    level[rng.choice(n, size=int(rng.integers(1, 3)), replace=False)] = 2
    share = np.round(rng.random(n), 3)
    amounts = money(rng, n, int(rng.integers(1, 3)))
    return np.column_stack([amounts, share, np.eye(3)[level][:, int(rng.integers(2)) :]])


def realistic_tables(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Errors called exact, intervals and certified choices, of tables with units of their own."""
    n, kind = int(rng.integers(10, 17)), number % 12
    X = columns(rng, n)
    p = X.shape[1]
    spread = X.std(axis=0)  # It is 0 where a level of the factor has no row.
    y = X @ (rng.normal(size=p) / np.where(spread > 0.0, spread, 1.0))
    y = np.round((y + 10.0 ** rng.uniform(-2, 1) * rng.normal(size=n)) * 10.0 ** rng.integers(5), 3)
    weights = rng.choice([0.5, 1.0, 2.0, 7.0], size=n) if rng.random() < 0.3 else None
    lost = np.zeros(X.shape, dtype=bool)
    if rng.random() < 0.3:
        lost[rng.choice(n, size=2, replace=False), int(rng.integers(2))] = True
    folds = folds_of_kind(rng, kind, n)
    gammas = sorted(10.0 ** rng.uniform(-4.0, 10.0, size=2))
    given, taus = np.where(lost, np.nan, X), np.arange(1, p + 1)
    missing = "mean" if lost.any() else None
    table = RowTable(given, y, True, weights=weights, missing=missing)
    settings = Settings("exact", tol=0.0, prove="all")
    result = cross_validate(RowFolds(table, folds), gammas, taus, settings)
    truth = exact_errors(Table(given, y, weights, True), folds, gammas, taus)
    for line in wrong_claims(result, truth):
        yield (f"folds {kind}, {n} × {p}, weights {weights is not None}, missing {missing}: {line}")


TABLES: dict[str, Attack] = {"realistic tables": realistic_tables}
