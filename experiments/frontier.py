"""Hard problems of one (γ, τ): the gap left after a limit, or the time to proof, one thread.

    python experiments/frontier.py [--limit 30] [--only NAME ...] [--roots]

The gap is (best known − bound)/best known, the best known objective being the one found here. With
--roots the bound at the root is compared with the certified bound of the relaxation alone, over
every data set at hand, five γ and six τ.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import machine
from instances import Instance

from sparsecv.solvers import (
    GramForm,
    Limits,
    SparseRidgeProblem,
    branch_and_bound,
    perspective_relaxation,
    wants_gram,
)
from sparsecv.tables.datasets import list_datasets

HARD = (
    ("housing2", 1.0, 10),
    ("housing2", 0.1, 10),
    ("housing2", 0.01, 10),
    ("topgear", 10.0, 10),
    ("bardet", 10.0, 10),
    ("riboflavin", 10.0, 5),
    ("synthetic:500,1000,10,0.7,1,0", 5.0, 10),
    ("housing2", 10.0, 20),
    ("vessel", 10.0, 8),
    ("topgear", 1.0, 6),
    ("synthetic:200,100,10,0.9,1,0", 0.1, 10),
    ("synthetic:250,500,10,0.5,5,4", 10.0, 10),
)
GAMMAS = (0.001, 0.01, 0.1, 1.0, 10.0)
TAUS = (2, 3, 5, 8, 12, 20)


def compile_first() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 70)), rng.standard_normal(60)
    branch_and_bound(SparseRidgeProblem(*rows, gamma=0.1, tau=8), limits=Limits(1.0))


def hard(limit: float, only: list[str]) -> None:
    print("| instance | objective | gap | seconds | nodes | root |\n|---|---:|---:|---:|---:|---:|")
    for one in (Instance(*parts) for parts in HARD):
        if only and not any(name in one.name for name in only):
            continue
        problem = one.problem()
        found = branch_and_bound(problem, limits=Limits(limit))
        scale = (problem.n or 1) / problem.yy  # y of unit variance
        gap = 100.0 * (1.0 - found.lower_bound / found.objective)
        root = 100.0 * (1.0 - found.history[0][2] / found.objective) if found.history else 0.0
        proved = "proved" if found.status == "optimal" else f"{gap:.2f} %"
        print(
            f"| {one.name} | {scale * found.objective:.5f} | {proved} | {found.seconds:.1f} | "
            f"{found.n_nodes:,} | {root:.1f} % |",
            flush=True,
        )


def roots() -> None:
    """Roots below the relaxation's own bound: there must be none."""
    count, below, seconds = 0, [], 0.0
    for info in list_datasets():
        if info.task != "regression" or not info.available or info.p > 500:
            continue
        for gamma in GAMMAS:
            for tau in TAUS:
                if tau >= info.p:
                    continue
                problem = Instance(info.name, gamma, tau).problem()
                gram = GramForm.of(problem) if wants_gram(problem) else None
                started = time.perf_counter()
                alone = [
                    perspective_relaxation(problem, extract=extract, gram=gram)
                    for extract in (False, True)
                ]
                seconds += time.perf_counter() - started
                found = branch_and_bound(problem, limits=Limits(None, 1))
                count += 1
                best = max(relaxation.bound for relaxation in alone)
                if found.lower_bound < best * (1.0 - 1e-6):
                    below.append((info.name, gamma, tau, found.lower_bound / best))
    print(f"{count} roots, {len(below)} below the relaxation's bound, {seconds:.1f} s for those")
    for line in below:
        print(*line)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--roots", action="store_true")
    given = parser.parse_args()
    print(machine() + "\n")
    compile_first()
    if given.roots:
        roots()
    else:
        hard(given.limit, given.only)


if __name__ == "__main__":
    main()
