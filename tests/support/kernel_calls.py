"""A table of calls, each on a small problem, which together reach every kernel.

``python -m support.kernel_calls`` makes every call and prints what each call returns, and which
kernels Python has called. Under ``NUMBA_DISABLE_JIT=1`` the kernels run as plain Python, where an
index out of range is an error. Answers are numbers that do not depend on the order of sums:
objectives, bounds and errors, but neither supports, which may tie, nor numbers of nodes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numba import config
from numpy.typing import NDArray

from sparsecv import Constraints, SparseRidgeCV
from sparsecv.solvers import (
    SparseRidgeProblem,
    best_subsets,
    best_subsets_rows_deleted,
    branch_and_bound,
    heuristic_support,
    perspective_relaxation,
    support_path,
    supports_along_gamma,
)

from .answers import lower_bounds, objectives
from .inside import (
    Comparison,
    LeftOut,
    enumerated,
    search_alone,
    selection_events,
    solve_jointly,
)
from .preconditions import CALLED, assert_on_entry
from .problems import grown, regression
from .stand_ins import real, standing_in

Array = NDArray[np.float64]
KINDS = ("plain", "collinear", "wide", "ties", "one column")
BOUNDS = {0: (-0.1, 0.3), 1: (0.0, 2.0), 2: (-1e7, 0.0), 3: (0.0, np.inf)}


def rows(kind: str, n: int = 12, p: int = 6) -> tuple[Array, Array]:
    """A small table of a kind that is hard on rounding."""
    random = np.random.default_rng(KINDS.index(kind))
    if kind == "wide":
        n = 4
    X = random.standard_normal((n, p))
    y = X[:, 0] - X[:, 2] + 0.5 * random.standard_normal(n)
    if kind == "collinear":
        X[:, 3] = X[:, 0] + 1e-7 * random.standard_normal(n)
        X[:, 4] = X[:, 1]
    elif kind == "ties":
        X = np.kron(np.eye(p), np.ones((2, 1)))
        y = X.sum(axis=1)
    elif kind == "one column":
        y = 3.0 * X[:, 1] + 1e-9 * random.standard_normal(n)
    return X, y


def problem(kind: str, gamma: float, tau: int = 3, **more: Any) -> SparseRidgeProblem:
    asked = Constraints(**more) if more else None
    return SparseRidgeProblem(*rows(kind), gamma=gamma, tau=tau, constraints=asked)


def trees(kind: str, gamma: float) -> Iterator[Any]:
    """Every size by one tree, and a path of two ridges."""
    given = problem(kind, gamma)
    sizes = np.arange(1, given.p + 1)
    found = best_subsets(given, sizes=sizes)
    yield from (objectives(found), lower_bounds(found))
    path = support_path(given, [gamma, 2.0 * gamma], sizes)
    yield from (path.objective, path.squared_errors(*rows(kind)))


def within_bounds(kind: str, gamma: float) -> Iterator[Any]:
    given = problem(kind, gamma, 4, bounds=BOUNDS)
    yield given.fit(range(6)).objective
    yield objectives(best_subsets(given))


def listed(kind: str) -> Iterator[Any]:
    given = problem(kind, 1.0)
    yield [one.objective for one in enumerated(given, np.arange(1, 6), [])]


def heuristics(kind: str) -> Iterator[Any]:
    given, start = problem(kind, 0.5), np.array([1, 4, 5])
    yield given.objective(heuristic_support(given, warm_starts=[start]))
    yield [given.objective(s) for s in grown(given, [1, 2, 3], starts=[start]).values()]
    some = {j: BOUNDS[j] for j in (0, 2, 3)}
    for more in ({"groups": [*"aabbbc"]}, {"groups": [*"abbcde"], "bounds": some}):
        given = problem(kind, 0.5, 2, **more)
        yield objectives(best_subsets(given))
        yield [given.objective(s) for s in grown(given, [1, 2]).values()]


def joint(kind: str, size: int, max_leaves: int, far: float = 0.0) -> Iterator[Any]:
    """One search of all problems without ``size`` rows; ``far`` is put into the first row."""
    X, y = rows(kind)
    if far:
        X[0] = [far, *np.zeros(5)]
    start = np.arange(0, y.size + 1, size)
    whole = SparseRidgeProblem(X, y, gamma=1.0, tau=3)
    left_out = LeftOut.of(whole, X, y, start, y.size)
    parts = [np.arange(a, b) for a, b in pairwise(start)]
    alone = [
        SparseRidgeProblem(np.delete(X, part, 0), np.delete(y, part), gamma=1.0, tau=3)
        for part in parts
    ]

    def values(which: Any, support: Any) -> Any:
        return np.array([alone[j].objective(support) for j in which])

    starts = np.tile([0, 1, 2], (len(alone) + 1, 1))
    upper = values(range(len(alone)), starts[0])
    found = solve_jointly(left_out, whole, starts, upper, values, max_leaves=max_leaves)
    if far:  # Without this row a down-date loses its digits.
        yield found[0].proved
        return
    for j, fold in enumerate(alone):
        support = found[j].support
        if not found[j].proved:
            relaxed = search_alone(left_out, whole, j, found[j])
            support = search_alone(left_out, whole, j, relaxed, branch=True).support
        yield fold.objective(support)


def deleted(kind: str) -> Iterator[Any]:
    found, _, _ = best_subsets_rows_deleted(problem(kind, 1.0), *rows(kind), sizes=[1, 2, 3])
    yield found.objective


def branching(
    given: SparseRidgeProblem, newton: bool = True, at_once: bool = False, deep: bool = True
) -> Iterator[Any]:
    """Branch and bound.

    deep: Whether the tolerance is 0, and plain Python branches on nodes that would be enumerated.
    newton: Whether nodes of several active columns are relaxed by Newton's method. Compiled
        kernels keep their constants, so that they use it always.
    at_once: Whether there is strong branching from the first node on.
    """
    with ExitStack() as changed:
        if config.DISABLE_JIT and deep:
            few = standing_in(small_enough=lambda st, node, n, k, solved: k <= 1)
            changed.enter_context(few)
        if not newton:
            changed.enter_context(standing_in(MAX_FACTORED_COLUMNS=1))
        if at_once:
            changed.enter_context(standing_in(ROUGH_NODES=0))
        solved = branch_and_bound(given, **({"tol": 0.0} if deep else {}))
    assert solved.lower_bound <= solved.objective
    yield [solved.objective, solved.status == "optimal"]
    if deep:
        yield solved.lower_bound


def mixed(seed: int) -> SparseRidgeProblem:
    X, y = regression(14, 9, [1.0] * 4, seed=seed, noise=3.0, shared=1.0)
    return SparseRidgeProblem(X, y, gamma=1.0, tau=4)


def grouped(**bounds: Any) -> SparseRidgeProblem:
    random = np.random.default_rng(7)
    X = random.standard_normal((20, 9)) + random.standard_normal((20, 1))
    y = X[:, :4].sum(axis=1) + 3.0 * random.standard_normal(20)
    asked = Constraints(groups=[*"aabb", *[None] * 5], **bounds)
    return SparseRidgeProblem(X, y, gamma=1.0, tau=4, constraints=asked)


def descent(kind: str, gram: bool) -> Iterator[Any]:
    """The relaxation by coordinate descent, on the Gram matrix or on residuals."""
    work, given = real("relaxation_work"), problem(kind, 0.5)
    with ExitStack() as changed:
        changed.enter_context(standing_in(relaxation_work=lambda *of: work(*of[:3], 1)))
        if not gram:
            residuals = {
                f"wants_gram_{where}": lambda _: False for where in ("alone", "at_the_root")
            }
            changed.enter_context(standing_in(**residuals))
        relaxed = perspective_relaxation(given)
        rough = perspective_relaxation(given, epsilon=0.2, gap=1e-3)
        for one in (relaxed, rough):
            assert one.bound <= one.value
        yield [relaxed.value, relaxed.bound]
        yield from branching(given, newton=False, deep=False)


def along(kind: str, low: float, high: float) -> Iterator[Any]:
    given = problem(kind, 1.0)
    found, _ = supports_along_gamma(given, low, high, sizes=[1, 2])
    for gamma in (low, 0.5 * (low + high), high):
        here = given.replace(gamma=gamma)
        for some in found.values():
            yield min(here.objective(one.support) for one in some if one.low <= gamma <= one.high)


def selected(**more: Any) -> Iterator[Any]:
    """Good supports, and the lines along which the best one stays the best."""
    given = problem("plain", 1.0, 1, **more)
    compared = Comparison(np.array([np.inf, np.inf, 1.0]))
    best = compared.near_best(given, 0.5)
    yield best.value
    support = best.answers[0].support
    directions = np.linalg.qr(given.triangle[:, support])[0].T
    events, status, _ = selection_events(given, support, compared, directions)
    yield str(status) == "optimal"
    yield from (event.outer for event in events)


def validated(**asked: Any) -> Iterator[Any]:
    X, y = rows("plain", 10, 4)
    model = SparseRidgeCV(cv=3, nested=False, **asked).fit(X, y)
    yield [model.cv_error_, *model.cv_error_bounds_]


CALLS: dict[str, Callable[[], Iterator[Any]]] = {
    **{
        f"trees, {kind}, gamma {gamma}": partial(trees, kind, gamma)
        for kind in KINDS
        for gamma in (1e-3, 1.0, 1e4)
    },
    **{
        f"within bounds, {kind}, gamma {gamma}": partial(within_bounds, kind, gamma)
        for kind in ("plain", "collinear", "ties")
        for gamma in (0.0, 1.0)
    },
    **{f"enumeration, {k}": partial(listed, k) for k in ("plain", "wide", "one column")},
    **{f"heuristics, {k}": partial(heuristics, k) for k in ("plain", "collinear")},
    **{
        f"joint, {kind} without {size}, {leaves} leaves": partial(joint, kind, size, leaves)
        for kind, size in (("plain", 1), ("plain", 3), ("ties", 2))
        for leaves in (0, 2000)
    },
    "joint, a row far away": partial(joint, "plain", 1, 0, 1e9),
    "rows deleted": partial(deleted, "plain"),
    **{
        f"branching, {seed}{'' if newton else ', descent'}": partial(
            branching, mixed(seed), newton, at_once=seed > 0
        )
        for seed in range(3)
        for newton in (True, False)
    },
    "branching, groups": lambda: branching(grouped(), at_once=True),
    "branching, groups and bounds": lambda: branching(
        grouped(bounds={0: (-0.1, 0.3), 6: (0.0, np.inf)}), at_once=True
    ),
    **{
        f"descent, {kind}, {'Gram' if gram else 'residuals'}": partial(descent, kind, gram)
        for kind in ("plain", "collinear", "wide")
        for gram in (True, False)
    },
    "along gamma, plain": partial(along, "plain", 0.5, 2.0),
    "along gamma, from 0": partial(along, "plain", 0.0, 1.0),
    "along gamma, ties": partial(along, "ties", 0.1, 1.0),
    "along gamma, collinear": partial(along, "collinear", 0.01, 50.0),
    "selected": selected,
    "selected, groups": partial(selected, groups=["a", "a", "b", "b", None, None]),
    "validated, global": partial(validated, gammas="global:0.5:2", taus=[1, 2]),
}


def called(name: str) -> list[float]:
    """The numbers that a call of the table returns, one after the other."""
    found = [np.ravel(np.asarray(one, dtype=float)) for one in CALLS[name]()]
    return [float(value) for value in np.concatenate(found)]


def entries() -> dict[str, bool]:
    """Every compiled kernel that Python may call, and whether this process has called it."""
    from .inside import InnerKernel, Kernel

    return {
        f"{module.__name__}.{name}": bool(found.overloads)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("sparsecv")
        for name, found in vars(module).items()
        if isinstance(found, Kernel) and not isinstance(found, InnerKernel)
    }


if __name__ == "__main__":
    if config.DISABLE_JIT:
        assert_on_entry()
    with np.errstate(all="ignore"):  # Kernels calculate with infinities.
        answers = {name: called(name) for name in CALLS}
    print(json.dumps({"answers": answers, "entries": entries(), "asserted": [*CALLED]}))
