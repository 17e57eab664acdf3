"""This script measures the coverage of jackknife+ and CV+ intervals on ten real data sets.

    python -m experiments.selection.interval_coverage [FILE] [--splits 20]

A split fits SparseRidgeCV to half of the rows of a table, at most 150, and counts how many of the
other rows, at most 500, lie in their intervals. γ and τ are chosen on the training rows, as users
do. The guarantee for given (γ, τ) is 2·coverage − 1. The numbers are means over splits and, in
brackets, standard errors; "width" is the mean width divided by that of the intervals that the
normal distribution gives around the mean of y alone. FILE receives what is printed.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from experiments.common import machine, rows
from sparsecv import SparseRidgeCV

DATA = (
    "alcohol",
    "prostate",
    "diabetes",
    "housing",
    "servo",
    "autompg",
    "hitters",
    "energy",
    "concrete",
    "wine",
)
MOST_TRAINED, MOST_TESTED = 150, 500
COVERAGES = (0.8, 0.9)


class Measured(NamedTuple):
    """Share of the test rows inside, and the mean width of the intervals."""

    inside: float
    width: float


def split(X: np.ndarray, y: np.ndarray, cv: str | int, seed: int) -> list[Measured]:
    """One split: a fit, and what its intervals of every coverage do on the other rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    half = min(len(y) // 2, MOST_TRAINED)
    train, test = order[:half], order[half : half + MOST_TESTED]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Columns may be constant in a half.
        model = SparseRidgeCV(cv=cv).fit(X[train], y[train])
    found = []
    for coverage in COVERAGES:
        low, high = model.predict_interval(X[test], coverage).T
        normal = 2.0 * norm.ppf(0.5 + coverage / 2.0) * y[train].std()
        inside = float(np.mean((low <= y[test]) & (y[test] <= high)))
        found.append(Measured(inside, float(np.mean(high - low)) / normal))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    heads = [f"{kind} {c:g}" for kind in ("jackknife+", "CV+ (5)") for c in COVERAGES]
    lines = [machine(), f"{'data set':<16}" + "".join(f"{head:>24}" for head in heads)]
    means = []
    for name in DATA:
        X, y = rows(name)
        cells, row = "", []
        for cv in ("loo", 5):
            runs = [split(X, y, cv, seed) for seed in range(options.splits)]
            for c in range(len(COVERAGES)):
                inside = np.array([run[c].inside for run in runs])
                width = np.mean([run[c].width for run in runs])
                error = inside.std(ddof=1) / np.sqrt(len(runs))
                row.append(inside.mean())
                cells += f"{f'{inside.mean():.3f} ({error:.3f}) {width:.2f}':>24}"
        means.append(row)
        lines.append(f"{name:<16}{cells}")
        print(lines[-1], flush=True)
    lines.append(f"{'mean':<16}" + "".join(f"{value:>24.3f}" for value in np.mean(means, axis=0)))
    lines.append(f"{options.splits} splits: coverage (standard error) width")
    print("\n".join([*lines[:2], *lines[-2:]]))
    if options.file is not None:
        options.file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
