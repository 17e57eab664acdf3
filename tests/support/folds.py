"""h(γ, τ) of eq. (2) by enumerating every support in every fold, without code of the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .brute_force import (
    EPS,
    Data,
    Matrix,
    enumerate_size,
    exact_least_norm,
    inner_product,
    ridge,
)

Array = NDArray[np.float64]
Pairs = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]

TIE = 1e-10  # supports this close in objective are equally good: either held-out error is right


class Bracket(NamedTuple):
    """Least and greatest h over the choices among tied supports, shape (γ, τ).

    ``slack`` (γ, 1) is what rounding of the data alone may do to a residual, relative to y: some
    ulp times the worst condition number of a fold's G + γ/2 I.
    """

    low: Array
    high: Array
    slack: Array
    size: float


def standardised(
    X: Array, y: Array, *, protocol: str = "honest", scale: str = "unit-variance", intercept: bool
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Columns without those that cannot matter, centred and scaled as the protocol says."""
    matters = [np.ptp(x) > 0 if intercept else x.any() for x in X.T]
    kept = np.flatnonzero(matters).astype(np.intp)
    X, y = X[:, kept].astype(float), y.astype(float)
    spread = np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=0))
    width = float(np.sqrt(((y - y.mean()) ** 2).sum()))
    if scale == "unit-variance":
        spread, width = spread / np.sqrt(y.size), width / np.sqrt(y.size)
    if scale == "none":
        spread, width = np.ones(kept.size), 1.0
    spread[np.ptp(X, axis=0) == 0] = 1.0
    if intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    if protocol == "paper":
        y = y / width
    return X / spread, y, kept


def in_fold(
    X: Array,
    y: Array,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    refit: bool,
    scale: str = "none",
) -> tuple[Array, Array, Array, Array]:
    """Training and held-out rows, about the training means where the intercept is refitted.

    scale: How columns are divided by what the training rows say of them.
    """
    A, b, H, t = X[train], y[train], X[test], y[test]
    if scale != "none":
        spread = np.sqrt(((A - A.mean(axis=0)) ** 2).sum(axis=0))
        spread /= np.sqrt(train.size) if scale == "unit-variance" else 1.0
        spread[np.ptp(A, axis=0) == 0] = 1.0
        A, H = A / spread, H / spread
    if refit:
        mean, level = A.mean(axis=0), float(b.mean())
        same = np.ptp(A, axis=0) == 0
        flat = np.ptp(b) == 0
        A, b, H, t = A - mean, b - level, H - mean, t - level
        A[:, same] = 0.0
        if flat:
            b = np.zeros_like(b)
    return A, b, H, t


def fold_errors(
    X: Array,
    y: Array,
    pairs: Pairs,
    gammas: Sequence[float] | Array,
    taus: Sequence[int] | NDArray[np.intp],
    refit: bool,
    scale: str = "none",
) -> tuple[Array, Array]:
    """Least and greatest held-out squared error over tied supports, shape (γ, τ, fold)."""
    low = np.empty((len(gammas), len(taus), len(pairs)))
    high = np.empty_like(low)
    for j, (train, test) in enumerate(pairs):
        A, b, H, t = in_fold(X, y, train, test, refit, scale)
        for g, gamma in enumerate(gammas):
            for i, tau in enumerate(taus):
                size = enumerate_size(Data(A, b, float(gamma)), int(tau))
                objective, gain = size.objective, size.gain
                # whichever is smaller keeps its digits
                if gain.max() < objective.min():
                    tied = gain >= gain.max() * (1 - TIE)
                else:
                    tied = objective <= objective.min() * (1 + TIE) + 1e-26 * float(b @ b)
                errors = [
                    float(np.sum((t - H[:, S] @ ridge(A[:, S], b, float(gamma))) ** 2))
                    for S in (list(size.supports[c]) for c in np.flatnonzero(tied))
                ]
                low[g, i, j], high[g, i, j] = min(errors), max(errors)
    return low, high


def conditioning(X: Array, y: Array, pairs: Pairs, gamma: float, refit: bool, scale: str) -> float:
    """Largest condition number of G + γ/2 I over the folds."""
    worst = 1.0
    top = float(np.linalg.norm(X, 2)) ** 2
    for train, test in pairs:
        A = in_fold(X, y, train, test, refit, scale)[0]
        values = np.zeros(X.shape[1])
        found = np.linalg.svd(A, compute_uv=False) ** 2
        values[: found.size] = found
        worst = max(worst, (top + gamma / 2) / (float(values.min()) + gamma / 2))
    return worst


def brute_force(
    X: Array,
    y: Array,
    pairs: Pairs,
    gammas: Sequence[float] | Array,
    taus: Sequence[int] | NDArray[np.intp],
    refit: bool,
    scale: str = "none",
) -> Bracket:
    """h(γ, τ) of solved columns X and response y."""
    rows = sum(test.size for _, test in pairs)
    low, high = fold_errors(X, y, pairs, gammas, taus, refit, scale)
    slack = [16 * EPS * conditioning(X, y, pairs, float(g), refit, scale) for g in gammas]
    return Bracket(
        low.sum(axis=2) / rows,
        high.sum(axis=2) / rows,
        np.array(slack)[:, None],
        float(np.sqrt(np.mean(y * y))),
    )


def inside(low: Array, high: Array, truth: Bracket, rtol: float = 1e-9) -> NDArray[np.bool_]:
    """Whether [low, high] meets the bracket, up to ``rtol`` and the rounding of the data."""
    room = truth.slack * truth.size + 1e-13 * truth.size
    least = np.sqrt(np.maximum(low, 0.0)) * (1 - rtol / 2) - room
    most = np.sqrt(np.maximum(high, 0.0)) * (1 + rtol / 2) + room
    return np.asarray((least <= np.sqrt(truth.high)) & (np.sqrt(truth.low) <= most))


def assert_within(h: Array, truth: Bracket, rtol: float = 1e-9, *, what: str = "h") -> None:
    """Every h lies in the bracket up to ``rtol`` and the rounding of the data."""
    bad = ~inside(h, h, truth, rtol)
    assert not bad.any(), (
        f"{what} = {h[bad]} outside [{truth.low[bad]}, {truth.high[bad]}] at {np.argwhere(bad)}"
    )


def about_mean(rows: Array, of: Array, refit: bool) -> Matrix:
    """Rows without any rounding, about the mean of the rows ``of`` where ``refit`` asks for it."""
    exact = [[Fraction(float(v)) for v in row] for row in rows]
    if not refit:
        return exact
    mean = [sum(map(Fraction, column), Fraction(0)) / len(of) for column in of.T.tolist()]
    return [[v - m for v, m in zip(row, mean, strict=True)] for row in exact]


def least_norm_range(train: Matrix, held: Matrix, tau: int) -> tuple[float, float] | None:
    """The least and the greatest error of the best supports at γ = 0, with room for rounding.

    Every support is fitted without rounding, the fit of least norm being meant. Supports count as
    best that rounding may make best. None where rounding times the condition of some support
    leaves its rank or its error open.
    """
    found = []
    for S in combinations(range(len(train[0]) - 1), tau):
        A, H = ([[row[j] for j in S] for row in rows] for rows in (train, held))
        b, t = ([row[-1] for row in rows] for rows in (train, held))
        beta, rank = exact_least_norm(A, b)
        left, error = (
            math.sqrt(sum((v - inner_product(row, beta)) ** 2 for row, v in zip(M, u, strict=True)))
            for M, u in ((A, b), (H, t))
        )
        X, Z = np.array(A, dtype=np.float64), np.array(H, dtype=np.float64)
        lengths = np.linalg.norm(X, axis=0)
        lengths[lengths == 0.0] = 1.0
        values = np.linalg.svd(X / lengths, compute_uv=False)
        condition = values[0] / values[rank - 1] if rank else 1.0
        if condition > 1e9:
            return None
        size = np.abs(np.array(beta, dtype=np.float64))
        off = 64.0 * EPS * (float(np.linalg.norm(np.array(b, dtype=float))) + lengths @ size)
        spread = float(np.linalg.norm(Z / lengths)) * condition
        moved = 64.0 * EPS * float(np.linalg.norm(np.array(t, dtype=float)))
        moved += off * (1.0 + spread) + 64.0 * EPS * spread * condition * left
        moved += 1e-10 * error  # Fits with a row deleted may lose five of sixteen digits.
        found.append((left, off, error, moved))
    most = min(left + off for left, off, _, _ in found)
    best = [(error, moved) for left, off, error, moved in found if left - off <= most]
    low, high = min(max(e - m, 0.0) for e, m in best), max(e + m for e, m in best)
    return (low**2, high**2) if high - low < 1e6 else None
