"""Does projecting the average predict better? Test errors and columns beside other linear models.

    python experiments/projection.py [--splits 20] [--rows N] CSV [data set ...]
    python experiments/projection.py --table [--base lasso] CSV ...
    python experiments/projection.py --nested data set ...

Every split keeps 20 % of the rows for the test; ``--rows`` fits to at most N of the others. All
models use five folds. One study of 10 γ in 1e-4..1e4 and all sizes (exact to 45 columns, good
supports beyond) gives

    minimum      the pair of least CV error
    repeated     that of least CV error over six partitions into five folds
    average      all models, weighted by that error to the power −n/10: nearly every column
    projected    the average projected onto the least size that stays close to it
    projected@k  the same at size k
    subset@k     the best subset of k columns, γ by that error

beside scikit-learn's lasso, elastic net and ridge, the relaxed lasso (least squares on the lasso's
columns, λ by CV), the lasso with at most k columns (λ by CV among those), and where they are
installed glmnet, MCP and SCAD (selection_peers.py) and abess. Rows are appended to CSV as they
come. ``--table`` prints errors relative to the lasso's (or those of ``--base``), at a size to those
of the lasso with at most as many columns: geometric means over splits, then over data sets, with
95 % intervals from the spread of a set's splits. ``--nested`` compares
``cv_error_`` with an outer CV around the whole chain on the same folds.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import machine, rows
from selection_rules import halves

from sparsecv import SparseRidgeCV
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.model import FittedModel
from sparsecv.selection.rules import choose, chosen_model
from sparsecv.selection.study import Study

NAMES = (
    *("toxicity", "steam", "alcohol2", "prostate", "servo", "hitters", "housing", "autompg"),
    *("wine", "bardet", "vessel", "riboflavin", "topgear"),
    *("alcohol", "rev", "energy", "concrete", "qsar_fish", "diabetes", "topgear_main", "housing2"),
)
GAMMAS = np.geomspace(1e-4, 1e4, 10)
SIZES = (3, 5, 8)


class Tried(NamedTuple):
    """One way on one split."""

    way: str
    predicted: np.ndarray
    columns: float
    seconds: float


def subsets(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """Everything that comes from one study of the grid."""
    started = time.perf_counter()
    names = [f"x{j}" for j in range(X.shape[1])]
    design = make_design(Summary.of(X, y), Protocol("honest", "unit-variance", True), names)
    data = RowFolds(*design.apply(X, y), make_folds(5, y.size, seed=seed), True)
    study = Study(data, design, GAMMAS, None, Settings(time_limit="auto"), seed=seed)
    _, chosen = choose(study, "projected")
    projection = chosen["projected"].projection
    assert projection is not None
    seconds = time.perf_counter() - started

    def tried(way: str, model: FittedModel) -> Tried:
        return Tried(way, Z @ model.coef + model.intercept, model.support.size, seconds)

    for way, rule in (("average", "averaged"), ("minimum", "minimum"), ("repeated", "repeated")):
        yield tried(way, chosen_model(study, chosen[rule]))
    yield tried("projected", chosen_model(study, chosen["projected"]))
    surface, at = study.mean_surface[0], study.apart
    for size in SIZES:
        for t in np.flatnonzero(projection.sizes == size):
            yield tried(f"projected@{size}", projection.models[t])
            g = int(np.argmin(surface[:, t]))
            yield tried(f"subset@{size}", study.model(int(at[g]), int(t)))


def lassos(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """The lasso, relaxed or with at most k columns, along one path of 100 λ."""
    from sklearn.linear_model import lasso_path
    from sklearn.model_selection import KFold

    started = time.perf_counter()

    def path(A: np.ndarray, b: np.ndarray, B: np.ndarray, alphas: Any) -> tuple[np.ndarray, ...]:
        mean, spread = A.mean(axis=0), A.std(axis=0)
        spread[spread <= 1e-12 * np.abs(mean)] = np.inf
        A, B = (A - mean) / spread, (B - mean) / spread
        alphas, coef, _ = lasso_path(A, b - b.mean(), alphas=alphas)
        refitted = np.zeros_like(coef)
        for a in range(alphas.size):
            used = np.flatnonzero(coef[:, a])
            refitted[used, a] = np.linalg.lstsq(A[:, used], b - b.mean(), rcond=None)[0]
        return alphas, b.mean() + B @ coef, b.mean() + B @ refitted, np.count_nonzero(coef, axis=0)

    alphas, plain, relaxed, columns = path(X, y, Z, 100)
    error = np.zeros((2, alphas.size))
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        found = path(X[train], y[train], X[test], alphas)
        for way in range(2):
            error[way] += np.square(y[test, None] - found[1 + way]).sum(axis=0)
    seconds = time.perf_counter() - started
    best = int(error[0].argmin())
    yield Tried("lasso", plain[:, best], columns[best], seconds)
    best = int(error[1].argmin())
    yield Tried("relaxed lasso", relaxed[:, best], columns[best], seconds)
    for size in SIZES:
        if size <= X.shape[1]:
            best = int(np.where(columns <= size, error[0], np.inf).argmin())
            yield Tried(f"lasso@{size}", plain[:, best], columns[best], seconds)


def peers(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Tried]:
    """Ridge and the elastic net, and what else is installed."""
    from selection_peers import concave, glmnet
    from sklearn.linear_model import ElasticNetCV, RidgeCV
    from sklearn.model_selection import KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = KFold(5, shuffle=True, random_state=seed)
    for way, model in {
        "elastic net": ElasticNetCV(l1_ratio=[0.1, 0.3, 0.5, 0.7, 0.9, 1.0], cv=folds),
        "ridge": RidgeCV(np.geomspace(1e-3, 1e4, 40), cv=folds),
    }.items():
        started = time.perf_counter()
        predicted = make_pipeline(StandardScaler(), model).fit(X, y).predict(Z)
        seconds = time.perf_counter() - started
        yield Tried(way, predicted, np.count_nonzero(model.coef_), seconds)
    if find_spec("glmnet"):
        yield Tried("glmnet", glmnet(X, y, Z, seed), np.nan, np.nan)
    if find_spec("skglm"):
        for way in ("MCP", "SCAD"):
            yield Tried(way, concave(X, y, Z, seed, way), np.nan, np.nan)
    if find_spec("abess"):
        from abess.linear import LinearRegression

        most = min(X.shape[1], X.shape[0] // 2)
        model = LinearRegression(support_size=range(most + 1), cv=5).fit(X, y)
        yield Tried("abess", model.predict(Z), np.count_nonzero(model.coef_), np.nan)


def run(path: Path, splits: int, most: int | None, names: list[str]) -> None:
    """Append the test error of every way on every split."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        if fresh:
            table.writerow(["dataset", "split", "way", "error", "columns", "seconds"])
        for name in names:
            for split in range(splits):
                X, y, Z, z = halves(name, split)
                if most is not None and most < y.size:
                    kept = np.random.default_rng([split, 1]).choice(y.size, most, replace=False)
                    X, y = X[kept], y[kept]
                label = name if most is None else f"{name}:{most}"
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for ways in (subsets, lassos, peers):
                        for one in ways(X, y, Z, split):
                            error = float(np.mean((z - one.predicted) ** 2))
                            numbers = f"{error:.8g}", f"{one.columns:g}", f"{one.seconds:.2f}"
                            table.writerow([label, split, one.way, *numbers])
                file.flush()


def summarise(paths: list[Path], reference: str) -> None:
    """Errors relative to those of one way, with columns and intervals."""
    found: dict[str, dict[int, dict[str, tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                cell = float(row["error"]), float(row["columns"])
                found[row["dataset"]][int(row["split"])][row["way"]] = cell
    print(machine())
    print(f"geometric mean of test MSE over that of {reference}, 95 % interval of it, columns\n")
    ways = list(dict.fromkeys(way for s in found.values() for one in s.values() for way in one))
    for free in (True, False):
        for way in (way for way in ways if ("@" not in way) == free):
            base = reference if free else f"lasso@{way.split('@')[1]}"
            means, variances, columns = [], [], []
            for of_set in found.values():
                both = [one for one in of_set.values() if way in one and base in one]
                if len(both) < 2:
                    continue
                ratio = np.log([one[way][0] / one[base][0] for one in both])
                means.append(ratio.mean())
                variances.append(ratio.var(ddof=1) / ratio.size)
                columns.append(np.mean([one[way][1] for one in both]))
            if not means:
                continue
            mean, spread = np.mean(means), np.sqrt(np.sum(variances)) / len(means)
            low, high = np.exp(mean - 1.96 * spread), np.exp(mean + 1.96 * spread)
            line = f"{np.exp(mean):>7.3f} [{low:.3f}, {high:.3f}] {np.mean(columns):>7.1f}"
            print(f"{way:<16}{line}  {len(means)} sets")
        print()
    shown = [way for way in ways if "@" not in way and way != reference]
    print(f"{'set':<16}{'splits':>7}" + "".join(f"{way:>15}" for way in shown))
    for name, of_set in found.items():
        cells = []
        for way in shown:
            ratio = [np.log(o[way][0] / o[reference][0]) for o in of_set.values() if way in o]
            cells.append(f"{np.exp(np.mean(ratio)):>15.3f}" if ratio else f"{'':>15}")
        print(f"{name:<16}{len(of_set):>7}" + "".join(cells))


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--base", default="lasso")
    parser.add_argument("--nested", action="store_true")
    given = parser.parse_args()
    if given.table:
        summarise([Path(name) for name in given.names], given.base)
    elif given.nested:
        nested(given.names)
    elif given.names:
        run(Path(given.names[0]), given.splits, given.rows, given.names[1:] or list(NAMES))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
