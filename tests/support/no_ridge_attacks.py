"""Random problems at γ = 0 that attack fits within bounds, and choices among perfect fits.

Attacks are as in ``attacks``: an attack draws one problem and yields a line for every claim that
does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.cv.engine import cross_validate
from sparsecv.cv.settings import Settings
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.row_table import RowTable
from sparsecv.solvers import SparseRidgeProblem, best_subsets, branch_and_bound, solve
from sparsecv.solvers.branching.enumeration import enumerated
from sparsecv.solvers.core.limits import Limits

from .attacks import Attack, above, worse
from .brute_force import exact_moments
from .constrained import (
    DependentColumns,
    Rules,
    exact_bounded,
    exact_least_norm_within,
    resolved,
)
from .folds import about_mean


def dependent_within_bounds(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Columns that are equal, proportional or combined: fits of least norm, bounds, and optima."""
    drawn = DependentColumns.drawn(rng)
    p, lost = drawn.X.shape[1], 1e-13 * float(drawn.y @ drawn.y)
    whole = SparseRidgeProblem(drawn.X, drawn.y, gamma=0.0, tau=p, **drawn.rules.keywords)
    sizes = range(1, p + 1) if p < 5 else sorted({2, 5})
    limit = Limits(node_limit=int(rng.integers(0, 20)))
    tree = best_subsets(whole, sizes=list(sizes), limits=limit if rng.random() < 0.3 else None)
    for i, size in enumerate(sizes):
        exact = {
            support: exact_least_norm_within(drawn.rows, drawn.rules, support)
            for support in combinations(range(p), size)
        }
        least = min(value for value, _ in exact.values())
        for support, (value, _) in exact.items():
            fit = whole.fit(support)
            if drawn.error(support, fit.coef, exact[support][1]) > 1e-12:
                yield f"fit on {support}: {fit.coef} is not of least norm"
            if not abs(fit.objective - float(value)) <= 1e-9 * float(value) + lost:
                yield f"fit on {support}: {fit.objective!r}, not {float(value)!r}"
        at = whole.replace(tau=size)
        found = solve(at, tol=0.0)
        chosen = tuple(found.support.tolist())
        if drawn.error(chosen, found.coef[found.support], exact[chosen][1]) > 1e-12:
            yield f"solve, size {size}: {found.coef} is not of least norm"
        every = enumerated(at.at_unit_length(), np.array([size]), [])[0]
        branched = branch_and_bound(at.at_unit_length(), tol=0.0)
        for proof, what in ((found, "solve"), (every, "enumeration"), (branched, "branching")):
            yield from above(proof.lower_bound, least, f"{what}, size {size}")
            own = exact[tuple(proof.support.tolist())][0]
            yield from worse(proof, own, least, f"{what}, size {size}", lost)
        yield from above(float(tree[i].lower_bound), least, f"all sizes, size {size}")
        own = exact[tuple(tree[i].support.tolist())][0]
        if tree[i].proved and float(own - least) > 4e-6 * float(own) + lost:
            yield f"all sizes, size {size}: {float(own)!r} called optimal, not {float(least)!r}"


def twins_within_bounds(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Columns 1e-16 to 1e-11 apart, coefficients of .1 to 1e14: nothing below the exact optimum."""
    n, p = int(rng.integers(4, 12)), int(rng.integers(2, 5))
    X, apart = rng.normal(size=(n, p)), 10.0 ** rng.uniform(-16.5, -11)
    for j in range(1, p):
        if rng.random() < 0.7:
            X[:, j] = rng.choice([-1.0, 1.0]) * X[:, rng.integers(j)] + apart * rng.normal(size=n)
    y, wide = rng.normal(size=n), 10.0 ** rng.uniform(-1, 14)
    lower, upper = np.full(p, -np.inf), np.full(p, np.inf)
    lower[0] = -wide
    for j in range(p):
        kind = rng.random()
        if kind < 0.5:
            lower[j] = -wide * rng.uniform() * (rng.random() < 0.5)
        if 0.3 < kind < 0.8:
            upper[j] = wide * rng.uniform()
    rules, tau, joint = Rules.bounds(lower, upper), int(rng.integers(1, p + 1)), exact_moments(X, y)
    problem = SparseRidgeProblem(X, y, gamma=0.0, tau=tau, **rules.keywords)
    try:
        exact = {S: exact_bounded(joint, 0.0, rules, S) for S in combinations(range(p), tau)}
    except ZeroDivisionError:  # Some columns are equal.
        return
    least, lost = min(exact.values()), 1e-13 * problem.yy
    found = solve(problem, tol=0.0)
    if Fraction(found.objective) < least * (1 - Fraction(1, 10**10)):
        yield f"{found.objective!r} is below anything attainable, {float(least)!r}"
    branched = branch_and_bound(problem.at_unit_length(), tol=0.0)
    for proof, what in ((found, "solve"), (branched, "branching")):
        yield from above(proof.lower_bound, least, what)
        yield from worse(proof, exact[tuple(proof.support.tolist())], least, what, lost)


def dependent_cells(rng: np.random.Generator, number: int) -> Iterator[str]:
    """CV errors of all columns together, which depend on each other, with bounds or without."""
    drawn = DependentColumns.drawn(rng)
    n, p = drawn.X.shape
    if rng.random() < 0.5:
        drawn = drawn._replace(rules=Rules.bounds(np.full(p, -np.inf), np.full(p, np.inf)))
    if n < 3:
        return
    folds = make_folds(
        "loo" if n < 4 or rng.random() < 0.4 else int(rng.integers(2, n)), n, seed=number
    )
    refit = bool(rng.random() < 0.5)
    asked = resolved(p, **drawn.rules.keywords).constraints
    data = RowFolds(RowTable(drawn.X, drawn.y, refit, constraints=asked), folds)
    result = cross_validate(data, [0.0], np.array([p]), Settings(prove="all"))
    total, rows = Fraction(0), np.column_stack([drawn.X, drawn.y])
    for j in range(folds.k):
        train, held = (about_mean(rows[m], rows[folds.split(j)[0]], refit) for m in folds.split(j))
        _, beta = exact_least_norm_within(train, drawn.rules, tuple(range(p)))
        for row in held:
            total += (row[-1] - sum((row[i] * v for i, v in beta.items()), Fraction(0))) ** 2
    found, right = float(result.table("cv_error")[0, 0]), float(total / n)
    scale = float(np.square(drawn.y).max()) + right
    if result.complete and abs(found - right) > 1e-8 * scale:
        yield f"{folds.k} folds of {n} rows, {p} columns: {found!r} called exact, not {right!r}"


def perfect_fits(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Responses that some columns explain wholly: those columns are chosen, and no more."""
    n, p = int(rng.integers(20, 70)), int(rng.integers(3, 10))
    k = int(rng.integers(1, min(p, 5)))
    X = rng.normal(size=(n, p)) + rng.uniform(0.0, 2.0) * rng.normal(size=(n, 1))
    chosen = np.sort(rng.choice(p, size=k, replace=False))
    y = X[:, chosen] @ (rng.choice([-1.0, 1.0], size=k) * rng.uniform(0.5, 2.0, size=k))
    X = X * 10.0 ** rng.uniform(-3, 3, size=p) + rng.normal(size=p)
    y = 10.0 ** rng.uniform(-4, 4) * (y + rng.normal())
    gammas = [0.0] if rng.random() < 0.6 else [0.0, 1e-3, 1.0]
    rule = ("minimum", "minimum", "one-se", "projected", "corrected")[int(rng.integers(5))]
    cv = "loo" if rng.random() < 0.2 else int(rng.integers(3, 11))
    model = SparseRidgeCV(cv=cv, gammas=gammas, rule=rule, random_state=number).fit(X, y)
    if model.support_.tolist() != chosen.tolist():
        yield f"{rule}, {cv} folds, γ = {model.gamma_}: {model.support_}, not {chosen}"
    if rule == "minimum" and not model.certified_:
        yield f"{cv} folds: the choice is not proved"
    found = SparseRidge(tau=p, gamma=0.0).fit(X, y).criteria_
    for name in ("aic", "bic", "ebic"):
        least = int(found["tau"][np.argmin(found[name])])
        if least != k:
            yield f"{name} is least at {least} columns, not at {k}"


NO_RIDGE: dict[str, Attack] = {
    "dependent within bounds": dependent_within_bounds,
    "twins within bounds": twins_within_bounds,
    "dependent cells": dependent_cells,
    "perfect fits": perfect_fits,
}
