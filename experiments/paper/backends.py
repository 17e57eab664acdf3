"""This script times the first paper's Diabetes experiment by every back end that can run here.

    python -m experiments.paper.backends [loo]

Each back end evaluates the seven γ of Section 4.1 by the grid, by Algorithm 1 with the paper's
bounds, and by Algorithm 1 with the bounds of sparsecv. The protocol is the paper's, with columns of
unit norm. By default the script uses ten folds and every back end that can run here. With "loo" the
script uses leave-one-out and only the back ends that need milliseconds for a problem. The numbers
of nodes are the solvers' own.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from importlib.metadata import version

import numpy as np

from experiments.common import PAPER_GAMMAS, machine, table
from experiments.solvers import gurobi_models  # noqa: F401  The import adds three back ends.
from sparsecv.cv.benchmark import run
from sparsecv.solvers import available_backends

PACKAGES = ("highspy", "gurobipy", "cvxpy")
WAYS = ("grid", "paper", "best")
LEAVE_ONE_OUT_BACKENDS = ("native", "highs", "gurobi")


def main() -> None:
    loo, data = "loo" in sys.argv[1:], table("diabetes11")
    folds, names = ("loo", LEAVE_ONE_OUT_BACKENDS) if loo else ("10", tuple(available_backends()))
    print(machine(), ";", ", ".join(f"{name} {version(name)}" for name in PACKAGES))
    what = "leave-one-out" if loo else "ten folds"
    print(f"diabetes11, {what}, τ = 2..10, tol .01, seven γ in all, one thread\n")
    print(f"{'backend':<20}{'way':<8}{'problems':>9}{'fewer':>8}{'nodes':>10}{'seconds':>10}  h")
    for name in sorted(names, key=lambda name: name != "native"):
        if name not in available_backends():
            continue
        total: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        errors: dict[str, list[float]] = defaultdict(list)
        unproved = 0
        known = {"backend": name, "taus": range(2, 11)}
        list(run([data], ["10"], [0.1], WAYS, **known))  # compiles
        started = time.perf_counter()
        for row in run([data], [folds], PAPER_GAMMAS, WAYS, **known):
            new = (row.mio, row.nodes, row.seconds)
            total[row.way] = [a + b for a, b in zip(total[row.way], new, strict=True)]
            errors[row.way].append(row.cv_error)
            unproved += row.status != "optimal"
        for way in WAYS:
            mio, nodes, seconds = total[way]
            fewer = 100.0 * (1.0 - mio / total["grid"][0])
            print(
                f"{name:<20}{way:<8}{mio:>9,.0f}{fewer:>7.1f}%{nodes:>10,.0f}{seconds:>10.1f}"
                f"  {np.mean(errors[way]):.8f}",
                flush=True,
            )
        note = f"; {unproved} of {7 * len(WAYS)} not proved" if unproved else ""
        print(f"{'':<20}{time.perf_counter() - started:.0f} s in all{note}\n", flush=True)


if __name__ == "__main__":
    main()
