"""This script compares least squares (γ = 0) by leaps and bounds with enumerating all supports.

    python -m experiments.solvers.gamma_zero [MOST_COLUMNS]

For every data set with at most MOST_COLUMNS columns (22) it prints, over all sizes, the largest
relative difference of the two residual sums of squares, how many sizes each has proved, the largest
relative gap of the tree, and the seconds of processor time of both.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from experiments.common import machine, registry, rows
from sparsecv.errors import InputError
from sparsecv.solvers import SparseRidgeProblem, best_subsets
from sparsecv.solvers.branching.enumeration import enumerated


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 22
    print(machine())
    print("data set, n, p, relative difference, proved by tree and enumeration, gap, seconds")
    for info in registry():
        try:
            X, y = rows(info["name"])
        except InputError:  # the file is not in the folder SPARSECV_DATA
            continue
        if X.shape[1] > most:
            continue
        X, y = X - X.mean(axis=0), y - y.mean()
        X = X[:, X.std(axis=0) > 0.0]
        p = X.shape[1]
        problem = SparseRidgeProblem(X, y, gamma=0.0, tau=p)
        began = time.process_time()
        tree = best_subsets(problem)
        middle = time.process_time()
        proofs = enumerated(problem, np.arange(1, p + 1), [])
        ended = time.process_time()
        truth = np.array([proof.objective for proof in proofs])
        objective = np.array([one.objective for one in tree])
        difference = float(np.max(np.abs(objective - truth) / truth))
        optimal, proved = (sum(one.proved for one in found) for found in (proofs, tree))
        gap = max(one.gap for one in tree)
        print(
            f"{info.name:14} {y.size:6} {p:3} {difference:.1e}  {proved} {optimal}  "
            f"{gap:.1e}  {middle - began:.2f} {ended - middle:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
