"""This script times Gurobi on a sample of (fold, τ) problems against sparsecv on all problems.

    python -m experiments.paper.against_gurobi [sample]

For each data set, Gurobi solves a random sample (50 by default) of the leave-one-out problems
(fold, τ) on one thread: once with a valid big-M from the ridge ellipsoid, and once with SOS-1
constraints. Both start from the greedy support and stop at Gurobi's default gap of 1e-4; sparsecv
proves gap 0. Gurobi's mean time times the number of problems is compared with the time of
sparsecv's whole run.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from experiments.common import best_of, fold_rows, machine, run
from sparsecv.design.design import Protocol
from sparsecv.solvers import SparseRidgeProblem
from sparsecv.solvers.supports.rounding import forward_order

CASES = (
    ("diabetes", 0.1),
    ("housing", 0.1),
    ("servo", 0.1),
    ("autompg", 0.1),
    ("synthetic:200,40,10,0.7,1,0", 200**-0.5),
)


def gurobi_seconds(
    problem: SparseRidgeProblem, tau: int, form: str, env: object
) -> tuple[float, float]:
    """Wall time and objective of one MIO."""
    import gurobipy as gp

    p, G, b, yy = problem.p, problem.G, problem.b, problem.yy
    ridge = G + problem.gamma / 2.0 * np.eye(p)
    R = problem.factor()
    start = np.sort(forward_order(R[:, :p], R[:, p], tau))
    fit = problem.fit(start)
    started = time.perf_counter()
    inverse = np.linalg.inv(ridge)
    centre = inverse @ b
    room = max(fit.objective - float(R[p, p] ** 2), 0.0)
    bound = np.abs(centre) + np.sqrt(room * np.diag(inverse))  # |β_i| of any better solution
    with gp.Model(env=env) as model:
        beta = model.addMVar(p, lb=-bound, ub=bound)
        z = model.addMVar(p, vtype=gp.GRB.BINARY)
        model.addConstr(z.sum() <= tau)
        if form == "big-M":
            model.addConstr(beta <= bound * z)
            model.addConstr(beta >= -bound * z)
        else:
            free = model.addMVar(p)
            model.addConstr(free == 1 - z)
            for j in range(p):
                model.addSOS(gp.GRB.SOS_TYPE1, [beta[j].item(), free[j].item()])
        model.setObjective(beta @ ridge @ beta - 2.0 * (b @ beta) + yy)
        chosen = np.zeros(p)
        chosen[start] = 1.0
        z.Start = chosen
        values = np.zeros(p)
        values[start] = fit.coef
        beta.Start = values
        model.Params.Threads = 1
        model.Params.TimeLimit = 60
        model.optimize()
        return time.perf_counter() - started, float(model.ObjVal)


def main() -> None:
    sample = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    import gurobipy as gp

    print(machine(), "; gurobipy", ".".join(map(str, gp.gurobi.version())))
    print(f"leave-one-out, every τ; Gurobi on a random sample of {sample} MIOs, one thread\n")
    env = gp.Env(params={"OutputFlag": 0})
    rng = np.random.default_rng(0)
    ratios = []
    for name, gamma in CASES:
        data = fold_rows(name, "loo", Protocol())
        run(data, [gamma])
        ours, result = best_of(3, lambda d=data, g=gamma: run(d, [g]))
        problems = data.folds.n * data.p
        chosen = rng.choice(problems, size=sample, replace=False)
        found = {}
        for form in ("big-M", "SOS-1"):
            times, worst = [], 0.0
            for number in chosen:
                j, tau = int(number) // data.p, int(number) % data.p + 1
                problem = data.training(j).replace(gamma=gamma, tau=tau)
                seconds, value = gurobi_seconds(problem, tau, form, env)
                one = result.by_gamma[0]
                exact = problem.objective(one.supports[one.choice[tau - 1, j]])
                worst = max(worst, exact / value - 1.0)
                times.append(seconds)
            found[form] = float(np.mean(times))
            if worst > 1e-4:
                raise SystemExit(f"{name}: Gurobi found an objective {worst:.2e} below ours")
        form = min(found, key=found.__getitem__)
        alone = found[form] * problems
        ratios.append(alone / ours)
        both = ", ".join(f"{f} {1e3 * s:.1f} ms" for f, s in found.items())
        print(
            f"{name:<30} γ={gamma:<7.3g} {problems:>6} MIOs: ours {ours:7.3f} s; Gurobi per MIO "
            f"{both}; all by {form} ≈ {alone:8.0f} s; ratio {alone / ours:8,.0f}"
        )
    print(
        f"\ngeometric mean ratio {np.exp(np.mean(np.log(ratios))):,.0f}, least {min(ratios):,.0f}"
    )


if __name__ == "__main__":
    main()
