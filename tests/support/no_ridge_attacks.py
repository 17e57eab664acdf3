"""Random tables at γ = 0 that attack CV errors of dependent columns, and choices of perfect fits.

Attacks are as in ``attacks``: an attack draws one problem and yields a line for every claim that
does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from sparsecv import SparseRidge, SparseRidgeCV

from .attacks import Attack
from .constrained import (
    DependentColumns,
    Rules,
    exact_least_norm_within,
    resolved,
)
from .folds import about_mean
from .inside import RowFolds, RowTable, Settings, cross_validate, make_folds


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


NO_RIDGE: dict[str, Attack] = {
    "dependent cells": dependent_cells,
    "perfect fits": perfect_fits,
}
