"""This script measures test errors of glmnet, MCP and SCAD on the splits of selection_rules.py.

    python -m experiments.selection.selection_peers CSV [splits [data set ...]]

The script needs sparsecv, skglm and python-glmnet in one environment (skglm 0.5 and python-glmnet
2.6.1 with numpy 2.4 gave results/selection_peers.csv). Every model chooses its λ (glmnet also its
α) by the same five folds as the rules, on columns of unit variance. The script appends a row to CSV
for every fit, and ``selection_rules.py --table`` reads the rows.

glmnet has 100 λ and the α .1, .3, .5, .7, .9, 1. MCP (γ = 3) and SCAD (γ = 3.7), with ncvreg's
defaults, use skglm's coordinate descent along 100 λ from the largest λ down to λ_max/1000, or to
λ_max/20 where there are more columns than rows, as in ncvreg.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from experiments.references import PATHS, of_least_error
from experiments.selection.selection_rules import NAMES, halves

PEERS = ("glmnet", "MCP", "SCAD")
ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def glmnet(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> np.ndarray:
    """Predictions of the elastic net whose (λ, α) has the least five-fold error."""
    from glmnet import ElasticNet

    best = np.inf, np.empty(0)
    for alpha in ALPHAS:
        full = ElasticNet(alpha=alpha, n_splits=0).fit(X, y)
        path = full.lambda_path_
        error = np.zeros(path.size)
        for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
            fold = ElasticNet(alpha=alpha, n_splits=0, lambda_path=path).fit(X[train], y[train])
            predicted = fold.predict(X[test], lamb=path).reshape(test.size, -1)
            error += np.square(y[test, None] - predicted).sum(axis=0)
        least = int(np.argmin(error))
        if error[least] < best[0]:
            best = error[least], full.predict(Z, lamb=path[least : least + 1]).ravel()
    return best[1]


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    path, splits = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = csv.writer(file)
        if fresh:
            table.writerow(["dataset", "split", "peer seconds", *PEERS])
        for name in tuple(sys.argv[3:]) or NAMES:
            for split in range(splits):
                X, y, Z, z = halves(name, split)
                started = time.perf_counter()
                concave = [
                    of_least_error(PATHS[way], X, y, Z, (), split)[0][1] for way in PEERS[1:]
                ]
                predicted = [glmnet(X, y, Z, split), *concave]
                seconds = time.perf_counter() - started
                errors = [f"{np.mean((z - one) ** 2):.8g}" for one in predicted]
                table.writerow([name, split, f"{seconds:.2f}", *errors])
                file.flush()


if __name__ == "__main__":
    main()
