"""Families of small training problems, each problem with all that exact arithmetic says of it.

A family takes a generator and draws one :class:`Case`. The matrix of ``tests/matrix`` asks every
door of the package about a few cases, and ``experiments/solvers/attack.py`` about many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv.solvers import SparseRidgeProblem

from .brute_force import (
    Data,
    Matrix,
    Support,
    enumerate_size,
    exact_given,
    exact_moments,
    exact_objective,
    exact_objectives,
    exact_sizes,
)
from .constrained import (
    KINDS,
    DependentColumns,
    NearColumns,
    Rules,
    best_of_every_size,
    exact_bounded,
    exact_least_norm_within,
    random_rules,
)
from .problems import ugly_data

Array = NDArray[np.float64]
Exact = dict[int, dict[Support, Fraction]]
# Squared share of its length below which a column is not clearly independent of the others.
LEAST_PIVOT = 1e-22
# Shares of the longest column's squared length that γ is in the family "any gamma".
EVERY_SHARE = (1e-20, 1e30, 1e100, *(10.0 ** np.arange(-12.0, 13.0)))


class Case(NamedTuple):
    """A training problem and the exact objectives of its supports.

    exact: By number of units the objective of every support, or at least of the best ones.
    rules: Constraints on columns; None where there are none.
    joint: The exact moments, of which objectives that are not listed are computed; None where a
        support that is not listed has no exact objective.
    given: Whether the problem is made from the matrices XᵀX, Xᵀy, yᵀy.
    loses: Whether columns are so near each other that the objective of a fit has fewer digits than
        that of a bound. Claims are then compared with the objective that is printed.
    lost: An objective up to which differences are rounding.
    mild: Whether every search that ends proves every size.
    """

    data: Data
    exact: Exact
    rules: Rules | None = None
    joint: Matrix | None = None
    given: bool = False
    loses: bool = False
    lost: float = 0.0
    mild: bool = False

    @property
    def p(self) -> int:
        return int(self.data.X.shape[1])

    @property
    def yy(self) -> float:
        return float(self.data.y @ self.data.y)

    @property
    def sizes(self) -> list[int]:
        """The numbers of units, 0 aside, that some model has."""
        return [size for size in sorted(self.exact) if size > 0]

    def n_models(self, size: int) -> int:
        """How many supports of so many units there are."""
        if self.rules is None:
            return math.comb(self.p, size)
        return sum(1 for _ in self.rules.models(size))

    def problem(self, tau: int | None = None) -> SparseRidgeProblem:
        X, y, gamma = self.data
        asked = {"gamma": gamma, "tau": tau or self.sizes[-1]}
        if self.given:
            return SparseRidgeProblem.from_gram(X.T @ X, X.T @ y, float(y @ y), **asked)
        more = {} if self.rules is None else self.rules.keywords
        return SparseRidgeProblem(X, y, **asked, **more)

    def least(self, size: int) -> Fraction:
        """The least objective of at most so many units: a coefficient may be 0."""
        return min(min(values.values()) for s, values in self.exact.items() if s <= size)

    def own(self, size: int, support: Support) -> Fraction | None:
        """The objective of a support; None where exact arithmetic does not say it."""
        value = self.exact.get(size, {}).get(support)
        if value is None and self.joint is not None:
            value = exact_objective(self.joint, self.data.gamma, support)
        return value


def plain_case(data: Data, **more: Any) -> Case:
    """Columns without constraints; up to 7 of them have every support's exact objective."""
    yy = float(data.y @ data.y)
    more = {"lost": 1e-24 * yy} | more
    if data.X.shape[1] <= 7:
        return Case(data, exact_sizes(exact_objectives(data)), **more)
    joint, exact = exact_moments(data.X, data.y), Exact()
    for s in range(1, data.X.shape[1] + 1):
        size = enumerate_size(data, s)
        best = [size.supports[i] for i in np.argsort(size.objective)[:3]]
        exact[s] = {S: exact_objective(joint, data.gamma, S) for S in best}
    return Case(data, exact, joint=joint, **more)


def ugly(rng: np.random.Generator) -> Case:
    """Up to seven columns: collinear, duplicated, offset, of any scale; y anything."""
    return plain_case(ugly_data(rng))


def wide(rng: np.random.Generator) -> Case:
    """Up to twelve such columns."""
    return plain_case(ugly_data(rng, 12))


def mild(rng: np.random.Generator) -> Case:
    """Columns whose condition is small at their γ, so that every search proves every size."""
    n, p = int(rng.integers(2, 30)), int(rng.integers(1, 9))
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1)) * rng.choice([0.0, 1.0])
    kind = int(rng.integers(4))
    if kind == 1:
        X[:, rng.integers(p)] = -X[:, rng.integers(p)]
    elif kind == 2:
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
    y = X @ rng.standard_normal(p) * rng.integers(2) + rng.standard_normal(n)
    return plain_case(Data(X, y, 10.0 ** rng.uniform(-3, 3)), mild=True)


def any_gamma(rng: np.random.Generator) -> Case:
    """γ = 0 and 1e-12 to 1e12 times the columns' squared length."""
    data = ugly_data(rng)
    length = float(np.square(data.X).sum(axis=0).max()) or 1.0
    share = 0.0 if rng.random() < 0.25 else float(rng.choice(EVERY_SHARE))
    return plain_case(data._replace(gamma=length * share))


def far_from_zero(rng: np.random.Generator) -> Case:
    """Columns far from 0, or that share one factor; y is next to a multiple of the first."""
    n, p = int(rng.integers(4, 40)), int(rng.integers(2, 8))
    if rng.random() < 0.5:
        X = rng.normal(size=(n, p)) + 10.0 ** rng.uniform(2, 6)
    else:
        X = rng.normal(size=(n, 1)) + 10.0 ** rng.uniform(-9, -1) * rng.normal(size=(n, p))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] * rng.normal()
    noise = float(rng.choice([0.0, 1e-8, 1e-6, 1e-4, 1e-3]))
    y = y + noise * rng.normal(size=n) * float(np.sqrt(np.mean(y * y)))
    gamma = 2.0 * float(np.square(X).sum(axis=0).max()) * 10.0 ** rng.uniform(-8.0, 0.0)
    return plain_case(Data(X, y, gamma))


def levels(rng: np.random.Generator) -> Case:
    """Shares that add up to 1, all levels of a factor, and nested 0/1 columns, centred or not."""
    n, p = int(rng.integers(4, 20)), int(rng.integers(3, 7))
    label = rng.integers(0, p - 1, size=n)
    X = np.eye(p)[label]
    X[:, -1] = label >= (p - 1) // 2
    if rng.random() < 0.3:
        X = rng.dirichlet(np.ones(p), size=n)
    if rng.random() < 0.5:
        X = X - X.mean(axis=0)
    y = X @ rng.standard_normal(p) + rng.uniform(0.0, 2.0) * rng.standard_normal(n)
    return plain_case(Data(X, y, float(rng.choice([0.0, 1e-6, 1.0]))))


def least_pivot(joint: Matrix, gamma: float, support: Support) -> float:
    """The least share of its squared length that the other columns of a support leave a column."""
    shares = []
    for last in support:
        order = [*(j for j in support if j != last), last]
        M = [[joint[a][b] for b in order] for a in order]
        M[-1][-1] += Fraction(gamma) / 2
        left = exact_objective(M, gamma, range(len(order) - 1))
        shares.append(float(left / M[-1][-1]) if left else 0.0)
    return min(shares)


def clearly_independent(data: Data) -> Case:
    """Columns nearly the same, of which supports count whose columns are clearly independent."""
    joint = exact_moments(data.X, data.y)
    exact: Exact = {0: {(): joint[-1][-1]}}
    for size in range(1, data.X.shape[1] + 1):
        supports = combinations(range(data.X.shape[1]), size)
        counted = [S for S in supports if least_pivot(joint, data.gamma, S) > LEAST_PIVOT]
        exact[size] = {S: exact_objective(joint, data.gamma, S) for S in counted} or exact[0]
    lost = 1e-26 * float(data.y @ data.y)
    return Case(data, exact, loses=True, lost=lost)


def near(rng: np.random.Generator) -> Case:
    """A few columns, some nearly dependent or far from zero, of any length; γ from 0 to 1e8."""
    n, p = int(rng.integers(2, 12)), int(rng.integers(2, 7))
    X = rng.standard_normal((n, p))
    for _ in range(int(rng.integers(0, 4))):
        i, j, k = rng.integers(0, p, 3)
        noise = 10.0 ** rng.uniform(-16, -2) * rng.standard_normal(n)
        change = [X[:, j], X[:, j] * (1.0 + noise), X[:, j] + X[:, k] + noise, X[:, i] + 1e6]
        X[:, i] = change[int(rng.integers(4))]
    if rng.random() < 0.4:
        X = X * 10.0 ** rng.uniform(-5, 5, p)
    y = rng.standard_normal(n)
    if rng.random() < 0.5:
        y = X @ rng.standard_normal(p) + 10.0 ** rng.uniform(-9, 0) * rng.standard_normal(n)
    gamma = 0.0 if rng.random() < 0.4 else 10.0 ** rng.uniform(-20, 8)
    return clearly_independent(Data(X, y, gamma))


def twins(rng: np.random.Generator) -> Case:
    """At γ = 0 two columns 1e-11 to 1e-8 apart, beside equal or dependent ones, y near them."""
    n, p = int(rng.integers(7, 12)), int(rng.integers(3, 6))
    X = rng.standard_normal((n, p))
    X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-11, -8) * rng.standard_normal(n)
    if rng.random() < 0.4:
        X[:, 2] = X[:, 0] if rng.random() < 0.5 else X[:, 0] - X[:, -1]
    apart = X[:, 1] - X[:, 0]
    y = X[:, 0] + rng.normal() * apart / np.linalg.norm(apart)
    y = y + 10.0 ** rng.uniform(-12, -2) * rng.standard_normal(n)
    return clearly_independent(Data(X, y, 0.0))


def matrices(rng: np.random.Generator) -> Case:
    """The optimum of matrices as they are given, their rounding and all."""
    data = ugly_data(rng)
    G, b, yy = data.X.T @ data.X, data.X.T @ data.y, float(data.y @ data.y)
    data = data._replace(gamma=max(data.gamma, 1e-7 * float(np.diag(G).max())))
    joint, every = exact_given(G, b, yy), range(G.shape[0])
    exact = {
        size: {S: exact_objective(joint, data.gamma, S) for S in combinations(every, size)}
        for size in range(1, G.shape[0] + 1)
    }
    return Case(data, exact, given=True, loses=True, lost=1e-13 * yy)


def attained_at(data: Data, beta: Array) -> Fraction:
    """The objective of coefficients without any rounding."""
    exact = [Fraction(float(value)) for value in beta]
    total = Fraction(data.gamma) / 2 * sum((value * value for value in exact), Fraction(0))
    for row, target in zip(data.X, data.y, strict=True):
        used = (Fraction(float(x)) * value for x, value in zip(row, exact, strict=True) if value)
        total += (Fraction(float(target)) - sum(used, Fraction(0))) ** 2
    return total


def constrained(rng: np.random.Generator) -> Case:
    """Constraints of any kinds together on at most seven columns, γ from 0 to 1e8."""
    data = ugly_data(rng)
    gamma = (data.gamma, 0.0, 1e8, data.gamma)[int(rng.integers(4))]
    rules = random_rules(rng, data.X.shape[1], some(rng, 0.35, *KINDS))
    return constrained_case(data._replace(gamma=gamma), rules)


def constrained_case(data: Data, rules: Rules) -> Case:
    """A problem under rules, of which the models that float arithmetic finds best are judged.

    A model within bounds has the objective of the coefficients that float arithmetic finds. These
    may be large where columns of unit length and the ridge have a condition above 1e7: a printed
    objective then has fewer digits.
    """
    ridge = np.sqrt(0.5 * data.gamma) * np.eye(data.X.shape[1])
    table = np.vstack([data.X, ridge])
    lengths = np.linalg.norm(table, axis=0)
    values = np.linalg.svd(table / np.where(lengths > 0.0, lengths, 1.0), compute_uv=False)
    free = not (np.isfinite(rules.lower).any() or np.isfinite(rules.upper).any())
    joint = exact_moments(data.X, data.y) if free and data.gamma > 0.0 else None
    exact = Exact()
    for size, (_, best) in best_of_every_size(data.X, data.y, data.gamma, rules).items():
        exact[size] = {
            S: attained_at(data, beta) if joint is None else exact_objective(joint, data.gamma, S)
            for S, beta in best[:3]
        }
    loses = bool(values[-1] * 1e7 < values[0])
    return Case(data, exact, rules, joint, loses=loses, lost=1e-13 * float(data.y @ data.y))


def near_columns(
    kinds: Callable[[np.random.Generator], tuple[str, ...]], powers: tuple[int, ...] = (0,)
) -> Family:
    """A family of columns 1e-11 to 1e-5 apart under rules of the kinds that ``kinds`` draws.

    powers: Of these one is drawn; columns have units from 2 to the −power to 2 to the power.
    """

    def drawn(rng: np.random.Generator) -> Case:
        chosen = kinds(rng)
        power = int(rng.choice(powers)) if len(powers) > 1 else 0
        one = NearColumns.drawn(rng, chosen, power)
        data = Data(one.X, one.y, one.gamma)
        return Case(data, one.exact, one.rules, loses=True, lost=1e-13 * float(one.y @ one.y))

    return drawn


def some(rng: np.random.Generator, share: float, *kinds: str) -> tuple[str, ...]:
    """Each of some kinds of rules with a probability."""
    return tuple(kind for kind in kinds if rng.random() < share)


def bounds_and_more(rng: np.random.Generator) -> tuple[str, ...]:
    others = some(rng, 0.15, "groups", "include", "exclude")
    return others + (("positive",), ("bounds",), ("positive", "bounds"))[int(rng.integers(3))]


def groups_and_more(rng: np.random.Generator) -> tuple[str, ...]:
    return ("groups", *some(rng, 0.2, "include", "exclude", "positive"))


def included_and_more(rng: np.random.Generator) -> tuple[str, ...]:
    return ("include", "exclude") if rng.random() < 0.3 else ("include",)


def any_kinds(rng: np.random.Generator) -> tuple[str, ...]:
    return some(rng, 0.3, *KINDS) or ("bounds",)


def dependent(rng: np.random.Generator) -> Case:
    """Columns that are equal, proportional or combined exactly, with bounds, at γ = 0."""
    one = DependentColumns.drawn(rng)
    if rng.random() < 0.3:  # Only in a box equal columns have a proof.
        lower, upper = one.rules.lower.clip(-2.0), one.rules.upper.clip(None, 3.0)
        one = one._replace(rules=one.rules._replace(lower=lower, upper=upper))
    p = one.X.shape[1]
    exact = {
        size: {
            S: exact_least_norm_within(one.rows, one.rules, S)[0]
            for S in combinations(range(p), size)
        }
        for size in range(1, p + 1)
    }
    lost = 1e-13 * float(one.y @ one.y)
    return Case(Data(one.X, one.y, 0.0), exact, one.rules, lost=lost)


def twins_within_bounds(rng: np.random.Generator) -> Case:
    """Columns 1e-16 to 1e-13 or 1e-11 to 1e-8 apart, coefficients of .1 to 1e14, at γ = 0.

    What is said of columns at most 1e-12 apart is said of columns that are equal.
    """
    while True:
        n, p = int(rng.integers(4, 12)), int(rng.integers(2, 5))
        X, equal = rng.normal(size=(n, p)), bool(rng.random() < 0.5)
        apart = 10.0 ** (rng.uniform(-16.5, -13) if equal else rng.uniform(-10.5, -8))
        meant = X.copy()
        for j in range(1, p):
            if rng.random() < 0.7:
                sign, other = rng.choice([-1.0, 1.0]), rng.integers(j)
                meant[:, j] = sign * meant[:, other]
                X[:, j] = sign * X[:, other] + apart * rng.normal(size=n)
        y, wide = rng.normal(size=n), 10.0 ** rng.uniform(-1, 14)
        lower, upper = np.full(p, -np.inf), np.full(p, np.inf)
        lower[0] = -wide
        for j in range(p):
            kind = rng.random()
            if kind < 0.5:
                lower[j] = -wide * rng.uniform() * (rng.random() < 0.5)
            if 0.3 < kind < 0.8:
                upper[j] = wide * rng.uniform()
        rules, joint = Rules.bounds(lower, upper), exact_moments(X, y)
        rows = [[Fraction(float(v)) for v in row] for row in np.column_stack([meant, y])]
        try:
            exact = {
                size: {
                    S: exact_least_norm_within(rows, rules, S)[0]
                    if equal
                    else exact_bounded(joint, 0.0, rules, S)
                    for S in combinations(range(p), size)
                }
                for size in range(1, p + 1)
            }
        except ZeroDivisionError:  # Some columns are equal.
            continue
        lost = (1e-11 if equal else 1e-13) * float(y @ y)
        return Case(Data(X, y, 0.0), exact, rules, loses=True, lost=lost)


Family = Callable[[np.random.Generator], Case]
FAMILIES: dict[str, Family] = {
    "mild": mild,
    "ugly": ugly,
    "wide": wide,
    "any gamma": any_gamma,
    "far from zero": far_from_zero,
    "levels": levels,
    "near": near,
    "twins": twins,
    "matrices": matrices,
    "constrained": constrained,
    "near bounds": near_columns(bounds_and_more),
    "near included": near_columns(included_and_more),
    "near ranks": near_columns(any_kinds),
    "near groups": near_columns(groups_and_more, powers=(0, 0, 3, 12)),
    "dependent within bounds": dependent,
    "twins within bounds": twins_within_bounds,
}
