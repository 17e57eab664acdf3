"""Best subsets under constraints on columns, by enumeration of the units and bounded fits.

All supports are tried, and all numbers are computed anew, without the package.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from sparsecv import Constraints
from sparsecv.solvers.core.column_rules import ResolvedRules

from .brute_force import Matrix, exact_least_norm, exact_moments, products

Array = NDArray[np.float64]
Support = tuple[int, ...]


def resolved(
    p: int,
    names: list[str] | None = None,
    *,
    constraints: Constraints | None = None,
    **asked: Any,
) -> ResolvedRules:
    """What constraints, given whole or by their fields, ask of p columns."""
    return (constraints or Constraints(**asked)).resolve(p, names)


class Rules(NamedTuple):
    """What is asked of p columns: units are lists of columns, all else names places in that list.

    lower, upper, shape (p,): Bounds on the coefficients.
    """

    units: list[list[int]]
    include: frozenset[int]
    exclude: frozenset[int]
    lower: Array
    upper: Array

    @classmethod
    def bounds(cls, lower: Array, upper: Array) -> Rules:
        """Bounds on the coefficients, and nothing else."""
        units, none = [[j] for j in range(lower.size)], frozenset[int]()
        return cls(units, none, none, lower, upper)

    @property
    def keywords(self) -> dict[str, Any]:
        """The rules as the parameters of estimators and problems."""
        found: dict[str, Any] = {}
        labels: list[str | None] = [None] * self.lower.size
        for u, columns in enumerate(self.units):
            for j in columns:
                labels[j] = f"unit {u}" if len(columns) > 1 else None
        if any(labels):
            found["groups"] = labels
        for name, units in (("include", self.include), ("exclude", self.exclude)):
            if units:
                found[name] = [self.units[u][0] for u in sorted(units)]
        bounds = {
            j: (float(low), float(high))
            for j, (low, high) in enumerate(zip(self.lower, self.upper, strict=True))
            if np.isfinite([low, high]).any()
        }
        if bounds:
            found["bounds"] = bounds
        return {"constraints": Constraints(**found, count="groups")}

    def allows(self, chosen: frozenset[int]) -> bool:
        """Whether units may be a model."""
        return self.include <= chosen and not self.exclude & chosen

    def models(self, size: int) -> Iterator[Support]:
        """The columns of every model of so many units."""
        for chosen in combinations(range(len(self.units)), size):
            if self.allows(frozenset(chosen)):
                yield tuple(sorted(j for u in chosen for j in self.units[u]))


def bounded_ridge(
    X: Array, y: Array, gamma: float, rules: Rules, support: Support, intercept: bool = False
) -> Array:
    """Coefficients (p,), or (p + 1,) with the intercept last, of the best fit on a support."""
    n, p = X.shape
    columns = list(support)
    stacked = np.zeros((n + len(columns), len(columns)))
    stacked[:n] = X[:, columns]
    stacked[n + np.arange(len(columns)), np.arange(len(columns))] = np.sqrt(gamma / 2.0)
    low, high = rules.lower[columns], rules.upper[columns]
    if intercept:
        stacked = np.column_stack([stacked, np.append(np.ones(n), np.zeros(len(columns)))])
        low, high = np.append(low, -np.inf), np.append(high, np.inf)
    target = np.append(y, np.zeros(len(columns)))
    found = np.zeros(p + intercept)
    places = [*columns, p] if intercept else columns
    if places:
        found[places] = _bounded_least_squares(stacked, target, low, high)
    return found


def _bounded_least_squares(A: Array, y: Array, low: Array, high: Array) -> Array:
    if not (np.isfinite(low) | np.isfinite(high)).any():
        return np.asarray(np.linalg.lstsq(A, y, rcond=None)[0])
    fixed = low == high
    beta = np.where(fixed, low, 0.0)
    if not fixed.all():
        lengths = np.linalg.norm(A[:, ~fixed], axis=0)
        lengths[lengths == 0.0] = 1.0
        between = (low[~fixed] * lengths, high[~fixed] * lengths)
        solved = lsq_linear(A[:, ~fixed] / lengths, y, between, method="bvls", tol=1e-14)
        beta[~fixed] = np.clip(solved.x / lengths, low[~fixed], high[~fixed])
        inner = ~fixed
        inner[~fixed] = solved.active_mask == 0
        polished = beta.copy()
        polished[~inner] = np.where(
            beta[~inner] - low[~inner] < high[~inner] - beta[~inner], low[~inner], high[~inner]
        )
        polished[inner] = np.linalg.lstsq(
            A[:, inner], y - A[:, ~inner] @ polished[~inner], rcond=None
        )[0]
        inside = (low <= polished).all() and (polished <= high).all()
        if inside and np.sum((y - A @ polished) ** 2) <= np.sum((y - A @ beta) ** 2):
            beta = polished
    return beta


def exact_bounded(joint: Matrix, gamma: float, rules: Rules, support: Support) -> Fraction:
    """The least objective on independent columns within their bounds, without any rounding.

    The optimum is the fit on its own free columns, with the others at their bounds, so that all
    choices of free columns and of bounds are tried.
    """
    found = []
    for at in fixed_coefficients(rules, support):
        beta = exact_fit(joint, gamma, [j for j in support if j not in at], at)
        if all(rules.lower[j] <= v <= rules.upper[j] for j, v in beta.items()):
            found.append(exact_value(joint, gamma, beta))
    return min(found)


def fixed_coefficients(rules: Rules, support: Support) -> Iterator[dict[int, Fraction]]:
    """Every choice of columns of a support whose coefficients are at a bound, with the bounds."""
    bounds = [{rules.lower[j], rules.upper[j]} - {-math.inf, math.inf} for j in support]
    for state in product(*([None, *ends] for ends in bounds)):
        yield {j: Fraction(float(v)) for j, v in zip(support, state, strict=True) if v is not None}


def exact_least_norm_within(
    rows: Matrix, rules: Rules, support: Support
) -> tuple[Fraction, dict[int, Fraction]]:
    """At γ = 0, for any columns of [X y]: the least squares within bounds, without any rounding.

    Of the coefficients of least squares within the bounds those of least norm are returned. They
    are the fit of least norm on their own free columns, with the others at their bounds.
    """
    found = []
    for at in fixed_coefficients(rules, support):
        free = [j for j in support if j not in at]
        left = [row[-1] - sum((row[j] * v for j, v in at.items()), Fraction(0)) for row in rows]
        beta = dict(at)
        if free:
            coef, _ = exact_least_norm([[row[j] for j in free] for row in rows], left)
            beta.update(zip(free, coef, strict=True))
        if all(rules.lower[j] <= v <= rules.upper[j] for j, v in beta.items()):
            fitted = (sum((row[j] * v for j, v in beta.items()), Fraction(0)) for row in rows)
            loss = sum(
                ((row[-1] - f) ** 2 for row, f in zip(rows, fitted, strict=True)), Fraction(0)
            )
            norm = sum((v * v for v in beta.values()), Fraction(0))
            found.append((loss, norm, [beta[j] for j in support]))
    loss, _, best = min(found)
    return loss, dict(zip(support, best, strict=True))


def exact_fit(
    joint: Matrix, gamma: float, free: list[int], at: dict[int, Fraction]
) -> dict[int, Fraction]:
    """The coefficients of a ridge fit on some columns, with the others fixed."""
    last, beta = len(joint) - 1, dict(at)
    M = [
        [joint[i][j] + (Fraction(gamma) / 2 if i == j else 0) for j in free]
        + [joint[i][last] - sum((joint[i][j] * v for j, v in at.items()), Fraction(0))]
        for i in free
    ]
    for a in range(len(free)):
        for r in range(a + 1, len(free)):
            ratio = M[r][a] / M[a][a]
            M[r] = [u - ratio * v for u, v in zip(M[r], M[a], strict=True)]
    for a in reversed(range(len(free))):
        known = (M[a][c] * beta[free[c]] for c in range(a + 1, len(free)))
        beta[free[a]] = (M[a][-1] - sum(known, Fraction(0))) / M[a][a]
    return beta


def exact_ridge(
    rows: Matrix, u: list[Fraction], support: Support
) -> tuple[Fraction, list[Fraction]]:
    """The least objective on columns of [X y] with penalties u_j β_j², and its coefficients."""
    joint = products(rows)
    for j, weight in enumerate(u):
        joint[j][j] += weight
    beta = exact_fit(joint, 0.0, list(support), {})
    return exact_value(joint, 0.0, beta), [beta[j] for j in support]


def exact_value(joint: Matrix, gamma: float, beta: dict[int, Fraction]) -> Fraction:
    """The objective of coefficients by column."""
    last = len(joint) - 1
    total = joint[last][last]
    for i, v in beta.items():
        total += v * (Fraction(gamma) / 2 * v - 2 * joint[i][last])
        total += v * sum((joint[i][j] * w for j, w in beta.items()), Fraction(0))
    return total


def value(X: Array, y: Array, gamma: float, beta: Array) -> float:
    """‖y − Xβ‖² + (γ/2)‖β‖²; β may end with an intercept."""
    p = X.shape[1]
    residual = y - X @ beta[:p] - (beta[p] if beta.size > p else 0.0)
    return float(residual @ residual + gamma / 2.0 * (beta[:p] @ beta[:p]))


def best_of_every_size(
    X: Array, y: Array, gamma: float, rules: Rules, spread: Array | None = None
) -> dict[int, tuple[float, list[tuple[Support, Array]]]]:
    """By number of units: the least objective, and all supports within 1e-9 of it with their fits.

    A size that no model has is left out. With ``spread``, columns are divided by it, bounds are
    those of the coefficients before, and fits have an intercept.
    """
    if spread is not None:
        X = X / spread
        rules = rules._replace(lower=rules.lower * spread, upper=rules.upper * spread)
    found = {}
    for size in range(len(rules.units) + 1):
        tried = []
        for columns in rules.models(size):
            beta = bounded_ridge(X, y, gamma, rules, columns, spread is not None)
            tried.append((value(X, y, gamma, beta), columns, beta))
        if tried:
            least = min(f for f, _, _ in tried)
            near = least + 1e-9 * abs(least) + 1e-13 * float(y @ y)
            found[size] = (least, [(s, b) for f, s, b in tried if f <= near])
    return found


KINDS = ("groups", "include", "exclude", "positive", "bounds")

# Each kind by itself, and kinds that may get in each other's way.
TOGETHER = [
    *[(kind,) for kind in KINDS],
    ("groups", "positive"),
    ("bounds", "groups"),
    ("include", "exclude"),
    ("groups", "exclude", "bounds"),
    ("groups", "positive", "include"),
]


def random_rules(rng: np.random.Generator, p: int, kinds: tuple[str, ...]) -> Rules:
    """Rules of the kinds named that some model of p columns obeys."""
    while True:
        rules = _drawn(rng, p, kinds)
        if any(True for s in range(1, len(rules.units) + 1) for _ in rules.models(s)):
            return rules


def _drawn(rng: np.random.Generator, p: int, kinds: tuple[str, ...]) -> Rules:
    units = [[j] for j in range(p)]
    if "groups" in kinds:
        label = rng.integers(0, max(2, p - 1), size=p)
        units = [np.flatnonzero(label == u).tolist() for u in set(label)]
        units.sort()
    m = len(units)
    include = frozenset(
        rng.choice(m, size=min(m, 1 + int(rng.integers(2))), replace=False).tolist()
    )
    exclude = frozenset(
        rng.choice(m, size=min(m, 1 + int(rng.integers(2))), replace=False).tolist()
    )
    lower, upper = np.full(p, -math.inf), np.full(p, math.inf)
    if "positive" in kinds:
        lower[rng.random(p) < 0.7] = 0.0
    if "bounds" in kinds:
        some = rng.random(p) < 0.6
        lower[some] = np.maximum(lower[some], -rng.exponential(0.5, size=int(some.sum())))
        some = rng.random(p) < 0.6
        upper[some] = rng.exponential(0.5, size=int(some.sum()))
    return Rules(
        units,
        include if "include" in kinds else frozenset(),
        exclude if "exclude" in kinds else frozenset(),
        lower,
        upper,
    )


class NearColumns(NamedTuple):
    """Columns 1e-11 to 1e-5 apart with rules, and all that exact arithmetic says of them.

    exact: By number of units the least objective of every model.
    """

    X: Array
    y: Array
    gamma: float
    rules: Rules
    exact: dict[int, dict[Support, Fraction]]

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, kinds: tuple[str, ...], powers: int = 0
    ) -> NearColumns:
        """Up to five columns; coefficients and bounds are some 1, or some 1 over the distance.

        powers: Columns have units from 2 to the −powers to 2 to the powers.
        """
        n, p = int(rng.integers(6, 12)), int(rng.integers(2, 6))
        X, apart = rng.standard_normal((n, p)), 10.0 ** rng.uniform(-11, -5)
        for j in range(1, p):
            if rng.random() < 0.7:
                sign = rng.choice([-1.0, 1.0])
                X[:, j] = sign * X[:, rng.integers(j)] + apart * rng.standard_normal(n)
        y = rng.standard_normal(n)
        if rng.random() < 0.5:
            beta = rng.standard_normal(p) * rng.choice([1.0, 1.0 / apart])
            y = X @ beta + rng.uniform() * y
        if powers > 0:
            X *= 2.0 ** rng.integers(-powers, powers + 1, size=p)
        gamma = float(rng.choice([0.0, 1e-20, 1e-16, 1e-12, 1e-8, 1e-4, 1.0]))
        rules, joint = random_rules(rng, p, kinds), exact_moments(X, y)
        wide = float(rng.choice([1.0, 0.1 / apart]))
        rules = rules._replace(lower=rules.lower * wide, upper=rules.upper * wide)
        exact = {
            size: {S: exact_bounded(joint, gamma, rules, S) for S in rules.models(size)}
            for size in range(1, len(rules.units) + 1)
        }
        return cls(X, y, gamma, rules, {size: values for size, values in exact.items() if values})

    def least(self, size: int) -> Fraction:
        """The least objective of at most so many units."""
        return min(min(values.values()) for s, values in self.exact.items() if s <= size)


class DependentColumns(NamedTuple):
    """Columns that are equal, proportional or combined exactly, with bounds; fits at γ = 0."""

    X: Array
    y: Array
    rules: Rules

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> DependentColumns:
        """Two to five columns of whole numbers in units of 2⁻²⁵ to 2²⁵, and one to six rows."""
        n, p = int(rng.integers(1, 7)), int(rng.integers(2, 6))
        X = rng.integers(-4, 5, size=(n, p)).astype(float)
        for j in range(1, p):
            kind = rng.random()
            if kind < 0.3:
                X[:, j] = X[:, rng.integers(j)]
            elif kind < 0.5:
                X[:, j] = rng.choice([-2.0, -1.0, 0.5, 3.0]) * X[:, rng.integers(j)]
            elif kind < 0.8:
                X[:, j] = X[:, :j] @ rng.integers(-2, 3, size=j)
        y = rng.integers(-6, 7, size=n).astype(float)
        if rng.random() < 0.3:
            y = X @ rng.integers(-2, 3, size=p)
        if rng.random() < 0.4:
            X *= 2.0 ** rng.integers(-25, 26, size=p)
        lower, upper = np.full(p, -np.inf), np.full(p, np.inf)
        size = 2.0 ** int(rng.integers(-4, 3))
        for j in range(p):
            kind = rng.random()
            if kind < 0.5:
                lower[j] = -size * int(rng.integers(0, 5)) * (rng.random() < 0.6)
            if 0.3 < kind < 0.8:
                upper[j] = size * int(rng.integers(0, 5))
        return cls(X, y, Rules.bounds(lower, upper))

    @property
    def rows(self) -> Matrix:
        """[X y] as fractions."""
        return [[Fraction(float(v)) for v in row] for row in np.column_stack([self.X, self.y])]

    def error(self, support: Support, coef: Array, beta: dict[int, Fraction]) -> float:
        """The largest error of the coefficients of columns at length 1.

        coef, shape (s,): Coefficients of the columns of a support.
        beta: The right coefficients.
        Returns: The error as a share of the length of y and of what the right terms sum to.
        """
        lengths = np.linalg.norm(self.X[:, list(support)], axis=0)
        right = np.array([float(beta[j]) for j in support])
        reach = float(np.linalg.norm(self.y) + np.abs(right) @ lengths)
        return float(np.max(np.abs(coef - right) * lengths)) / (reach or 1.0)
