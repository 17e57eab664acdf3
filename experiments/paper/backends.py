"""Every back end runs the first paper's Diabetes experiment: problems, nodes and seconds.

    python -m experiments.paper.backends [loo]

Grid and Algorithm 1 (the paper's bounds, and ours) for the seven γ of Section 4.1, under the
paper's protocol with unit-norm columns: ten folds with every back end that can run here, or with
"loo" leave-one-out with those that need milliseconds a problem. Nodes are what the solvers report.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from importlib.metadata import version

import numpy as np

from experiments.common import PAPER_GAMMAS, machine
from experiments.solvers import gurobi_models
from sparsecv.cli import comparison
from sparsecv.solvers import available_backends

PACKAGES = ("highspy", "gurobipy", "pyscipopt", "cvxpy")
WAYS = ("grid", "paper", "best")
QUICK = ("native", "highs", "gurobi", "scip")
MODELS = [f"gurobi-{form}" for form in gurobi_models.FORMS]  # added by importing the module


def main() -> None:
    loo = "loo" in sys.argv[1:]
    folds, names = ("loo", QUICK) if loo else ("10", tuple(available_backends()))
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
        list(comparison.run(["diabetes11"], ["10"], [0.1], WAYS, backend=name))  # compiles
        started = time.perf_counter()
        for row in comparison.run(["diabetes11"], [folds], PAPER_GAMMAS, WAYS, backend=name):
            new = (row.mio, row.nodes, row.seconds)
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
