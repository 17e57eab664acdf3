"""The perspective relaxation against cvxpy + Clarabel on random instances.

    python experiments/relaxation.py [instances]

p from 50 to 500, n from p/4 to 2p, correlated columns, γ from 1e-4 to 1e4, any τ, ε = 0 and ε > 0
in turn. Timed from rows in memory to the value: cvxpy's modelling and Clarabel's solve, with the
perspective written as one term per column and as one block of cones, and the solve alone. Where the
values differ, Clarabel is asked again for more digits.
"""

from __future__ import annotations

import sys
import time
import warnings

import cvxpy
import numpy as np
from common import machine

from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation


def clarabel(
    X: np.ndarray,
    y: np.ndarray,
    gamma: float,
    tau: int,
    epsilon: float,
    tol: float,
    by_terms: bool = False,
) -> tuple[float, float, float]:
    """Value of the relaxation, seconds with modelling and of the solver; NaN where it gives up."""
    started = time.perf_counter()
    p = X.shape[1]
    beta, z, s = cvxpy.Variable(p), cvxpy.Variable(p), cvxpy.Variable(p)
    # s_i z_i >= beta_i^2 as second-order cones, all at once
    cones = cvxpy.SOC(s + z, cvxpy.vstack([2.0 * beta, s - z]), axis=0)
    perspective = cvxpy.sum(s)
    limits = [z >= 0, z <= 1, cvxpy.sum(z) <= tau]
    if by_terms:
        perspective = sum(cvxpy.quad_over_lin(beta[i], z[i]) for i in range(p))
    else:
        limits.append(cones)
    objective = (
        cvxpy.sum_squares(y - X @ beta)
        + (gamma - epsilon) / 2.0 * perspective
        + epsilon / 2.0 * cvxpy.sum_squares(beta)
    )
    program = cvxpy.Problem(cvxpy.Minimize(objective), limits)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.solve(
                solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol, max_iter=500
            )
    except cvxpy.SolverError:
        return float("nan"), float("nan"), float("nan")
    seconds = time.perf_counter() - started
    return float(program.value), seconds, float(program.solver_stats.solve_time)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(machine(), "; cvxpy", cvxpy.__version__)
    rng = np.random.default_rng(0)
    warm = SparseRidgeProblem(rng.standard_normal((9, 5)), rng.standard_normal(9), gamma=1.0, tau=2)
    perspective_relaxation(warm)
    ratios, worst, unconverged, failed, above = [], 0.0, 0, 0, 0
    for number in range(count):
        p = int(np.exp(rng.uniform(np.log(50), np.log(500))))
        n = int(rng.uniform(0.25, 2.0) * p)
        X = rng.standard_normal((n, p)) + rng.uniform(0, 1) * rng.standard_normal((n, 1))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        y = X[:, :5].sum(axis=1) + 2.0 * rng.standard_normal(n)
        gamma, tau = float(10.0 ** rng.uniform(-4, 4)), int(rng.integers(1, p + 1))
        epsilon = gamma * float(rng.uniform(0.05, 0.9)) if number % 2 else 0.0
        started = time.perf_counter()
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=tau)
        found = perspective_relaxation(problem, epsilon=epsilon)
        ours = time.perf_counter() - started
        value, theirs, alone = clarabel(X, y, gamma, tau, epsilon, 1e-8)
        _, terms, _ = clarabel(X, y, gamma, tau, epsilon, 1e-8, by_terms=True)
        apart = abs(found.value - value) / abs(value)
        if not apart <= 1e-7:
            again, *_ = clarabel(X, y, gamma, tau, epsilon, 1e-11)
            apart = np.nanmin([apart, abs(found.value - again) / abs(again)])
        above += found.bound > found.value
        unconverged += not found.converged
        if not np.isfinite(apart):
            failed += 1
            continue
        if apart > 1e-7 or not found.converged:
            print(
                f"n={n} p={p} τ={tau} γ={gamma:.3g} ε={epsilon:.3g}: apart {apart:.1e}, our gap "
                f"{found.gap:.1e}, {'converged' if found.converged else 'not converged'}"
            )
        worst = max(worst, float(apart))
        ratios.append((terms / ours, theirs / ours, alone / ours))
    print(
        f"\n{len(ratios)} instances: largest relative difference {worst:.1e}; {unconverged} of ours"
        f" did not reach 1e-8 (and said so); bound above value {above}, Clarabel failed {failed}"
    )
    ways = ("cvxpy by terms + Clarabel", "cvxpy by cones + Clarabel", "Clarabel alone")
    for column, what in enumerate(ways):
        found = np.array(ratios)[:, column]
        found = found[np.isfinite(found)]
        quartiles = ", ".join(f"{q:.0f}" for q in np.percentile(found, [0, 25, 50, 75, 100]))
        mean = np.exp(np.mean(np.log(found)))
        print(f"{what} / ours: geometric mean {mean:.0f}×, quartiles {quartiles}")


if __name__ == "__main__":
    main()
