"""This script times fits by sparsecv, scikit-learn, glmnet and abess in one run.

    python -m experiments.selection.fit_times [data sets] [--wide]

A time is the least of several fits after a first fit, in CPU seconds, on one thread. The fits are
``SparseRidgeCV`` with rule="minimum" over 20 γ (five folds, every τ, every problem exact),
leave-one-out at one γ beside the time of its tree alone, the default ``fit()``, LassoCV and RidgeCV
of scikit-learn, and glmnet and abess where they are installed (requirements-peers.txt). Ratios are
to LassoCV. ``--wide`` fits the wide data sets with default settings, and prints the seconds to the
estimates of the whole surface, the CPU seconds to the end, and what is proved.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV, RidgeCV

from experiments.common import machine, rows
from sparsecv import SparseRidgeCV
from sparsecv.cv.engine import Surface
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.row_table import RowTable
from sparsecv.solvers import best_subsets_rows_deleted, support_path
from sparsecv.stability.sparse_ridge import SparseRidgeLearner, largest_tau

SETS = ("diabetes", "housing", "servo", "autompg", "wine", "hitters")
WIDE = ("bardet", "vessel", "topgear", "riboflavin")
GAMMAS = np.geomspace(2e-3, 2e3, 20)
# The least time of this many runs counts.
RUNS = 5


def least(run: Callable[[], Any]) -> float:
    """The least CPU seconds of ``RUNS`` runs, after a first run that compiles."""
    run()
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        run()
        found.append(time.process_time() - started)
    return min(found)


def peers(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Seconds of other packages' cross-validated fits."""
    found = {
        "LassoCV": least(lambda: LassoCV(cv=5).fit(X, y)),
        "RidgeCV": least(lambda: RidgeCV(alphas=GAMMAS / 2.0, cv=5).fit(X, y)),
    }
    try:
        from glmnet import ElasticNet

        found["glmnet"] = least(lambda: ElasticNet(n_splits=5).fit(X, y))
    except ImportError:
        pass
    try:
        from abess import LinearRegression

        found["abess"] = least(lambda: LinearRegression(cv=5).fit(X, y))
    except ImportError:
        pass
    return found


def tree_alone(X: np.ndarray, y: np.ndarray, gamma: float) -> float:
    """Seconds of the shared leave-one-out tree, without anything around it."""
    design = make_design(Summary.of(X, y), Protocol(), [str(j) for j in range(X.shape[1])])
    data = RowFolds(RowTable(*design.apply(X, y), True), make_folds("loo", y.size))
    full, sizes = data.full().replace(gamma=gamma), np.arange(1, data.p + 1)
    left_out, targets, *_ = data.deleted_rows
    starts = support_path(full, [gamma], sizes).at(0)

    def run() -> None:
        best_subsets_rows_deleted(full, left_out, targets, sizes=sizes, warm_starts=starts)

    return least(run)


def narrow(names: list[str]) -> None:
    """The table of ratios."""
    ratios = []
    for name in names:
        X, y = rows(name)
        other = peers(X, y)
        grid = least(partial(SparseRidgeCV(gammas=GAMMAS, rule="minimum").fit, X, y))
        one = least(partial(SparseRidgeCV(cv="loo", gammas=[0.1], rule="minimum").fit, X, y))
        tree = tree_alone(X, y, 0.1)
        default = least(partial(SparseRidgeCV().fit, X, y))
        lasso = other["LassoCV"]
        ratios.append((grid / lasso, default / lasso, one / tree))
        told = ", ".join(f"{peer} {seconds:.4f}" for peer, seconds in other.items())
        print(
            f"{name:10s} {X.shape[0]:5d} x {X.shape[1]:<3d} 20 γ {grid:.3f} ({grid / lasso:.2f} x "
            f"LassoCV)  loo {one:.4f} ({one / tree:.2f} x its tree {tree:.4f})  default "
            f"{default:.3f} ({default / lasso:.2f} x)  {told}",
            flush=True,
        )
    mean = np.exp(np.log(np.array(ratios)).mean(axis=0))
    print(f"geometric means: 20 γ {mean[0]:.2f} x, default {mean[1]:.2f} x, loo {mean[2]:.2f} x")


def heuristic_least(X: np.ndarray, y: np.ndarray) -> float:
    """Least CV error of the stability layer's heuristic surface on the same folds and scaling.

    The layer would scale by the training rows of a fold, the estimator scales by all rows.
    """
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    taus = np.arange(1, largest_tau(y.size, X.shape[1]) + 1)
    learner = SparseRidgeLearner(X, y, taus, GAMMAS, solver="heuristic", standardize=False)
    folds = make_folds(5, y.size, seed=0)
    total = np.zeros(learner.size)
    for j in range(5):
        train, test = folds.split(j)
        total += learner(train, range(learner.size))[:, test].sum(axis=1)
    return float(total.min()) / y.size


def wide(names: list[str]) -> None:
    """Default fits beyond one tree."""
    prove = Surface.prove
    told: list[float] = []

    def timed(self: Surface) -> None:
        told.append(time.process_time())
        prove(self)

    Surface.prove = timed  # type: ignore[method-assign]
    for name in names:
        X, y = rows(name)
        SparseRidgeCV(gammas=[1.0], taus=[1, 2], time_limit=0).fit(X, y)  # compiles
        told.clear()
        started = time.process_time()
        model = SparseRidgeCV().fit(X, y)
        ended = time.process_time() - started
        least = SparseRidgeCV(gammas=GAMMAS, rule="minimum", time_limit=0).fit(X, y).cv_error_
        choice = model._run_.choice
        proved, cells = model.surface_["exact"].sum(), model.surface_["exact"].size
        print(
            f"{name:10s} {X.shape[0]} x {X.shape[1]}: estimates {told[0] - started:.1f} s, all "
            f"{ended:.1f} s, {proved} of {cells} (γ, τ) proved, chosen τ = {model.tau_}, γ = "
            f"{model.gamma_:.3g}, CV error {model.cv_error_:.6g} in "
            f"[{choice.lower:.4g}, {choice.upper:.4g}]; "
            f"least over 20 γ {least:.6g}, of the heuristic surface {heuristic_least(X, y):.6g}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--wide", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    if args.wide:
        wide(args.names or list(WIDE))
    else:
        narrow(args.names or list(SETS))


if __name__ == "__main__":
    main()
