"""Random problems that attack every bound and every claim of optimality.

An attack takes a generator and a number, draws one problem, solves it with the package and yields a
line for every printed claim that does not hold. Every family of the matrix is an attack; the others
have more columns, or attack a bound that no door returns. The tests run a few of each on fresh
seeds; ``experiments/solvers/attack.py`` runs many. A claim is compared with rational arithmetic,
enumeration or a second search.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv import Constraints
from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    best_subsets,
    best_subsets_rows_deleted,
    ellipsoid,
    perspective_relaxation,
    screen,
    solve,
    support_path,
)
from sparsecv.solvers.kernels.completion import PartialSupport, complete, completion_work
from sparsecv.solvers.relaxation.ellipsoid import centre_bound

from .brute_force import (
    exact_moments,
    exact_objective,
    exact_objectives,
)
from .doors import above, contradicted
from .families import FAMILIES
from .inside import GramForm, Limits, Spectrum, kernel
from .problems import ugly_data
from .stand_ins import standing_in

Array = NDArray[np.float64]
Attack = Callable[[np.random.Generator, int], Iterator[str]]
P = 36  # more columns than the all-sizes tree takes
NOISES = (0.0, 1e-8, 1e-6, 1e-4, 1e-3)
SHARES = tuple(10.0 ** np.arange(-8.0, 1.0))  # of diag(G)


def worse(
    found: Any, own: Fraction, value: Fraction, what: str, lost: float = 0.0
) -> Iterator[str]:
    """A line where an objective is called optimal, though a smaller one is attained."""
    if found.status == "optimal" and float(own - value) > 4e-6 * float(own) + lost:
        yield f"{what}: {float(own)!r} called optimal, not {float(value)!r}"


def attained(problem: SparseRidgeProblem, supports: list[list[int]]) -> Fraction:
    """The least exact objective of some supports."""
    joint = exact_moments(problem.rows[:, : problem.p], problem.rows[:, problem.p])
    return min(exact_objective(joint, problem.given_gamma, S) for S in supports)


def offset_columns(rng: np.random.Generator, noise: float, gamma: float) -> SparseRidgeProblem:
    """Columns far from 0, y next to a multiple of the first, padded with small ones."""
    n, q = int(rng.integers(4, 25)), int(rng.integers(4, 9))
    X = rng.normal(size=(n, q)) + 10.0 ** rng.uniform(2, 6)
    X = np.hstack([X, 1e-3 * rng.normal(size=(n, P - q))])
    y = X[:, 0] * rng.normal()
    y = y + noise * rng.normal(size=n) * float(np.sqrt(np.mean(y * y)))
    length = float(np.square(X).sum(axis=0).max())
    return SparseRidgeProblem(X, y, gamma=2.0 * length * gamma, tau=int(rng.integers(1, 5)))


def one_factor(rng: np.random.Generator, noise: float, gamma: float) -> SparseRidgeProblem:
    """Standardised columns that share one factor, y next to a multiple of the first."""
    n = int(rng.integers(5, 60))
    X = rng.normal(size=(n, 1)) + 10.0 ** rng.uniform(-6, -1) * rng.normal(size=(n, P))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] * rng.normal() + noise * rng.normal(size=n)
    return SparseRidgeProblem(X, y, gamma=2.0 * n * gamma, tau=int(rng.integers(1, 5)))


MANY_COLUMNS = {"offset columns": offset_columns, "one factor": one_factor}


def family_attack(name: str, grid: bool = False) -> Attack:
    """Searches and every relaxation on 36 columns, at noise and γ drawn or on a grid."""

    def attack(rng: np.random.Generator, number: int) -> Iterator[str]:
        low, high = (-7.5, -3.5) if rng.random() < 0.7 else (-8.0, 0.0)
        noise, gamma = float(rng.choice(NOISES)), 10.0 ** rng.uniform(low, high)
        if grid:
            noise = NOISES[number % len(NOISES)]
            gamma = SHARES[number // len(NOISES) % len(SHARES)]
        problem = MANY_COLUMNS[name](rng, noise, gamma)
        rows, y = problem.rows[:, :P], problem.rows[:, P]
        fresh = SparseRidgeProblem(rows, y, gamma=problem.gamma, tau=problem.tau)
        found = solve(fresh, tol=0.0 if rng.random() < 0.5 else 1e-6, node_limit=3000)
        few = [list(S) for S in itertools.combinations(range(4), problem.tau)]
        support = found.support.tolist()
        value = attained(problem, [support, *few])
        yield from above(found.lower_bound, value, "solve")
        own = attained(problem, [support])
        yield from worse(found, own, value, "solve")
        coef = np.zeros(P)
        coef[found.support] = problem.fit(found.support).coef
        betas = [coef, np.zeros(P), 1e3 * coef]
        for extract in (False, True):
            relaxed = perspective_relaxation(problem, extract=extract)
            yield from above(relaxed.bound, value, f"relaxation, extract={extract}")
            betas.append(relaxed.beta)
        for beta in betas:
            yield from above(centre_bound(problem, beta), value, "centre_bound")
            yield from above(screen(problem, beta, found.objective).bound, value, "screen")

    return attack


@kernel
def completed(G, b, ridge, which, best, least, work):
    """The largest gain of a completion, from a kernel that only kernels call."""
    return complete(G, b, ridge, which, best, least, work)


def enumerated(rng: np.random.Generator, number: int) -> Iterator[str]:
    """What elimination on Gram matrices overlooks among the completions of some columns."""
    data = ugly_data(rng)
    p = data.X.shape[1]
    data = data._replace(gamma=data.gamma * 10.0 ** rng.uniform(-4, 0))
    tau = int(rng.integers(1, p + 1))
    m = int(rng.integers(0, tau + 1))
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=tau)
    gram, ridge = GramForm.of(problem, extract=bool(rng.random() < 0.7)), problem.gamma / 2.0
    order = rng.permutation(p)
    chosen, free = order[:m].copy(), np.sort(order[m:])
    exact = exact_objectives(data._replace(gamma=problem.gamma))
    least = min(f for S, f in exact.items() if len(S) == tau and set(chosen) <= set(S))
    record = -1.0 if rng.random() < 0.5 else gram.yy - float(least) * rng.uniform(0.9, 1.1)
    which = PartialSupport(chosen, m, free, free.size, tau - m)
    here = (gram.G, gram.b, ridge, which, record, -np.inf)
    upper = gram.yy - float(completed(*here, completion_work(tau, p, max(tau - 1, 1))))
    lost = gram.overlooked(ridge, tau, upper)
    yield from above(upper - lost, least, f"{tau - m} of {free.size} columns")


def ellipsoids(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Theorem 1 around relaxations, fits and anything else, for ε of both signs."""
    data = ugly_data(rng)
    p = data.X.shape[1]
    tau = int(rng.integers(1, p + 1))
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=tau)
    try:
        every = [(problem.objective(S), S) for S in itertools.combinations(range(p), tau)]
    except ValueError:
        return
    upper, best = min(every)
    beta = np.zeros(p)
    beta[list(best)] = problem.fit(best).coef
    spectrum = Spectrum.of(problem)
    rows = rng.normal(size=(4, p))
    for epsilon in (0.0, 0.1 * data.gamma, 0.9 * data.gamma, -1.8 * spectrum.least()):
        if not -2.0 * spectrum.least() <= epsilon < data.gamma:
            continue
        centres = [None, np.zeros(p), beta + 1e-3 * rng.normal(size=p) * np.abs(beta).max()]
        for centre in centres:
            region = ellipsoid(problem, upper, epsilon=epsilon, beta=centre, spectrum=spectrum)
            low, high = region.prediction_range(rows)
            scale, predicted = 1e-9 * np.abs(rows) @ np.abs(beta), rows @ beta
            if not ((low <= predicted + scale) & (predicted <= high + scale)).all():
                yield f"ε = {epsilon}: {predicted} not in [{low}, {high}]"


def two_trees(rng: np.random.Generator, number: int) -> Iterator[str]:
    """36 to 59 columns of ordinary data: the two trees agree, and so do searches cut short."""
    n, p = int(rng.integers(20, 80)), int(rng.integers(36, 60))
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    y = X[:, :4] @ rng.normal(size=4) + rng.normal(size=n)
    tau = int(rng.integers(1, 5))
    problem = SparseRidgeProblem(X, y, gamma=10.0 ** rng.uniform(-1, 2), tau=tau)
    found = solve(problem, tol=0.0)
    (other,) = best_subsets(problem, sizes=[tau], limits=Limits(time_limit=20.0))
    if other.proved and found.objective > other.objective * (1.0 + 1e-8):
        yield f"{found.objective!r}, the other tree has {other.objective!r}"
    for limit in (0, 2, 10):
        cut = solve(problem, tol=0.0, node_limit=limit)
        if cut.lower_bound > found.objective * (1.0 + 1e-12):
            yield f"node limit {limit}: {cut.lower_bound!r} above {found.objective!r}"


def paths_of_units(rng: np.random.Generator, number: int) -> Iterator[str]:
    """17 to 21 units at γ near and far: what lists prove, and what a tree of each γ alone says.

    The sizes that are wanted change from one γ to the next, as lists prove some of them.
    """
    m, n = int(rng.integers(17, 22)), int(rng.integers(12, 60))
    widths = np.where(rng.random(m) < 0.25, rng.integers(1, 5, size=m), 1)
    groups = np.repeat(np.arange(m), widths)[rng.permutation(int(widths.sum()))]
    X = rng.standard_normal((n, groups.size)) + 0.5 * rng.standard_normal((n, 1))
    for u in np.flatnonzero(widths > 1):  # indicators of all levels, centred
        X[:, groups == u] = np.eye(int(widths[u]))[rng.integers(widths[u], size=n)]
        X[:, groups == u] -= X[:, groups == u].mean(axis=0)
    y = X[:, ::5].sum(axis=1) + rng.uniform(0.1, 5.0) * rng.standard_normal(n)
    asked: dict[str, Any] = {"groups": groups.tolist()}
    if rng.random() < 0.3:
        asked["positive"] = np.flatnonzero(rng.random(groups.size) < 0.3).tolist()
    if rng.random() < 0.3:
        asked["include"] = [int(rng.integers(groups.size))]
    rules = Constraints(**asked, count="groups")
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2, constraints=rules)
    sizes = np.unique(rng.integers(1, m + 1, size=6))
    gammas = 10.0 ** rng.uniform(-4, 3) * np.append(1.0 + 0.3 * rng.random(4), [1e3, 1.2])
    # Small trees leave lists, too.
    with standing_in(NODES_OF_LARGE_TREES=0):
        path = support_path(problem, gammas, sizes, limits=Limits(node_limit=20_000))
    for g, gamma in enumerate(gammas.tolist()):
        alone = best_subsets(problem.replace(gamma=gamma), sizes=sizes)
        for t, size in enumerate(sizes.tolist()):
            own, least = float(path.objective[g, t]), alone[t].objective
            called = f"{asked}, γ = {gamma:g}, size {size}"
            if path.proved[g, t] and alone[t].proved and own > least * (1.0 + 3e-9):
                yield f"{called}: {own!r} called optimal, not {least!r}"
            if max(path.lower_bound[g, t], alone[t].lower_bound) > min(own, least):
                yield f"{called}: a bound is above {min(own, least)!r}"


def units_left_out(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Up to seven units, factors among them, with every row deleted by one tree."""
    m, n = int(rng.integers(2, 8)), int(rng.integers(8, 30))
    widths = np.where(rng.random(m) < 0.5, rng.integers(1, 5, size=m), 1)
    groups = np.repeat(np.arange(m), widths)[rng.permutation(int(widths.sum()))]
    X = rng.standard_normal((n, groups.size))
    for u in np.flatnonzero(widths > 1):
        if rng.random() < 0.7:
            X[:, groups == u] = np.eye(int(widths[u]))[rng.integers(widths[u], size=n)]
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-9, -1) * X[:, -1]
    if rng.random() < 0.7:
        X -= X.mean(axis=0)
    y = 10.0 ** rng.uniform(-3, 1) * rng.standard_normal(n)
    y += (rng.random() < 0.8) * X @ rng.standard_normal(groups.size)
    asked: dict[str, Any] = {"groups": groups.tolist()}
    if rng.random() < 0.3:
        asked["include"] = [int(rng.integers(groups.size))]
    how: dict[str, Any] = {"gamma": 10.0 ** rng.uniform(-4, 3), "tau": m}
    how["constraints"] = Constraints(**asked, count="groups")
    limits = Limits(node_limit=int(rng.integers(0, 60)) if rng.random() < 0.3 else None)
    problem = SparseRidgeProblem(X, y, **how)
    found, status, _ = best_subsets_rows_deleted(problem, X, y, limits=limits)
    lost = 1e-10 * float(y @ y)
    for i in np.setdiff1d(rng.permutation(n)[:5], found.skipped).tolist():
        fold = SparseRidgeProblem(np.delete(X, i, axis=0), np.delete(y, i), **how)
        alone = best_subsets(fold, sizes=found.sizes)
        for s, least in enumerate(one.objective for one in alone):
            own = fold.objective(found.supports[found.choice[s, i]])
            called = f"{asked}, γ = {how['gamma']:g}, row {i}, size {found.sizes[s]}"
            if status is Status.OPTIMAL and own > least * (1.0 + 1e-6) + 1e-2 * lost:
                yield f"{called}: {own!r} called optimal, not {least!r}"
            if abs(found.objective[s, i] - own) > 1e-6 * own + lost:
                yield f"{called}: an objective of {found.objective[s, i]!r}, not {own!r}"


def of_family(name: str) -> Attack:
    """Every door of the solvers on a family of small problems."""

    def attack(rng: np.random.Generator, number: int) -> Iterator[str]:
        yield from contradicted(FAMILIES[name](rng), rng)

    return attack


SOLVERS: dict[str, Attack] = {
    **{name: of_family(name) for name in FAMILIES},
    "offset columns": family_attack("offset columns"),
    "one factor": family_attack("one factor"),
    "offset grid": family_attack("offset columns", grid=True),
    "one-factor grid": family_attack("one factor", grid=True),
    "enumeration": enumerated,
    "ellipsoids": ellipsoids,
    "two trees": two_trees,
    "paths of units": paths_of_units,
    "units left out": units_left_out,
}
