"""Every search ends at its limits and says at which, and its bounds stay below its objectives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.problems import plain, problem_of, pure_noise

from sparsecv.solvers import (
    Status,
    best_subsets,
    best_subsets_rows_deleted,
    branch_and_bound,
    solve_sizes,
    supports_along_gamma,
)
from sparsecv.solvers.branching.enumeration import enumerated
from sparsecv.solvers.core.limits import Limits, StopFlag
from sparsecv.solvers.core.rows import MAX_COLUMNS

FEW, MANY = pure_noise(0, 60, 45, 1e-2), pure_noise(0, 90, 60, 1e-3)  # hopeless to finish


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
    assert found.status is status
    if name != "along gamma":
        assert np.all(found.lower_bound <= found.objective)


@pytest.mark.parametrize("nodes", [0, 1, 999, 20_001])
@pytest.mark.parametrize("name", ["all sizes", "every row deleted"])
def test_trees_of_all_sizes_count_their_nodes(name: str, nodes: int) -> None:
    found = SEARCHES[name](limits=Limits(node_limit=nodes))
    assert found.n_nodes == max(nodes, 1)
    assert found.open_nodes


def test_too_many_columns_for_a_tree_leave_time_and_flags() -> None:
    wide = problem_of(plain(0, 5, MAX_COLUMNS + 1))
    for limits, status in (
        (Limits(0.0), Status.TIME_LIMIT),
        (Limits(stop=raised(0.0)), Status.INTERRUPTED),
    ):
        assert best_subsets(wide, sizes=[2], limits=limits).status is status
