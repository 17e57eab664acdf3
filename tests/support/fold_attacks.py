"""Random cross-validations that attack every interval of h and every choice called optimal.

Attacks are as in ``attacks``: an attack draws one problem and yields a line for every claim that
does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit

from sparsecv.solvers import best_subsets

from .attacks import Attack
from .folds import about_mean, brute_force, inside, least_norm_range
from .inside import (
    RowFolds,
    RowTable,
    Settings,
    UnitConstraints,
    cross_validate,
    least_is_proved,
    make_folds,
)
from .problems import few_digits, ugly_problem

Pairs = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def random_pairs(rng: np.random.Generator, n: int) -> Pairs:
    """Training and held-out rows that need not be all rows, may overlap from fold to fold."""
    pairs = []
    for _ in range(int(rng.integers(1, 5))):
        rows = rng.permutation(n)
        held, left = int(rng.integers(1, n // 2)), int(rng.integers(0, n // 3))
        pairs.append((np.sort(rows[held + left :]), np.sort(rows[:held])))
    return pairs


def scheme(rng: np.random.Generator, n: int) -> Any:
    kind = int(rng.integers(6))
    if kind == 0:
        return TimeSeriesSplit(int(rng.integers(2, 5)))
    if kind == 1:
        shares = {"train_size": rng.uniform(0.3, 0.6), "test_size": rng.uniform(0.1, 0.4)}
        return ShuffleSplit(3, random_state=int(rng.integers(1000)), **shares)
    if kind == 2:
        return int(rng.integers(2, 6))
    if kind == 3:
        return "loo"
    return random_pairs(rng, n)


def fold_schemes(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Intervals hold h by enumeration, and search ends at the best τ, in any folds."""
    n, p = int(rng.integers(12, 41)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, p)) + rng.uniform(0, 2) * rng.normal(size=(n, 1))
    if rng.random() < 0.2:
        X[:, 1] = X[:, 0]
    y = X[:, :2] @ rng.normal(size=2) + 10.0 ** rng.uniform(-3, 1) * rng.normal(size=n)
    if rng.random() < 0.4:
        rows = ugly_problem(int(rng.integers(2**31)), 6).rows
        rows = np.vstack([rows, rng.normal(size=(4, rows.shape[1]))])
        rows = rows[: 5 if rng.random() < 0.3 else None]  # There may be more columns than rows.
        X, y = rows[:, :-1] / np.maximum(np.abs(rows[:, :-1]).max(axis=0), 1e-9), rows[:, -1]
        n, p = X.shape
    refit = bool(rng.random() < 0.5)
    if refit:
        X, y = X - X.mean(axis=0), y - y.mean()
    method = ("search", "exact")[int(rng.integers(2))]
    bounds = ("best", "paper", "paper-exact")[int(rng.integers(3))]
    settings = Settings(method, bounds=bounds, tol=float(rng.choice([0.0, 0.1, 0.99])))
    folds = make_folds(scheme(rng, n) if n > 5 else "loo", n, seed=0)
    gammas, taus = [10.0 ** rng.uniform(-4, 4)], np.arange(1, p + 1)
    pairs = [folds.split(j) for j in range(folds.k)]
    truth = brute_force(X, y, pairs, gammas, taus, refit)
    result = cross_validate(RowFolds(RowTable(X, y, refit), folds), gammas, taus, settings)
    held = inside(result.table("lower"), result.table("upper"), truth, 1e-6)
    if not held.all():
        yield f"{method}: no interval of h at τ = {taus[~held[0]]}"
    best, one = result.best(), result.by_gamma[0]
    if method == "bounds" and one.n_mio > 0:
        yield f"bounds: {one.n_mio} problems were solved"
    if method == "search" and not least_is_proved(result):
        yield f"search: ended with {one.status}"
    if method == "search" and least_is_proved(result):
        rounding = (1e-6 + 10.0 * truth.slack.max()) * truth.size**2
        chosen, least = float(truth.low[0, best.tau_index]), float(truth.high.min())
        if chosen > least * (1.0 + 1e-6) / (1.0 - settings.search_tolerance) + rounding:
            yield f"search: h = {chosen!r} at τ = {best.tau}, {least!r} is the least"


def leave_one_out(rng: np.random.Generator, number: int) -> Iterator[str]:
    """One tree of all rows for every fold, 47 to 53 units; a tree of the other kind judges.

    In half of the problems there are factors, whose centred 0/1 columns are one unit each.
    """
    n, m = int(rng.integers(22, 40)), int(rng.integers(47, 54))
    widths = np.where(rng.random(m) < 0.2, rng.integers(2, 5, size=m), 1)
    if number % 4 < 2:
        widths[:] = 1
    unit = np.repeat(np.arange(m), widths)
    X = rng.normal(size=(n, unit.size)) + rng.uniform(0, 1.5) * rng.normal(size=(n, 1))
    for u in np.flatnonzero(widths > 1):
        X[:, unit == u] = np.eye(int(widths[u]))[rng.integers(widths[u], size=n)]
        X[:, unit == u] -= X[:, unit == u].mean(axis=0)
    y = X[:, :3] @ rng.normal(size=3) + 10.0 ** rng.uniform(-1, 0.5) * rng.normal(size=n)
    asked = UnitConstraints.of(unit.size, unit=unit)
    folds, refit = make_folds("loo", n), bool(rng.random() < 0.5)
    data = RowFolds(RowTable(X, y, refit, constraints=asked), folds)
    gamma, taus = 10.0 ** rng.uniform(-1, 2), np.arange(1, 4)
    h = np.zeros(taus.size)
    for j in range(n):
        training = data.training(j).replace(gamma=gamma)
        best = best_subsets(training, sizes=taus)
        assert all(one.proved for one in best)
        H, t = data.held_out(j)
        for i, one in enumerate(best):
            coef = training.fit(one.support).coef
            h[i] += np.square(t - H[:, one.support] @ coef).sum() / n
    method = ("exact", "search")[number % 2]
    for limit in (0.05, None):
        settings = Settings(method, tol=0.0, prove="all", time_limit=limit)
        result = cross_validate(data, [gamma], taus, settings)
        lower, upper = result.table("lower")[0], result.table("upper")[0]
        if not ((lower <= h * (1.0 + 1e-7)) & (upper >= h * (1.0 - 1e-7))).all():
            yield f"{method}, limit {limit}: {h} not in [{lower}, {upper}]"
        if limit is None and h[result.best().tau_index] > h.min() * (1.0 + 1e-7):
            yield f"{method}: τ = {result.best().tau}, h = {h}"


def dependent_rows(rng: np.random.Generator, number: int) -> Iterator[str]:
    """γ = 0 and as many columns as training rows, about: centring takes a rank."""
    n = int(rng.integers(4, 13, size=2).min())
    folds = make_folds("loo" if rng.random() < 0.6 else int(rng.integers(2, 5)), n, seed=number)
    pairs = [folds.split(j) for j in range(folds.k)]
    p = max(1, pairs[0][0].size + int(rng.integers(-2, 3)))
    X, y = few_digits(rng, n, p)
    refit = bool(rng.random() < 0.8)
    others = rng.integers(1, p + 1, size=int(rng.integers(3)))
    taus = np.unique([p, *others, *([p - 1] if p > 1 and rng.random() < 0.4 else [])])
    method = ("exact", "search")[int(rng.random() < 0.15)]
    settings = Settings(method, tol=0.0, prove="all")
    result = cross_validate(RowFolds(RowTable(X, y, refit), folds), [0.0], taus, settings)
    lower, upper = result.table("lower")[0] * n, result.table("upper")[0] * n
    rows = np.column_stack([X, y])
    exact = [tuple(about_mean(rows[m], rows[pair[0]], refit) for m in pair) for pair in pairs]
    for i, tau in enumerate(taus.tolist()):
        if math.comb(p, tau) * tau**3 * folds.k > 25_000:
            continue
        ranges = [least_norm_range(train, held, tau) for train, held in exact]
        if all(ranges):
            low, high = np.sum(ranges, axis=0)
            if not (lower[i] <= high and low <= upper[i]):
                yield (
                    f"{method}, {folds.k} folds of {n} rows, τ = {tau} of {p}, taus {taus}: "
                    f"[{lower[i] / n}, {upper[i] / n}] misses [{low / n}, {high / n}]"
                )


FOLDS: dict[str, Attack] = {
    "fold schemes": fold_schemes,
    "leave-one-out": leave_one_out,
    "dependent rows": dependent_rows,
}
