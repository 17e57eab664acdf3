"""This script times searches that take turns against each of the searches alone.

    python -m experiments.solvers.turns [--limit 30] [--rounds 2] [--only WORD]

Every table is drawn, and has 17 to 45 columns. The best support of every size is proved at one γ by
the tree of all sizes, by branch and bound for one size after the other, and by the plan, in which
both take turns. The seconds are those of the process, the least of some rounds, and "ratio" is
those of the plan over those of the quicker search. A search that ends at the limit has a ">", and
the number of sizes that it has proved.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from unittest import mock

import numpy as np

from experiments.common import machine
from sparsecv.clock import CLOCK
from sparsecv.solvers import SparseRidgeProblem, solve_sizes
from sparsecv.solvers.branching import size_sweep
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.core.plan import ALONE, LEAPS, Way

ORDERS = {"leaps": (Way(LEAPS),), "alone": (Way(ALONE),), "plan": None}


def drawn(n: int, p: int, true: int, rho: float, snr: float, seed: int) -> SparseRidgeProblem:
    """Rows of normal columns with correlation rho of neighbours; ``true`` have coefficient ±1."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    coef = np.zeros(p)
    coef[random.permutation(p)[:true]] = random.choice([-1.0, 1.0], true)
    signal = X @ coef
    noise = random.standard_normal(n) * (signal.std() / np.sqrt(snr) if true else 1.0)
    y = signal + noise
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return SparseRidgeProblem(X, y - y.mean(), gamma=1.0, tau=1)


def tables() -> Iterator[tuple[str, SparseRidgeProblem]]:
    """Names of tables, and their problems."""
    # Rows, columns, columns with a coefficient, correlation of neighbours, and ratio of variances.
    shapes = [
        (200, 35, 35, 0.0, 4.0),
        (200, 45, 45, 0.0, 4.0),
        (200, 25, 25, 0.5, 1.0),
        (500, 40, 20, 0.0, 1.0),
        (300, 30, 10, 0.7, 1.0),
        (100, 40, 5, 0.9, 2.0),
        (60, 40, 8, 0.5, 2.0),
        (30, 40, 5, 0.0, 2.0),
        (80, 36, 0, 0.0, 1.0),
        (200, 17, 17, 0.95, 1.0),
        (150, 45, 12, 0.3, 4.0),
        (400, 38, 38, 0.9, 4.0),
        (60, 30, 15, 0.3, 1.0),
    ]
    for seed, (n, p, true, rho, snr) in enumerate(shapes):
        problem = drawn(n, p, true, rho, snr, seed)
        for gamma in (0.1, 100.0):
            yield (
                f"{n} x {p}, {true} true, ρ = {rho:g}, snr {snr:g}, γ = {gamma:g}",
                problem.replace(gamma=gamma),
            )


def seconds(problem: SparseRidgeProblem, order: str, limit: float) -> tuple[float, int]:
    """The seconds that a search takes, and how many sizes it proves."""
    planned = ORDERS[order]
    ways = size_sweep.ways if planned is None else lambda *_: planned
    with mock.patch.object(size_sweep, "ways", ways):
        started = time.process_time()
        found = solve_sizes(problem, sizes=range(1, problem.p + 1), limits=Limits(limit))
        return time.process_time() - started, sum(one.proved for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print(machine())
    warm = drawn(60, 20, 20, 0.5, 1.0, 0)
    for order in ORDERS:  # compiled before anything is timed
        seconds(warm, order, 5.0)
    CLOCK.now = time.process_time
    head = " ".join(f"{order:>12}" for order in ORDERS)
    print(f"{'table':<52} {head} {'ratio':>6}")
    ratios = []
    for name, problem in tables():
        if args.only not in name:
            continue
        line, least = [], dict[str, float]()
        for order in ORDERS:
            spent, proved = seconds(problem, order, args.limit)
            for _ in range(args.rounds - 1 if spent < 5.0 else 0):
                spent = min(spent, seconds(problem, order, args.limit)[0])
            least[order] = spent if proved == problem.p else np.inf
            done = f"{spent:.3f}" if proved == problem.p else f"> {spent:.0f} ({proved})"
            line.append(f"{done:>12}")
        quicker = min(least["leaps"], least["alone"])
        ratio = least["plan"] / quicker if np.isfinite(quicker) else np.nan
        ratios.append(ratio)
        print(f"{name:<52} {' '.join(line)} {ratio:6.2f}", flush=True)
    print(f"largest ratio {np.nanmax(ratios):.2f}")


if __name__ == "__main__":
    main()
