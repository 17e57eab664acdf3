"""Random tables in two systems of units: what is said of them must be the same.

Attacks are as in ``attacks``: an attack draws one table, asks of it and of the same table in other
units what the package can tell, and yields a line for every answer that does not scale as its unit
does. In units that are powers of two nothing is rounded otherwise, but logarithms of γ and, where
arrays begin at other addresses, sums. In units that are powers of ten data are rounded otherwise.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv import SparseRidge, SparseRidgeCV, StabilityCV
from sparsecv.errors import InputError
from sparsecv.solvers import (
    SparseRidgeProblem,
    best_subsets,
    best_subsets_rows_deleted,
    branch_and_bound,
    perspective_relaxation,
    solve,
    solve_sizes,
    supports_along_gamma,
)
from sparsecv.verify import check

from .attacks import Attack
from .inside import Limits

Array = NDArray[np.float64]


class Units(NamedTuple):
    """A table's units: numbers of it are multiplied by these in the other system.

    y: Of the response. ``X``, shape (p,): Of the columns. weight: Of the rows' weights.
    exact: Whether all are powers of two.
    """

    y: float
    X: Array
    weight: float
    exact: bool


class Table(NamedTuple):
    """What is fitted, and the system of units that it is in.

    ridge: What γ counts in.
    """

    X: Array
    y: Array
    weights: Array | None
    units: Units
    ridge: float

    def gamma(self, gamma: float) -> float:
        return gamma * self.ridge

    def within(self, units: Units, scaled: bool) -> Table:
        """The same table in other units.

        scaled: Whether columns are standardised, so that their units do not count in γ.
        """
        weights = None if self.weights is None else self.weights * units.weight
        ridge = (1.0 if scaled else float(units.X[0] ** 2)) * units.weight
        return Table(self.X * units.X, self.y * units.y, weights, units, ridge)


class Said(NamedTuple):
    """An answer.

    unit: That of its numbers, which have none where the unit is 1.
    searched: Whether it depends on a γ that was searched for on a logarithmic scale, until a range
        was narrow: such a γ is off by some 1e-5 of it.
    """

    value: Any
    unit: Any = 1.0
    searched: bool = False


Answers = dict[str, Said]


def drawn_units(rng: np.random.Generator, p: int, scaled: bool, weighted: bool) -> Units:
    """Units of powers of two or ten, some of them far from 1."""
    exact = bool(rng.random() < 0.6)
    base, most = (2.0, 40) if exact else (10.0, 9)
    y = base ** float(rng.integers(-most, most + 1))
    each = base ** rng.integers(-most // 2, most // 2 + 1, size=p).astype(float)
    X = each if scaled else np.full(p, each[0])
    # Rows are multiplied by roots of their weights.
    weight = (base * base) ** float(rng.integers(-4, 5)) if weighted else 1.0
    return Units(y, X, weight, exact)


def drawn_table(rng: np.random.Generator, weighted: bool, columns: tuple[int, int]) -> Table:
    """A table of columns that are plain, alike, of whole numbers, offset, nearly copies or uneven.

    columns: The least and the largest number of columns.
    """
    n, p = int(rng.integers(10, 50)), int(rng.integers(columns[0], columns[1] + 1))
    X = rng.standard_normal((n, p))
    kind = int(rng.integers(6))
    if kind == 1:
        X += rng.standard_normal((n, 1))
    elif kind == 2:
        X = rng.integers(-3, 4, size=(n, p)).astype(float) + 0.25 * (np.arange(n)[:, None] % 2)
    elif kind == 3:
        X += 10.0 ** rng.uniform(0.0, 4.0)
    elif kind == 4:
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-6.0, -1.0) * rng.standard_normal(n)
    elif kind == 5:
        X = X * 10.0 ** rng.uniform(-3.0, 3.0, size=p)
    lengths = np.linalg.norm(X, axis=0) / np.sqrt(n)
    noise = 10.0 ** rng.uniform(-3.0, 1.0)
    y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.6) / lengths)
    y += noise * rng.standard_normal(n) + rng.choice([0.0, 5.0])
    weights = rng.integers(1, 5, size=n).astype(float) if weighted else None
    return Table(X, y, weights, Units(1.0, np.ones(p), 1.0, True), 1.0)


def said_of_frame(name: str, frame: Any, units: dict[str, Any]) -> Answers:
    """What a frame says; ``units`` has the units of its columns that have one."""
    found = {}
    for column in frame.columns:
        found[f"{name}.{column}"] = Said(frame[column].tolist(), units.get(column, 1.0))
    found[f"{name} rows"] = Said(frame.index.tolist())
    for key in ("complete", "status", "n_nodes"):
        if key in frame.attrs:
            found[f"{name} {key}"] = Said(frame.attrs[key])
    return found


def said_of_model(model: Any, table: Table) -> Answers:
    """What every fitted model says."""
    units = table.units
    square = units.y**2 * units.weight
    return {
        "support": Said(model.support_.tolist()),
        "τ": Said(model.tau_),
        "γ": Said(float(model.gamma_), table.ridge),
        "coefficients": Said(model.coef_, units.y / units.X),
        "intercept": Said(float(model.intercept_), units.y),
        "objective": Said(model.objective_, square),
        "lower bound": Said(model.lower_bound_, square),
        "status": Said(model.status_),
        "nodes": Said(model.n_nodes_),
    }


def fixed_size(rng: np.random.Generator, table: Table, scaled: bool) -> Callable[[Table], Answers]:
    """A model of a given size or of least criterion, and everything that it can tell."""
    n, p = table.X.shape
    plain = table.weights is None
    # A criterion counts the sum of the weights as rows.
    criterion = plain and bool(rng.random() < 0.4)
    tau: Any = str(rng.choice(["aic", "bic", "ebic"])) if criterion else int(rng.integers(1, p + 1))
    gamma = float(rng.choice([0.0, 1e-6, 0.1, 1.0, 50.0]))
    intercept = bool(rng.random() < 0.8)
    within, sigma = float(rng.choice([0.0, 0.05, 0.5])), rng.choice([0.5, 2.0])
    estimated = n - p >= 32 and bool(rng.random() < 0.6)

    def answers(table: Table) -> Answers:
        units = table.units
        coef = (units.y / units.X).tolist()
        square = units.y**2 * units.weight
        how = {"standardize": scaled, "fit_intercept": intercept, "time_limit": None}
        given = None if criterion else table.gamma(gamma)
        model = SparseRidge(tau=tau, gamma=given, **how)
        model.fit(table.X, table.y, sample_weight=table.weights)
        found = said_of_model(model, table)
        near = model.near_best(within)
        slopes, members = near.pop("coef").explode(), near["columns"].explode()
        some = ~members.isna()  # The support without a column has no coefficient.
        own = [coef[j] for j in members[some]]
        found["near_best.coef"] = Said(slopes[some].astype(float).tolist(), own)
        found |= said_of_frame("near_best", near, {"objective": square})
        found |= said_of_frame("importance", model.importance(), {})
        if plain and model.support_.size:
            tested = model.inference(sigma=None if estimated else float(sigma) * units.y)
            own = [coef[j] for j in tested["position"]]
            names = dict.fromkeys(("coef", "std_error", "low", "high"), own)
            found |= said_of_frame("inference", tested, names)
        if model.support_.size and not criterion:
            ranked = model.alternatives(2)
            gammas = {"objective": square, "gamma": table.ridge}
            found |= said_of_frame("alternatives", ranked, gammas)
            found |= proofs(model)
        found |= robustness(model)
        return found

    return answers


def robustness(model: Any) -> Answers:
    """What the columns of a model hang on."""
    found = said_of_frame("row_influence", model.row_influence(), {})
    return found | said_of_frame("row_removals", model.row_removals(2), {})


def proofs(model: Any) -> Answers:
    """Whether a certificate of a model is made, and verified."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.txt"
        try:
            claim = model.certificate(path).claim
        except InputError:
            return {"certificate": Said("refused")}
        return {"certificate": Said(check(str(path), f"{path}.csv") == claim)}


def cross_validated(
    rng: np.random.Generator, table: Table, scaled: bool
) -> Callable[[Table], Answers]:
    """A model that cross-validation has chosen, by each rule."""
    rule = str(rng.choice(["minimum", "one-se", "stability", "corrected", "projected"]))
    plain = table.weights is None
    if not plain:  # Other rules count the sum of the weights as rows.
        rule = str(rng.choice(["minimum", "one-se"]))
    gammas = [1e-3, 0.3, 20.0]
    nested = bool(rng.random() < 0.2)
    cv: Any = int(rng.integers(2, 6)) if rng.random() < 0.7 else "loo"
    if rule == "stability" and cv == "loo":
        cv = 4
    method = str(rng.choice(["auto", "exact", "search"])) if rule == "minimum" else "auto"
    # The default grid counts in the units of standardised columns of weight 1.
    default = scaled and plain and bool(rng.random() < 0.5)

    def answers(table: Table) -> Answers:
        units = table.units
        square = units.y**2
        how = {"standardize": scaled, "time_limit": None, "random_state": 0, "nested": nested}
        grid = None if default else [table.gamma(gamma) for gamma in gammas]
        model = SparseRidgeCV(rule=rule, gammas=grid, cv=cv, method=method, **how)
        model.fit(table.X, table.y, sample_weight=table.weights)
        found = said_of_model(model, table)
        del found["nodes"]  # Proofs of pairs that the choice does not need end by the clock.
        found["CV error"] = Said(model.cv_error_, square)
        found["bounds"] = Said(list(model.cv_error_bounds_), square)
        found["certified"] = Said(bool(model.certified_))
        if nested:
            found["nested error"] = Said(model.nested_error_, square)
        if cv != "loo":
            ends = model.predict_interval(table.X[:3])
            found["predict_interval"] = Said(ends, units.y)
        compared = dict.fromkeys(("cv_error", "lower", "upper", "criterion"), square)
        compared["gamma"] = table.ridge
        if plain:
            found |= said_of_frame("compare", model.compare(), compared)
        errors = {"cv_error": square, "std_error": square, "gamma": table.ridge}
        path = model.path_.drop(columns="coef")
        errors |= dict.fromkeys([c for c in path.columns if c in ("lower", "upper")], square)
        errors |= {"intercept": units.y, "objective": square * units.weight}
        found |= said_of_frame("path", path, errors)
        searched = rule in ("corrected", "projected")
        return {
            name: one._replace(searched=searched or name.startswith("compare"))
            for name, one in found.items()
        }

    return answers


def stability(rng: np.random.Generator, table: Table, scaled: bool) -> Callable[[Table], Answers]:
    """Sparse ridge regression chosen by Algorithm 1 for any learner."""
    folds, sizes = int(rng.integers(3, 6)), list(range(1, table.X.shape[1] + 1))

    def answers(table: Table) -> Answers:
        grid = {"tau": sizes, "gamma": [table.gamma(one) for one in (0.01, 1.0)]}
        learner = SparseRidge(standardize=scaled, time_limit=None)
        model = StabilityCV(learner, grid, cv=folds, random_state=0).fit(table.X, table.y)
        best = model.best_estimator_
        return {
            "best": Said(model.best_index_),
            "λ": Said(model.lambda_),
            "coefficients": Said(best.coef_, table.units.y / table.units.X),
            "nested error": Said(model.nested_error_, table.units.y**2),
        }

    return answers


def solvers(rng: np.random.Generator, table: Table, scaled: bool) -> Callable[[Table], Answers]:
    """One training problem, which is scaled by nobody: every search, bound and range of γ."""
    p = table.X.shape[1]
    tau = int(rng.integers(1, p + 1))
    length = float(np.square(table.X).sum(axis=0).max())
    gamma = float(rng.choice([1e-10, 1e-6, 1e-2, 1.0])) * length
    limit = None if rng.random() < 0.5 else int(rng.integers(0, 10))

    def answers(table: Table) -> Answers:
        ridge, square = float(table.units.X[0] ** 2), table.units.y**2
        problem = SparseRidgeProblem(table.X, table.y, gamma=gamma * ridge, tau=tau)
        found: Answers = {}
        searches = {
            "solve": [solve(problem, tol=0.0)],
            "branch_and_bound": [branch_and_bound(problem, limits=Limits(None, limit))],
            "best_subsets": best_subsets(problem, limits=Limits(None, limit)),
            "solve_sizes": solve_sizes(problem, limits=Limits(None, limit)),
        }
        for name, every in searches.items():
            found[f"{name} supports"] = Said([one.support.tolist() for one in every])
            found[f"{name} objectives"] = Said([one.objective for one in every], square)
            found[f"{name} bounds"] = Said([one.lower_bound for one in every], square)
            found[f"{name} statuses"] = Said([str(one.status) for one in every])
            found[f"{name} nodes"] = Said([one.n_nodes for one in every])
        for extract in (False, True):
            relaxed = perspective_relaxation(problem, extract=extract)
            found[f"relaxation, extract={extract}"] = Said(relaxed.bound, square)
        rows, targets = problem.rows[:, :p], problem.rows[:, p]
        deleted, status, work = best_subsets_rows_deleted(problem, rows, targets)
        found["rows deleted"] = Said(deleted.objective.ravel().tolist(), square)
        found["rows deleted status"] = Said(str(status))
        found["rows deleted nodes"] = Said(work.n_nodes)
        along, status = supports_along_gamma(problem, gamma * ridge, 1e4 * gamma * ridge)
        found["along γ status"] = Said(str(status))
        for size, intervals in along.items():
            # An interval whose support rounding leaves open has none.
            known = (one.support.tolist() for one in intervals if one.support is not None)
            some = sorted({tuple(support) for support in known})
            found[f"along γ {size}"] = Said([list(one) for one in some])
        return found

    return answers


def many_columns(
    rng: np.random.Generator, table: Table, scaled: bool
) -> Callable[[Table], Answers]:
    """More columns than a tree of all sizes takes: estimates, and proofs by branch and bound."""
    tau, gamma, limit = int(rng.integers(1, 5)), float(rng.choice([0.1, 1.0, 20.0])), 300

    def answers(table: Table) -> Answers:
        square = table.units.y**2
        how = {"time_limit": 0.0, "standardize": scaled, "random_state": 0}
        grid = [table.gamma(0.1), table.gamma(30.0)]
        model = SparseRidgeCV(gammas=grid, taus=[1, 2, 3], rule="minimum", **how)
        model.fit(table.X, table.y)
        found = said_of_model(model, table)
        found["CV error"] = Said(model.cv_error_, square)
        if scaled:
            return found
        length = float(np.square(table.X).sum(axis=0).max())
        problem = SparseRidgeProblem(table.X, table.y, gamma=gamma * length, tau=tau)
        one = solve(problem, tol=0.0, node_limit=limit)
        every = solve_sizes(problem, limits=Limits(None, limit))
        relaxed = perspective_relaxation(problem, extract=True)
        return found | {
            "solve": Said(one.support.tolist()),
            "solve objective": Said(one.objective, square),
            "solve bound": Said(one.lower_bound, square),
            "solve status": Said(str(one.status)),
            "solve nodes": Said(one.n_nodes),
            "sizes": Said([other.support.tolist() for other in every]),
            "sizes bounds": Said([other.lower_bound for other in every], square),
            "sizes statuses": Said([str(other.status) for other in every]),
            "relaxation": Said(relaxed.bound, square),
        }

    return answers


KINDS = fixed_size, cross_validated, stability, solvers, many_columns


def told(answers: Callable[[Table], Answers], table: Table) -> Answers:
    """What is said of a table; a refusal is an answer, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return answers(table)
        except InputError as error:
            return {"refused": Said(str(error))}


def differ(one: Said, other: Said, exact: bool) -> bool:
    """Whether two answers are not the same but for their units.

    one, other: What is said in the first and in the second system, whose unit is that of ``other``.
    exact: Whether the data of both are the same to the last digit.
    """
    first, second = np.asarray(one.value, dtype=object), np.asarray(other.value, dtype=object)
    numbers = all(isinstance(v, float) for v in (*first.ravel(), *second.ravel()))
    if first.shape != second.shape:
        return True
    if not numbers or not first.size:
        return not bool(np.all(first == second))
    value, scaled = first.astype(float) * np.asarray(other.unit), second.astype(float)
    if exact and not other.searched:
        return not np.allclose(scaled, value, rtol=1e-12, atol=0.0, equal_nan=True)
    size = np.nanmax(np.where(np.isfinite(value), np.abs(value), 0.0), initial=0.0)
    return not np.allclose(scaled, value, rtol=1e-4, atol=1e-6 * float(size), equal_nan=True)


def units(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Everything that is said of a table, in two systems of units."""
    kind = KINDS[number % len(KINDS)]
    scaled = bool(rng.random() < 0.6) and kind is not solvers
    weighted = kind in (fixed_size, cross_validated) and bool(rng.random() < 0.3)
    # A tree of all sizes takes up to 45 columns. Inner folds and projections take long.
    columns = {many_columns: (46, 59), cross_validated: (2, 4)}.get(kind, (2, 8))
    table = drawn_table(rng, weighted, columns)
    answers = kind(rng, table, scaled)
    other = table.within(drawn_units(rng, table.X.shape[1], scaled, weighted), scaled)
    one, two = told(answers, table), told(answers, other)
    where = f"{kind.__name__}, {'scaled' if scaled else 'not scaled'}, {other.units}"
    for name in one.keys() | two.keys():
        if name not in one or name not in two:
            yield f"{where}: {name} is said in one system alone"
        elif name.endswith("nodes") and (two[name].searched or not other.units.exact):
            continue  # Other rounding may let a search visit other nodes.
        elif differ(one[name], two[name], other.units.exact):
            yield f"{where}: {name}: {one[name].value!r} and {two[name].value!r}"


UNITS: dict[str, Attack] = {"units": units}
