"""This script measures the gap left after 30 s, or the time to proof, on hard problems (γ, τ).

    python -m experiments.solvers.frontier [--limit 30] [--only NAME ...] [--peers PYTHON] [--roots]

The gap is (objective − bound) / objective, where the objective is the best that this script finds.
With --peers, other exact solvers also solve the last five problems, as in solver_benchmark.py, and
their least gap is printed, too; PYTHON is an interpreter that has the solvers' packages. With
--roots the bound at the root is compared with the certified bound of the relaxation alone, on every
data set at hand, for five γ and six τ.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.common import machine, registry, rows
from experiments.instances import Instance
from experiments.solvers.solver_benchmark import NAMES, applies, case_of, run
from sparsecv.errors import InputError
from sparsecv.solvers import SparseRidgeProblem, branch_and_bound, perspective_relaxation
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.relaxation.gram import GramForm, wants_gram

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


def peers_gaps(one: Instance, best: float, python: str, limit: float) -> str:
    """The gap other solvers leave to the best known objective, the least first."""
    problem, gaps, failed = one.problem(), {}, []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "case.npz"))
        np.savez(path, **case_of(problem, one.rows()))
        for solver in NAMES:
            if applies(solver, problem):
                found = run(solver, python, path, limit)
                if len(found["support"]) == 0:  # it crashed, or did not end
                    failed.append(f"{NAMES[solver]} failed")
                    continue
                gaps[solver] = 100.0 * (1.0 - max(found["lower_bound"], 0.0) / best)
    told = [f"{NAMES[s]} {gaps[s]:.2f} %" for s in sorted(gaps, key=gaps.__getitem__)]
    return ", ".join(told + failed)


def hard(limit: float, only: list[str], peers: str | None) -> None:
    print("| instance | objective | gap | seconds | nodes | root |" + " peers |" * bool(peers))
    print("|---|" + "---:|" * (6 if peers else 5))
    for one in (Instance(*parts) for parts in (HARD[-5:] if peers else HARD)):
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
            f"{found.n_nodes:,} | {root:.1f} % |"
            + (f" {peers_gaps(one, found.objective, peers, limit)} |" if peers else ""),
            flush=True,
        )


def roots() -> None:
    """Roots below the relaxation's own bound: there must be none."""
    count, below, seconds = 0, [], 0.0
    for info in registry():
        name, p = info["name"], int(info["p"])
        if info["task"] != "regression" or p > 500:
            continue
        try:
            rows(name)
        except InputError:  # the file is not in the folder SPARSECV_DATA
            continue
        for gamma in GAMMAS:
            for tau in TAUS:
                if tau >= p:
                    continue
                problem = Instance(name, gamma, tau).problem()
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
                    below.append((name, gamma, tau, found.lower_bound / best))
    print(f"{count} roots, {len(below)} below the relaxation's bound, {seconds:.1f} s for those")
    for line in below:
        print(*line)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--peers")
    parser.add_argument("--roots", action="store_true")
    given = parser.parse_args()
    print(machine() + "\n")
    compile_first()
    if given.roots:
        roots()
    else:
        hard(given.limit, given.only, given.peers)


if __name__ == "__main__":
    main()
