"""Random tables whose columns depend on each other: what a support counts, and which tie counts.

Attacks are as in ``attacks``: an attack draws one table and yields a line for every claim that does
not hold. Ranks are computed by whole numbers, and every support is enumerated.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain, combinations
from math import comb, log
from typing import NamedTuple

import numpy as np

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import ConstantColumnWarning, UnprovedWarning

from .attacks import Attack

PRIME = 2**61 - 1


def whole_rank(X: np.ndarray) -> int:
    """The rank of a matrix of whole numbers, by elimination modulo a prime of 61 bits."""
    rows, rank = [[int(value) % PRIME for value in row] for row in X], 0
    for j in range(X.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][j], PRIME - 2, PRIME)
        for i in range(rank + 1, len(rows)):
            if rows[i][j]:
                share = rows[i][j] * inverse % PRIME
                rows[i] = [
                    (a - share * b) % PRIME for a, b in zip(rows[i], rows[rank], strict=True)
                ]
        rank += 1
    return rank


class Counted(NamedTuple):
    """A table of whole numbers, its units, and every support with its count and its residuals."""

    X: np.ndarray
    y: np.ndarray
    labels: list[str]

    @property
    def units(self) -> list[list[int]]:
        """The columns of every unit, in the order of their first columns."""
        found: dict[str, list[int]] = {}
        for j, label in enumerate(self.labels):
            found.setdefault(label, []).append(j)
        return list(found.values())

    def without(self, i: int) -> Counted:
        """The table without a row."""
        return Counted(np.delete(self.X, i, axis=0), np.delete(self.y, i), self.labels)

    def supports(self) -> Iterator[tuple[tuple[int, ...], int, float]]:
        """Every set of units as columns that vary, with its number of coefficients and its RSS."""
        ones, total = np.ones((len(self.y), 1)), np.sum((self.y - self.y.mean()) ** 2)
        units = self.units
        for some in chain(*(combinations(units, k) for k in range(len(units) + 1))):
            columns = sorted(j for unit in some for j in unit if np.ptp(self.X[:, j]) > 0.0)
            count = whole_rank(np.hstack([ones, self.X[:, columns]])) - 1
            left = self.X[:, columns] - self.X[:, columns].mean(axis=0)
            U, values, _ = np.linalg.svd(left, full_matrices=False)
            y, U = self.y - self.y.mean(), U[:, values > 1e-9]
            residual = y - U @ (U.T @ y)
            rss = float(residual @ residual)
            yield tuple(columns), count, rss if rss > 1e-20 * total else 0.0

    def values(self, name: str) -> dict[tuple[int, ...], float]:
        """exp(criterion/n), but for a common factor, of every support that counts."""
        n, p = len(self.y), int(np.sum(np.ptp(self.X, axis=0) > 0))
        each, found = 2.0 if name == "aic" else log(n), {}
        for columns, count, rss in self.supports():
            extra = 2.0 * log(comb(p, count)) if name == "ebic" else 0.0
            if count < n - 1:
                found[columns] = float(np.exp((each * count + extra) / n) * rss)
        return found

    def fit(self, tau: str | int, **how) -> SparseRidge:
        """A fit of the table."""
        rules = (
            Constraints(groups=self.labels) if len(set(self.labels)) < len(self.labels) else None
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstantColumnWarning)
            return SparseRidge(tau=tau, constraints=rules, **how).fit(self.X, self.y)


def first_of(values: dict[tuple[int, ...], float]) -> tuple[int, ...]:
    """Of the supports of least value the one of fewest columns, and of those the first."""
    least = min(values.values())
    return min(
        (T for T, v in values.items() if v <= least * (1.0 + 1e-11)), key=lambda T: (len(T), T)
    )


def apart(values: dict[tuple[int, ...], float], within: float = 0.0) -> bool:
    """Whether no value lies near a limit without being equal to the least value."""
    least = min(values.values())
    limit = (1.0 + within) * least
    near = [v for v in values.values() if abs(v - limit) <= 1e-6 * limit]
    return least > 0.0 and all(within == 0.0 and v <= least * (1.0 + 1e-11) for v in near)


def drawn_table(rng: np.random.Generator) -> Counted:
    """Numbers, indicators of factors that share levels or are nested, copies, sums, single ones."""
    n = int(rng.integers(6, 26))
    columns, labels = [], []

    def add(block: np.ndarray, together: bool) -> None:
        label = f"u{len(labels)}"
        for column in np.atleast_2d(block.T):
            columns.append(column)
            labels.append(label if together else f"u{len(labels)}")

    for _ in range(int(rng.integers(1, 3))):
        add(rng.integers(-9, 10, n), False)
    kind = int(rng.integers(0, 6))
    if kind == 0:  # Two factors share a level.
        shared = rng.random(n) < 0.4
        for _ in range(2):
            level = np.where(shared, 0, rng.integers(1, 3, n))
            add((level[:, None] == np.arange(3)).astype(int), True)
    elif kind == 1:  # A factor decides another.
        state = rng.integers(0, 4, n)
        add((state[:, None] == np.arange(4)).astype(int), True)
        add((state[:, None] // 2 == np.arange(2)).astype(int), True)
    elif kind == 2:  # All levels are columns of their own.
        level = rng.integers(0, 3, n)
        add((level[:, None] == np.arange(3)).astype(int), False)
    elif kind == 3:  # A copy in other units, and a sum.
        add(int(rng.choice([-2, -1, 1, 2, 3])) * columns[0], False)
        add(columns[0] + columns[-1] if rng.random() < 0.5 else rng.integers(0, 2, n), False)
    elif kind == 4:  # A column that a single row carries.
        add(np.eye(n, dtype=int)[int(rng.integers(0, n))], False)
        add(rng.integers(0, 2, n), False)
    else:  # More dependent columns than rows may bear.
        for _ in range(3):
            add(
                columns[int(rng.integers(0, len(columns)))] * int(rng.integers(0, 2)) + columns[0],
                False,
            )
    order = np.argsort(rng.random(len(columns))) if len(set(labels)) == len(labels) else slice(None)
    X = np.array(columns)[order].T.astype(float)
    y = X @ rng.choice([0.0, 0.3, 1.0], X.shape[1]) + 2.0 * rng.standard_normal(n)
    return Counted(X, y, list(np.array(labels)[order]))


def counts(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Criteria, the choice by them, near-best supports and deleted rows count coefficients."""
    table, name = drawn_table(rng), str(rng.choice(["aic", "bic", "ebic"]))
    values, n = table.values(name), len(table.y)
    model, least = table.fit(name), min(values.values())
    chosen = tuple(model.support_.tolist())
    if model.status_ == "optimal":
        if not (chosen in values and values[chosen] <= least * (1.0 + 1e-9)):
            yield f"{name}: {chosen} of {values.get(chosen)}, not {first_of(values)} of {least}"
        elif apart(values) and chosen != (first := first_of(values)):
            yield f"{name}: {chosen} where {first} ties and comes first"
    if model.status_ != "optimal" and least > 1e-8 * float(table.y @ table.y):
        yield f"{name}: {model.status_}"
    if chosen:
        count, rss = next((k, rss) for T, k, rss in table.supports() if chosen == T)
        frame = model.criteria_
        if rss > 0.0 and name in frame:
            right = n * log(2.0 * np.pi * rss / n) + n
            right += (2.0 if name == "aic" else log(n)) * (count + 2.0)
            p = int(np.sum(np.ptp(table.X, axis=0) > 0))
            right += 2.0 * log(comb(p, count)) if name == "ebic" else 0.0
            if abs(float(frame[name].iloc[-1]) - right) > 1e-7 * abs(right):
                yield f"criteria_ {float(frame[name].iloc[-1])}, not {right}"
    yield from _near(values, model, float(rng.choice([0.0, 0.02, 0.3])))
    found = model.row_influence()
    for i in rng.choice(n, 2, replace=False).tolist() if n > 6 else ():
        left, row = table.without(i), found.loc[i]
        if not row["proved"]:
            continue
        rest = left.values(name)
        if not rest or not apart(rest):
            continue
        right = first_of(rest)
        told, model_has, fit_has = (
            {table.labels[j] for j in some} for some in (row["columns"], chosen, right)
        )
        if told != fit_has or bool(row["stays"]) != (fit_has == model_has):
            said = f"{list(row['columns'])} stays {row['stays']}"
            yield f"{name} without row {i}: {said}, not {right}"
        if np.isnan(row["lead"]) and row["stays"] is False:
            yield f"{name} without row {i}: no lead"


def _near(values: dict[tuple[int, ...], float], model: SparseRidge, within: float) -> Iterator[str]:
    """Yield what a list of near-best supports lacks or has too much."""
    found = model.near_best(within)
    listed = {tuple(columns) for columns in found["columns"]}
    limit = (1.0 + within) * min(values.values())
    surely = {
        T for T, value in values.items() if value <= limit * (1.0 + 1e-12 - (within > 0) * 1e-8)
    }
    perhaps = {T for T, value in values.items() if value <= limit * (1.0 + 1e-8)}
    if found.attrs["complete"] and not surely <= listed:
        yield f"near_best({within}) lacks {sorted(surely - listed)}"
    if not listed <= perhaps:
        yield f"near_best({within}) lists {sorted(listed - perhaps)}"


def tied_columns(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers beside copies in other units, all levels of a factor, a sum, or nested factors."""
    n, kind = int(rng.integers(12, 26)), int(rng.integers(0, 5))
    whole = rng.random() < 0.5
    columns = [
        rng.integers(-9, 10, n).astype(float) if whole else rng.standard_normal(n) for _ in range(3)
    ]
    if kind == 0:
        columns.append(columns[0].copy())
    elif kind == 1:
        columns.append(float(rng.choice([-3.0, -1.0, 0.1, 2.0, 7.0])) * columns[0])
    elif kind == 2:
        level = rng.integers(0, 3, n)
        columns += [(level == j).astype(float) for j in range(3)]
    elif kind == 3:
        columns.append(columns[0] + columns[1])
    else:
        level = rng.integers(0, 4, n)
        columns += [(level == j).astype(float) for j in range(4)] + [(level > 1).astype(float)]
    X = np.array(columns)[rng.permutation(len(columns))].T
    X = X[:, np.ptp(X, axis=0) > 0.0]
    y = X @ rng.choice([0.0, 0.3, 1.0], X.shape[1])
    return X / X.std(axis=0), y + rng.choice([0.1, 1.0]) * rng.standard_normal(n)


def first_by_enumeration(
    X: np.ndarray, y: np.ndarray, gamma: float, size: int
) -> tuple[tuple[int, ...], np.ndarray] | None:
    """The first of the supports that tie, and its coefficients; None where rounding decides."""
    values, coefs = {}, {}
    for T in combinations(range(X.shape[1]), size):
        A = np.vstack([X[:, T], np.sqrt(gamma / 2.0) * np.eye(size)])
        target = np.append(y, np.zeros(size))
        coefs[T] = np.linalg.lstsq(A, target, rcond=1e-15)[0]
        values[T] = float(np.sum((target - A @ coefs[T]) ** 2))
    least = min(values.values())
    scale = min(least, float(y @ y) - least)
    if scale < 1e-9 * float(y @ y):
        return None
    excess = {T: (value - least) / scale for T, value in values.items()}
    if any(2e-13 < share < 1e-10 for share in excess.values()):
        return None
    first = min(T for T, share in excess.items() if share <= 2e-13)
    return first, coefs[first]


def ties(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Every method names the first of the supports that tie, and has the error of that support."""
    X, y = tied_columns(rng)
    n, p = X.shape
    gamma, size = float(rng.choice([1e-8, 1e-6, 1e-4, 1e-2, 1.0])), int(rng.integers(1, p + 1))
    label = np.arange(n) % int(rng.choice([3, 5, n]))
    folds = [(np.flatnonzero(label != j), np.flatnonzero(label == j)) for j in np.unique(label)]
    whole = first_by_enumeration(X - X.mean(axis=0), y - y.mean(), gamma, size)
    total = 0.0
    for train, test in folds:
        means = X[train].mean(axis=0), y[train].mean()
        found = first_by_enumeration(X[train] - means[0], y[train] - means[1], gamma, size)
        if found is None:
            total = np.nan
            break
        left = y[test] - means[1] - (X[test] - means[0])[:, found[0]] @ found[1]
        total += float(left @ left)
    right, at = total / n, f"(γ = {gamma}, τ = {size})"
    off = 1e-6 * right + 1e-14 * float(y @ y)
    how = {"gammas": [gamma], "taus": [size], "cv": folds, "rule": "minimum", "tol": 0.0}
    for method in ("exact", "grid", "search"):
        with warnings.catch_warnings():  # What is not proved makes no claim.
            warnings.simplefilter("ignore", UnprovedWarning)
            model = SparseRidgeCV(method=method, standardize=False, **how).fit(X, y)
        if not model.certified_:
            continue
        if np.isfinite(right) and not abs(model.cv_error_ - right) <= off:
            yield f"{method}: CV error {model.cv_error_}, not {right} {at}"
        if whole is not None and tuple(model.support_.tolist()) != whole[0]:
            yield f"{method}: {model.support_}, not {whole[0]} {at}"
    model = SparseRidge(tau=size, gamma=gamma, standardize=False).fit(X, y)
    if whole is None or model.status_ != "optimal":
        return
    others, near = model.alternatives(2), model.near_best(0)
    ranked = tuple(others["columns"][others["tau"] == size].iloc[0])
    for name, support in (("fit", tuple(model.support_.tolist())), ("alternatives", ranked)):
        if support != whole[0]:
            yield f"{name}: {support}, not {whole[0]} {at}"
    listed = [tuple(columns) for columns in near["columns"]]
    if near.attrs["complete"] and size in set(near["tau"]) and whole[0] not in listed:
        yield f"near_best: {listed} lacks {whole[0]} {at}"


TIES: dict[str, Attack] = {"counts": counts, "ties": ties}
