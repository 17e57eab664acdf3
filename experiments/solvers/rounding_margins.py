"""This script measures in exact arithmetic how much of the margins for rounding is used.

    python -m experiments.solvers.rounding_margins [--problems N] [--seed S] [--minutes M]

A problem is drawn from a family of tables: columns and the ridge rows, at length 1, have a
condition of at most 1e7, or depend on each other exactly. Rational arithmetic tells what the
numbers of sparsecv are off by, and each error is divided by the formula that bounds it:

- the objective of a fit: the error of its root over off·(|y| + Σ ℓ_j|β_j|), where off is 64u with
  u = 2⁻⁵³, and (64 + 2h)u for a table of h rows that is held as a triangle. Where coefficients are
  long, such a table's objective is raised on purpose, by up to a quarter of 4hu·(|y| + Σ ℓ_j|β_j|);
- the lower bound of a tree of all sizes: how far the bound would lie above the least objective if
  its margin were not taken off, over that margin;
- a squared error on held-out rows: its error over the margin that decides whether it is exact.

The largest ratios of half of the families are the constants that those families alone would
suggest; the other families tell whether the constants hold. A ratio above 1 would be a wrong claim.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

from experiments.common import ROOT, machine

sys.path.insert(0, str(ROOT / "tests"))  # another package may bring a folder named tests
from support.brute_force import exact_least_norm, exact_moments
from support.constrained import exact_fit

from sparsecv.solvers import SparseRidgeProblem
from sparsecv.solvers.core.error_margin import support_margin
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.core.rounding import tree_margin
from sparsecv.solvers.leaps.all_sizes import SizesTree

UNIT = 2.0**-53
WORST_CONDITION = 1e7
HELD_OUT = 3
Array = np.ndarray


def numbers(rng: np.random.Generator, n: int, p: int) -> Array:
    """Normal numbers in units that differ by up to 10⁶."""
    return rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-3.0, 3.0, p)


def factors(rng: np.random.Generator, n: int, p: int) -> Array:
    """0/1 columns of two factors without their first levels, one of which is rare, and numbers."""
    level = [rng.integers(0, 3, n), rng.integers(0, 2 + (p > 4), n)]
    codes = [np.asarray(one == v, float) for one in level for v in range(1, int(one.max()) + 1)]
    return np.column_stack([*codes, rng.standard_normal((n, p))])[:, :p]


def spectra(rng: np.random.Generator, n: int, p: int) -> Array:
    """Heights of broad peaks at neighbouring wavelengths, far from 0."""
    at, peaks = np.linspace(0.0, 1.0, p), rng.uniform(0.0, 1.0, 3)
    shapes = np.exp(-((at - peaks[:, None]) ** 2) / 0.5)
    heights = rng.lognormal(size=(n, 3))
    return heights @ shapes + 10.0 ** rng.uniform(-5.0, -2.0) * rng.standard_normal((n, p))


def polynomials(rng: np.random.Generator, n: int, p: int) -> Array:
    """Powers of a number between 0 and 1."""
    return rng.uniform(0.0, 1.0, n)[:, None] ** np.arange(1, p + 1)


def money(rng: np.random.Generator, n: int, p: int) -> Array:
    """Sums of money in whole cents beside shares."""
    cents = np.round(10.0 ** rng.uniform(3.0, 8.0, (n, p)), 0) / 100.0
    return np.where(np.arange(p) % 2 == 0, cents, rng.uniform(0.0, 1.0, (n, p)))


def near_copies(rng: np.random.Generator, n: int, p: int) -> Array:
    """Columns 10⁻⁷ to 10⁻² of their lengths apart."""
    X = rng.standard_normal((n, p))
    half = p // 2
    X[:, half:] = X[:, : p - half] + 10.0 ** rng.uniform(-7.0, -2.0) * X[:, half:]
    return X


def one_factor(rng: np.random.Generator, n: int, p: int) -> Array:
    """Columns that share most of what they are."""
    return rng.standard_normal((n, 1)) + 10.0 ** rng.uniform(-4.0, 0.0) * rng.standard_normal(
        (n, p)
    )


def dates(rng: np.random.Generator, n: int, p: int) -> Array:
    """Seconds since 1970, years, counts and numbers."""
    X = rng.standard_normal((n, p))
    X[:, 0] = np.round(1.6e9 + 1e7 * rng.uniform(size=n))
    X[:, 1] = 2000.0 + rng.integers(0, 20, n)
    X[:, 2] = rng.poisson(5.0, n)
    return X


def counts(rng: np.random.Generator, n: int, p: int) -> Array:
    """Whole numbers of up to three digits."""
    return np.floor(10.0 ** rng.uniform(0.0, 3.0, (n, p)))


def nested(rng: np.random.Generator, n: int, p: int) -> Array:
    """Columns that are differences or multiples of others, exactly."""
    X = rng.integers(-9, 10, (n, p)).astype(float)
    X[:, -1] = X[:, 0] - X[:, 1]
    X[:, -2] = 2.0 * X[:, 1]
    return X


Family = Callable[[np.random.Generator, int, int], Array]
FITTED: dict[str, Family] = {
    "numbers": numbers,
    "polynomials": polynomials,
    "near copies": near_copies,
    "counts": counts,
    "nested": nested,
}
HELD: dict[str, Family] = {
    "factors": factors,
    "spectra": spectra,
    "money beside shares": money,
    "one factor": one_factor,
    "dates": dates,
}


class Used(NamedTuple):
    """The ratios of one problem, each the largest over its supports."""

    objective: float
    bound: float
    error: float


def drawn(rng: np.random.Generator, family: Family) -> tuple[Array, Array, float]:
    """Columns and a response, all centred, and a γ, inside what is said to be proved."""
    while True:
        p = int(rng.integers(3, 6))
        n = int(rng.integers(p - 1, 9)) if rng.random() < 0.3 else int(rng.integers(p + 3, 41))
        rows = n + HELD_OUT
        X = family(rng, rows, p)
        y = X @ (rng.standard_normal(p) / (np.abs(X).max(axis=0) + 1.0))
        y = y + 10.0 ** rng.uniform(-4.0, 1.0) * rng.standard_normal(rows)
        X, y = X - X[:n].mean(axis=0), y - y[:n].mean()
        lengths = np.linalg.norm(X[:n], axis=0)
        if rng.random() < 0.5:  # At their standard deviations, as by default.
            X, lengths = X * np.sqrt(n) / np.where(lengths > 0.0, lengths, 1.0), lengths * 0.0 + 1.0
        if family is nested:  # No digit may be lost by centring.
            X = nested(rng, rows, p)
        lengths = np.linalg.norm(X[:n], axis=0)
        zero = family is nested or (n > p and rng.random() < 0.3)
        gamma = 0.0 if zero else 10.0 ** rng.uniform(-4.0, 8.0)
        table = np.vstack([X[:n], np.sqrt(gamma / 2.0) * np.eye(p)])
        norms = np.linalg.norm(table, axis=0)
        if not (lengths > 0.0).all():
            continue
        if family is nested or np.linalg.cond(table / norms) <= WORST_CONDITION:
            return X, y, gamma


def exact(
    joint: list[list[Fraction]],
    rows: Array,
    gamma: float,
    support: tuple[int, ...],
    independent: bool,
) -> tuple[Fraction, dict[int, Fraction]]:
    """The least objective on a support, and the coefficients."""
    if independent:
        beta = exact_fit(joint, gamma, list(support), {})
    else:
        table = [[Fraction(float(v)) for v in row] for row in rows]
        A = [[row[j] for j in support] for row in table]
        coef, _ = exact_least_norm(A, [row[-1] for row in table])
        beta = dict(zip(support, coef, strict=True))
    return joint[-1][-1] - sum((v * joint[j][-1] for j, v in beta.items()), Fraction(0)), beta


def used(rng: np.random.Generator, family: Family) -> Used:
    """Draw a problem, and compare its numbers with exact ones."""
    X, y, gamma = drawn(rng, family)
    n, p = len(X) - HELD_OUT, X.shape[1]
    train = np.column_stack([X[:n], y[:n]])
    problem = SparseRidgeProblem(X[:n], y[:n], gamma=gamma, tau=p)
    joint, length = exact_moments(X[:n], y[:n]), float(np.linalg.norm(y[:n]))
    lengths = np.sqrt((X[:n] ** 2).sum(axis=0) + gamma / 2.0)
    least: dict[int, Fraction] = {}
    objective = error = 0.0
    for size in range(1, p + 1):
        for support in combinations(range(p), size):
            columns = list(support)
            independent = family is not nested
            value, beta = exact(joint, train, gamma, support, independent)
            least[size] = min(value, least.get(size, value))
            fit = problem.fit(columns)
            reach = length + float(lengths[columns] @ np.abs([float(beta[j]) for j in support]))
            off = float(Fraction(fit.objective) - value)
            roots = np.sqrt(fit.objective) + np.sqrt(max(float(value), 0.0))
            lost = problem.data.off * reach
            objective = max(objective, abs(off) / max(roots, UNIT * reach) / lost)
            if rng.random() > 0.3:
                continue
            own = float(np.sum((y[n:] - X[n:, columns] @ fit.coef) ** 2))
            true = Fraction(0)
            for row, target in zip(X[n:], y[n:], strict=True):
                made = sum((Fraction(float(row[j])) * v for j, v in beta.items()), Fraction(0))
                true += (Fraction(float(target)) - made) ** 2
            margin = support_margin(problem, np.array(columns), X[n:], y[n:], own)
            if margin > 0.0:
                error = max(error, abs(float(Fraction(own) - true)) / margin)
    tree = SizesTree(problem)
    answers = tree.run(Limits())
    found = np.array([one.objective for one in answers])
    margins, bound = tree_margin(tree.problem, found, tree.tree), 0.0
    for one, margin in zip(answers, margins.tolist(), strict=True):
        if 0.0 < margin < np.inf and one.lower_bound > 0.0:
            above = float(Fraction(one.lower_bound) - least[one.size]) + margin
            bound = max(bound, above / margin)
    return Used(objective, bound, error)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=1000, help="of each family")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--minutes", type=float, default=np.inf, help="CPU time of a family")
    given = parser.parse_args()
    print(f"{machine()}; seed {given.seed}\n")
    print("Largest ratios; in brackets the ratio that 99 of 100 problems stay below.\n")
    print("| family | problems | objective | bound | held-out error | CPU s |")
    print("|---|---:|---:|---:|---:|---:|")
    largest: dict[str, Array] = {}
    for number, (name, family) in enumerate((FITTED | HELD).items()):
        rng, started = np.random.default_rng([given.seed, number]), time.process_time()
        found: list[Used] = []
        while len(found) < given.problems:
            found.append(used(rng, family))
            if time.process_time() - started > 60.0 * given.minutes:
                break
        ratios, seconds = np.array(found), time.process_time() - started
        largest[name], usual = ratios.max(axis=0), np.quantile(ratios, 0.99, axis=0)
        shown = [f"{most:.2g} ({low:.2g})" for most, low in zip(largest[name], usual, strict=True)]
        print(f"| {name} | {len(found):,} | {' | '.join(shown)} | {seconds:.0f} |", flush=True)
    fitted, held = (np.max([largest[name] for name in some], axis=0) for some in (FITTED, HELD))
    print("\n| | objective | bound | held-out error |\n|---|---:|---:|---:|")
    print(f"| largest of the first five families | {' | '.join(f'{v:.2g}' for v in fitted)} |")
    print(f"| largest of the other five | {' | '.join(f'{v:.2g}' for v in held)} |")
    print(f"| the second over the first | {' | '.join(f'{v:.2g}' for v in held / fitted)} |")
    return 0 if max(fitted.max(), held.max()) <= 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
