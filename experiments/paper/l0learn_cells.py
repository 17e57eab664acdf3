"""This script finds out why L0Learn's CV error is below that of proved models on some data sets.

    python -m experiments.paper.l0learn_cells [--quick] [data set ...]

The splits, folds, ridge weights and models of L0Learn's algorithm are those of tables_three_four.py
(sets to 45 columns). For the pair (ridge weight, size) of L0Learn's least CV error, the script
compares the model of every fold with the proved best model of as many columns at the same ridge
weight, on the same rows with the same scaling, and prints

- in how many folds L0Learn's model is not the best of its size, and in how many it has fewer
  columns than the pair says;
- the CV error as it is, with the best model of as many columns in every fold, and with the best
  model of the pair's size in every fold; all with columns scaled by the training rows;
- the least CV error of proved models over every size and 82 ridge weights, where the training rows
  of a fold scale the columns, and where all rows do (tables_three_four.py, "all sizes").

``--quick`` takes Steam and AutoMPG.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.model_selection import KFold

from experiments.common import RESULTS, machine, train_and_test
from experiments.paper.tables_three_four import COLUMNS, L0LEARN_WEIGHTS, SETS
from experiments.references import l0learn, l0learn_models, scaled
from experiments.resumable import Table
from sparsecv.solvers import SparseRidgeProblem, solve
from sparsecv.stability.sparse_ridge import SparseRidgeLearner

SPLITS = 5
MAX_COLUMNS = 45
GAMMAS = np.append(0.0, np.geomspace(1e-5, 1e5, 81))
# A model counts as worse than the best of its size if its objective is this share higher;
# L0Learn's coefficients are off by up to 1e-3.
WORSE = 1e-5


def split_of(name: str, split: int) -> np.ndarray:
    """Folds not optimal, folds with fewer columns, and the five CV errors but the last."""
    X, y, Z, _ = train_and_test(name, split, 0.2)
    n, p = X.shape
    folds = list(KFold(5, shuffle=True, random_state=split).split(X))
    most = l0learn(L0LEARN_WEIGHTS, X, y, Z, None)[0]
    errors, kept = np.zeros(L0LEARN_WEIGHTS.size * most), []
    for train, test in folds:
        A, b, B, mean = scaled(X[train], y[train], X[test])
        coef = l0learn_models(L0LEARN_WEIGHTS, A, b, most)
        errors += np.square(y[test, None] - mean - B @ coef).sum(axis=0)
        kept.append((A, b, B, y[test] - mean, coef))
    cell = int(errors.argmin())
    weight, size = L0LEARN_WEIGHTS[cell // most], cell % most + 1
    found = np.zeros(5)
    for A, b, B, target, coef in kept:
        beta = coef[:, cell]
        gamma = 4.0 * weight * b.size  # L0Learn's columns have length 1, ours length √n
        columns = int(np.count_nonzero(beta))
        of_size, of_cell = (
            solve(SparseRidgeProblem(A, b, gamma=gamma, tau=tau)) for tau in (columns, size)
        )
        value = np.sum((b - A @ beta) ** 2) + gamma / 2.0 * beta @ beta
        found[0] += value > of_size.objective * (1.0 + WORSE)
        found[1] += columns < size
        for at, model in enumerate((beta, of_size.coef, of_cell.coef)):
            found[2 + at] += np.sum((target - B @ model) ** 2) / n
    learner = SparseRidgeLearner(X, y, np.arange(1, min(n - 1, p) + 1), GAMMAS, solver="exact")
    total = sum(learner(a, range(learner.size))[:, b].sum(axis=1) for a, b in folds)
    return np.append(found, np.min(total) / n)


def main() -> None:
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    names = [one for one in arguments if one in SETS]
    names = names or (["steam", "autompg"] if "--quick" in arguments else list(SETS))
    table = Table(RESULTS / "tables_three_four.csv", COLUMNS)
    lines = [machine(), "", f"means over {SPLITS} splits of five folds", ""]
    heads = (
        "not best",
        "fewer",
        "L0Learn",
        "best of as many",
        "best of size",
        "proved",
        "all rows",
    )
    lines.append(" " * 14 + "".join(f"{head:>16}" for head in heads))
    for name in names:
        if train_and_test(name, 0, 0.2)[0].shape[1] > MAX_COLUMNS:
            continue
        found = np.array([split_of(name, split) for split in range(SPLITS)])
        ours = table.column(name, "all sizes", "cv_error")[:SPLITS].mean()
        folds = "".join(
            f"{f'{int(each)} of {5 * SPLITS}':>16}" for each in found[:, :2].sum(axis=0)
        )
        errors = "".join(f"{each:16.5g}" for each in (*found[:, 2:].mean(axis=0), ours))
        lines.append(f"{name:<14}{folds}{errors}")
        print(lines[-1], flush=True)
    text = "\n".join([*lines, ""])
    stem = "l0learn_cells_quick" if "--quick" in arguments else "l0learn_cells"
    (RESULTS / f"{stem}.txt").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
