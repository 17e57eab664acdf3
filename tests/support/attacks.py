"""Random problems that attack every bound and every claim of optimality.

An attack takes a generator and a number, draws one problem, solves it with the package and yields a
line for every printed claim that does not hold. The tests run a few of each on fresh seeds;
``experiments/solvers/attack.py`` runs many.
A claim is compared with rational arithmetic, enumeration or a second search.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from sparsecv import Constraints
from sparsecv.solvers import (
    SparseRidgeProblem,
    best_subsets,
    best_subsets_rows_deleted,
    ellipsoid,
    perspective_relaxation,
    solve,
    solve_sizes,
    support_path,
)
from sparsecv.solvers.branching import size_sweep
from sparsecv.solvers.branching.enumeration import enumerated as enumerate_supports
from sparsecv.solvers.branching.single import branch_and_bound
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.core.plan import ALONE, EVERY, LEAPS, Way
from sparsecv.solvers.core.result import Answer, Status, nothing_left
from sparsecv.solvers.kernels.compiled import kernel
from sparsecv.solvers.kernels.completion import PartialSupport, complete, completion_work
from sparsecv.solvers.leaps import gamma_trees
from sparsecv.solvers.leaps.all_sizes import n_best_subsets
from sparsecv.solvers.relaxation.ellipsoid import Spectrum, centre_bound
from sparsecv.solvers.relaxation.gram import GramForm
from sparsecv.solvers.relaxation.perspective import screen

from .brute_force import (
    Data,
    enumerate_size,
    exact_given,
    exact_moments,
    exact_objective,
    exact_objectives,
)
from .constrained import KINDS, NearColumns, best_of_every_size, random_rules
from .problems import ugly_data

Array = NDArray[np.float64]
Attack = Callable[[np.random.Generator, int], Iterator[str]]
P = 36  # more columns than the all-sizes tree takes
NOISES = (0.0, 1e-8, 1e-6, 1e-4, 1e-3)
SHARES = tuple(10.0 ** np.arange(-8.0, 1.0))  # of diag(G)
EVERY_SHARE = tuple(10.0 ** np.arange(-12.0, 13.0))


def above(bound: float, value: Fraction, what: str) -> Iterator[str]:
    """A line where a lower bound is above an objective that is attained."""
    if bound > -np.inf and Fraction(bound) > value:  # −∞ says nothing
        yield f"{what}: {bound!r} above {float(value)!r} by {float(Fraction(bound) - value):.3g}"


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


FAMILIES = {"offset columns": offset_columns, "one factor": one_factor}


def family_attack(name: str, grid: bool = False) -> Attack:
    """Searches and every relaxation on 36 columns, at noise and γ drawn or on a grid."""

    def attack(rng: np.random.Generator, number: int) -> Iterator[str]:
        low, high = (-7.5, -3.5) if rng.random() < 0.7 else (-8.0, 0.0)
        noise, gamma = float(rng.choice(NOISES)), 10.0 ** rng.uniform(low, high)
        if grid:
            noise = NOISES[number % len(NOISES)]
            gamma = SHARES[number // len(NOISES) % len(SHARES)]
        problem = FAMILIES[name](rng, noise, gamma)
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


def in_turns(
    problem: SparseRidgeProblem, sizes: Iterable[int], rng: np.random.Generator, limit: int | None
) -> list[Answer]:
    """Every size by searches that take turns of a few nodes, as they do with more columns."""
    nodes = np.cumsum(rng.integers(1, 20, size=8)).tolist()
    turns = [(Way(LEAPS, nodes=n), Way(ALONE, nodes=int(rng.integers(1, 40)) * n)) for n in nodes]
    planned = (*itertools.chain.from_iterable(turns), Way(LEAPS), Way(EVERY))
    with mock.patch.object(size_sweep, "ways", return_value=planned):
        return solve_sizes(problem, sizes=list(sizes), limits=Limits(node_limit=limit))


def ugly(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Every search, finished or cut short, on at most seven columns.

    An objective that rounding alone may have left counts as optimal.
    """
    data = ugly_data(rng)
    lost = nothing_left(float(data.y @ data.y))
    p = data.X.shape[1]
    tau = int(rng.integers(1, p + 1))
    exact = exact_objectives(data)
    value = min(f for S, f in exact.items() if len(S) == tau)
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=tau)
    fresh = problem.replace()
    try:
        found = solve(problem, tol=0.0)
    except ValueError:  # γ is lost beside dependent columns
        return
    yield from above(found.lower_bound, value, "solve")
    own = exact[tuple(int(i) for i in found.support)]
    yield from worse(found, own, value, "solve", lost)
    for limit in (None, 0, 1, 3):
        cut = branch_and_bound(fresh, tol=0.0, limits=Limits(None, limit))
        yield from above(cut.lower_bound, value, f"node limit {limit}")
    limit = int(rng.integers(0, 30))
    every = best_subsets(problem, limits=Limits(node_limit=limit))
    turned = in_turns(problem, range(1, tau + 1), rng, None if rng.random() < 0.5 else 5 * limit)
    for one, other in zip(every, turned, strict=True):
        least = min(f for S, f in exact.items() if len(S) == one.size)
        yield from above(one.lower_bound, least, f"all sizes, size {one.size}")
        yield from above(other.lower_bound, least, f"in turns, size {one.size}")
        own = exact[tuple(other.support.tolist())]
        yield from worse(other, own, least, f"in turns, size {one.size}", lost)


def tree(rng: np.random.Generator, number: int) -> Iterator[str]:
    """The include-or-exclude tree on at most nine columns: to its end, and stopped at any node."""
    data = ugly_data(rng, 9)
    tau = int(rng.integers(1, data.X.shape[1] + 1))
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=tau)
    size = enumerate_size(data, tau)
    best = [list(size.supports[i]) for i in np.argsort(size.objective)[:3]]
    value = attained(problem, best)
    gram = GramForm.of(problem, extract=bool(rng.random() < 0.7))
    try:
        whole = branch_and_bound(problem, tol=0.0, gram=gram)
    except ValueError:  # γ is lost beside dependent columns
        return
    yield from above(whole.lower_bound, value, "to the end")
    own = attained(problem, [whole.support.tolist()])
    yield from worse(whole, own, value, "to the end")
    for _ in range(3):
        limit = int(rng.integers(0, whole.n_nodes + 2))
        start = [np.sort(rng.permutation(problem.p)[:tau])] if rng.random() < 0.5 else []
        cut = branch_and_bound(problem, tol=0.0, warm_starts=start, limits=Limits(None, limit))
        yield from above(cut.lower_bound, value, f"node limit {limit}")


def all_sizes(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Leaps and bounds on up to twelve columns, to its end or stopped: every size."""
    data = ugly_data(rng, 12)
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=data.X.shape[1])
    limit = int(rng.integers(0, 60)) if rng.random() < 0.5 else None
    try:
        found = best_subsets(problem, limits=Limits(node_limit=limit))
    except ValueError:  # γ is lost beside dependent columns
        return
    joint = exact_moments(data.X, data.y)
    for i in rng.permutation(len(found))[:4]:
        one, size = found[i], enumerate_size(data, found[i].size)
        best = [size.supports[c] for c in np.argsort(size.objective)[:2]]
        own = exact_objective(joint, data.gamma, one.support.tolist())
        value = min(own, *(exact_objective(joint, data.gamma, S) for S in best))
        yield from above(one.lower_bound, value, f"size {one.size}")
        if one.proved and float(own - value) > 1e-6 * float(own) + 1e-13 * problem.yy:
            yield f"size {one.size}: {float(own)!r} called optimal, not {float(value)!r}"


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


def given_matrices(rng: np.random.Generator, number: int) -> Iterator[str]:
    """from_gram: the exact optimum of the matrices as given, rounding of theirs and all."""
    data = ugly_data(rng)
    G, b, yy = data.X.T @ data.X, data.X.T @ data.y, float(data.y @ data.y)
    p = G.shape[0]
    tau = int(rng.integers(1, p + 1))
    joint = exact_given(G, b, yy)
    gamma = max(data.gamma, 1e-7 * float(np.diag(G).max()))
    problem = SparseRidgeProblem.from_gram(G, b, yy, gamma=gamma, tau=tau)
    value = min(exact_objective(joint, gamma, S) for S in itertools.combinations(range(p), tau))
    yield from above(solve(problem, tol=0.0).lower_bound, value, "solve")
    yield from above(branch_and_bound(problem, tol=0.0).lower_bound, value, "branch_and_bound")
    yield from above(perspective_relaxation(problem).bound, value, "relaxation")


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


def attained_at(data: Data, beta: Array) -> Fraction:
    """The objective of coefficients without any rounding."""
    exact = [Fraction(float(value)) for value in beta]
    total = Fraction(data.gamma) / 2 * sum((value * value for value in exact), Fraction(0))
    for row, target in zip(data.X, data.y, strict=True):
        used = (Fraction(float(x)) * value for x, value in zip(row, exact, strict=True) if value)
        total += (Fraction(float(target)) - sum(used, Fraction(0))) ** 2
    return total


def constrained(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Constraints of any kinds together on at most seven columns: every size, to the end or not.

    The tree over included and excluded units is asked as well, though leaps and bounds would answer
    problems so small.
    """
    data = ugly_data(rng)
    gamma = (data.gamma, 0.0, 1e8, data.gamma)[int(rng.integers(4))]
    data = data._replace(gamma=gamma)
    p = data.X.shape[1]
    kinds = tuple(k for k in KINDS if rng.random() < 0.35)
    rules = random_rules(rng, p, kinds)
    best = best_of_every_size(data.X, data.y, gamma, rules)
    sizes = [size for size in sorted(best) if size > 0]
    whole = SparseRidgeProblem(data.X, data.y, gamma=gamma, tau=sizes[-1], **rules.keywords)
    joint, lost = exact_moments(data.X, data.y), 1e-13 * float(data.y @ data.y)
    easy = gamma > 0.0 and not {"positive", "bounds"} & set(kinds)
    value: Fraction | None = None
    values = {}
    for size in sorted(best):
        for support, beta in best[size][1][:3]:
            here = exact_objective(joint, gamma, support) if easy else Fraction(0)
            here = here if easy else attained_at(data, beta)
            value = here if value is None else min(value, here)
        if size > 0:
            found = solve(whole.replace(tau=size), tol=0.0)
            own = attained_at(data, found.coef)
            inside = (rules.lower <= found.coef) & (found.coef <= rules.upper)
            if not inside.all():
                yield f"size {size}: {found.coef} is outside its bounds"
            assert value is not None
            value = min(value, own)
            values[size] = value
            called = f"{kinds}, size {size}"
            yield from above(found.lower_bound, value, called)
            yield from worse(found, own, value, called, lost)
    for limit in (None, int(rng.integers(0, 20))):
        every = best_subsets(whole, sizes=sizes, limits=Limits(node_limit=limit))
        for size, one in zip(sizes, every, strict=True):
            yield from above(one.lower_bound, values[size], f"{kinds}, size {size}, limit {limit}")
            units = whole.constraints.units(one.support).size
            if not whole.constraints.allowed(one.support) or units > size:
                yield f"{kinds}, size {size}: {one.support} is not allowed"
        turned = in_turns(whole, sizes, rng, limit)
        for size, one in zip(sizes, turned, strict=True):
            yield from above(one.lower_bound, values[size], f"{kinds}, size {size}, in turns")
            if not whole.constraints.allowed(one.support):
                yield f"{kinds}, size {size}, in turns: {one.support} is not allowed"
        for size in sizes:
            at = whole.replace(tau=size)
            branched = branch_and_bound(at.at_unit_length(), tol=0.0, limits=Limits(None, limit))
            called = f"{kinds}, size {size}, branched, limit {limit}"
            yield from above(branched.lower_bound, values[size], called)
            units = whole.constraints.units(branched.support).size
            if not whole.constraints.allowed(branched.support) or units > size:
                yield f"{called}: {branched.support} is not allowed"
            coef = np.zeros(at.p)
            coef[branched.support] = at.fit(branched.support).coef
            own = attained_at(data, coef)
            yield from worse(branched, own, values[size], called, lost)


def any_gamma(rng: np.random.Generator, number: int) -> Iterator[str]:
    """γ = 0 and 1e-12 to 1e12 times the columns' squared length: every search, every size."""
    data = ugly_data(rng)
    p = data.X.shape[1]
    length = float(np.square(data.X).sum(axis=0).max()) or 1.0
    data = data._replace(gamma=0.0 if number % 4 == 0 else length * EVERY_SHARE[number % 25])
    exact = exact_objectives(data)
    least = [min(f for S, f in exact.items() if len(S) <= k) for k in range(p + 1)]
    whole = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=p)
    lost = 1e-24 * whole.yy  # of the objective of coefficients as long as those of the fits here
    for proof in [*every_size(whole), *(solve(whole.replace(tau=k), tol=0.0) for k in range(1, p))]:
        size = proof.support.size
        called = f"γ = {data.gamma:g}, size {size}"
        yield from above(proof.lower_bound, least[size], called)
        own = exact[tuple(int(i) for i in proof.support)]
        yield from worse(proof, own, least[size], called, lost)


def every_size(whole: SparseRidgeProblem) -> Iterator[Answer]:
    """Every size by enumeration, by one tree, and by branch and bound."""
    sizes = np.arange(1, whole.p + 1)
    yield from enumerate_supports(whole, sizes, [])
    yield from best_subsets(whole)
    for size in sizes.tolist():
        yield branch_and_bound(whole.replace(tau=size), tol=0.0)


def near_problem(drawn: NearColumns) -> SparseRidgeProblem:
    """The problem of the largest size that has a model."""
    asked = {"gamma": drawn.gamma, "tau": max(drawn.exact), **drawn.rules.keywords}
    return SparseRidgeProblem(drawn.X, drawn.y, **asked)


def wrong(
    problem: SparseRidgeProblem, drawn: NearColumns, found: Any, size: int, what: str
) -> Iterator[str]:
    """What is wrong of a proof for models of at most so many units."""
    called, least = f"{what}, size {size} of {drawn}", drawn.least(size)
    yield from above(found.lower_bound, least, called)
    yield from worse(found, Fraction(found.objective), least, called, 1e-13 * problem.yy)


def near_bounds(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Signs and bounds on columns nearly the same: every search, to its end or not, every size."""
    others = ("groups", "include", "exclude")
    kinds = tuple(k for k in others if rng.random() < 0.15)
    kinds += (("positive",), ("bounds",), ("positive", "bounds"))[int(rng.integers(3))]
    drawn = NearColumns.drawn(rng, kinds)
    whole, limit = near_problem(drawn), Limits(node_limit=int(rng.integers(0, 20)))
    tree, cut = best_subsets(whole, sizes=list(drawn.exact)), best_subsets(whole, limits=limit)
    for proof in tree:
        size, at = proof.size, whole.replace(tau=proof.size)
        branched = branch_and_bound(at.at_unit_length(), tol=0.0)
        for found in (proof, solve(at, tol=0.0), branched):
            yield from wrong(whole, drawn, found, size, "tree, solve or branching")
    for one in cut:
        yield from above(one.lower_bound, drawn.least(one.size), f"all sizes, {limit}, {one.size}")


def near_groups(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Groups of columns nearly the same, or of very different lengths; y may be next to a fit.

    Rounding is then as large as what the last columns explain, some 1e-12 of it or less.
    """
    kinds = tuple(k for k in ("include", "exclude", "positive") if rng.random() < 0.2)
    drawn = NearColumns.drawn(rng, ("groups", *kinds), int(rng.choice([0, 0, 3, 12])))
    whole, limit = near_problem(drawn), Limits(node_limit=int(rng.integers(0, 20)))
    tree, cut = best_subsets(whole, sizes=list(drawn.exact)), best_subsets(whole, limits=limit)
    for one in tree:
        yield from wrong(whole, drawn, one, one.size, "tree")
    for one in cut:
        yield from above(one.lower_bound, drawn.least(one.size), f"all sizes, {limit}, {one.size}")
    path = support_path(whole, [1e-8, drawn.gamma, 1.0], list(drawn.exact))
    for t, size in enumerate(path.sizes.tolist()):
        yield from above(float(path.lower_bound[1, t]), drawn.least(size), f"path, size {size}")


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
    rules = Constraints(**asked)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2, constraints=rules)
    sizes = np.unique(rng.integers(1, m + 1, size=6))
    gammas = 10.0 ** rng.uniform(-4, 3) * np.append(1.0 + 0.3 * rng.random(4), [1e3, 1.2])
    # Small trees leave lists, too.
    with mock.patch.object(gamma_trees, "NODES_OF_LARGE_TREES", 0):
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
    how["constraints"] = Constraints(**asked)
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


def near_included(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Sweeps over sizes with columns included that are nearly the same."""
    drawn = NearColumns.drawn(rng, ("include", "exclude") if rng.random() < 0.3 else ("include",))
    whole = near_problem(drawn)
    found = solve_sizes(whole, sizes=list(drawn.exact))
    for one in found:
        alone = solve(whole.replace(tau=one.size), tol=0.0)
        yield from wrong(whole, drawn, one, one.size, "sweep")
        yield from wrong(whole, drawn, alone, one.size, "solve")


def near_ranks(rng: np.random.Generator, number: int) -> Iterator[str]:
    """The best supports of every size under constraints on columns nearly the same."""
    kinds = tuple(k for k in KINDS if rng.random() < 0.3) or ("bounds",)
    drawn = NearColumns.drawn(rng, kinds)
    whole = near_problem(drawn)
    ranked = n_best_subsets(whole, list(drawn.exact), int(rng.integers(1, 6)))
    for found, (size, values) in zip(ranked, sorted(drawn.exact.items()), strict=True):
        for i, (one, least) in enumerate(zip(found, sorted(values.values()), strict=False)):
            own, most = values[tuple(one.support.tolist())], float(least) * (1.0 + 2e-5)
            if one.proved and max(float(own), one.objective) > most + 1e-13 * whole.yy:
                yield (
                    f"size {size}: rank {i + 1} is {float(own)!r}, found {one.objective!r}, "
                    f"and not {float(least)!r}; {drawn.rules}, γ = {drawn.gamma:g}"
                )


SOLVERS: dict[str, Attack] = {
    "offset columns": family_attack("offset columns"),
    "one factor": family_attack("one factor"),
    "offset grid": family_attack("offset columns", grid=True),
    "one-factor grid": family_attack("one factor", grid=True),
    "ugly": ugly,
    "tree": tree,
    "all sizes": all_sizes,
    "enumeration": enumerated,
    "given matrices": given_matrices,
    "ellipsoids": ellipsoids,
    "two trees": two_trees,
    "constrained": constrained,
    "any gamma": any_gamma,
    "near bounds": near_bounds,
    "near included": near_included,
    "near ranks": near_ranks,
    "near groups": near_groups,
    "paths of units": paths_of_units,
    "units left out": units_left_out,
}
