"""Audits of small tables, of which every number is computed again by brute force."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.linear_model import LassoCV

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError, UnprovedWarning

from .inside import (
    PARTITIONS,
    Limits,
    StopFlag,
    audited,
    make_folds,
)

Array = NDArray[Any]
Support = tuple[int, ...]
# Points of a line on which regions are looked for, and halvings of a step at their ends. A gap that
# lies between two of so many points has less than 2e-3 of the mass, up to 60 degrees of freedom.
POINTS, HALVINGS = 5000, 40
# An audit counts the supports within these shares of the least value, and removes at most so many
# rows together, as docs/audit.md says.
WITHIN, MOST_ROWS = (0.01, 0.02, 0.05), 10


class Drawn(NamedTuple):
    """A table and how it is fitted: a size, "bic", or a cross-validation (size 0)."""

    X: Array
    y: Array
    how: dict[str, Any]
    held_out: bool


def drawn(rng: np.random.Generator) -> Drawn:
    """A small table: correlated columns, few of which matter, with or without outliers."""
    kind = rng.choice(["size", "criterion", "cv"], p=[0.4, 0.35, 0.25])
    n, p = int(rng.integers(42, 56)), int(rng.integers(2, 6))
    X = rng.standard_normal((n, p)) @ (np.eye(p) + rng.choice([0.2, 0.7]) * np.ones((p, p)))
    y = X[:, : int(rng.integers(1, p + 1))].sum(axis=1) + rng.choice([0.5, 2.0, 6.0]) * (
        rng.standard_normal(n)
    )
    if rng.random() < 0.4:
        row = int(rng.integers(n))
        y[row] += rng.choice([5.0, 20.0])
        X[row] *= rng.choice([1.0, 4.0])
    how: dict[str, Any]
    if kind == "size":
        how = {"tau": int(rng.integers(1, p + 1)), "gamma": float(rng.choice([0.0, 1.0, 20.0]))}
    elif kind == "criterion":
        how = {"tau": str(rng.choice(["aic", "bic"]))}
    else:
        how = {"rule": "minimum", "gammas": [0.1, 10.0], "cv": 4}
    return Drawn(X, y, how, kind == "cv")


def fitted(case: Drawn) -> tuple[Any, Any]:
    """The fitted model of a table, and its audit.

    Where the mean alone is chosen, which has no audit, the case goes on with the sizes from 1 on.
    """
    kind = SparseRidgeCV if case.held_out else SparseRidge
    model = kind(**case.how).fit(case.X, case.y)
    limits = Limits(None, stop=StopFlag())
    if case.held_out and model.tau_ == 0:
        with pytest.raises(InputError, match="the size 0 has none"):
            audited(model._kept_fit(), case.how["cv"], limits)
        case.how["taus"] = [*range(1, case.X.shape[1] + 1)]
        model = kind(**case.how).fit(case.X, case.y)
    return model, audited(model._kept_fit(), case.how.get("cv"), limits)


class Search(NamedTuple):
    """Enumeration of all supports that a model is compared with.

    gamma: The ridge weight, of columns of unit variance.
    sizes: The sizes that are compared, and the weight of the objective at each.
    """

    gamma: float
    sizes: dict[int, float]

    def every(self, p: int) -> list[Support]:
        return [s for k in self.sizes for s in itertools.combinations(range(p), k)]

    def coef(self, X: Array, y: Array, support: Support) -> Array:
        """The coefficients of a support, of scaled and centred columns."""
        Z = scaled(X)[:, list(support)]
        moments = Z.T @ Z + 0.5 * self.gamma * np.eye(len(support))
        return np.asarray(np.linalg.solve(moments, Z.T @ (y - y.mean())))

    def values(self, X: Array, y: Array) -> dict[Support, float]:
        """The values of all supports."""
        Z, r, found = scaled(X), y - y.mean(), dict[Support, float]()
        for support in self.every(X.shape[1]):
            coef = self.coef(X, y, support)
            left = r - Z[:, list(support)] @ coef
            objective = left @ left + 0.5 * self.gamma * coef @ coef
            found[support] = float(objective * self.sizes[len(support)])
        return found


def scaled(X: Array) -> Array:
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def weights(name: str, n: int, p: int) -> dict[int, float]:
    """exp(penalty/n) of every size."""
    each = {"aic": 2.0, "bic": np.log(n)}[name]
    return {k: float(np.exp(each * k / n)) for k in range(p + 1)}


def searches(model: Any, case: Drawn) -> tuple[Search, Search]:
    """What near-best models are compared by, and what decides without some rows."""
    n, p = case.X.shape
    if isinstance(case.how.get("tau"), str):
        both = Search(0.0, weights(case.how["tau"], n, p))
        return both, both
    size = int(model.tau_)
    up_to = Search(float(model.gamma_), dict.fromkeys(range(size + 1), 1.0))
    return up_to, up_to._replace(sizes={size: 1.0})


def wrong(case: Drawn, model: Any, audit: Any) -> Iterator[str]:
    """Yield what is wrong with an audit; nothing where every number is right."""
    X, y = case.X, case.y
    near, alone = searches(model, case)
    values = near.values(X, y)
    least = min(values.values())
    excess = {support: value / least - 1.0 for support, value in values.items()}
    close = {w: [s for s, e in excess.items() if e <= w] for w in WITHIN}
    if audit.near != [len(close[w]) for w in WITHIN] or not all(audit.complete):
        yield f"near-best: {audit.near}"
    if [int(one.name[1:]) for one in audit.columns] and sorted(
        int(one.name[1:]) for one in audit.columns
    ) != model.support_.tolist():
        yield "the columns"
    judged = [w for w in WITHIN if w >= 2.0 / len(y)]
    share = judged[0] if judged else WITHIN[-1]
    if audit.share != share:
        yield f"judged within {audit.share}"
    for one in audit.columns:
        j = int(one.name[1:])
        found = [_column(case, model, near, excess, one, j, close)]
        found.append(_rows(case, model, near, alone, one, j))
        found.append(_verdict(audit, one, share))
        yield from (f"{one.name}: {text}" for part in found for text in part)
    if not case.held_out:
        yield from _tests(case, model, audit, alone)
    else:
        yield from _held_out(case, model, audit)


def _column(
    case: Drawn, model: Any, near: Search, excess: Any, one: Any, j: int, close: Any
) -> Iterator[str]:
    """Yield what is wrong with the coefficient, the near-best models and what is lost."""
    support = tuple(model.support_.tolist())
    coef = near.coef(case.X, case.y, support)[support.index(j)] / case.X[:, j].std()
    if not np.isclose(one.coef, coef, rtol=1e-7):
        yield f"coefficient {one.coef}, not {coef}"
    signs = {
        s: np.sign(near.coef(case.X, case.y, s)[s.index(j)]) for s in close[WITHIN[-1]] if j in s
    }
    for i, w in enumerate(WITHIN):
        own = [signs[s] for s in close[w] if j in s]
        expected = len(own), own.count(1.0), own.count(-1.0)
        if (one.near[i], one.positive[i], one.negative[i]) != expected:
            yield f"in {one.near[i]} within {w}, not {expected}"
    lost = min(e for s, e in excess.items() if j not in s)
    if not np.isclose(one.lost, lost, rtol=1e-6, atol=1e-9):
        yield f"lost {one.lost}, not {lost}"


def _rows(case: Drawn, model: Any, near: Search, alone: Search, one: Any, j: int) -> Iterator[str]:
    """Yield what is wrong with the rows that remove a column, and with those proved not to."""
    X, y, n = case.X, case.y, len(case.y)
    name = case.how.get("tau")

    def lacks(search: Search, rows: Any) -> float:
        left = np.delete(np.arange(n), rows)
        if search is near and isinstance(name, str):
            search = Search(0.0, weights(name, left.size, X.shape[1]))
        return _better_without(search, X[left], y[left], j)

    single = near if isinstance(name, str) else alone
    leads = [lacks(single, [i]) for i in range(n)]
    expected = [i for i, lead in enumerate(leads) if lead > 1e-9]
    if sorted(one.alone) != expected and max(map(abs, leads)) > 1e-9:
        yield f"rows that remove it alone: {one.alone}, not {expected}"
    if one.unproved:
        yield "rows are not proved"
    size = Search(float(model.gamma_), {int(model.support_.size): 1.0})
    if len(one.removed_by) > 1 and lacks(size, one.removed_by) < -1e-9:
        yield f"rows {one.removed_by} do not remove it"
    if one.alone and (one.safe or one.removed_by[0] not in one.alone):
        yield "rows are safe that are not"
    rng = np.random.default_rng(j)
    for r in range(1, min(one.safe, MOST_ROWS) + 1):
        # The rows that favour other supports most, and others at random.
        tried = [np.argsort(leads)[::-1][:r], *(rng.permutation(n)[:r] for _ in range(4))]
        if r == 2 and n < 60:
            tried += [np.array(pair) for pair in itertools.combinations(np.argsort(leads)[-12:], 2)]
        if any(lacks(size, rows) > 1e-9 for rows in tried):
            yield f"{r} rows remove it, and {one.safe} are called safe"


def _better_without(search: Search, X: Array, y: Array, j: int) -> float:
    """By what share the best support that lacks column j is better than the best that has it."""
    values = search.values(X, y)
    without = [value for s, value in values.items() if j not in s]
    having = [value for s, value in values.items() if j in s]
    return -1.0 if not without else 1.0 - min(without) / min(having)


def _verdict(audit: Any, one: Any, share: float) -> Iterator[str]:
    """Yield what is wrong with a judgement, from the numbers of the record."""
    at = WITHIN.index(share)
    falls = one.near[at] < audit.near[at] or bool(one.positive[at] and one.negative[at])
    falls = falls or bool(one.alone) or one.p_low >= 0.05
    if one.verdict == "holds" and falls:
        yield "it does not hold"
    if one.verdict == "falls" and not falls:
        yield "it does not fall"


def _tests(case: Drawn, model: Any, audit: Any, alone: Search) -> Iterator[str]:
    """Yield what is wrong with p-values and intervals: tails on a curve of responses."""
    X, y = case.X, case.y
    n, p = X.shape
    Z, support = scaled(X), tuple(model.support_.tolist())
    free = n - p - 1
    left = y - y.mean() - Z @ np.linalg.lstsq(Z, y - y.mean(), rcond=None)[0]
    sigma = np.sqrt(left @ left / free)
    if not np.isclose(audit.sigma, sigma):
        yield f"sigma {audit.sigma}, not {sigma}"
    every, hats = alone.every(p), list[Array]()
    for one in every:
        A = Z[:, list(one)]
        hats.append(A @ np.linalg.solve(A.T @ A + 0.5 * alone.gamma * np.eye(len(one)), A.T))
    own, weight = every.index(support), np.array([alone.sizes[len(one)] for one in every])

    def selected(responses: Array) -> Array:
        """Whether each of some responses (m, n) has the model's columns as the best."""
        r = responses - responses.mean(axis=1, keepdims=True)
        fit = np.array([((r @ H) * r).sum(axis=1) for H in hats])
        values = ((r * r).sum(axis=1) - fit) * weight[:, None]
        return np.asarray(values.argmin(axis=0) == own)

    eta = np.linalg.pinv(Z[:, list(support)]).T
    for i, j in enumerate(support):
        one = next(one for one in audit.columns if one.name == f"x{j}")
        length = np.linalg.norm(eta[:, i])
        line = Line(y, eta[:, i] / length, left, free, selected)
        p_value = min(1.0, 2.0 * min(line.tails(0.0)))
        if not np.allclose([one.p_low, one.p_high], p_value, rtol=2e-3, atol=1e-7):
            yield f"x{j}: p {one.p_low}, not {p_value}"
        unit = length / X[:, j].std()
        for end, side in ((one.low, 1), (one.high, 0)):
            if np.isfinite(end):
                tail = line.tails(end / unit)[side]
                if not np.isclose(tail, 0.025, rtol=0.02):
                    yield f"x{j}: the tail at an end is {tail}"


class Line(NamedTuple):
    """The responses along which one coefficient changes.

    direction, shape (n,): Of length 1.
    left: The residuals of the fit on all columns, with ``free`` degrees of freedom.
    selected: Whether each of some responses has the model's columns as the best.
    """

    y: Array
    direction: Array
    left: Array
    free: int
    selected: Callable[[Array], Array]

    def tails(self, mean: float) -> tuple[float, float]:
        """The tails below and above the observed coefficient where ``mean`` is expected.

        The response keeps the sum of squares of residuals and of what exceeds the mean.
        """
        observed, squares = float(self.direction @ self.y), float(self.left @ self.left)
        total = np.sqrt(squares + (observed - mean) ** 2)

        def responses(angle: Array) -> Array:
            at = mean + total * np.sin(angle)
            moved = self.y + (at - observed)[:, None] * self.direction
            shrunk = total * np.cos(angle) / np.sqrt(squares) - 1.0
            return np.asarray(moved + shrunk[:, None] * self.left)

        def mass(start: Array, stop: Array) -> float:
            """The probability of some pieces; above 0 by the other sign, which keeps digits."""
            start, stop = np.where(start > 0.0, (-stop, -start), (start, stop))
            both = [np.sqrt(self.free) * np.tan(angle) for angle in (start, stop)]
            low, high = (student.cdf(one, self.free) for one in both)
            return float((high - low).sum())

        here = float(np.arcsin((observed - mean) / total))
        grid = np.sort(np.append(np.linspace(-np.pi / 2, np.pi / 2, POINTS + 2)[1:-1], here))
        inside = self.selected(responses(grid))
        inside[np.searchsorted(grid, here)] = True
        ends = np.flatnonzero(inside[1:] != inside[:-1])
        low, high = grid[ends].copy(), grid[ends + 1].copy()
        for _ in range(HALVINGS):
            if not ends.size:
                break
            middle = 0.5 * (low + high)
            same = self.selected(responses(middle)) == inside[ends]
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        cuts = 0.5 * (low + high)
        if inside[0]:
            cuts = np.insert(cuts, 0, -np.pi / 2)
        if inside[-1]:
            cuts = np.append(cuts, np.pi / 2)
        starts, stops = cuts[::2], cuts[1::2]
        below = mass(np.minimum(starts, here), np.minimum(stops, here))
        above = mass(np.maximum(starts, here), np.maximum(stops, here))
        return below / (below + above), above / (below + above)


def _ridge(X: Array, y: Array, alpha: float, new: Array) -> Array:
    """The predictions of new rows by ridge regression with an intercept."""
    mean, Z = X.mean(axis=0), X - X.mean(axis=0)
    coef = np.linalg.solve(Z.T @ Z + alpha * np.eye(Z.shape[1]), Z.T @ (y - y.mean()))
    return np.asarray(y.mean() + (new - mean) @ coef)


def _held_out(case: Drawn, model: Any, audit: Any) -> Iterator[str]:
    """Yield what is wrong with the error to expect, its rivals, and other partitions."""
    X, y, n = case.X, case.y, len(case.y)
    own, outer = list[float](), make_folds(10 if n <= 200 else 5, n, seed=0)
    errors: dict[str, list[float]] = {name: [] for name in ("mean", "lasso", "ridge")}
    sizes, alphas = list[int](), np.geomspace(1e-3, 1e4, 40)
    for train, test in outer.splits():
        fit = SparseRidgeCV(**case.how).fit(X[train], y[train])
        own.append(float(np.sum((y[test] - fit.predict(X[test])) ** 2)))
        sizes.append(test.size)
        errors["mean"].append(float(np.sum((y[test] - y[train].mean()) ** 2)))
        inner = list(make_folds(case.how["cv"], train.size, seed=0).splits())
        mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
        Z, z, rest = (X[train] - mean) / scale, y[train] - y[train].mean(), (X[test] - mean) / scale
        lasso = LassoCV(cv=inner).fit(Z, z)
        errors["lasso"].append(
            float(np.sum((y[test] - y[train].mean() - lasso.predict(rest)) ** 2))
        )
        held = [
            sum(float(np.sum((z[b] - _ridge(Z[a], z[a], alpha, Z[b])) ** 2)) for a, b in inner)
            for alpha in alphas
        ]
        best = float(alphas[int(np.argmin(held))])
        errors["ridge"].append(
            float(np.sum((y[test] - y[train].mean() - _ridge(Z, z, best, rest)) ** 2))
        )
    if audit.expected is None or not np.isclose(audit.expected.error, sum(own) / n):
        yield f"the error to expect {audit.expected}, not {sum(own) / n}"
    for name, squares in errors.items():
        peer = audit.peers[name]
        expected = sum(squares) / n, (sum(squares) - sum(own)) / n
        if not np.allclose([peer.error, peer.above], expected, rtol=1e-4):
            yield f"{name} {peer}, not {expected}"
    drawn = audit.partitions["drawn"]
    data, chosen = model._kept_fit().study.data, list[list[int]]()
    for seed in range(1, drawn + 1):
        folds = data.partition(PARTITIONS, seed).folds
        other = SparseRidgeCV(**case.how | {"cv": list(folds.splits())}, time_limit=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnprovedWarning)
            chosen.append(other.fit(X, y).support_.tolist())
    if audit.partitions["sizes"] != [len(one) for one in chosen]:
        yield f"sizes on other partitions: {audit.partitions['sizes']}"
    same = np.mean([one == model.support_.tolist() for one in chosen])
    if not np.isclose(audit.partitions["same"], same):
        yield f"the same columns on {audit.partitions['same']}, not {same}"
    for one in audit.columns:
        share = np.mean([int(one.name[1:]) in columns for columns in chosen])
        if not np.isclose(one.partitions, share):
            yield f"{one.name}: on {one.partitions} of partitions, not {share}"
    if audit.rules["minimum"] != model.tau_:
        yield f"rules: {audit.rules}"
