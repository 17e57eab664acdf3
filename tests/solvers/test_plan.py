"""The plan of searches, and the tables of docs/limits.md that are made from it.

``python tests/solvers/test_plan.py`` prints both tables.
"""

from pathlib import Path

import numpy as np
import pytest
from support.inside import Limits, Way, plan

from sparsecv import Constraints
from sparsecv.solvers import SparseRidgeProblem

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
SEVERAL = {"up to 16": 16, "17 to 35": 35, "36 to 45": 45, "46 to 168": 168, "more than 168": 200}


def problem_of(p: int, tau: int, dependent: bool = False) -> SparseRidgeProblem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((p + 10, p))
    if dependent:
        X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    return SparseRidgeProblem(X, rng.standard_normal(p + 10), gamma=1e-12, tau=tau)


def phrase(planned: tuple[Way, ...]) -> str:
    """The searches in words, each with its limits; those that take turns stand together."""
    said = []
    if len(planned) > 2 * plan.TURNS:
        tree, alone = planned[:2]
        turns = f"{tree.search} ({tree.nodes:,} nodes) in turn with {alone.search} (as long)"
        said = [f"{turns}, and half as much again in each turn"]
        planned = planned[2 * plan.TURNS :]
    for way in planned:
        limits = [] if way.nodes is None else [f"{way.nodes:,} nodes"]
        limits += [] if way.seconds is None else ["twice the time of every support"]
        limits += [] if way.share == 1.0 else [f"{100 * way.share:.0f} % of the time"]
        limits += [f"at most {way.supports:,.0f} supports"] if way.search == plan.EVERY else []
        said.append(way.search + (f" ({', '.join(limits)})" if limits else ""))
    return ", then ".join(said)


def rows() -> list[str]:
    """The lines of both tables."""
    found = ["| columns or groups | several sizes at one γ | one size |", "| --- | --- | --- |"]
    for label, p in SEVERAL.items():
        problem = problem_of(p, 10)
        planned = plan.ways(problem, range(1, 11)), plan.ways(problem, [10])
        found.append(f"| {label} | {phrase(planned[0])} | {phrase(planned[1])} |")
    found += ["| a size alone | searches |", "| --- | --- |"]
    for label, problem in {
        "with at most 5,000,000,000 supports, up to 2,000 columns": problem_of(60, 5),
        "with more supports, up to 168 columns": problem_of(168, 10),
        "with more columns": problem_of(200, 10),
        "with at most 5,000,000,000 supports, columns nearly dependent": problem_of(60, 5, True),
        "with more supports, up to 168 columns, nearly dependent": problem_of(168, 10, True),
    }.items():
        found.append(f"| {label} | {phrase(plan.ways_of_one_size(problem))} |")
    return found


@pytest.mark.skipif(not PAGE.is_file(), reason="no page beside the tests: this is not a checkout")
def test_the_page_shows_the_plan() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in rows() if line not in page] == []


def test_constraints_leave_branch_and_bound_for_one_size() -> None:
    X = np.random.default_rng(0).standard_normal((70, 60))
    asked = SparseRidgeProblem(X, X[:, 0], gamma=1.0, tau=5, constraints=Constraints(positive=[0]))
    assert [way.search for way in plan.ways_of_one_size(asked)] == ["branch and bound"]


@pytest.mark.parametrize("limit", [None, 8.0])
def test_limits_of_a_way(limit: float | None) -> None:
    way = Way(plan.EVERY, nodes=100, seconds=5.0, share=0.25)
    within = way.within(Limits(limit, 70))
    assert within.node_limit == 70
    left = way.within(Limits(limit)).remaining()
    assert left is not None
    assert left <= (5.0 if limit is None else 2.0)


if __name__ == "__main__":
    print("\n".join(rows()))
