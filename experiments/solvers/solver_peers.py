"""This script runs one other solver on one problem, for solver_benchmark.py.

    python -m experiments.solvers.solver_peers SOLVER instance.npz seconds

The script prints one JSON object: the seconds, the support, the lower bound of ||y−Xβ||² +
(γ/2)||β||² over ||β||₀ ≤ τ, and whether the solver claims to have proved its problem. The script
needs the packages of experiments/requirements-peers.txt, but not sparsecv. A tiny problem is solved
first, so that compilation is not timed.

Penalised solvers (l0bnb, El0ps) minimise ½||r||² + λ||β||₀ + (γ/4)||β||². They get the λ for which
τ is the best size, which a user would have to search for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

# Solvers stop at this relative gap.
RELATIVE_GAP = 1e-4
# A solve that takes less time is repeated, and the least time counts.
SHORT_SECONDS = 0.5

Answer = dict[str, Any]


def gurobi(case: Any, limit: float) -> Answer:
    """Gram form with a big-M from the ridge ellipsoid; the pip licence stops at 100 columns."""
    import gurobipy as gp

    X, y, tau = case["X"], case["y"], int(case["tau"])
    p = X.shape[1]
    env = gp.Env(params={"OutputFlag": 0})
    started = time.perf_counter()
    ridge = X.T @ X + float(case["gamma"]) / 2.0 * np.eye(p)
    b, yy = X.T @ y, float(y @ y)
    inverse = np.linalg.inv(ridge)
    centre = inverse @ b
    room = max(float(case["upper"]) - (yy - float(b @ centre)), 0.0)
    bound = np.abs(centre) + np.sqrt(room * np.diag(inverse))
    with gp.Model(env=env) as model:
        beta = model.addMVar(p, lb=-bound, ub=bound)
        z = model.addMVar(p, vtype=gp.GRB.BINARY)
        model.addConstr(z.sum() <= tau)
        model.addConstr(beta <= bound * z)
        model.addConstr(beta >= -bound * z)
        model.setObjective(beta @ ridge @ beta - 2.0 * (b @ beta) + yy)
        z.Start = (case["start"] != 0).astype(float)
        beta.Start = case["start"]
        model.Params.Threads = 1
        model.Params.TimeLimit = limit
        model.Params.MIPGap = RELATIVE_GAP
        model.optimize()
        seconds = time.perf_counter() - started
        proved = model.Status == gp.GRB.OPTIMAL
        support = np.flatnonzero(z.X > 0.5)
        return answer(seconds, support, float(model.ObjBound), proved)


def l0bnb(case: Any, limit: float) -> Answer:
    """Branch-and-bound with warm start and a valid M."""
    from l0bnb import BNBTree

    def run(X: Any, y: Any, penalty: float, ridge: float, M: float, start: Any, most: float) -> Any:
        tree = BNBTree(X, y)
        return tree.solve(
            penalty, ridge, M, gap_tol=RELATIVE_GAP, warm_start=start, time_limit=most
        )

    rng = np.random.default_rng(0)
    run(rng.standard_normal((20, 5)), rng.standard_normal(20), 0.5, 0.1, 10.0, None, 20.0)
    X, y, tau = case["X"], case["y"], int(case["tau"])
    penalty, ridge, M = float(case["penalty"]), float(case["gamma"]) / 4.0, float(case["M"])
    started = time.perf_counter()
    found = run(X, y, penalty, ridge, M, case["start"], limit)
    seconds = time.perf_counter() - started
    proved = bool(found.gap <= RELATIVE_GAP)
    certain = float(found.cost) * (1.0 - min(float(found.gap), 1.0))  # a gap > 1: no bound yet
    bound = 2.0 * (certain - penalty * tau)
    return answer(seconds, np.flatnonzero(found.beta), bound, proved)


def el0ps(case: Any, limit: float, screening: bool = True) -> Answer:
    """Branch-and-bound of El0ps started from the same coefficients."""
    from el0ps.datafit import Leastsquares
    from el0ps.penalty import L2norm
    from el0ps.solver import BnbSolver

    def run(X: Any, y: Any, penalty: float, ridge: float, start: Any, most: float) -> Any:
        solver = BnbSolver(relative_gap=RELATIVE_GAP, time_limit=most, screening=screening)
        inner, kept = solver.solver.solve, []  # it keeps its bound to itself: listen in

        def listening(*arguments: Any, **options: Any) -> Any:
            kept.append(inner(*arguments, **options))
            return kept[-1]

        solver.solver.solve = listening
        found = solver.solve(Leastsquares(y), L2norm(ridge), np.asfortranarray(X), penalty, start)
        return found, float(kept[-1].bound)

    rng = np.random.default_rng(0)
    run(rng.standard_normal((20, 5)), rng.standard_normal(20), 0.5, 0.1, np.zeros(5), 20.0)
    X, y, tau = case["X"], case["y"], int(case["tau"])
    penalty, ridge = float(case["penalty"]), float(case["gamma"]) / 4.0
    started = time.perf_counter()
    found, lower = run(X, y, penalty, ridge, case["start"].copy(), limit)
    seconds = time.perf_counter() - started
    bound = 2.0 * (lower - penalty * tau)
    return answer(seconds, np.flatnonzero(found.x), bound, found.status.value == "optimal")


def el0ps_safe(case: Any, limit: float) -> Answer:
    """The same without its screening, which has been seen to exclude the optimum."""
    return el0ps(case, limit, screening=False)


def okridge(case: Any, limit: float) -> Answer:
    """OKRidge's tree; its incumbents come from its own beam search."""
    from okridge.tree import BNBTree

    X, y, tau = case["X"], case["y"], int(case["tau"])
    started = time.perf_counter()
    tree = BNBTree(X, y, lambda2=float(case["gamma"]) / 2.0)
    _, beta, gap, bound, _ = tree.solve(tau, gap_tol=RELATIVE_GAP, time_limit=limit)
    seconds = time.perf_counter() - started
    return answer(
        seconds, np.flatnonzero(beta), float(bound) + float(y @ y), bool(gap <= RELATIVE_GAP)
    )


LEAPS = """
suppressMessages(library(leaps))
X <- as.matrix(read.csv("X.csv", header = FALSE)); y <- read.csv("y.csv", header = FALSE)[[1]]
run <- function() regsubsets(X, y, nvmax = {tau}, method = "exhaustive", really.big = TRUE,
                             intercept = FALSE)
t <- system.time(r <- run())[["elapsed"]]
# R's clock counts milliseconds: many runs where one is short
if (t < 0.05) t <- system.time(for (i in 1:50) r <- run())[["elapsed"]] / 50
cat(t, which(summary(r)$which[{tau}, ]) - 1, "\\n")
"""


def leaps(case: Any, limit: float) -> Answer:
    """R's leaps and bounds on [X; √(γ/2) I], all sizes up to τ at once."""
    X, y, tau = case["X"], case["y"], int(case["tau"])
    p = X.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        stacked = np.vstack([X, np.sqrt(float(case["gamma"]) / 2.0) * np.eye(p)])
        np.savetxt(Path(folder, "X.csv"), stacked, "%.17g", ",")
        np.savetxt(Path(folder, "y.csv"), np.append(y, np.zeros(p)), "%.17g")
        Path(folder, "run.R").write_text(LEAPS.replace("{tau}", str(tau)))
        command = ["Rscript", "run.R"]
        try:
            out = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=limit + 5, check=True
            )
        except subprocess.TimeoutExpired:
            return answer(limit, np.flatnonzero(case["start"]), 0.0, False)
    seconds, *support = out.stdout.split()
    columns = np.array(support, dtype=int)
    return answer(float(seconds), columns, float("nan"), True)


def answer(seconds: float, support: Any, lower_bound: float, proved: bool) -> Answer:
    return {
        "seconds": seconds,
        "support": [int(j) for j in support],
        "lower_bound": lower_bound,
        "proved": bool(proved),
    }


SOLVERS = {
    "gurobi": gurobi,
    "l0bnb": l0bnb,
    "el0ps": el0ps,
    "el0ps-safe": el0ps_safe,
    "okridge": okridge,
    "leaps": leaps,
}


if __name__ == "__main__":
    instance = np.load(sys.argv[2])
    solver, limit = SOLVERS[sys.argv[1]], float(sys.argv[3])
    found = solver(instance, limit)
    for _ in range(4 if found["seconds"] < SHORT_SECONDS else 0):  # R repeats short runs by itself
        found = min(found, solver(instance, limit), key=lambda one: one["seconds"])
    print("\n" + json.dumps(found))
