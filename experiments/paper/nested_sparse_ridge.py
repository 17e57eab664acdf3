"""This script times nested, stability-regularised sparse ridge against plain k-fold CV.

    python -m experiments.paper.nested_sparse_ridge [data sets]

Both use five folds, 20 γ in the stability paper's range [1e-3, 1e3] (2/γ in the paper's notation)
and all τ with τ log τ ≤ n, on all rows of the paper's 13 data sets. λ is 0 or one of ten values
from 1e-4 to 1e4. Supports are exact up to 20 columns and heuristic beyond. The paper reports 592 s
on average (geometric mean).
"""

from __future__ import annotations

import sys
import time

import numpy as np

from experiments.common import machine, rows
from sparsecv.design.folds import make_folds
from sparsecv.stability import SparseRidgeLearner, largest_tau, partial_errors, select

NAMES = (
    "wine",
    "housing",
    "autompg",
    "hitters",
    "prostate",
    "servo",
    "toxicity",
    "steam",
    "alcohol2",
    "topgear",
    "bardet",
    "vessel",
    "riboflavin",
)
GAMMAS = np.geomspace(2e-3, 2e3, 20)


def main() -> None:
    names = sys.argv[1:] or NAMES
    print(machine(), "\none thread\n")
    print(
        f"{'':<12}{'n':>5}{'p':>6}{'τ to':>6} {'solver':<10}{'plain':>8}{'nested':>8}{'ratio':>7}"
        f"{'λ':>10}{'(γ, τ)':>16}{'at λ = 0':>16}{'nested error':>14}{'CV error':>12}"
    )
    X, y = rows("prostate")
    warm = SparseRidgeLearner(X, y, [1, 2], [1.0])
    for solver in ("exact", "heuristic"):
        warm.solver = solver
        partial_errors(warm, np.arange(y.size) % 5, warm.size)  # compiles
    times = []
    for name in names:
        X, y = rows(name)
        n, p = X.shape
        taus = np.arange(1, largest_tau(n, p) + 1)
        learner = SparseRidgeLearner(X, y, taus, GAMMAS)
        label = make_folds("5", n, seed=0).label
        seconds = []
        for nested in (False, True):
            started = time.perf_counter()
            errors = partial_errors(learner, label, learner.size, nested=nested)
            chosen = select(errors) if nested else None
            seconds.append(time.perf_counter() - started)
        assert chosen is not None
        times.append(seconds)
        pairs = [divmod(c, taus.size) for c in (chosen.theta, int(np.argmin(errors.cv_error)))]
        shown = [f"({GAMMAS[a]:.3g}, {taus[b]})" for a, b in pairs]
        print(
            f"{name:<12}{n:>5}{p:>6}{taus[-1]:>6} {learner.solver:<10}{seconds[0]:>7.2f}s"
            f"{seconds[1]:>7.2f}s{seconds[1] / seconds[0]:>7.1f}{chosen.lambda_:>10.4g}"
            f"{shown[0]:>16}{shown[1]:>16}{chosen.nested_error[chosen.best]:>14.5g}"
            f"{errors.cv_error.min():>12.5g}",
            flush=True,
        )
    plain, nested = np.exp(np.log(np.array(times)).mean(axis=0))
    print(f"\ngeometric mean: plain {plain:.2f} s, nested {nested:.2f} s")


if __name__ == "__main__":
    main()
