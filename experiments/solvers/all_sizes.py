"""This script times the proof of the best support of every size where many supports nearly tie.

    python -m experiments.solvers.all_sizes [--noise 1] [--limit 600] [--only 30 50] [P ...]

The data are 1000 rows of P independent normal columns, of which the first P/2 have coefficient 1;
γ is 0.001. Of the middle sizes, huge numbers of supports have nearly equal objectives.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from experiments.common import machine
from sparsecv.solvers import SparseRidgeProblem, solve_sizes
from sparsecv.solvers.core.limits import Limits


def problem(p: int, noise: float) -> SparseRidgeProblem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, p))
    y = X[:, : p // 2].sum(1) + noise * rng.standard_normal(1000)
    X -= X.mean(0)
    return SparseRidgeProblem(X / X.std(0), y - y.mean(), gamma=1e-3, tau=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("columns", nargs="*", type=int, default=[40, 60, 80, 100])
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--only", nargs=2, type=int, metavar=("FIRST", "LAST"))
    args = parser.parse_args()
    print(machine())
    for p in (40, 60):  # compiled, or read, before anything is timed
        solve_sizes(problem(p, args.noise), sizes=[p // 3], limits=Limits(time_limit=20.0))
    for p in args.columns:
        first, last = args.only or (1, p)
        started = time.process_time()
        found = solve_sizes(
            problem(p, args.noise),
            sizes=range(first, last + 1),
            limits=Limits(args.limit),
        )
        gap, proved = max(one.gap for one in found), sum(one.proved for one in found)
        print(
            f"p = {p}, noise {args.noise:g}, sizes {first} to {last}: {proved} of "
            f"{len(found)} proved in {time.process_time() - started:.2f} s, largest gap "
            f"{gap:.1e}, {found[0].n_nodes:,} nodes",
            flush=True,
        )


if __name__ == "__main__":
    main()
