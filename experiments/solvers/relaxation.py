"""This script compares the perspective relaxation with cvxpy and Clarabel on random problems.

    python -m experiments.solvers.relaxation [instances] [large]

The first 200 instances (or ``instances``) have p from 10 to 60, at EVERY τ = 1..p; sparsecv solves
them as a path in which each τ starts from the solution before. The next 60 instances (or ``large``)
have p from 50 to 500, at one τ each. n is from p/4 to 2p, the columns are correlated, γ is from
1e-4 to 1e4, and ε = 0 and ε > 0 alternate. The times count from rows in memory to the value. cvxpy
with Clarabel is timed with the perspective as one term per column (at three τ of every small
instance) and as one block of cones; Clarabel's own time is also printed. Where the values differ,
Clarabel solves the problem again with a smaller tolerance.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import cvxpy
import numpy as np

from experiments.common import machine
from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation, relaxation_path
from sparsecv.solvers.relaxation.perspective import Relaxation


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


def instance(rng: np.random.Generator, p: int, number: int) -> tuple[Any, Any, float, float]:
    """Rows, response, γ and ε."""
    n = int(rng.uniform(0.25, 2.0) * p) + 2
    X = rng.standard_normal((n, p)) + rng.uniform(0, 1) * rng.standard_normal((n, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, :5].sum(axis=1) + 2.0 * rng.standard_normal(n)
    gamma = float(10.0 ** rng.uniform(-4, 4))
    return X, y, gamma, gamma * float(rng.uniform(0.05, 0.9)) if number % 2 else 0.0


class Tally:
    """Differences and time ratios so far."""

    def __init__(self) -> None:
        self.worst, self.count, self.unconverged, self.failed, self.above = 0.0, 0, 0, 0, 0
        self.terms: list[float] = []
        self.cones: list[float] = []
        self.alone: list[float] = []

    def compare(
        self, X: Any, y: Any, gamma: float, tau: int, epsilon: float, found: Relaxation, ours: float
    ) -> None:
        value, cones, alone = clarabel(X, y, gamma, tau, epsilon, 1e-8)
        apart = abs(found.value - value) / abs(value)
        if not apart <= 1e-7:
            again, *_ = clarabel(X, y, gamma, tau, epsilon, 1e-11)
            apart = float(np.nanmin([apart, abs(found.value - again) / abs(again)]))
        self.count += 1
        self.unconverged += not found.converged
        self.above += found.bound > found.value
        if not np.isfinite(apart):
            self.failed += 1
            return
        self.worst = max(self.worst, apart)
        self.cones.append(cones / ours)
        self.alone.append(alone / ours)

    def print(self, seconds: list[float]) -> None:
        print(
            f"{self.count} relaxations: largest relative difference {self.worst:.1e}; "
            f"{self.unconverged} of ours did not reach 1e-8 (and said so); bound above value "
            f"{self.above}, Clarabel failed {self.failed}; ours {1e3 * _mean(seconds):.2f} ms each"
        )
        ways = (
            ("cvxpy by terms + Clarabel", self.terms),
            ("cvxpy by cones + Clarabel", self.cones),
            ("Clarabel alone", self.alone),
        )
        for what, ratios in ways:
            if ratios:
                quartiles = ", ".join(
                    f"{q:.0f}" for q in np.percentile(ratios, [0, 25, 50, 75, 100])
                )
                print(
                    f"  {what} / ours: geometric mean {_mean(ratios):.0f}×, quartiles {quartiles}"
                )


def _mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def main() -> None:
    small = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    large = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    print(machine(), "; cvxpy", cvxpy.__version__)
    rng = np.random.default_rng(0)
    warm = SparseRidgeProblem(rng.standard_normal((9, 5)), rng.standard_normal(9), gamma=1.0, tau=2)
    relaxation_path(warm, [1, 2])
    print(f"\n{small} instances, p from 10 to 60, every τ")
    tally, each = Tally(), []
    for number in range(small):
        p = int(rng.integers(10, 61))
        X, y, gamma, epsilon = instance(rng, p, number)
        started = time.perf_counter()
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=1)
        path = relaxation_path(problem, range(1, p + 1), epsilon=epsilon)
        each.append((time.perf_counter() - started) / p)
        for tau, found in enumerate(path, start=1):
            tally.compare(X, y, gamma, tau, epsilon, found, each[-1])
        for tau in rng.choice(np.arange(1, p + 1), 3, replace=False):
            _, terms, _ = clarabel(X, y, gamma, int(tau), epsilon, 1e-8, by_terms=True)
            if np.isfinite(terms):
                tally.terms.append(terms / each[-1])
    tally.print(each)
    print(f"\n{large} instances, p from 50 to 500, one τ each")
    tally, each = Tally(), []
    for number in range(large):
        p = int(np.exp(rng.uniform(np.log(50), np.log(500))))
        X, y, gamma, epsilon = instance(rng, p, number)
        tau = int(rng.integers(1, p + 1))
        started = time.perf_counter()
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=tau)
        found = perspective_relaxation(problem, epsilon=epsilon)
        each.append(time.perf_counter() - started)
        tally.compare(X, y, gamma, tau, epsilon, found, each[-1])
    tally.print(each)


if __name__ == "__main__":
    main()
