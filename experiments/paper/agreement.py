"""This script compares h(γ, τ) of three exact ways: shared trees, trees of folds, single solves.

    python -m experiments.paper.agreement [--all] [data set ...]

The cases are four data sets, leave-one-out, 10 folds and folds of 10 rows, seven γ, both protocols
and both scales of the columns. The script prints the largest relative difference of any h(γ, τ). By
single solves, every problem (γ, τ, fold) is solved by itself. For leave-one-out, with up to 9,800
problems at each γ, only a random sample of folds is solved and the folds' held-out errors are
compared, unless --all is given.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from experiments.common import PAPER_GAMMAS, PAPER_SETS, fold_rows, machine, run
from sparsecv.cv.results import CVResult
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol
from sparsecv.design.fold_data import RowFolds
from sparsecv.solvers import solve

# For leave-one-out, single solves are compared on this many random folds.
SAMPLED_FOLDS = 25


def apart(one: object, other: object) -> float:
    """Largest relative difference of two tables of h."""
    a, b = one.table("cv_error"), other.table("cv_error")  # type: ignore[attr-defined]
    return float(np.max(np.abs(a - b) / np.abs(a)))


def sampled(data: RowFolds, exact: CVResult) -> float:
    """Largest difference, relative to h, of held-out errors on sampled leave-one-out folds."""
    worst = 0.0
    chosen = np.random.default_rng(0).choice(data.folds.k, size=SAMPLED_FOLDS, replace=False)
    for one in exact.by_gamma:
        for j in chosen:
            H, t = data.held_out(int(j))
            problem = data.training(int(j)).replace(gamma=one.gamma)
            for s, tau in enumerate(one.taus):
                alone = solve(problem.replace(tau=int(tau)), tol=0.0).support
                shared = one.supports[one.choice[s, j]]
                a, b = (
                    float(np.sum((t - H[:, S] @ problem.fit(S).coef) ** 2)) for S in (alone, shared)
                )
                worst = max(worst, abs(a - b) / float(one.cv_error[s]))
    return worst


def main() -> None:
    everything = "--all" in sys.argv
    names = [name for name in sys.argv[1:] if name != "--all"] or list(PAPER_SETS)
    print(machine())
    print("largest relative difference over 7 γ and every τ\n")
    worst, entries = 0.0, 0
    deletes = RowFolds.tree_deletes_rows
    for name in names:
        label = PAPER_SETS[name]
        for folds in ("loo", "10", "size:10"):
            for protocol in (
                Protocol("honest", "unit-variance"),
                Protocol("honest", "unit-norm"),
                Protocol("paper", "unit-variance"),
                Protocol("paper", "unit-norm"),
            ):
                started = time.perf_counter()
                data = fold_rows(name, folds, protocol)
                exact = run(data, PAPER_GAMMAS)
                found = []
                if folds == "loo":
                    RowFolds.tree_deletes_rows = property(lambda _: False)
                    found.append(("per fold", apart(exact, run(data, PAPER_GAMMAS))))
                    RowFolds.tree_deletes_rows = deletes
                if folds == "loo" and not everything:
                    found.append((f"grid of {SAMPLED_FOLDS} folds", sampled(data, exact)))
                else:
                    grid = run(data, PAPER_GAMMAS, Settings(method="grid"))
                    found.append(("grid", apart(exact, grid)))
                entries += exact.table("cv_error").size * len(found)
                worst = max([worst, *(d for _, d in found)])
                shown = ", ".join(f"{what} {d:.1e}" for what, d in found)
                print(
                    f"{label:<9} {folds:<8} {protocol.name:<7} {protocol.scale:<14} {shown:<36}"
                    f"{time.perf_counter() - started:8.1f} s",
                    flush=True,
                )
    print(f"\n{entries:,} entries compared, largest relative difference {worst:.1e}")


if __name__ == "__main__":
    main()
