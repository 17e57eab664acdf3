"""This script times outer approximation with every master solver, and in its textbook form.

    python -m experiments.solvers.outer_approximation [seconds]

HiGHS and Gurobi prove single problems as ``--backend highs|gurobi`` does. The column
"plain" is the textbook form: Gurobi's lazy callback, which starts from one cut. The textbook form
screens no columns and moves no diagonal into f. Every run stops after ``seconds`` seconds (60 by
default).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from experiments.common import fold_rows, machine
from sparsecv.design.design import Protocol
from sparsecv.solvers import Answer, SparseRidgeProblem, Status, solve
from sparsecv.solvers.backends.cuts import CutForm
from sparsecv.solvers.backends.gurobi import solve_gurobi
from sparsecv.solvers.backends.oracle import Oracle, outer_approximation
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.core.result import Work
from sparsecv.solvers.relaxation.gram import GramForm
from sparsecv.solvers.relaxation.root import Incumbent

CASES = (
    ("diabetes11", 0.1, tuple(range(1, 12))),
    ("synthetic:200,20,5,0.5,5,0", 200**-0.5, (5,)),
    ("synthetic:200,20,5,0.5,5,0", 1.0, (5,)),
    ("housing", 0.1, (4, 8)),
    ("servo", 0.1, (5, 9)),
    ("autompg", 0.1, (5, 10)),
    ("synthetic:100,100,5,0.5,5,0", 1.0, (5,)),
)
Run = Callable[[SparseRidgeProblem], Answer]


def plain(problem: SparseRidgeProblem, seconds: float) -> Answer:
    """Solve a problem by lazy cuts in Gurobi's callback alone: the textbook form."""
    limits, incumbent = Limits(seconds), Incumbent(problem, [])
    form = CutForm(problem, np.arange(problem.p), GramForm.of(problem, extract=False))
    oracle = Oracle(form, incumbent, limits=limits)
    found, _ = outer_approximation(solve_gurobi, oracle, root_cuts=1)
    return replace(found, work=Work(found.n_nodes, limits.elapsed()))


def least_time(run: Run, problem: SparseRidgeProblem) -> tuple[float, Answer]:
    """Run up to five times within two seconds; return the least seconds and the last proof."""
    times: list[float] = []
    while len(times) < 5 and sum(times) < 2.0:
        started = time.perf_counter()
        solution = run(problem)
        times.append(time.perf_counter() - started)
    return min(times), solution


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    import gurobipy
    import highspy

    versions = f"highspy {highspy.Highs().version()}, gurobipy "
    versions += ".".join(map(str, gurobipy.gurobi.version()))
    print(machine(), f"; {versions}")
    print("one thread, relative gap 1e-6, least of up to five runs; seconds (nodes)\n")
    ways: dict[str, Run] = {
        name: partial(solve, backend=name, tol=1e-6, time_limit=seconds)
        for name in ("highs", "gurobi", "native")
    }
    ways["plain"] = partial(plain, seconds=seconds)
    warm = fold_rows("housing", "loo", Protocol()).full().replace(gamma=0.1, tau=3)
    for run in ways.values():
        run(warm)
    print(f"{'':<42}" + "".join(f"{way:>17}" for way in ways) + "   plain/gurobi")
    ratios = []
    for name, gamma, taus in CASES:
        full = fold_rows(name, "loo", Protocol()).full()
        total = dict.fromkeys(ways, 0.0)
        for tau in taus:
            problem = full.replace(gamma=gamma, tau=tau)
            line, best = "", np.inf
            found = {way: least_time(run, problem) for way, run in ways.items()}
            for way, (spent, solution) in found.items():
                total[way] += spent
                best = min(best, solution.objective)
                proved = solution.status is Status.OPTIMAL
                shown = f"{spent:.4f}" if proved else f">{spent:.0f}"
                line += f"{shown:>9} ({solution.n_nodes:>5})"
            worst = max(s.objective for _, s in found.values()) / best - 1.0
            if worst > 1e-6:
                line += f"  OBJECTIVES DIFFER by {worst:.1e}"
            ratio = found["plain"][0] / found["gurobi"][0]
            ratios.append(ratio)
            print(f"{name:<28} γ={gamma:<5.3g} τ={tau:<3}{line}   {ratio:8.1f}", flush=True)
        if len(taus) > 2:
            sums = "".join(f"{total[way]:>9.4f}{'':8}" for way in ways)
            ratio = total["plain"] / total["gurobi"]
            print(f"{'in all':<42}{sums}   {ratio:8.1f}\n", flush=True)
    print(f"\nplain / gurobi: geometric mean {np.exp(np.mean(np.log(ratios))):.1f}")


if __name__ == "__main__":
    main()
