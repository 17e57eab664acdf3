"""Every way from a small training problem to an answer, and one judge of what the answers claim.

A door takes a :class:`~support.families.Case` and a generator, asks the package, and yields what
the package says as :class:`Said`, or a line where a list is wrong. :func:`wrong` yields a line for
every claim that exact arithmetic contradicts. It assumes of a case what the case's fields say.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv import SparseRidge
from sparsecv.errors import LoweredSizeWarning, UnprovedWarning
from sparsecv.solvers import (
    Answer,
    SparseRidgeProblem,
    available_backends,
    best_subsets,
    best_subsets_rows_deleted,
    branch_and_bound,
    solve,
    solve_sizes,
    support_path,
    supports_along_gamma,
)

from .brute_force import (
    Support,
    exact_objectives,
    exact_sizes,
    fit_rounding,
    reach,
    rounding,
    value,
)
from .deleted_rows import rounding as rounding_of_a_row
from .families import Case
from .inside import (
    LEAPS,
    Comparison,
    Limits,
    Way,
    enumerated,
    n_best_subsets,
    plan,
)
from .stand_ins import standing_in
from .trees import key


class Said(NamedTuple):
    """What a door says of one size.

    before: The supports of the size that the door has listed before, as better ones.
    tol: The relative gap that the door was allowed to leave.
    """

    door: str
    size: int
    support: NDArray[np.intp]
    objective: float
    lower_bound: float
    status: str
    tol: float = 0.0
    before: tuple[Support, ...] = ()
    coef: NDArray[np.float64] | None = None


def said(door: str, found: Iterable[Answer], **more: Any) -> Iterator[Said]:
    for one in found:
        claims = one.support, one.objective, one.lower_bound, str(one.status)
        yield Said(door, one.size, *claims, **more)


def with_diagonal(case: Case, rng: np.random.Generator) -> Iterator[Said | str]:
    """Trees that have a diagonal of XᵀX from the first node on: every size, and ranked supports."""
    with standing_in(NODES_WITHOUT_DIAGONAL=0):
        yield from every_size(case, rng)
        yield from ranked(case, rng)


def single(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """``solve`` at every size: to the end, stopped, with a tolerance, and from a support."""
    for size in case.sizes:
        problem, limit = case.problem(size), int(rng.integers(0, 8))
        found = solve(problem, tol=0.0)
        yield from said("solve", [found], coef=found.coef)
        yield from said(f"solve, {limit} nodes", [solve(problem, tol=0.0, node_limit=limit)])
        tol, start = 10.0 ** rng.uniform(-6, -0.1), rng.permutation(case.p)[:size]
        units = problem.constraints.units(start)
        known = start if problem.constraints.allowed(start) and units.size <= size else None
        found = solve(problem, tol=tol, warm_start=known)
        yield from said(f"solve, tolerance {tol:.1e}", [found], tol=tol)


def every_size(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """``best_subsets`` and ``solve_sizes``, to the end and stopped, and from supports."""
    problem, limit = case.problem(), Limits(node_limit=int(rng.integers(0, 60)))
    starts = [rng.permutation(case.p)[: rng.integers(1, case.p + 1)] for _ in range(2)]
    starts = [start for start in starts if problem.constraints.allowed(start)]
    yield from said("best_subsets", best_subsets(problem, sizes=case.sizes, warm_starts=starts))
    yield from said(
        f"best_subsets, {limit.node_limit} nodes",
        best_subsets(problem, sizes=case.sizes, limits=limit),
    )
    yield from said("solve_sizes", solve_sizes(problem, sizes=case.sizes))
    yield from said(
        f"solve_sizes, {limit.node_limit} nodes",
        solve_sizes(problem, sizes=case.sizes, limits=limit),
    )


def known_without_tree(
    problem: SparseRidgeProblem, sizes: Iterable[int] | None = None
) -> list[Answer]:
    """What is known where no tree is begun, as of problems of too many columns."""
    with standing_in(holds_tree=lambda *_: False):
        return best_subsets(problem, sizes=None if sizes is None else list(sizes))


def without_tree(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """The answers of problems of too many columns."""
    yield from said("no tree, 0 nodes", known_without_tree(case.problem(), case.sizes))


def in_turns(
    problem: SparseRidgeProblem, sizes: Iterable[int], rng: np.random.Generator, limit: int | None
) -> list[Answer]:
    """Every size by searches that take turns of a few nodes, as they do with more columns."""
    nodes = np.cumsum(rng.integers(1, 20, size=8)).tolist()
    turns = [
        (Way(LEAPS, nodes=n), Way(plan.ALONE, nodes=int(rng.integers(1, 40)) * n)) for n in nodes
    ]
    planned = (*itertools.chain.from_iterable(turns), Way(LEAPS), Way(plan.EVERY))
    with standing_in(ways=lambda *_: planned):
        return solve_sizes(problem, sizes=list(sizes), limits=Limits(node_limit=limit))


def turns(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """``solve_sizes`` where searches take turns."""
    limit = None if rng.random() < 0.5 else int(rng.integers(0, 150))
    found = in_turns(case.problem(), case.sizes, rng, limit)
    yield from said(f"in turns, {limit} nodes", found)


def branching(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """The tree over included and excluded units, which larger problems have, to its end or not."""
    for size in case.sizes:
        problem = case.problem(size).at_unit_length()
        limit = int(rng.integers(0, 20))
        yield from said("branching", [branch_and_bound(problem, tol=0.0)])
        stopped = branch_and_bound(problem, tol=0.0, limits=Limits(node_limit=limit))
        yield from said(f"branching, {limit} nodes", [stopped])
        tol = float(rng.choice([1e-3, 0.05, 0.3, 0.9]))
        yield from said(
            f"branching, tolerance {tol}", [branch_and_bound(problem, tol=tol)], tol=tol
        )


def enumeration(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """Every support of a size, from a triangular factor."""
    problem = case.problem().at_unit_length()
    yield from said("enumeration", enumerated(problem, np.array(case.sizes), []))


def path(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """``support_path`` over several γ, of which one is the case's."""
    gamma = case.data.gamma
    other = 3.0 * gamma + float(10.0 ** rng.uniform(-4, 4))
    gammas = [other, gamma] if rng.random() < 0.5 else [1.5 * other, gamma, other]
    found, g = support_path(case.problem(), gammas, case.sizes), 1
    for t, size in enumerate(found.sizes.tolist()):
        numbers = float(found.objective[g, t]), float(found.lower_bound[g, t])
        status = "optimal" if found.proved[g, t] else "precision limit"
        yield Said("support_path", size, found.support(g, t), *numbers, status)


def ranked(case: Case, rng: np.random.Generator) -> Iterator[Said | str]:
    """The n best supports of every size, where no column and not y is zero in every row."""
    if not case.data.X.any(axis=0).all() or case.yy == 0.0:
        return
    n = int(rng.choice([2, 3, 7, 40]))
    for found in n_best_subsets(case.problem(), case.sizes, n):
        listed: tuple[Support, ...] = ()
        for one in found:
            yield from said(f"{n} best", [one], before=listed)
            listed += (key(one.support),)
        if len(set(listed)) < len(listed):
            yield f"{n} best: {listed} names a support twice"
        every = case.exact[found[0].size]
        if len(every) == case.n_models(found[0].size) and len(listed) != min(n, len(every)):
            yield f"{n} best: {len(listed)} of {len(every)} are listed"


def backends(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """Outside solvers, at one size."""
    if case.rules is None:
        size = int(rng.choice(case.sizes))
        for name in available_backends():
            if name not in ("native", "fake"):
                found = solve(case.problem(size), backend=name, tol=0.0)
                yield from said(name, [found], coef=found.coef, tol=1e-5)
                limit = int(rng.integers(0, 3))
                found = solve(case.problem(size), backend=name, tol=0.0, node_limit=limit)
                yield from said(f"{name}, {limit} nodes", [found], tol=1e-5)


def estimator(case: Case, rng: np.random.Generator) -> Iterator[Said]:
    """``SparseRidge`` on columns as they are, and its models of every size."""
    X, y, gamma = case.data
    if case.given or not X.any(axis=0).all() or y.size < 2:
        return
    rules = {} if case.rules is None else case.rules.keywords
    most = case.sizes[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        warnings.simplefilter("ignore", LoweredSizeWarning)
        model = SparseRidge(most, gamma, standardize=False, fit_intercept=False, **rules).fit(X, y)
        numbers = model.objective_, model.lower_bound_, model.status_
        yield Said("SparseRidge", most, model.support_, *numbers, coef=model.coef_, tol=1e-6)


def rows_deleted(case: Case, rng: np.random.Generator) -> Iterator[str]:
    """Every size without each of the rows, by one tree; two of the rows are judged."""
    X, y, _ = data = case.data
    if case.rules is not None or case.given or case.loses or case.p > 7 or y.size < 2:
        return
    found, status, _ = best_subsets_rows_deleted(case.problem(), X, y, sizes=case.sizes)
    for i in np.setdiff1d(rng.permutation(y.size)[:2], found.skipped).tolist():
        exact = exact_sizes(exact_objectives(data, (X[i], float(y[i]))))
        for a, size in enumerate(found.sizes.tolist()):
            own = exact[size][key(found.supports[found.choice[a, i]])]
            room = rounding_of_a_row(data, max(float(own), 0.0), float(found.residual[a, i]))
            called = f"row {i} deleted, size {size}"
            if abs(found.objective[a, i] - float(own)) > room:
                yield f"{called}: an objective of {found.objective[a, i]!r}, not {float(own)!r}"
            if status == "optimal" and float(own - min(exact[size].values())) > room:
                yield f"{called}: {float(own)!r} called optimal"


def near_best(case: Case, rng: np.random.Generator) -> Iterator[str]:
    """All supports of some sizes whose objective is near the least."""
    if case.rules is not None or case.given or case.loses or not case.data.X.any(axis=0).all():
        return
    if case.p > 7:
        return
    most = int(rng.integers(1, case.p + 1))
    weight, n = np.ones(most + 1), case.data.y.size
    if rng.random() < 0.5:  # By BIC of least squares, of sizes below the number of rows.
        weight = np.exp(np.arange(most + 1) * np.log(n) / n)
        weight[n:] = np.inf
    sizes = np.flatnonzero(np.isfinite(weight)).tolist()
    values = {S: weight[s] * float(f) for s in sizes for S, f in case.exact[s].items()}
    least, within = min(values.values()), float(rng.choice([0.0, 0.05, 0.5]))
    last = float(rng.choice(list(values.values())))
    if rng.random() < 0.5 and least > 1e-9 * last:  # This support is just within the limit.
        within = last / least - 1.0 + 1e-6
    found = Comparison(weight).near_best(case.problem(), within)
    limit = (1.0 + within) * least
    room = 1e-9 * limit + 1e-12 * case.yy
    listed = [key(one.support) for one in found.answers]
    if len(set(listed)) < len(listed) or (np.diff(found.value) < -room).any():
        yield f"near best: {listed} names a support twice, or is in no order"
    if missed := {S for S, f in values.items() if f < limit - room} - set(listed):
        yield f"near best within {within}: {missed} are not listed"
    if more := set(listed) - {S for S, f in values.items() if f <= limit + room}:
        yield f"near best within {within}: {more} are listed"


def along_gamma(case: Case, rng: np.random.Generator) -> Iterator[str]:
    """The supports that are best at some γ of a range, at the case's γ."""
    gamma = case.data.gamma
    if case.rules is not None or case.loses:
        return
    low, high = gamma * rng.uniform(0.3, 1.0), gamma * rng.uniform(1.01, 3.0) + 1e-6
    along, _ = supports_along_gamma(case.problem(), low, high, sizes=case.sizes)
    for size, intervals in along.items():
        here = [one.support for one in intervals if one.low <= gamma <= one.high]
        if not here:
            yield f"along gamma, size {size}: nothing is said of γ = {gamma!r}"
        elif not any(support is None for support in here):
            own = float(min(case.own(size, key(support)) or 0 for support in here))
            least = float(case.least(size))
            if own > least + rounding(least, case.yy):
                yield f"along gamma, size {size}: {own!r} called the least, not {least!r}"


DOORS: dict[str, Callable[[Case, np.random.Generator], Iterator[Said | str]]] = {
    "solve": single,
    "every size": every_size,
    "turns": turns,
    "with diagonal": with_diagonal,
    "without tree": without_tree,
    "branching": branching,
    "enumeration": enumeration,
    "path": path,
    "ranked": ranked,
    "backends": backends,
    "estimator": estimator,
    "rows deleted": rows_deleted,
    "near best": near_best,
    "along gamma": along_gamma,
}


def above(bound: float, value: Fraction, what: str) -> Iterator[str]:
    """A line where a lower bound is above an objective that is attained."""
    if bound > -np.inf and Fraction(bound) > value:  # −∞ says nothing
        yield f"{what}: {bound!r} above {float(value)!r} by {float(Fraction(bound) - value):.3g}"


def wrong(case: Case, one: Said | str) -> Iterator[str]:
    """What is wrong of a claim: of the support, its objective, its bound, or that it is proved."""
    if isinstance(one, str):
        yield one
        return
    called, support, problem = f"{one.door}, size {one.size}", key(one.support), case.problem()
    if list(support) != sorted(set(support)) or not set(support) <= set(range(case.p)):
        yield f"{called}: {support} is no support"
        return
    units = int(problem.constraints.units(one.support).size)
    if not problem.constraints.allowed(one.support) or units > one.size:
        yield f"{called}: {support} is not allowed"
    if case.rules is None and units < one.size:
        yield f"{called}: {support} has another size"
    if one.lower_bound > one.objective:
        yield f"{called}: {one.lower_bound!r} is above its own {one.objective!r}"
    yield from wrong_coefficients(case, one, called)
    own, least = case.own(units, support), case.least(one.size)
    if one.before or one.lower_bound > least:
        least = least_promised(case, one)
    yield from above(one.lower_bound, least, called)
    if own is None or case.loses:
        own, room = Fraction(one.objective), 4e-6 * float(least)
        room += rounding(0.0, reach(case.data, support) ** 2)
    else:
        room = fit_rounding(case.data, support, float(own))
        claims = one.status == "optimal" or not drops_a_direction(case, support)
        # Where nothing is proved, a list may fit all supports from one factor of nearly dependent
        # columns, which rounding has moved further than the columns of one support alone.
        lost = case.lost if one.status == "optimal" else 10.0 * case.lost
        if claims and abs(one.objective - float(own)) > room + lost:
            yield f"{called}: an objective of {one.objective!r}, not {float(own)!r}"
        room += 1e-9 * float(least)
    if one.status == "optimal":
        # Where columns are not mild, docs/guide.md promises of branch and bound a relative gap of
        # 2e-6 and no smaller one, whatever the gap asked for.
        coarse = one.door.startswith("branching") and not case.mild
        tol = max(one.tol, 2e-6) if coarse else one.tol
        if float(own) > (float(least) + room) / (1.0 - tol) + case.lost:
            yield f"{called}: {float(own)!r} called optimal, not {float(least)!r}"
        if case.mild and one.objective - one.lower_bound > gap_left(case, one):
            yield f"{called}: proved, with a bound of {one.lower_bound!r} below {one.objective!r}"
    elif case.mild and "nodes" not in one.door:
        yield f"{called}: {one.status}, where nothing keeps it from a proof"


def least_promised(case: Case, one: Said) -> Fraction:
    """The least objective of the supports that may follow those listed before.

    A fit that may drop a direction attains what no bound promises. The bound is then one of columns
    within some 1e-12 of those given, as docs/theory.md says, and holds of no subset of such a fit's
    columns as they are given.
    """
    sizes = [one.size] if one.before else [s for s in case.exact if s <= one.size]
    every = [(S, f) for s in sizes for S, f in case.exact[s].items() if S not in one.before]
    if not any(one.lower_bound > f for _, f in every):
        return min((f for _, f in every), default=Fraction(one.objective))
    dropping = [set(S) for S, _ in every if drops_a_direction(case, S)]
    left = [f for S, f in every if not any(set(S) <= more for more in dropping)]
    return min(left, default=Fraction(one.objective))


def drops_a_direction(case: Case, support: Support) -> bool:
    """Whether the fit without a ridge may drop a direction in which columns differ.

    docs/theory.md says when: where a singular value, columns at length 1, is up to 1e-12 of the
    largest. It is computed here with an error of some 1e-16 of the largest.
    """
    columns = case.data.X[:, list(support)]
    lengths = np.linalg.norm(columns, axis=0)
    if case.data.gamma > 0.0 or not lengths.all():
        return False
    values = np.linalg.svd(columns / lengths, compute_uv=False)
    return bool((values <= 1.01e-12 * values[0]).any())


def gap_left(case: Case, one: Said) -> float:
    """What a proof may leave between its bound and its objective where columns are mild."""
    inflation = 1.0 + 2.0 * float(np.square(case.data.X).sum()) / case.data.gamma
    trees = ("best_subsets", "support_path", "enumeration")
    share = 1e-9 + 1e-14 * inflation if one.door in trees else 2e-6 + one.tol
    rest = 1e-12 * (one.objective * case.yy) ** 0.5 + 1e-26 * case.yy
    return share * one.objective + (rest if one.door in trees else max(rest, 2e-12 * case.yy))


def wrong_coefficients(case: Case, one: Said, what: str) -> Iterator[str]:
    """A line where coefficients are outside their bounds or their support."""
    if one.coef is not None:
        if not set(np.flatnonzero(one.coef).tolist()) <= set(one.support.tolist()):
            yield f"{what}: {one.coef} has columns outside {one.support}"
        if case.rules is not None:
            inside = (case.rules.lower <= one.coef) & (one.coef <= case.rules.upper)
            if not inside.all():
                yield f"{what}: {one.coef} is outside its bounds"
        attained = value(*case.data, one.coef)
        room = 1e-8 * abs(attained) + 1e-10 * case.yy + 1e-300
        if case.mild and abs(one.objective - attained) > room:
            yield f"{what}: {one.objective!r}, where its coefficients attain {attained!r}"


def contradicted(case: Case, rng: np.random.Generator) -> Iterator[str]:
    """A line for everything that is wrong of what the doors say of a case."""
    for door in DOORS.values():
        for one in door(case, rng):
            yield from wrong(case, one)
