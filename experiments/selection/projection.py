"""This script compares test errors of the projection of an average of models with other models.

    python -m experiments.selection.projection [--splits 20] CSV [data set ...]
    python -m experiments.selection.projection --quick [--splits 5] CSV
    python -m experiments.selection.projection --table [--base lasso] [--picture FILE] CSV ...
    python -m experiments.selection.projection --nested data set ...
    python -m experiments.selection.projection --time data set ...
    python -m experiments.selection.projection --weights data set ...
    python -m experiments.selection.projection --long

Every split holds out 20 % of the rows as test rows; "name:N" fits to at most N of the other rows.
All models use five folds. One study of the default grid of γ (ten values in 1e-4..1e4, and further
values where an end is best) and of all sizes (exact up to 45 columns, heuristic supports beyond)
gives these models:

    minimum      the pair of least CV error
    repeated     the pair of least CV error averaged over two partitions into five folds (six up
                 to 45 columns in the stored results)
    average      all models, weighted by the averaged CV error to the power −n/10
    projected    the average projected onto the least size whose predictions stay close to it
    projected@k  the average projected onto size k
    subset@k     the best subset of k columns, with γ of least averaged CV error

Other models are ridge regression, the models of experiments/references.py and, where they are
installed, abess and glmnet's lasso; all but glmnet's lasso also with at most k columns. The script
appends rows to CSV after every split of all data sets, and continues an interrupted run.

``--table`` prints errors relative to the lasso's (or those of ``--base``); at size k, relative to
the lasso with at most k columns. The table has geometric means over splits, then over data sets,
with 95 % intervals from the spread over splits, and the same for three groups of data sets.
``--quick`` runs seven data sets of more than 45 columns and prints the table. ``--picture`` draws
accuracy against the number of columns. ``--nested`` compares ``cv_error_`` with an outer
cross-validation of the whole fit on the same folds. ``--time`` measures whole fits by the rule
projected. ``--weights`` measures CV errors of the average and of its projection with
the weights of all rows in every fold, and with weights of inner folds ("noise": 20 draws of 40 rows
and 10 columns).

``--long`` simulates tables of 2,000 to 200,000 rows, whose columns are normal and correlate by
.5^|i − j|, and measures the excess error (β̂ − β)ᵀΣ(β̂ − β) over the variance of the noise: what a
model's error on new rows exceeds the least possible error by. "eight" true coefficients fall from 1
to .05; "decaying" coefficients are .8^j in random columns j. "one percent" is the projection onto
the least size whose distance to the average is at most 1 %, however many rows there are.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.common import machine, rows, studied
from experiments.references import PATHS, of_least_error
from experiments.selection.selection_rules import halves
from sparsecv import SparseRidgeCV
from sparsecv.cv.results import least
from sparsecv.design.model import Model, values_of
from sparsecv.selection.averaging import averages_in_folds, error_of_averages
from sparsecv.selection.inner_folds import FoldWeights
from sparsecv.selection.projection import choose_size, project_average

NAMES = (
    *("toxicity", "steam", "alcohol2", "prostate", "servo", "hitters", "housing", "autompg"),
    *("wine", "alcohol", "rev", "energy", "concrete", "qsar_fish", "diabetes"),
    *("rev:60", "energy:60", "qsar_fish:60", "concrete:60", "housing:60", "diabetes:60"),
    *("wine:60", "servo:60", "autompg:60", "topgear_main"),
    *("bardet", "housing2", "vessel", "topgear", "riboflavin"),
)
GAMMAS = np.geomspace(1e-4, 1e4, 10)
SIZES = (3, 5, 8)
QUICK = ("bardet", "topgear", "riboflavin", "vessel", "permeability", "meats", "housing2")
GROUPS = {
    "few rows: 20 to 78 are fitted": [
        *("steam", "toxicity", "alcohol", "alcohol2", "prostate"),
        *(name for name in NAMES if name.endswith(":60")),
    ],
    "many rows, at most 25 columns": [
        *("servo", "hitters", "autompg", "rev", "diabetes"),
        *("housing", "energy", "qsar_fish", "concrete", "wine"),
    ],
    "more than 45 columns": list(QUICK),
}


class Tried(NamedTuple):
    """One way on one split; average_weights.py puts its signal in place of seconds."""

    way: str
    predicted: np.ndarray
    columns: float
    seconds: float


def subsets(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """Everything that comes from one study of the grid."""
    started = time.perf_counter()
    fit = studied(X, y, None, "projected", seed)
    projection = fit.choices["projected"].projection
    assert projection is not None
    seconds = time.perf_counter() - started

    def tried(way: str, model: Model) -> Tried:
        return Tried(way, Z @ model.coef + model.intercept, model.support.size, seconds)

    average = projection.average
    coef, intercept = fit.average(average.result, average.weights)
    yield Tried("average", Z @ coef + intercept, np.count_nonzero(coef), seconds)
    for rule in ("minimum", "projected"):
        yield tried(rule, fit.model(rule))
    surface, at, result = average.partitions.mean, average.partitions.gammas, fit.first.result
    design, full = fit.study.design, fit.study.data.full()
    g, t = least(surface, result.taus, result.gammas[at], result.rounding)
    yield tried("repeated", result.by_gamma[at[g]].model(design, full, t))
    for size in SIZES:
        for t in np.flatnonzero(values_of(projection.sizes, "tau") == size):
            yield tried(f"projected@{size}", projection.sizes[t])
            g = int(np.argmin(surface[:, t]))
            yield tried(f"subset@{size}", result.by_gamma[at[g]].model(design, full, int(t)))


def penalised(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """Lasso, elastic net and the others of experiments/references.py."""
    for way, path in PATHS.items():
        started = time.perf_counter()
        found = of_least_error(path, X, y, Z, SIZES, seed)
        seconds = time.perf_counter() - started
        for one in found:
            name = way if one.size is None else f"{way}@{one.size}"
            yield Tried(name, one.predicted, one.columns, seconds)


def others(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """Ridge, and abess where it is installed."""
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = KFold(5, shuffle=True, random_state=seed)
    started = time.perf_counter()
    model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e4, 40), cv=folds))
    predicted = model.fit(X, y).predict(Z)
    yield Tried("ridge", predicted, X.shape[1], time.perf_counter() - started)
    if find_spec("abess"):
        from abess.linear import LinearRegression

        varied = np.ptp(X, axis=0) > 0.0  # abess refuses columns that do not vary.
        X, Z = X[:, varied], Z[:, varied]
        most = min(X.shape[1], X.shape[0] // 2)
        for size in (None, *(size for size in SIZES if size <= most)):
            started = time.perf_counter()
            sizes = range(most + 1) if size is None else size
            model = LinearRegression(support_size=sizes, cv=5 if size is None else 1).fit(X, y)
            seconds = time.perf_counter() - started
            name = "abess" if size is None else f"abess@{size}"
            yield Tried(name, model.predict(Z), np.count_nonzero(model.coef_), seconds)


def glmnet(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """The lasso of glmnet at its λ of least five-fold error, where it is installed."""
    if find_spec("glmnet"):
        from glmnet import ElasticNet

        started = time.perf_counter()
        model = ElasticNet(1.0, n_splits=5, random_state=seed, cut_point=0.0).fit(X, y)
        seconds = time.perf_counter() - started
        yield Tried("glmnet", model.predict(Z), np.count_nonzero(model.coef_), seconds)


def parts(label: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows that are fitted, at most N of them for "name:N", and rows of the test."""
    name, _, most = label.rpartition(":")
    if not most.isdigit():
        name, most = label, ""
    X, y, Z, z = halves(name, split)
    if most and int(most) < y.size:
        kept = np.random.default_rng([split, 1]).choice(y.size, int(most), replace=False)
        X, y = X[kept], y[kept]
    return X, y, Z, z


def run(
    path: Path,
    splits: range,
    labels: list[str],
    ways: Sequence[Callable[..., Iterator[Tried]]],
    last_column: str = "seconds",
) -> None:
    """Append the test error of every way, split by split; splits that are there are left out."""
    done: set[tuple[str, int]] = set()
    if path.exists():
        with path.open(encoding="utf-8") as file:
            done = {(row["dataset"], int(row["split"])) for row in csv.DictReader(file)}
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        if path.stat().st_size == 0:
            table.writerow(["dataset", "split", "way", "error", "columns", last_column])
        for split, label in product(splits, labels):
            if (label, split) in done:
                continue
            X, y, Z, z = parts(label, split)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tried = [one for way in ways for one in way(X, y, Z, split)]
            for one in tried:  # all of a split or nothing
                error = float(np.mean((z - one.predicted) ** 2))
                numbers = f"{error:.8g}", f"{one.columns:g}", f"{one.seconds:.4g}"
                table.writerow([label, split, one.way, *numbers])
            file.flush()


WAYS = subsets, penalised, others, glmnet


Found = dict[str, dict[int, dict[str, tuple[float, float]]]]


def read(paths: list[Path]) -> Found:
    """Error and columns by data set, split and way; of equal ones the last."""
    found: Found = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                cell = float(row["error"]), float(row["columns"])
                found[row["dataset"]][int(row["split"])][row["way"]] = cell
    return found


class Ratio(NamedTuple):
    """Geometric means over splits, then over sets, of one way over another."""

    error: float
    low: float
    high: float
    columns: float  # a ratio, too
    mean_columns: float
    sets: int
    splits: int


def compared(found: Found, way: str, base: str) -> Ratio | None:
    """Paired by splits; the 95 % interval is from the spread of a set's splits."""
    means, variances, columns, ratios, splits = [], [], [], [], 0
    for of_set in found.values():
        both = [(one[way], one[base]) for one in of_set.values() if way in one and base in one]
        if len(both) < 2:
            continue
        ratio = np.log([a[0] / b[0] for a, b in both])
        splits += ratio.size
        means.append(ratio.mean())
        variances.append(ratio.var(ddof=1) / ratio.size)
        columns.append(_mean([a[1] for a, _ in both]))
        ratios.append(_mean([float(np.log(max(a[1], 0.5) / max(b[1], 0.5))) for a, b in both]))
    if not means:
        return None
    mean, spread = np.mean(means), 1.96 * np.sqrt(np.sum(variances)) / len(means)
    error, low, high, fewer = np.exp([mean, mean - spread, mean + spread, _mean(ratios)])
    return Ratio(error, low, high, fewer, _mean(columns), len(means), splits)


def _mean(columns: list[float]) -> float:
    """The mean of the finite values; NaN if there are none."""
    known = [c for c in columns if np.isfinite(c)]
    return float(np.mean(known)) if known else np.nan


def ways_of(found: Found) -> list[str]:
    return list(dict.fromkeys(way for s in found.values() for one in s.values() for way in one))


def summarise(found: Found, reference: str) -> None:
    """Errors relative to those of one way, with columns and intervals."""
    print(machine())
    print(f"geometric mean of test MSE over that of {reference}, 95 % interval of it, columns\n")
    ways = ways_of(found)

    def means(found: Found, size: str) -> None:
        base = reference + size if reference + size in ways else f"lasso{size}"
        for way in ways:
            if ("@" not in way) if not size else way.endswith(size):
                one = compared(found, way, base)
                if one is not None:
                    line = f"{one.error:>7.3f} [{one.low:.3f}, {one.high:.3f}]"
                    counts = f"{one.sets} sets, {one.splits} splits"
                    print(f"{way:<16}{line} {one.mean_columns:>7.1f}  {counts}")
        print()

    for group, names in {"all": list(found), **GROUPS}.items():
        print(group)
        for size in ("", *(f"@{k}" for k in SIZES)):
            means({name: found[name] for name in names if name in found}, size)
    shown = [way for way in ways if "@" not in way and way != reference]
    print(f"{'set':<16}{'splits':>7}" + "".join(f"{way:>18}" for way in shown))
    for name, of_set in found.items():
        cells = []
        for way in shown:
            both = [(o[way], o[reference]) for o in of_set.values() if way in o and reference in o]
            ratio = np.exp(np.mean([np.log(a[0] / b[0]) for a, b in both])) if both else np.nan
            columns = _mean([a[1] for a, _ in both])
            cells.append(f"{ratio:>10.3f} ({columns:>5.1f})")
        print(f"{name:<16}{len(of_set):>7}" + "".join(cells))


def draw(found: Found, file: str) -> None:
    """Accuracy against columns, both over the lasso's: geometric means over all sets."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FixedLocator, NullLocator

    figure, axes = plt.subplots(figsize=(7.5, 5.0), layout="constrained")
    for number, way in enumerate(way for way in ways_of(found) if "@" not in way):
        points = []
        for size in ("", *(f"@{k}" for k in SIZES)):
            one = compared(found, way + size, "lasso")
            if one is not None and np.isfinite(one.columns):
                points.append((one.columns, one.error, one.error - one.low, one.high - one.error))
        if points:
            x, y, low, high = np.array(sorted(points)).T
            own = way == "projected"
            colour = "black" if own else plt.get_cmap("tab20")(number % 20)
            style = {"lw": 2.0, "zorder": 3} if own else {"lw": 0.8}
            axes.errorbar(
                x, y, [low, high], marker="o", ms=4, capsize=2, label=way, c=colour, **style
            )
    axes.set(xscale="log", yscale="log")
    for axis, at in (
        (axes.xaxis, (0.3, 0.5, 0.7, 1, 1.5, 2)),
        (axes.yaxis, (1, 1.1, 1.2, 1.3, 1.4)),
    ):
        axis.set_major_locator(FixedLocator(at))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:g}")
    axes.set_xlabel("columns, over the lasso's with \u03bb by CV")
    axes.set_ylabel("test MSE, over the same lasso's")
    axes.legend(fontsize=8)
    figure.savefig(file, dpi=150)


def nested(names: list[str]) -> None:
    """``cv_error_`` of the chain beside an outer CV around all of it, on the same folds."""
    print(machine())
    print(f"{'set':<16}{'cv_error_':>12}{'nested':>12}{'ratio':>8}{'average':>10}")
    for name in names:
        X, y = rows(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chain = SparseRidgeCV(rule="projected", gammas=GAMMAS).fit(X, y)
            total = 0.0
            for j in range(chain.folds_.k):
                train, test = chain.folds_.split(j)
                inner = SparseRidgeCV(rule="projected", gammas=GAMMAS).fit(X[train], y[train])
                total += float(np.sum((y[test] - inner.predict(X[test])) ** 2))
        full = total / y.size
        shown = f"{chain.cv_error_:>12.5g}{full:>12.5g}{full / chain.cv_error_:>8.3f}"
        print(f"{name:<16}{shown}{chain.reference_error_:>10.4g}", flush=True)


def weighed(names: list[str]) -> None:
    """CV errors over the variance of y by weights of all rows, and by inner weights."""
    print(machine())
    print(f"{'set':<16}{'average: all':>14}{'inner':>9}{'projected: all':>16}{'inner':>9}")
    for name in names:
        found = []
        for seed in range(20 if name == "noise" else 1):
            rng = np.random.default_rng(seed)
            made = rng.standard_normal((40, 10)), rng.standard_normal(40)
            X, y = made if name == "noise" else rows(name)
            fit = studied(X, y, None, "projected")
            study, best = fit.study, fit.choices["minimum"]
            own = fit.choices["projected"].projection
            assert own is not None
            average, result = own.average, own.average.result
            same = [average.weights] * 5
            inner = FoldWeights(result.gammas, result.taus, same, False)
            coefs = averages_in_folds(study, result, inner)
            error, _ = error_of_averages(study.data, coefs)
            own_folds = {"inner": inner, "in_folds": result, "coefs": coefs, "error": error}
            average = replace(average, **own_folds)
            every = project_average(study, average, best.tau, best.cv_error)
            pair = [[one.average.error, one.sizes[one.chosen].cv_error] for one in (every, own)]
            found.append(np.ravel(pair, order="F") / np.var(y))
        a, b, c, d = np.mean(found, axis=0)
        print(f"{name:<16}{a:>14.4g}{b:>9.4g}{c:>16.4g}{d:>9.4g}", flush=True)


def timed(names: list[str]) -> None:
    """CPU seconds of a whole fit by the rule projected: the least of some."""
    print(machine())
    print(f"{'set':<16}{'rows':>6}{'columns':>8}{'projected':>10}")
    for name in names:
        X, y = rows(name)
        seconds: list[float] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while len(seconds) < 3 and sum(seconds) < 60.0:
                started = time.process_time()
                SparseRidgeCV(rule="projected").fit(X, y)
                seconds.append(time.process_time() - started)
        print(f"{name:<16}{y.size:>6}{X.shape[1]:>8}{min(seconds):>10.2f}", flush=True)


# Numbers of rows, columns and draws of the tables of --long, with the R² of y and the coefficients.
SIGNALS = (*product((0.05, 0.2, 0.5, 0.9), ("eight", "decaying")),)
LONG = {
    **{(2_000, p, 3): SIGNALS for p in (46, 100, 300)},
    (20_000, 46, 3): SIGNALS,
    (20_000, 100, 1): SIGNALS[2:6],
    (20_000, 300, 1): SIGNALS[2:3],
    (200_000, 46, 1): SIGNALS[2:4],
    (200_000, 300, 1): SIGNALS[2:3],
}


def long_table(
    n: int, p: int, r2: float, kind: str, seed: int
) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], float]]:
    """X, y, and the excess error of coefficients (p,) over the variance of the noise."""
    rng = np.random.default_rng([seed, n, p, int(100 * r2), len(kind)])
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    beta = np.zeros(p)
    size = np.geomspace(1.0, 0.05, 8) if kind == "eight" else 0.8 ** np.arange(p)
    beta[rng.permutation(p)[: size.size]] = size
    noise = beta @ covariance @ beta * (1.0 - r2) / r2
    y = X @ beta + np.sqrt(noise) * rng.standard_normal(n)
    return X, y, lambda coef: float((coef - beta) @ covariance @ (coef - beta) / noise)


def excess_errors(n: int, p: int, r2: float, kind: str, seed: int) -> tuple[list[float], list[int]]:
    """Excess errors and sizes on one table: the pair of least CV error, projected, one percent."""
    X, y, excess = long_table(n, p, r2, kind, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = studied(X, y, None, "projected", seed)
    found, best = fit.choices["projected"].projection, fit.choices["minimum"]
    assert found is not None
    sizes, distance = found.sizes, values_of(found.sizes, "distance")
    fewer, better = (
        values_of(sizes, "tau") <= best.tau,
        values_of(sizes, "cv_error") <= best.cv_error,
    )
    allowed = fewer | better
    share = 0.01 * found.average.error
    loose = choose_size(distance, share, allowed)
    models = fit.model("minimum"), sizes[found.chosen], sizes[loose]
    return [excess(one.coef) for one in models], [one.support.size for one in models]


def long_tables() -> None:
    """Excess errors of the least pair, and of two limits of the distance, on simulated tables."""
    print(machine())
    print("excess error (columns), geometric means over draws; ratios are to the minimum's\n")
    print(f"{'rows':>7}{'columns':>9}{'R²':>6}  {'kind':<10}{'draws':>6}{'minimum':>18}", end="")
    print(f"{'projected':>18}{'ratio':>7}{'most':>6}{'one percent':>18}{'ratio':>8}")
    every = list[np.ndarray]()
    for (n, p, draws), signals in LONG.items():
        for r2, kind in signals:
            found = [excess_errors(n, p, r2, kind, seed) for seed in range(draws)]
            errors = np.log([one for one, _ in found])
            sizes = np.mean([two for _, two in found], axis=0)
            ratios = errors[:, 1:] - errors[:, :1]
            every.append(ratios.mean(axis=0))
            a, b, c = (
                f"{mean:>11.6f} ({size:>4.1f})"
                for mean, size in zip(np.exp(errors.mean(axis=0)), sizes, strict=True)
            )
            near, far = np.exp(every[-1])
            shown = f"{a}{b}{near:>7.2f}{np.exp(ratios[:, 0].max()):>6.2f}{c}{far:>8.2f}"
            print(f"{n:>7}{p:>9}{r2:>6}  {kind:<10}{draws:>6}{shown}", flush=True)
    means, most = np.exp(np.mean(every, axis=0)), np.exp(np.max(every, axis=0))
    print(f"\nprojected over minimum: geometric mean {means[0]:.3f}, largest {most[0]:.2f}")
    print(f"one percent over minimum: geometric mean {means[1]:.3f}, largest {most[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--splits", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--base", default="lasso")
    parser.add_argument("--picture")
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--weights", action="store_true")
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    if given.long:
        long_tables()
    elif given.table:
        found = read([Path(name) for name in given.names])
        summarise(found, given.base)
        if given.picture:
            draw(found, given.picture)
    elif given.nested:
        nested(given.names)
    elif given.weights:
        weighed(given.names)
    elif given.time:
        timed(given.names)
    elif given.names:
        path, splits = Path(given.names[0]), range(given.splits or (5 if given.quick else 20))
        run(path, splits, given.names[1:] or list(QUICK if given.quick else NAMES), WAYS)
        if given.quick:
            summarise(read([Path(given.names[0])]), given.base)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
