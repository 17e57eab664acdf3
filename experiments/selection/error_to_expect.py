"""This script divides each reported error by the error on new data, to find an unbiased figure.

    python -m experiments.selection.error_to_expect [--quick] [--draws N] [setting ...]

A draw is a table, on which models are chosen and errors are reported. The error of a model on fresh
rows is its exact expectation for made tables; for real tables it is the error on the half of the
rows that was not drawn. Every figure is the mean over draws of the reported errors, divided by the
mean of the errors on fresh rows (1 is unbiased). There are five folds, ten γ from 1e-4 to 1e4, and
every size. The columns are:

    the CV error of every rule's choice, over the fresh error of that choice
    the bias-corrected criterion ("criterion") of the rule corrected
    the outer cross-validation of the rule minimum (beyond 45 columns, of the rule projected) by 5
    folds, by 10 folds and by the default number, over the fresh error of the rule's choice, with
    the standard error of the last ratio
    the least CV error of LassoCV over its own fresh error

A made table has normal columns with correlations ρ^|i−j|; y depends on three columns, or on all
("dense"). --quick draws a tenth of the tables, --draws at most N.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.common import design_of, machine, rows, studied
from sparsecv.cv.settings import DEFAULT_GAMMAS
from sparsecv.selection.nested import NESTED, nested_error
from sparsecv.solvers.core.plan import TREE_ONLY

# Each made table is (n, p, ρ, ratio of signal to noise, number of true columns, draws).
MADE = {
    "20 × 8": (20, 8, 0.0, 0.5, 3, 100),
    "20 × 8 dense": (20, 8, 0.7, 2.0, 8, 100),
    "50 × 8": (50, 8, 0.7, 0.5, 3, 100),
    "100 × 8 dense": (100, 8, 0.0, 0.5, 8, 100),
    "20 × 21": (20, 21, 0.0, 2.0, 3, 30),
    "25 × 21 dense": (25, 21, 0.7, 0.5, 21, 30),
    "50 × 21": (50, 21, 0.0, 0.5, 3, 30),
    "50 × 21 dense": (50, 21, 0.7, 2.0, 21, 30),
    "100 × 21": (100, 21, 0.7, 2.0, 3, 30),
    "50 × 60": (50, 60, 0.0, 2.0, 3, 10),
}
# The number of draws of every real table.
REAL = {"prostate": 50, "diabetes10": 30, "steam": 30}
# A function of coefficients and an intercept, which returns their error on fresh rows.
Fresh = Any


def made(name: str, draw: int) -> tuple[np.ndarray, np.ndarray, Fresh]:
    """A made table, and the expected squared error on fresh rows."""
    n, p, rho, snr, true, _ = MADE[name]
    rng = np.random.default_rng([draw, n, p])
    sigma = rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(sigma).T
    beta = np.zeros(p)
    beta[np.linspace(0, p - 1, true).round().astype(int)] = 1.0
    noise = float(beta @ sigma @ beta) / snr

    def fresh(coef: np.ndarray, intercept: float) -> float:
        return float(noise + intercept**2 + (coef - beta) @ sigma @ (coef - beta))

    return X, X @ beta + np.sqrt(noise) * rng.standard_normal(n), fresh


def halved(name: str, draw: int) -> tuple[np.ndarray, np.ndarray, Fresh]:
    """Half of the rows of a data set, and the squared error on the others."""
    X, y = rows(name)
    order = np.random.default_rng(draw).permutation(y.size)
    kept, held = order[: y.size // 2], order[y.size // 2 :]

    def fresh(coef: np.ndarray, intercept: float) -> float:
        return float(np.mean((y[held] - X[held] @ coef - intercept) ** 2))

    return X[kept], y[kept], fresh


def figures(X: np.ndarray, y: np.ndarray, fresh: Fresh, seed: int) -> dict[str, tuple]:
    """A reported error, and the error of the same model on fresh rows."""
    rule = "minimum" if design_of(X, y).p <= TREE_ONLY else "projected"
    fit = studied(X, y, DEFAULT_GAMMAS, rule, seed, every=True)
    study, found = fit.study, {}
    for name, choice in fit.choices.items():
        model = fit.model(name)
        error = fresh(model.coef, model.intercept)
        found[name] = choice.cv_error, error
        if name == "corrected":
            found["criterion"] = choice.criterion, error
    for k in (5, 10):
        found[f"nested {k}"] = nested_error(study, 5, k).error, found[rule][1]
    few = y.size <= NESTED.max_rows_left_out_one_by_one
    many = y.size > NESTED.max_rows_of_ten_folds
    default = found["nested 5" if many else "nested 10"]
    default = nested_error(study, 5) if few else default
    found["nested"] = default[0], found[rule][1]
    return found | {"lasso": lasso(X, y, fresh, seed)}


def lasso(X: np.ndarray, y: np.ndarray, fresh: Fresh, seed: int) -> tuple[float, float]:
    """LassoCV on standardised columns, by the same folds."""
    from sklearn.linear_model import LassoCV
    from sklearn.model_selection import KFold

    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0.0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = KFold(5, shuffle=True, random_state=seed)
        model = LassoCV(cv=folds).fit((X - mean) / scale, y)
    coef = model.coef_ / scale
    return model.mse_path_.mean(axis=1).min(), fresh(coef, model.intercept_ - mean @ coef)


def tables(name: str, quick: bool, most: int) -> Iterator[Any]:
    draws, make = (REAL[name], halved) if name in REAL else (MADE[name][-1], made)
    return map(partial(make, name), range(min(max(draws // 10, 4) if quick else draws, most)))


def ratio(pairs: np.ndarray) -> tuple[float, float]:
    """Ratio of the means of two columns, and its standard error by the delta method."""
    reported, fresh = pairs.mean(axis=0)
    value = reported / fresh
    rest = pairs[:, 0] - value * pairs[:, 1]
    return value, float(rest.std(ddof=1) / np.sqrt(rest.size) / fresh)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", nargs="*", default=[*MADE, *REAL])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    print(machine(), "\nmean of what is reported / mean error of the same model on fresh rows\n")
    columns: list[str] = []
    for name in options.settings:
        started = time.process_time()
        found: dict[str, list] = defaultdict(list)
        for draw, (X, y, fresh) in enumerate(tables(name, options.quick, options.draws)):
            for column, pair in figures(X, y, fresh, draw).items():
                found[column].append(pair)
        if not columns:
            columns = list(found)
            print(f"{'':<16}{'draws':>6}" + "".join(f"{c:>11}" for c in columns) + f"{'±':>6}")
        ratios = {c: ratio(np.array(found[c])) for c in columns}
        line = "".join(f"{ratios[c][0]:>11.2f}" for c in columns)
        seconds = time.process_time() - started
        count = len(found["minimum"])
        print(
            f"{name:<16}{count:>6}{line}{ratios['nested'][1]:>6.2f}   {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
