"""This script compares test errors of the grid's average of models under other weights.

    python -m experiments.selection.average_weights [--splits 20] CSV [data set ...]
    python -m experiments.selection.average_weights --table CSV

Splits, folds and γ are those of projection.py. On each split one study of all sizes gives these
averages of models, and the projections of the averages:

    T=5, 10, 20, 40   weights h^(−n/T), h averaged over six partitions; sparsecv has T = 10
    loo               weights h^(−n/10) with h by leave-one-out
    confidence        weights exp(−t²/2), t the difference of a model's fold errors from those of
                      the best model, in standard errors of the paired differences
    half ridge        half T=10, half the ridge fit of all columns with the γ of least h
    ε=.003, ε=.03     T=10 projected onto the least size within .3 % or 3 % of its CV error, not 1 %

``signal`` is 1 − h̄/var(y), where h̄ is the CV error of the average. The script appends rows to CSV
after every split. ``--table`` prints errors relative to T=10, for the development sets and for the
other sets, and the errors of a T chosen by ``signal`` with a threshold tuned on the development
sets.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.common import machine, studied
from experiments.selection.projection import GAMMAS, Tried, run
from sparsecv.cv.grid_errors import cross_validate
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.model import Model, values_of
from sparsecv.selection.averaging import average_of, averages_in_folds, error_of_averages
from sparsecv.selection.inner_folds import FoldWeights
from sparsecv.selection.projection import choose_size, project_average
from sparsecv.selection.study import Study
from sparsecv.selection.surfaces import Partitions
from sparsecv.selection.weights import model_weights

DEVELOPMENT = (
    *("toxicity", "prostate", "hitters", "housing:60", "servo:60", "diabetes:60"),
    *(f"synthetic:75,10,4,0.5,{snr},1" for snr in ("0.3", "1", "5", "50")),
)
OTHERS = (
    *("steam", "alcohol", "rev:60", "energy:60", "concrete:60", "qsar_fish:60", "wine:60"),
    *("autompg:60", "diabetes", "rev"),
)
THRESHOLDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def tempered(surface: np.ndarray, n: int, temperature: float) -> np.ndarray:
    """h^(−n/T) by the package's h^(−n/10)."""
    return model_weights(surface ** (10.0 / temperature), GAMMAS, n)


def variants(study: Study, partitions: Partitions) -> dict[str, np.ndarray]:
    """Weights (γ, τ) by name, at the γ of all partitions."""
    surface, n = partitions.mean, study.data.folds.n
    found = {f"T={t}": tempered(surface, n, t) for t in (5, 10, 20, 40)}
    alone = RowFolds(study.data.rows_for("every fold needs").rows, make_folds("loo", n))
    found["loo"] = tempered(
        cross_validate(alone, GAMMAS, partitions.first.taus).table("cv_error"), n, 10.0
    )
    folds = np.concatenate([one.table("fold_error") for one in partitions.results], axis=2)
    apart = folds - folds[np.unravel_index(np.argmin(surface), surface.shape)]
    spread = apart.std(axis=2, ddof=1) / np.sqrt(apart.shape[2])
    t = np.maximum(apart.mean(axis=2) / np.maximum(spread, 1e-300), 0.0)
    found["confidence"] = np.exp(-0.5 * t**2) / np.exp(-0.5 * t**2).sum()
    ridge = np.zeros(surface.shape)
    ridge[np.argmin(surface[:, -1]), -1] = 1.0  # the largest size has all columns
    found["half ridge"] = 0.5 * found["T=10"] + 0.5 * ridge
    return found


def tried(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """Every way, with the signal in place of seconds."""
    fit = studied(X, y, GAMMAS, "minimum", seed)
    study, average = fit.study, average_of(fit.study, fit.first)
    result = average.result

    def predicted(model: Model) -> np.ndarray:
        return Z @ model.coef + model.intercept

    for way, weights in variants(study, average.partitions).items():
        # Every fold has the weights of all rows here: only test errors are compared.
        inner = FoldWeights(result.gammas, result.taus, [weights] * study.data.folds.k, False)
        coefs = averages_in_folds(study, result, inner)
        error, _ = error_of_averages(study.data, coefs)
        own = replace(average, weights=weights, inner=inner, in_folds=result, coefs=coefs)
        own = replace(own, error=error)
        found = project_average(study, own, int(result.taus[-1]), np.inf)
        distance = values_of(found.sizes, "distance")
        signal = 1.0 - found.average.error / float(np.var(y))
        coef, intercept = fit.average(result, weights)
        columns = np.count_nonzero(coef)
        yield Tried(f"average {way}", Z @ coef + intercept, columns, signal)
        sizes = {way: found.chosen}
        if way == "T=10":
            for near in (0.003, 0.03):
                sizes[f"ε={near:g}"] = choose_size(distance, near * found.average.error)
        for name, t in sizes.items():
            model = found.sizes[t]
            yield Tried(name, predicted(model), model.tau, signal)


Cells = dict[str, dict[int, dict[str, tuple[float, float, float]]]]


def by_signal(cells: Cells, threshold: float, prefix: str = "") -> Cells:
    """T=20 where the signal is below the threshold, else T=10."""
    found: Cells = defaultdict(dict)
    for name, splits in cells.items():
        for split, ways in splits.items():
            low = ways["T=10"][2] < threshold
            chosen = ways[f"{prefix}T={20 if low else 10}"]
            found[name][split] = {**ways, f"{prefix}T by signal": chosen}
    return found


def ratios(cells: Cells, way: str, base: str) -> tuple[float, float, float]:
    """Geometric mean over sets of the ratio of errors, half its 95 % interval in logs, columns."""
    means, variances, columns = [], [], []
    for splits in cells.values():
        both = [(one[way], one[base]) for one in splits.values() if way in one and base in one]
        ratio = np.log([a[0] / b[0] for a, b in both])
        means.append(ratio.mean())
        variances.append(ratio.var(ddof=1) / ratio.size if ratio.size > 1 else np.nan)
        columns.append(np.mean([a[1] for a, _ in both]))
    return (
        float(np.mean(means)),
        1.96 * float(np.sqrt(np.sum(variances))) / len(means),
        float(np.mean(columns)),
    )


def summarise(path: Path) -> None:
    """Errors relative to T=10's on the development sets and on the others."""
    found: Cells = defaultdict(lambda: defaultdict(dict))
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            numbers = (float(row["error"]), float(row["columns"]), float(row["signal"]))
            found[row["dataset"]][int(row["split"])][row["way"]] = numbers
    halves = [
        {name: found[name] for name in names if name in found} for names in (DEVELOPMENT, OTHERS)
    ]
    tuned = {
        threshold: ratios(by_signal(halves[0], threshold), "T by signal", "T=10")[0]
        for threshold in THRESHOLDS
    }
    threshold = min(tuned, key=lambda t: tuned[t])
    print(machine())
    print(f"T by signal: 20 below {threshold:g}, tuned on the development sets")
    print("test MSE over that of the package's weights, T=10 [95 %]; columns\n")
    counts = [sum(len(splits) for splits in half.values()) for half in halves]
    heads = [f"{len(half)} sets, {c} splits" for half, c in zip(halves, counts, strict=True)]
    print(f"{'':<22}{'development: ' + heads[0]:>38}{'others: ' + heads[1]:>38}")
    for prefix in ("", "average "):
        ways = dict.fromkeys(way for one in found.values() for ways in one.values() for way in ways)
        shown = [way for way in ways if way.startswith("average ") == bool(prefix)]
        for way in [*shown, f"{prefix}T by signal"]:
            line = f"{way:<22}"
            for half in halves:
                mean, width, columns = ratios(
                    by_signal(half, threshold, prefix), way, f"{prefix}T=10"
                )
                low, high = np.exp(mean - width), np.exp(mean + width)
                cell = f"{np.exp(mean):.4f} [{low:.4f}, {high:.4f}] {columns:>6.1f}"
                line += f"{cell:>38}"
            print(line)
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        summarise(Path(given.names[0]))
    else:
        labels = given.names[1:] or [*DEVELOPMENT, *OTHERS]
        run(Path(given.names[0]), range(given.splits), labels, [tried], "signal")


if __name__ == "__main__":
    main()
