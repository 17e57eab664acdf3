"""Random tables at γ = 0 that attack CV errors of dependent columns, and choices of perfect fits.

Attacks are as in ``attacks``: an attack draws one problem and yields a line for every claim that
does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sparsecv import Constraints, SparseRidge, SparseRidgeCV

from .attacks import Attack
from .brute_force import Matrix
from .constrained import (
    DependentColumns,
    Rules,
    Support,
    exact_least_norm_within,
    resolved,
)
from .folds import about_mean
from .inside import RowFolds, RowTable, Settings, cross_validate, make_folds

Array = NDArray[np.float64]


def dependent_cells(rng: np.random.Generator, number: int) -> Iterator[str]:
    """CV errors of all columns together, which depend on each other, with bounds or without."""
    drawn = DependentColumns.drawn(rng)
    n, p = drawn.X.shape
    if rng.random() < 0.5:
        drawn = drawn._replace(rules=Rules.bounds(np.full(p, -np.inf), np.full(p, np.inf)))
    if n < 3:
        return
    folds = make_folds(
        "loo" if n < 4 or rng.random() < 0.4 else int(rng.integers(2, n)), n, seed=number
    )
    refit = bool(rng.random() < 0.5)
    asked = resolved(p, **drawn.rules.keywords).constraints
    data = RowFolds(RowTable(drawn.X, drawn.y, refit, constraints=asked), folds)
    result = cross_validate(data, [0.0], np.array([p]), Settings(prove="all"))
    total, rows = Fraction(0), np.column_stack([drawn.X, drawn.y])
    for j in range(folds.k):
        train, held = (about_mean(rows[m], rows[folds.split(j)[0]], refit) for m in folds.split(j))
        _, beta = exact_least_norm_within(train, drawn.rules, tuple(range(p)))
        for row in held:
            total += (row[-1] - sum((row[i] * v for i, v in beta.items()), Fraction(0))) ** 2
    found, right = float(result.table("cv_error")[0, 0]), float(total / n)
    scale = float(np.square(drawn.y).max()) + right
    if result.complete and abs(found - right) > 1e-8 * scale:
        yield f"{folds.k} folds of {n} rows, {p} columns: {found!r} called exact, not {right!r}"


def perfect_fits(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Responses that some columns explain wholly: those columns are chosen, and no more."""
    n, p = int(rng.integers(20, 70)), int(rng.integers(3, 10))
    k = int(rng.integers(1, min(p, 5)))
    X = rng.normal(size=(n, p)) + rng.uniform(0.0, 2.0) * rng.normal(size=(n, 1))
    chosen = np.sort(rng.choice(p, size=k, replace=False))
    y = X[:, chosen] @ (rng.choice([-1.0, 1.0], size=k) * rng.uniform(0.5, 2.0, size=k))
    X = X * 10.0 ** rng.uniform(-3, 3, size=p) + rng.normal(size=p)
    y = 10.0 ** rng.uniform(-4, 4) * (y + rng.normal())
    gammas = [0.0] if rng.random() < 0.6 else [0.0, 1e-3, 1.0]
    rule = ("minimum", "minimum", "one-se", "projected", "corrected")[int(rng.integers(5))]
    cv = "loo" if rng.random() < 0.2 else int(rng.integers(3, 11))
    model = SparseRidgeCV(cv=cv, gammas=gammas, rule=rule, random_state=number).fit(X, y)
    if model.support_.tolist() != chosen.tolist():
        yield f"{rule}, {cv} folds, γ = {model.gamma_}: {model.support_}, not {chosen}"
    if rule == "minimum" and not model.certified_:
        yield f"{cv} folds: the choice is not proved"
    found = SparseRidge(tau=p, gamma=0.0).fit(X, y).criteria_
    for name in ("aic", "bic", "ebic"):
        least = int(found["tau"][np.argmin(found[name])])
        if least != k:
            yield f"{name} is least at {least} columns, not at {k}"


class DependentTable(NamedTuple):
    """A table of numbers and factors that decide each other exactly, with what is asked of it.

    table, y: Numbers are whole or halves of whole ones; text and codes are factors.
    X, units: All factors with all their levels as 0/1 columns, and the columns of every feature.
    asked: Features that are included, and features whose coefficients are not negative.
    """

    table: pd.DataFrame
    y: Array
    X: Array
    units: list[list[int]]
    asked: dict[str, list[str]]

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> DependentTable:
        """Three to eight features in four or five groups of which some depend on each other."""
        n, features = int(rng.integers(24, 49)), dict[str, Any]()
        features["number"] = rng.integers(-9, 10, size=n).astype(float)
        levels = int(rng.integers(3, 6))
        state = np.concatenate([np.arange(levels), rng.integers(0, levels, size=n - levels)])
        features["state"] = np.array(list("abcde"))[state]
        kinds = rng.permutation(5)[: int(rng.integers(1, 4))].tolist()
        if 0 in kinds:  # a state decides its region
            features["region"] = np.array(list("RST"))[rng.permutation(levels)[state] % 3]
        if 1 in kinds:  # a code beside its label
            features["code"] = np.array([f"c{v}" for v in state])
        if 2 in kinds:  # year and quarter beside both in one number
            year, quarter = rng.integers(2001, 2008, size=n), rng.integers(1, 5, size=n)
            features["year"], features["quarter"] = year.astype(float), quarter.astype(float)
            features["when"] = year + 0.25 * quarter
        if 3 in kinds:  # shares that add up to 100
            first, second = rng.integers(0, 50, size=(2, n)).astype(float)
            features |= {"share 1": first, "share 2": second, "share 3": 100.0 - first - second}
        if 4 in kinds:  # a copy in another unit
            features["copy"] = features["number"] * float(rng.choice([-1.0, 0.5, 4.0]))
        table = pd.DataFrame(features)[rng.permutation(list(features)).tolist()]
        columns, units = list[Array](), list[list[int]]()
        for name in table:
            values = table[name].to_numpy()
            own = [values] if values.dtype == float else [values == v for v in np.unique(values)]
            units.append(list(range(len(columns), len(columns) + len(own))))
            columns += [np.asarray(column, dtype=float) for column in own]
        X = np.column_stack(columns)
        weight = rng.integers(-3, 4, size=X.shape[1]) * (rng.random(X.shape[1]) < 0.4)
        y = X @ weight + rng.integers(-20, 21, size=n)
        asked, names = dict[str, list[str]](), table.columns.tolist()
        if rng.random() < 0.3:
            asked["include"] = [names[int(rng.integers(len(names)))]]
        numbers = [name for name in names if table[name].dtype == float]
        if rng.random() < 0.4:
            asked["positive"] = rng.choice(
                numbers, size=min(2, len(numbers)), replace=False
            ).tolist()
        return cls(table, y, X, units, asked)

    def rules(self) -> Rules:
        """What is asked, of the 0/1 columns."""
        names, p = self.table.columns.tolist(), self.X.shape[1]
        lower = np.full(p, -np.inf)
        for name in self.asked.get("positive", []):
            lower[self.units[names.index(name)]] = 0.0
        inside = frozenset(names.index(name) for name in self.asked.get("include", []))
        return Rules(self.units, inside, frozenset(), lower, np.full(p, np.inf))

    def least(self, rows: Matrix, size: int) -> list[tuple[Fraction, Support, dict[int, Fraction]]]:
        """All models of a size, the best first: objective, columns and coefficients.

        rows: [X y], centred.
        """
        rules = self.rules()
        models = ((m, exact_least_norm_within(rows, rules, m)) for m in rules.models(size))
        return sorted((loss, m, beta) for m, (loss, beta) in models)


def dependent_tables(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Least squares and CV errors of tables whose features decide each other, in exact arithmetic.

    The fits of all rows have to be proved.
    """
    drawn = DependentTable.drawn(rng)
    rows, size = np.column_stack([drawn.X, drawn.y]), int(rng.integers(1, 4))
    constraints = Constraints(**drawn.asked, count="groups")
    least = float(drawn.least(about_mean(rows, rows, True), size)[0][0])
    model = SparseRidge(tau=size, gamma=0.0, constraints=constraints).fit(drawn.table, drawn.y)
    said = f"{size} of {drawn.table.columns.tolist()}, {drawn.asked}"
    if model.status_ != "optimal":
        yield f"{said}: {model.status_}, gap {model.gap_}"
    if abs(model.objective_ - least) > 1e-9 * least:
        yield f"{said}: {model.objective_!r} is not {least!r}"
    if model.objective_ * (1.0 - model.gap_) > least:
        yield f"{said}: the lower bound of {model.objective_!r} is above {least!r}"
    alone = size == 1 and rng.random() < 0.2
    folds = make_folds("loo" if alone else int(rng.integers(2, 5)), len(rows), seed=number)
    asked = resolved(drawn.X.shape[1], **drawn.rules().keywords).constraints
    data = RowFolds(RowTable(drawn.X, drawn.y, True, constraints=asked), folds)
    result = cross_validate(data, [0.0], np.array([size]), Settings(prove="all"))
    low = high = 0.0
    for j in range(folds.k if result.complete else 0):
        train, held = (about_mean(rows[m], rows[folds.split(j)[0]], True) for m in folds.split(j))
        found = drawn.least(train, size)
        ties = [beta for loss, _, beta in found if loss <= found[0][0] * (1 + Fraction(1, 10**9))]
        errors = [
            sum((row[-1] - sum(row[i] * v for i, v in beta.items())) ** 2 for row in held)
            for beta in ties
        ]
        low, high = low + float(min(errors)), high + float(max(errors))
    error = float(result.table("cv_error")[0, 0]) * len(rows)
    if result.complete and not low * (1.0 - 1e-7) <= error <= high * (1.0 + 1e-7):
        yield f"{said}, {folds.k} folds: {error!r} called exact, not in [{low!r}, {high!r}]"


dependent_tables.proved = []
NO_RIDGE: dict[str, Attack] = {
    "dependent tables": dependent_tables,
    "dependent cells": dependent_cells,
    "perfect fits": perfect_fits,
}
