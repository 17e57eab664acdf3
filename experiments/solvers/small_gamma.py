"""This script measures the gaps of the data set Bardet at γ = 1, which no known bound closes.

    python -m experiments.solvers.small_gamma [seconds]

Bardet has n = 120 rows and p = 200 columns; the gaps remain at τ of 6 or more. The script prints
the gap of the relaxation at the root, and with the largest members of the best known support fixed
in, one after the other: this says how deep a tree must grow before it prunes. Then the script
prints the gap that the tree leaves after ``seconds`` (30 by default).
"""

from __future__ import annotations

import sys
import time
from math import comb

import numpy as np

from experiments.common import machine
from experiments.instances import Instance
from sparsecv.solvers import (
    SparseRidgeProblem,
    branch_and_bound,
    heuristic_support,
    perspective_relaxation,
)
from sparsecv.solvers.core.limits import Limits


def fixed_in(problem: SparseRidgeProblem, members: np.ndarray) -> SparseRidgeProblem:
    """The problem left when some columns are certainly in: they are projected out."""
    rest = np.setdiff1d(np.arange(problem.p), members)
    ridge = problem.gamma / 2.0
    G, b = problem.G, problem.b
    inner = G[np.ix_(members, members)] + ridge * np.eye(members.size)
    across = np.linalg.solve(inner, G[np.ix_(members, rest)])
    known = np.linalg.solve(inner, b[members])
    left = G[np.ix_(rest, rest)] - G[np.ix_(rest, members)] @ across
    return SparseRidgeProblem.from_gram(
        left,
        b[rest] - G[np.ix_(rest, members)] @ known,
        problem.yy - float(b[members] @ known),
        gamma=problem.gamma,
        tau=problem.tau - members.size,
    )


def depth_table(problem: SparseRidgeProblem, support: np.ndarray) -> None:
    fit = problem.fit(support)
    order = support[np.argsort(-np.abs(fit.coef))]
    print(f"τ = {problem.tau}, best objective known {fit.objective:.6f}; gap with the first d in:")
    cells = []
    for d in range(problem.tau):
        inside = fixed_in(problem, np.sort(order[:d])) if d else problem
        bound = perspective_relaxation(inside).bound
        cells.append(f"{d}: {100 * (1 - bound / fit.objective):.0f} %")
    print("  " + ", ".join(cells))


def gap_of(problem: SparseRidgeProblem, support: np.ndarray, bound: float) -> str:
    return f"{100 * (1 - bound / problem.objective(support)):.1f} %"


def branched(problem: SparseRidgeProblem, support: np.ndarray, seconds: float) -> None:
    found = branch_and_bound(problem, warm_starts=[support], limits=Limits(seconds))
    gap = gap_of(problem, support, found.lower_bound)
    print(f"  branch-and-bound   gap {gap}, {found.n_nodes:,} nodes")


def enumeration(problem: SparseRidgeProblem) -> None:
    count = comb(problem.p, problem.tau)
    print(f"  all {count:.1e} supports at 2 ns each: {2e-9 * count / 3600:.1e} hours")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    print(machine())
    branch_and_bound(Instance("bardet", 100.0, 5).problem())
    for tau in (5, 6, 8, 10):
        problem = Instance("bardet", 1.0, tau).problem()
        started = time.perf_counter()
        support = heuristic_support(problem)
        print(f"\nincumbent in {time.perf_counter() - started:.2f} s; ", end="")
        depth_table(problem, support)
        enumeration(problem)
        branched(problem, support, seconds)


if __name__ == "__main__":
    main()
