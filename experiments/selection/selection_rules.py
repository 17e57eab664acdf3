"""This script compares the test errors of sparse ridge under every rule that chooses (τ, γ).

    python -m experiments.selection.selection_rules CSV [splits [data set ...]]

Every split holds out 20 % of the rows as test rows. The other rows get five folds, 20 γ over the
stability paper's range, and all τ with τ log τ ≤ n (exact up to 20 columns, heuristic supports
beyond). One fit of the whole surface gives every rule its choice:

    minimum      the least CV error
    one-se       the least τ, at any γ, within one standard error of the least CV error
    stability    the least CV error + λ·stability, λ by nested folds
    λ=0.1, λ=1   the least CV error + λ·stability at a fixed λ
    corrected    the least bias-corrected CV error
    repeated     the least CV error averaged over six partitions into five folds
    averaged     all models, weighted by the averaged CV error to the power −n/10

The last two are no rules of sparsecv. The table also has scikit-learn's LassoCV, RidgeCV and
ElasticNetCV on standardised columns. The script appends a row to CSV for every fit. ``--table
CSV ...`` prints the summary of several such files, together with the rows of selection_peers.py
(glmnet, MCP, SCAD).
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

from experiments.common import machine, train_and_test
from sparsecv.design.folds import make_folds
from sparsecv.selection.weights import model_weights
from sparsecv.stability import SparseRidgeLearner, criterion, largest_tau, partial_errors, select

NAMES = (
    "toxicity",
    "steam",
    "alcohol2",
    "prostate",
    "servo",
    "hitters",
    "housing",
    "autompg",
    "wine",
    "bardet",
    "vessel",
    "riboflavin",
    "topgear",
)
GAMMAS = np.geomspace(2e-3, 2e3, 20)
PARTITIONS = 6
RULES = ("minimum", "one-se", "stability", "λ=0.1", "λ=1", "corrected", "repeated")
OTHERS = ("lasso", "ridge", "elastic net")
PEERS = ("glmnet", "MCP", "SCAD")
WIDE = ("bardet", "vessel", "riboflavin", "topgear")  # more than 30 columns


def halves(name: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X and y of the rows that are fitted, then of the fifth that is kept for the test."""
    return train_and_test(name, split, 0.2)


def choices(
    learner: SparseRidgeLearner, n: int, seed: int, tau_count: int
) -> tuple[dict[str, int], np.ndarray]:
    """The candidate that each rule chooses, and the weights of all candidates."""
    label = make_folds("5", n, seed=seed).label
    errors = partial_errors(learner, label, learner.size)
    cv = errors.cv_error
    best = int(np.argmin(cv))
    spread = errors.held_out[best].std(ddof=1) / np.sqrt(errors.held_out.shape[1])
    within = np.flatnonzero(cv <= cv[best] + spread)
    least = within[within % tau_count == (within % tau_count).min()]
    total = cv.copy()
    for repeat in range(1, PARTITIONS):
        other = make_folds("5", n, seed=seed + 1000 * repeat).label
        total += partial_errors(learner, other, learner.size, nested=False).cv_error
    weights = model_weights((total / PARTITIONS).reshape(-1, tau_count), GAMMAS, n).ravel()
    return {
        "minimum": best,
        "one-se": int(least[np.argmin(cv[least])]),
        "stability": select(errors).theta,
        "λ=0.1": int(np.argmin(criterion(errors, 0.1))),
        "λ=1": int(np.argmin(criterion(errors, 1.0))),
        "corrected": int(np.argmin(errors.corrected)),
        "repeated": int(np.argmin(total)),
    }, weights


def others(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Predictions of scikit-learn's cross-validated linear models."""
    from sklearn.linear_model import ElasticNetCV, LassoCV, RidgeCV
    from sklearn.model_selection import KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = KFold(5, shuffle=True, random_state=seed)
    models = {
        "lasso": LassoCV(cv=folds),
        "ridge": RidgeCV(np.geomspace(1e-3, 1e4, 40), cv=folds),
        "elastic net": ElasticNetCV(l1_ratio=[0.1, 0.3, 0.5, 0.7, 0.9, 1.0], cv=folds),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: make_pipeline(StandardScaler(), model).fit(X, y).predict(Z)
            for name, model in models.items()
        }


def run(path: Path, splits: int, names: tuple[str, ...]) -> None:
    """Append every split's test errors."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        if fresh:
            table.writerow(["dataset", "split", "seconds", *RULES, "averaged", *OTHERS])
        for name in names:
            for split in range(splits):
                started = time.perf_counter()
                X, y, Z, z = halves(name, split)
                n = y.size
                taus = np.arange(1, largest_tau(n, X.shape[1]) + 1)
                learner = SparseRidgeLearner(X, y, taus, GAMMAS)
                chosen, weights = choices(learner, n, split, taus.size)
                both = SparseRidgeLearner(np.vstack([X, Z]), np.append(y, z), taus, GAMMAS)
                every = both.predictions(np.arange(n), range(both.size))[:, n:]
                predicted = {rule: every[c] for rule, c in chosen.items()}
                predicted["averaged"] = weights @ every
                predicted |= others(X, y, Z, split)
                seconds = time.perf_counter() - started
                values = [f"{np.mean((z - one) ** 2):.8g}" for one in predicted.values()]
                table.writerow([name, split, f"{seconds:.2f}", *values])
                file.flush()


def summarise(paths: list[str]) -> None:
    """Mean test errors relative to the plain minimum's, and their geometric means."""
    found: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for path in paths:
        with Path(path).open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = row.pop("dataset"), int(row.pop("split"))
                found[key] |= {way: float(value) for way, value in row.items()}
    ways = (*RULES, "averaged", *OTHERS, *PEERS)
    print(machine())
    print("mean test MSE over the splits, relative to the plain minimum's (first: its own)\n")
    print(f"{'':<12}{'splits':>7}{'minimum':>11}" + "".join(f"{way:>12}" for way in ways[1:]))
    ratios: dict[str, np.ndarray] = {}
    for name in NAMES:
        of_name = [errors for (other, _), errors in sorted(found.items()) if other == name]
        complete = [errors for errors in of_name if set(ways) <= set(errors)]
        if not complete:
            continue
        table = np.array([[errors[way] for way in ways] for errors in complete])
        mean = table.mean(axis=0)
        ratios[name] = mean / mean[0]
        line = "".join(f"{ratio:>12.3f}" for ratio in ratios[name][1:])
        print(f"{name:<12}{len(table):>7}{mean[0]:>11.4g}{line}")
    for head, left_out in (("geometric", ()), ("no topgear", ("topgear",)), ("p <= 30", WIDE)):
        kept = [ratio for name, ratio in ratios.items() if name not in left_out]
        overall = np.exp(np.mean(np.log(kept), axis=0))
        print(f"{head:<12}{'':>7}{'':>11}" + "".join(f"{v:>12.3f}" for v in overall[1:]))


def main() -> None:
    if sys.argv[1:2] == ["--table"]:
        summarise(sys.argv[2:])
        return
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    splits = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    run(Path(sys.argv[1]), splits, tuple(sys.argv[3:]) or NAMES)


if __name__ == "__main__":
    main()
