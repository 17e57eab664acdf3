"""Attacks on sizes in which a unit counts its coefficients; every support is fitted for a check."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from sparsecv.solvers import (
    SparseRidgeProblem,
    best_subsets,
    best_subsets_rows_deleted,
    solve,
    support_path,
)

from .attacks import Attack
from .inside import Limits, Rows, UnitConstraints, n_best_subsets

GAMMAS = (0.0, 1e-4, 0.1, 1.0, 10.0, 1e3)


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, UnitConstraints]:
    """Columns in units of one to six, a response, and constraints in which each unit counts."""
    m = int(rng.integers(2, 7))
    widths = rng.integers(1, 7, m)
    unit, p, n = np.repeat(np.arange(m), widths), int(widths.sum()), int(rng.integers(4, 25))
    X = rng.standard_normal((n, p))
    kind = rng.integers(5)
    if kind == 1:
        X = np.round(X)
    elif kind == 2 and p > 2:
        X[:, 1] = X[:, 0]
    elif kind == 3:  # Factors, of which rows may lack a level.
        for u in np.flatnonzero(widths > 1):
            level = rng.integers(0, widths[u], n)
            X[:, unit == u] = level[:, None] == np.arange(widths[u])
        X -= X.mean(axis=0)
    elif kind == 4:
        X[:, rng.integers(p)] = 0.0
    y = X[:, :2].sum(axis=1) + rng.standard_normal(n)
    first = np.searchsorted(unit, np.arange(m))
    low = np.where(rng.random(p) < 0.4, 0.0, -np.inf) if rng.random() < 0.3 else -np.inf
    rules = UnitConstraints.of(
        p,
        unit=unit,
        include=first[:1] if rng.random() < 0.3 else (),
        exclude=first[-1:] if rng.random() < 0.3 and m > 2 else (),
        cost=rng.integers(1, widths + 1)[unit],
        bounds=(low, np.inf),
    )
    if rng.random() < 0.3:  # A unit that loses columns counts as before.
        kept = np.sort(rng.choice(p, int(rng.integers(1, p + 1)), replace=False))
        kept = np.union1d(kept, np.flatnonzero(rules.include[unit]))
        if not rules.exclude[unit[kept]].all():
            return X[:, kept], y, rules.restricted(kept)
    return X, y, rules


def problem_of(
    X: np.ndarray, y: np.ndarray, gamma: float, rules: UnitConstraints
) -> SparseRidgeProblem:
    return SparseRidgeProblem.from_rows(
        Rows(np.column_stack([X, y])), gamma=gamma, constraints=rules
    )


def counted_units(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Yield what is wrong in trees of one problem, of deleted rows and of the n best."""
    X, y, rules = drawn(rng)
    if not rules.weighted:
        return
    gamma = float(rng.choice(GAMMAS))
    problem = problem_of(X, y, gamma, rules)
    sizes = np.arange(max(1, rules.min_size), rules.max_size + 1)
    if rng.random() < 0.4 and sizes.size > 2:
        sizes = np.sort(rng.choice(sizes, 2, replace=False))
    units = range(rules.n_units)
    sets = chain(*(combinations(units, k) for k in range(rules.n_units + 1)))
    supports = [rules.columns_of(some) for some in sets]
    supports = [one for one in supports if rules.allowed(one)]
    count = np.array([rules.cost[rules.units(one)].sum() for one in supports])

    def wrong(at: SparseRidgeProblem, size: int, found: np.ndarray) -> str:
        """What is wrong with the support found for a size; empty where nothing is."""
        values = np.array([at.objective(one) for one in supports])
        least = float(values[count <= size].min())
        if not rules.allowed(found) or rules.cost[rules.units(found)].sum() > size:
            return f"{found.tolist()} is no support of size {size}"
        value = at.objective(found)
        if value > least * (1.0 + 1e-7) + 1e-9 * at.yy:
            return f"size {size}: {value!r} is found, and {least!r} is the least"
        return ""

    for size, one in zip(sizes.tolist(), best_subsets(problem, sizes=sizes), strict=True):
        if bad := wrong(problem, size, one.support):
            yield f"tree, γ = {gamma:g}: {bad}"
        least = min(problem.objective(s) for s, k in zip(supports, count, strict=True) if k <= size)
        if one.lower_bound > least * (1.0 + 1e-9) + 1e-12 * problem.yy:
            bound = f"the bound {one.lower_bound!r} is above {least!r}"
            yield f"tree, γ = {gamma:g}, size {size}: {bound}"
    size = int(rng.choice(sizes))
    alone = solve(problem.replace(tau=size))
    if bad := wrong(problem, size, alone.support):
        yield f"one size, γ = {gamma:g}: {bad}"
    gammas = [gamma, 3.0 * gamma + 0.01]
    for solver in ("exact", "heuristic"):
        path = support_path(problem, gammas, sizes, solver=solver)
        for g, t in np.ndindex(2, sizes.size):
            bad = wrong(problem.replace(gamma=gammas[g]), int(sizes[t]), path.support(g, t))
            if bad and (solver == "exact" or "no support" in bad):
                yield f"{solver} path, γ = {gammas[g]:g}: {bad}"
    values = np.array([problem.objective(one) for one in supports])
    few = Limits(node_limit=int(rng.integers(1, 9)))
    for size, some in zip(
        sizes.tolist(), n_best_subsets(problem, sizes, 3, limits=few), strict=True
    ):
        expected = np.sort(values[count <= size])
        for r, one in enumerate(some):
            if one.proved and one.objective > expected[r] * (1.0 + 1e-6) + 1e-9 * problem.yy:
                proof = f"{one.objective!r} is proved for {expected[r]!r}"
                yield f"rank {r + 1} at a limit, γ = {gamma:g}, size {size}: {proof}"
    for size, some in zip(sizes.tolist(), n_best_subsets(problem, sizes, 3), strict=True):
        expected = np.sort(values[count <= size])[:3]
        found = np.array([problem.objective(one.support) for one in some])
        close = 1e-9 * problem.yy
        if found.size != expected.size or not np.allclose(found, expected, rtol=1e-6, atol=close):
            yield f"three best, γ = {gamma:g}, size {size}: {found} for {expected}"
    if rules.bounded or gamma == 0.0:
        return
    deleted, _, _ = best_subsets_rows_deleted(problem, X, y, sizes=sizes)
    for i in np.setdiff1d(np.arange(len(y)), deleted.skipped).tolist():
        left = problem_of(np.delete(X, i, axis=0), np.delete(y, i), gamma, rules)
        for t, size in enumerate(sizes.tolist()):
            if bad := wrong(left, size, deleted.supports[deleted.choice[t, i]]):
                yield f"without row {i}, γ = {gamma:g}: {bad}"
    cut, _, _ = best_subsets_rows_deleted(problem, X, y, sizes=sizes, limits=few)
    for i in np.setdiff1d(np.arange(len(y)), cut.skipped).tolist():
        left = problem_of(np.delete(X, i, axis=0), np.delete(y, i), gamma, rules)
        values = np.array([left.objective(one) for one in supports])
        for t, size in enumerate(sizes.tolist()):
            least = np.where(count <= size, values, np.inf)
            tied = least <= least.min() * (1.0 + 1e-9) + 1e-12 * left.yy
            best = supports[int(least.argmin())]
            residual = float(y[i] - X[i, best] @ left.fit(best).coef)
            room = 1e-6 * np.sqrt(left.yy)
            inside = cut.low[t, i] - room <= residual <= cut.high[t, i] + room
            if tied.sum() == 1 and not inside:
                ends = f"[{cut.low[t, i]!r}, {cut.high[t, i]!r}] lacks {residual!r}"
                yield f"without row {i} at a limit, γ = {gamma:g}, size {size}: {ends}"


COUNTED: dict[str, Attack] = {"units that count": counted_units}
