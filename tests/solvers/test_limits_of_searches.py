"""Every search ends at its limits and says at which, and its bounds stay below its objectives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.answers import ended
from support.clocks import WorkClock
from support.inside import (
    Limits,
    SizeAlone,
    StopFlag,
    checked_backend,
    enumerated,
)
from support.problems import plain, problem_of, pure_noise
from support.stand_ins import StandIn, real

from sparsecv.solvers import (
    Answer,
    SparseRidgeProblem,
    Status,
    available_backends,
    best_subsets,
    best_subsets_rows_deleted,
    branch_and_bound,
    register_backend,
    solve,
    solve_sizes,
    supports_along_gamma,
)
from sparsecv.solvers.branching.size_sweep import SizeSearch

FEW, MANY = pure_noise(0, 60, 45, 1e-2), pure_noise(0, 90, 60, 1e-3)  # hopeless to finish


def test_searches_that_follow_one_another_share_a_limit_of_nodes() -> None:
    """A tree of all sizes leaves sizes to searches of single sizes, which get what is left."""
    random = np.random.default_rng(60)
    X = random.standard_normal((50, 60))
    y = X[:, :8].sum(axis=1) + 4.0 * random.standard_normal(50)
    problem = SparseRidgeProblem(X, y, gamma=0.1, tau=8)
    search = SizeSearch(problem, np.arange(3, 9)).run(Limits(node_limit=24_000))
    assert 0 < search.nodes_alone < search.n_nodes
    assert search.n_nodes <= 24_000


@pytest.mark.parametrize("tau", [6, 20], ids=["every support", "a tree of all sizes"])
def test_a_search_on_a_triangle_goes_on_where_it_stopped(tau: int) -> None:
    """Columns that nearly depend on each other leave one size to such a search alone."""
    random = np.random.default_rng(5)
    X = random.standard_normal((80, 60))
    X[:, 1] = X[:, 0] + 1e-7 * random.standard_normal(80)
    y = X[:, :8].sum(axis=1) + 4.0 * random.standard_normal(80)
    problem = SparseRidgeProblem(X, y, gamma=1e-8, tau=tau).at_unit_length()
    search, nodes = SizeAlone(problem, tol=0.0), [0]
    with WorkClock(by_look=1.0):
        for limit in (16.0, 8.0):  # A second turn has fewer looks at the clock than the first.
            nodes.append(search.run(Limits(time_limit=limit)).n_nodes)
    assert nodes == sorted(set(nodes))
    assert not search.answer.proved
    assert search.answer.lower_bound <= search.answer.objective


def test_what_is_not_known_is_not_proved() -> None:
    """Before any search the objective is infinite, and no gap is closed."""
    nothing: Any = {"support": np.arange(0), "objective": np.inf, "lower_bound": 0.0}
    known = Answer(size=3, status=Status.TIME_LIMIT, **nothing)
    assert known.gap == 1.0


def one_size(limits: Limits) -> Any:
    return enumerated(problem_of(plain(5, 30, 80), 6), np.array([6]), [np.arange(6)], limits)[0]


SEARCHES: dict[str, Callable[..., Any]] = {
    "all sizes": partial(best_subsets, problem_of(MANY)),
    "every row deleted": partial(
        best_subsets_rows_deleted, problem_of(FEW), FEW.X, FEW.y, sizes=[3, 10, 20]
    ),
    "branch and bound": partial(branch_and_bound, problem_of(MANY, 12), tol=0.0),
    "sizes by the plan": partial(solve_sizes, problem_of(MANY), sizes=[12, 20]),
    "enumeration": one_size,
    "along gamma": partial(supports_along_gamma, problem_of(FEW, 20), 0.1, 10.0, sizes=[20]),
}


def raised(seconds: float) -> StopFlag:
    """A flag that is up, or that another thread raises soon."""
    flag = StopFlag()
    timer = threading.Timer(seconds, flag.set)
    timer.start()
    timer.join(None if seconds == 0.0 else 0.0)
    return flag


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (lambda: Limits(node_limit=0), Status.NODE_LIMIT),
        (lambda: Limits(node_limit=7), Status.NODE_LIMIT),
        (lambda: Limits(time_limit=0.0), Status.TIME_LIMIT),
        (lambda: Limits(time_limit=0.05), Status.TIME_LIMIT),
        (lambda: Limits(0.0, 0, raised(0.0)), Status.INTERRUPTED),  # A flag counts before limits.
        (lambda: Limits(stop=raised(0.02)), Status.INTERRUPTED),
    ],
    ids=["no node", "nodes", "no time", "time", "flag", "raised soon"],
)
def test_a_search_ends_where_it_should(
    name: str, limits: Callable[[], Limits], status: Status
) -> None:
    if status is Status.NODE_LIMIT and name in ("enumeration", "along gamma"):
        pytest.skip("enumeration has no nodes, and a range of gamma has a tree at each")
    found = SEARCHES[name](limits=limits())
    if isinstance(found, tuple):
        assert found[1] is status
        return
    every = found if isinstance(found, list) else [found]
    assert ended(every) is status
    assert all(one.lower_bound <= one.objective for one in every)


@pytest.mark.parametrize("nodes", [0, 1, 999, 20_001])
@pytest.mark.parametrize("name", ["all sizes", "every row deleted"])
def test_trees_of_all_sizes_count_their_nodes(name: str, nodes: int) -> None:
    found = SEARCHES[name](limits=Limits(node_limit=nodes))
    if isinstance(found, tuple):
        _, status, work = found
        assert (status, work.n_nodes) == (Status.NODE_LIMIT, max(nodes, 1))
        return
    for one in found:
        assert one.n_nodes == max(nodes, 1)
        assert one.proved or one.leaves.size > 0
    assert ended(found) is Status.NODE_LIMIT


def test_too_many_columns_for_a_tree_leave_time_and_flags() -> None:
    wide = problem_of(plain(0, 5, 168 + 1))
    for limits, status in (
        (Limits(0.0), Status.TIME_LIMIT),
        (Limits(stop=raised(0.0)), Status.INTERRUPTED),
    ):
        assert best_subsets(wide, sizes=[2], limits=limits)[0].status is status


def test_nothing_left_to_prove_counts_as_optimal() -> None:
    data = plain(0, 10, 4)
    found = solve(problem_of(data, 4), node_limit=0)  # one support only
    assert found.status is Status.OPTIMAL
    assert found.support.tolist() == [0, 1, 2, 3]


def test_registered_backends_are_called(stand_in: StandIn) -> None:
    stand_in(backends=dict(real("backends")))
    calls: list[dict[str, Any]] = []

    def fake(problem: SparseRidgeProblem, **options: Any) -> Answer:
        calls.append(options)
        support = np.arange(problem.tau, dtype=np.intp)
        return Answer(
            size=problem.tau,
            support=support,
            objective=1.0,
            lower_bound=0.5,
            status=Status.TIME_LIMIT,
        )

    register_backend("fake", fake)
    assert "fake" in available_backends()
    assert checked_backend("fake") == "fake"
    problem = problem_of(plain(0, 6, 3), 2)
    given: dict[str, Any] = {"time_limit": 9.0, "node_limit": 7, "stop": StopFlag(), "tol": 0.25}
    found = solve(problem, backend="fake", warm_start=[2, 0], **given)
    assert found.objective == problem.objective([0, 1])  # the fit of the support that it names
    assert found.lower_bound == 0.5
    (starts,) = calls[0].pop("warm_starts")
    assert sorted(starts.tolist()) == [0, 2]
    assert calls[0] == {**given, "n_jobs": None}
    solve(problem, backend="fake")
    assert list(calls[1]["warm_starts"]) == []
