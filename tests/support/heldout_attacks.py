"""Random cross-validations whose held-out rows see what training rows hardly tell.

Training rows that hardly tell some columns apart leave noise of their difference in coefficients,
and a row that is held out may see it: money that is not standardised beside its total, near copies,
0/1 columns with a single 1. Rational numbers judge every error that is called exact, and every
interval. Attacks are as in ``attacks``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .attacks import Attack
from .brute_force import eliminated, inner_product, solved
from .inside import (
    CVResult,
    RowFolds,
    RowTable,
    Settings,
    cross_validate,
    least_is_proved,
    make_folds,
)

Array = NDArray[np.float64]
Matrix = list[list[Fraction]]
# Objectives of two supports whose relative difference is at most this share count as tied, as
# rounding may make either the best.
TIED = Fraction(1, 10**8)
# The largest share of an error that rounding may move where the error is called exact, which
# docs/theory.md promises.
CALLED_EXACT = 1e-6


class Table(NamedTuple):
    """Rows of [X y] with their weights, or None, and whether an intercept is fitted.

    Missing values are NaN.
    """

    X: Array
    y: Array
    weights: Array | None
    refit: bool


def money(rng: np.random.Generator, n: int, p: int) -> Array:
    """Whole numbers of 1e4 to 1e6; the last column is a total, but for one row or two."""
    unit = 10.0 ** int(rng.integers(4, 7))
    parts = np.round(rng.lognormal(0.0, 0.5, size=(n, max(p - 1, 1))) * unit)
    total = parts[:, : int(rng.integers(1, parts.shape[1] + 1))].sum(axis=1)
    for i in rng.choice(n, size=int(rng.integers(0, 3)), replace=False):
        total[i] += float(rng.choice([1.0, 9.0, 90.0, 900.0])) * 10.0 ** int(rng.integers(0, 3))
    return np.column_stack([parts, total])[:, :p]


def near_copies(rng: np.random.Generator, n: int, p: int) -> Array:
    """One column and copies of it that differ by 1e-9 to 1e-1, in all rows or in one."""
    x = rng.normal(size=n)
    X = np.column_stack([x, *(x for _ in range(p - 1))])
    for j in range(1, p):
        off = 10.0 ** rng.uniform(-9, -1) * rng.normal(size=n)
        if rng.random() < 0.5:
            off[np.arange(n) != rng.integers(n)] = 0.0
        X[:, j] += off
    if rng.random() < 0.5:
        X[:, -1] = rng.normal(size=n)
    return X


def rare_levels(rng: np.random.Generator, n: int, p: int) -> Array:
    """0/1 columns, some with a single 1, and perhaps a column of numbers beside them."""
    X = (rng.random(size=(n, p)) < 0.4).astype(np.float64)
    for j in np.flatnonzero(rng.random(p) < 0.5):
        X[:, j] = 0.0
        X[rng.integers(n), j] = 1.0
    if rng.random() < 0.5:
        X[:, 0] = rng.normal(size=n)
    return X


def few_rows(rng: np.random.Generator, n: int, p: int) -> Array:
    """Columns of whole numbers, of which some depend on others."""
    X = rng.integers(-9, 10, size=(n, p)).astype(np.float64)
    if p > 2 and rng.random() < 0.6:
        X[:, -1] = X[:, 0] - 2.0 * X[:, 1]
    return X


KINDS = (money, near_copies, rare_levels, few_rows)


def drawn_table(rng: np.random.Generator, most_rows: int = 16) -> Table:
    """A table of up to ``most_rows`` rows and two to four columns, in any units."""
    p = int(rng.integers(2, 5))
    n = int(rng.integers(4, p + 3)) if rng.random() < 0.15 else int(rng.integers(8, most_rows + 1))
    X = KINDS[int(rng.integers(len(KINDS)))](rng, n, p)
    slopes = rng.normal(size=p) * (rng.random(p) < 0.7)
    y = X @ slopes
    y += 10.0 ** rng.uniform(-4, 1) * (y.std() or 1.0) * rng.normal(size=n)
    if rng.random() < 0.4:
        X = X * 10.0 ** rng.integers(-4, 5, size=p)
    if rng.random() < 0.2:
        X = X + 10.0 ** rng.integers(0, 4) * np.abs(X).max()
    y *= 10.0 ** int(rng.integers(-6, 7))
    if rng.random() < 0.5:
        y = np.round(y) if np.abs(y).max() > 100.0 else y
    weights = None
    if rng.random() < 0.3:
        weights = rng.choice([0.25, 1.0, 2.0, 3.0, 1000.0], size=n)
    return Table(X, y, weights, bool(rng.random() < 0.8))


def gammas_of(rng: np.random.Generator, X: Array) -> list[float]:
    """One to three γ from 0 to 1e8, in the unit of the columns or not."""
    unit = float(np.square(X - X.mean(axis=0)).sum(axis=0).max()) if rng.random() < 0.5 else 1.0
    found = [10.0 ** rng.uniform(-10, 8), unit * 10.0 ** rng.uniform(-16, 2), 1e-4, 1e-10, 0.0]
    size = int(rng.integers(1, 4))
    return sorted(float(v) for v in rng.choice(found, size=size, replace=False))


def centred(table: Table, train: NDArray[np.intp], held: NDArray[np.intp]) -> tuple[Matrix, Matrix]:
    """Training and held-out rows of [X y] without any rounding, about the training means."""
    given = np.column_stack([table.X, table.y])
    own = np.ones(train.size) if table.weights is None else table.weights[train]
    for column in given.T:  # Missing values are filled by the means of training rows.
        lost = np.isnan(column)
        some = ~lost[train]
        if lost.any():
            column[lost] = np.average(column[train][some], weights=own[some])
    rows = [[Fraction(float(v)) for v in row] for row in given]
    if not table.refit:
        return [rows[i] for i in train], [rows[i] for i in held]
    w = [Fraction(1) if table.weights is None else Fraction(table.weights[i]) for i in train]
    total = sum(w)
    mean = [
        sum(v * row for v, row in zip(w, column, strict=True)) / total
        for column in zip(*(rows[i] for i in train), strict=True)
    ]
    about = [[v - m for v, m in zip(row, mean, strict=True)] for row in rows]
    return [about[i] for i in train], [about[i] for i in held]


class Fitted(NamedTuple):
    """A ridge fit on some columns without any rounding; None where rounding decides the rank."""

    coef: list[Fraction] | None
    objective: Fraction


def ridge_fit(joint: Matrix, columns: tuple[int, ...], gamma: Fraction) -> Fitted:
    """The ridge fit at a γ > 0, from the products of all columns of [X y]."""
    M = [[joint[a][b] for b in columns] for a in columns]
    for a in range(len(columns)):
        M[a][a] += gamma / 2
    D = lcm(*(v.denominator for row in M for v in row))
    b = [joint[a][-1] for a in columns]
    beta = solved([[int(v * D) for v in row] for row in M], [v * D for v in b])
    return Fitted(beta, joint[-1][-1] - inner_product(b, beta))


def least_norm(train: Matrix, weights: list[Fraction], columns: tuple[int, ...]) -> Fitted:
    """The fit of least norm at γ = 0.

    Columns that numbers of 64 bits cannot tell from dependent ones count as dependent in the
    package. Where they are independent all the same, nothing is judged.
    """
    A, b = [[row[j] for j in columns] for row in train], [row[-1] for row in train]
    D = lcm(*(v.denominator for row in A for v in row))
    whole = [[int(v * D) for v in row] for row in A]
    F, pivots, d = eliminated(whole)  # D·A = C F / d, with C the pivot columns of D·A.
    beta, rank = [Fraction(0)] * len(columns), len(pivots)
    if pivots:
        C = [[row[j] for row in whole] for j in pivots]
        W = lcm(*(w.denominator for w in weights))
        weighted = [[int(w * W) * v for v, w in zip(column, weights, strict=True)] for column in C]
        inner = [inner_product(u, b) for u in weighted]
        inner = solved([[inner_product(u, v) for v in C] for u in weighted], inner)
        outer = solved([[inner_product(u, v) for v in F] for u in F], inner)
        beta = [D * d * inner_product(column, outer) for column in zip(*F, strict=True)]
    squares = [
        w * (row[-1] - inner_product([row[j] for j in columns], beta)) ** 2
        for row, w in zip(train, weights, strict=True)
    ]
    X = np.array([[float(row[j]) for j in columns] for row in train])
    X *= np.sqrt(np.array(weights, dtype=np.float64))[:, None]
    lengths = np.linalg.norm(X, axis=0)
    values = np.linalg.svd(X / np.where(lengths > 0.0, lengths, 1.0), compute_uv=False)
    counted = int((values > 1e-11 * values[0]).sum()) if values.size else 0
    return Fitted(beta if counted == rank else None, sum(squares, Fraction(0)))


class Errors(NamedTuple):
    """CV errors without any rounding, shape (γ, τ): where supports tie, the least and greatest.

    Where nothing is known the greatest is ∞.
    """

    low: Array
    high: Array


def exact_errors(table: Table, folds: Any, gammas: list[float], taus: NDArray[np.intp]) -> Errors:
    """h(γ, τ) by enumeration with rational numbers."""
    p, shape = table.X.shape[1], (len(gammas), taus.size)
    low, high = (np.full(shape, Fraction(0), dtype=object) for _ in range(2))
    unknown = np.zeros(shape, dtype=bool)
    every = [Fraction(1)] * len(table.y)
    if table.weights is not None:
        every = [Fraction(float(w)) for w in table.weights]
    total = Fraction(0)
    for j in range(folds.k):
        train, held = folds.split(j)
        total += sum(every[i] for i in held)
        inside, outside = centred(table, train, held)
        weights = [every[i] for i in train]
        weighted = [[w * v for v in row] for row, w in zip(inside, weights, strict=True)]
        left, right = list(zip(*weighted, strict=True)), list(zip(*inside, strict=True))
        joint = [[Fraction(inner_product(u, v)) for v in right] for u in left]
        for g, gamma in enumerate(map(Fraction, gammas)):
            for t, tau in enumerate(taus.tolist()):
                fits = list[tuple[Fraction, Fraction | None]]()
                for S in combinations(range(p), tau):
                    fit = ridge_fit(joint, S, gamma) if gamma else least_norm(inside, weights, S)
                    error = None
                    if fit.coef is not None:
                        error = sum(
                            every[i] * (row[-1] - inner_product([row[c] for c in S], fit.coef)) ** 2
                            for i, row in zip(held, outside, strict=True)
                        )
                    fits.append((fit.objective, error))
                least = min(f for f, _ in fits) * (1 + TIED) + joint[-1][-1] / 10**20
                best = [e for f, e in fits if f <= least]
                unknown[g, t] |= None in best
                low[g, t] += min((e for e in best if e is not None), default=0)
                high[g, t] += max((e for e in best if e is not None), default=0)
    low[unknown], high[unknown] = 0, 0
    found = Errors(*((side / total).astype(np.float64) for side in (low, high)))
    found.high[unknown] = np.inf
    return found


def wrong_claims(result: CVResult, truth: Errors, share: float = CALLED_EXACT) -> Iterator[str]:
    """A line for every error called exact, every interval and every choice that does not hold."""
    error, exact = result.table("cv_error"), result.table("exact").astype(bool)
    lower, upper = result.table("lower"), result.table("upper")
    room = result.rounding
    for g, t in np.argwhere(np.isfinite(error)).tolist():
        low, high = truth.low[g, t], truth.high[g, t]
        if high == np.inf:
            continue
        off = share * high + room if exact[g, t] else 1e-9 * high + room
        if not (lower[g, t] <= high + off and low <= upper[g, t] + off):
            yield (
                f"γ = {result.gammas[g]:.4g}, τ = {result.taus[t]}: "
                f"{'exact ' if exact[g, t] else ''}{error[g, t]:.12g} in [{lower[g, t]:.12g}, "
                f"{upper[g, t]:.12g}] misses [{low:.12g}, {high:.12g}]"
            )
    best = result.best()
    most = truth.high.min() * (1.0 + 2.0 * share) + 2.0 * room
    if least_is_proved(result) and best.cv_error > most:
        yield f"certified {best.cv_error!r}, but {truth.high.min()!r} is the least"


def held_out_errors(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Errors called exact, intervals and certified choices, by rational enumeration."""
    table = drawn_table(rng)
    n, p = table.X.shape
    cv = "loo" if rng.random() < 0.6 else int(rng.integers(2, min(6, n)))
    folds = make_folds(cv, n, seed=number)
    gammas, taus = gammas_of(rng, table.X), np.arange(1, p + 1)
    method = "search" if rng.random() < 0.1 else "exact"
    settings = Settings(method, tol=0.0, prove="all")
    data = RowFolds(RowTable(table.X, table.y, table.refit, weights=table.weights), folds)
    result = cross_validate(data, gammas, taus, settings)
    for line in wrong_claims(result, exact_errors(table, folds, gammas, taus)):
        yield f"{method}, {cv}, {n} × {p}, weights {table.weights is not None}: {line}"


HELD_OUT: dict[str, Attack] = {"held-out errors": held_out_errors}
