"""One table: a call that is refused, and what its one line must name.

A line is ``call -> words | words``; a call is Python over the functions and tables of this file. A
line that begins with a star makes a call of each of several values.
The table of the command is in ``tests/cli/test_refusals.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import RepeatedKFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from support.constrained import resolved
from support.problems import grown
from support.tables import NAMES_OF_FIVE as NAMES
from support.tables import five_columns

from sparsecv import Constraints, SparseRidge, SparseRidgeCV, StabilityCV, risk
from sparsecv import solvers as s
from sparsecv.solvers import SparseRidgeProblem
from sparsecv.stability import partial_errors

X, Y = five_columns()  # 40 rows
X0, Y0 = np.arange(12.0).reshape(4, 3) ** 1.5, np.array([1.0, -2.0, 0.5, 3.0])
PAIR = [(np.arange(20), np.arange(20, 40))]
OVERLAPPING = [(np.arange(10, 40), np.arange(10)), (np.arange(5, 40), np.arange(5))]
GOOD: dict[str, Any] = {"n": 20, "stability": 1.0, "loss_bound": 1.0, "delta": 0.1}
BOUND: dict[str, Any] = {"n": 10, "loss_bound": 1.0, "delta": 0.1}
SEARCH: dict[str, Any] = {"estimator": Ridge(), "param_grid": {"alpha": [1]}, "X": X, "y": Y}
MODEL: dict[str, Any] = {"estimator": Ridge(), "X": X, "y": Y}
ANY = [1.0, 2.0] * 20
CELLS: dict[str, Any] = {
    "lists": [[1, 2], [3, 4]] * 20,
    "dates": [date(2020, 1, 1), date(2021, 1, 1)] * 20,
    "times": [datetime(2020, 1, 1), datetime(2021, 1, 1)] * 20,
    "nan": [1.0, np.nan] * 20,
    "inf": [1.0, -np.inf] * 20,
    "none": [1.0, None] * 20,
}


def ridge(X: Any = X, y: Any = Y, weights: Any = None, **options: Any) -> SparseRidge:
    return SparseRidge(**options).fit(X, y, sample_weight=weights)


def cv(X: Any = X, y: Any = Y, groups: Any = None, **options: Any) -> SparseRidgeCV:
    quick = {"gammas": [1.0], "taus": [1], "rule": "minimum"} | options
    return SparseRidgeCV(**quick).fit(X, y, groups=groups)


def default(X: Any = X, y: Any = Y, weights: Any = None, **options: Any) -> SparseRidgeCV:
    return SparseRidgeCV(**{"gammas": 1.0} | options).fit(X, y, sample_weight=weights)


def stability(weights: Any = None, estimator: Any = None, **options: Any) -> StabilityCV:
    given = {"param_grid": {"alpha": [1.0, 2.0]}} | options
    return StabilityCV(estimator or Ridge(), **given).fit(X, Y, weights)


def frame(kind: str, library: Any = pd, column: str = "b c") -> Any:
    """The table of five columns, of which one has cells of a kind."""
    return library.DataFrame(dict(zip(NAMES, X.T, strict=True)) | {column: CELLS[kind]})


def texts(**columns: Any) -> pd.DataFrame:
    """Numbers beside towns."""
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": ["Bern", "Oslo"] * 20} | columns)


def asked(**rules: Any) -> Any:
    return resolved(6, ["a", "b", "c", "a:b", "b:a:c", "time=1:30"], **rules)


def problem(X: Any = X0, y: Any = Y0, **options: Any) -> SparseRidgeProblem:
    return SparseRidgeProblem(X, y, **{"gamma": 1.0, "tau": 1} | options)


def moments(G: Any, b: Any, yy: Any, **options: Any) -> SparseRidgeProblem:
    return SparseRidgeProblem.from_gram(G, b, yy, **{"gamma": 1.0, "tau": 1} | options)


def within(**rules: Any) -> SparseRidgeProblem:
    tau = rules.pop("tau")
    constraints = Constraints(**rules)
    return SparseRidgeProblem(np.eye(6), np.ones(6), gamma=1.0, tau=tau, constraints=constraints)


def mixed() -> Any:
    return np.array([*range(20), *["a"] * 20], dtype=object)


def group_missing(missing: Any, kind: Any = np.asarray) -> Any:
    groups = np.repeat(np.arange(8), 5).astype(object)
    groups[3] = missing
    return kind(groups)


def priced(kind: str) -> Any:
    """Responses of which one is text."""
    cells = [*map(str, Y[:4]), "12 EUR", *map(str, Y[5:])]
    if kind == "array":
        return np.array(cells)
    return pd.Series(cells, name="price") if kind == "pandas" else pl.Series("price", cells)


TABLE = """
# a parameter of an estimator
ridge(tau=-1) -> tau
ridge(tau=6) -> tau | p = 5
ridge(tau=2.0) -> tau
ridge(tau=True) -> tau
ridge(tau="2") -> tau
ridge(tau=[1, 2]) -> tau must be a whole number
ridge(tau="cp") -> whole number or one of
ridge(tau="bic", gamma=1.0) -> leave gamma out
ridge(gamma=-1) -> gamma
ridge(gamma=np.nan) -> gamma
ridge(gamma=np.inf) -> gamma
ridge(gamma=[1.0]) -> gamma
ridge(backend="abacus") -> backend
ridge(time_limit="1") -> time_limit
ridge(tol=-1e-3) -> tol
ridge(tol=None) -> tol
ridge(n_jobs=1.5) -> n_jobs
ridge(n_jobs="2") -> n_jobs
ridge(n_jobs=0) -> n_jobs
ridge(unknown="none", X=texts()) -> unknown must be
default(cv=1) -> folds
default(cv=41) -> folds
default(cv="five") -> folds
default(cv="size:30") -> folds
default(cv=None) -> folds
default(cv=np.arange(29) % 3) -> a whole number for each of the 40 rows
default(cv=np.linspace(0.0, 2.0, 40)) -> a whole number for each of the 40 rows
default(cv=[0, 1, 2]) -> a whole number for each of the 40 rows
default(taus=[0]) -> tau
default(taus=[6]) -> tau
default(taus=[1.5]) -> tau
default(taus="all") -> tau
default(taus=[]) -> tau
default(taus=[[1], [2, 3]]) -> tau
default(taus=[True]) -> whole numbers
default(taus=["1"]) -> whole numbers
default(gammas=[1.0, -1.0]) -> gamma
default(gammas=[]) -> gamma
default(gammas="many") -> gamma
default(gammas=[[1.0, 2.0], [3.0, 4.0]]) -> gamma
default(gammas=[1.0, None]) -> gamma
default(gammas=[np.nan]) -> gamma must be finite and >= 0; got nan
default(method="fast") -> method
default(method="exact", backend="highs") -> method exact has trees of its own
default(backend="abacus") -> backend
default(time_limit=-1) -> time_limit
default(time_limit=np.nan) -> time_limit
default(time_limit="1") -> time_limit
default(time_limit=True) -> time_limit
default(tol=-0.1) -> tol must lie in
default(tol=1.0) -> tol must lie in
default(prove="most") -> prove
default(n_jobs="2") -> n_jobs
default(n_jobs=0) -> n_jobs
default(missing="zero", X=frame("nan")) -> missing must be mean or None
# what does not go together
default(gammas="glob") -> 'global:LO:HI'
default(gammas="global:1") -> 'global:LO:HI'
default(gammas="global:2:1") -> 'global:LO:HI'
default(gammas="global:a:b") -> 'global:LO:HI'
default(gammas="global", rule="projected") -> averages models over values of gamma
default(gammas="global:1:1") -> 'global:LO:HI'
default(gammas="global:-1:1") -> 'global:LO:HI'
default(gammas="global", tol=0.0) -> (0, 1)
default(np.hstack([X] * 10), gammas="global") -> at most 45 columns
default(gammas="global", method="search") -> method must be auto or exact
default(gammas="global", constraints=Constraints(include=[0])) -> serves no constraints
default(rule="best") -> rule must be
default(rule="one-se", method="search") -> every tau
default(rule="corrected", cv=OVERLAPPING) -> every row once
default(rule="stability", cv=OVERLAPPING) -> every row exactly once
default(rule="stability", cv=2) -> at least 3 folds
default(X[:3], Y[:3], rule="stability", cv=3) -> leaves out two folds at once | 1 of 3 rows
default(nested=1) -> nested must be True, False or outer folds >= 2; got 1
default(nested="yes") -> nested must be
default(nested=True, cv=PAIR) -> not as pairs of row indices
default(nested=True, cv=39) -> outer fold 1 of 10, fitted to 36 rows: 39 folds need at least 39 rows
default(nested=41) -> 41 folds need at least 41 rows
ridge(tau="bic", constraints=Constraints(positive=True)) -> serves no signs or bounds
# cells, names and rows
*(ridge(frame(k, m)) for k in CELLS for m in (pd, pl)) -> 'b c'
*(default(frame(k, m)) for k in CELLS for m in (pd, pl)) -> 'b c'
ridge(frame("lists")) -> neither numeric nor text
ridge(frame("dates")) -> not numeric: it holds dates
ridge(frame("times", pl)) -> not numeric: it holds dates
ridge(frame("nan")) -> NaN
ridge(frame("inf", pl)) -> inf
ridge(frame("none")) -> NaN
ridge(np.where(X == X[2, 1], np.nan, X)) -> column 'x1' | or pass missing='mean'
default(np.where(X == X[2, 1], np.inf, X)) -> column 'x1' | impute those rows
default(X * [1.0, np.nan, 1.0, 1.0, 1.0], missing="mean") -> x1
default(X * [1.0, np.inf, 1.0, 1.0, 1.0], missing="mean") -> inf in column 'x1'
default(y=np.where(Y == Y[2], np.nan, Y), missing="mean") -> Input y
ridge(y=pd.Series([pd.NA, *Y[1:]], dtype=object)) -> NaN
ridge(y=pd.Series(pd.date_range("2020-01-01", periods=40))) -> y
ridge(y=priced("array")) -> y holds '12 EUR' in row 4
ridge(y=priced("pandas")) -> y (price) holds '12 EUR' in row 4
ridge(y=priced("polars")) -> y (price) holds '12 EUR' in row 4
ridge(pd.DataFrame(X, columns=["a", "b", "c", "a", "d"])) -> more than once, in columns 1 and 4
default(pd.DataFrame(X, columns=["a", "b", "c", "a", "d"])) -> column name 'a' occurs more than once
ridge(np.ones((5, 2)), np.arange(5.0)) -> every feature column is constant
ridge(pl.DataFrame(X).lazy()) -> pass X.collect()
ridge(pl.DataFrame(X)).predict(pl.DataFrame(X).lazy()) -> pass X.collect()
ridge(texts(c=[f"id{i}" for i in range(40)])) -> 'c' | another value in every row
ridge(texts(c=pd.date_range("2024-01-01", periods=40))) -> 'c' | holds dates; replace it by numbers
ridge(texts(c=[1j] * 40)) -> 'c' is neither numeric nor text
ridge(texts(**{"town=Bern": ANY})) -> duplicate column name 'town=Bern'
ridge(texts()).predict(X) -> pass a data frame: the model was fitted to text
ridge(texts()).predict(texts()[["b", "a", "town"]]) -> feature names should match | in their order
ridge(texts()).predict(texts(a="large")) -> 'a' holds 'large', which is no number, data row 1
ridge(texts()).predict(texts(b=np.inf)) -> infinite value in column 'b', data row 1
ridge(texts()).predict(texts()[["a", "town"]]) -> X lacks the column 'b'
ridge(texts()).predict(texts()[["a", "b"]]) -> X lacks the column 'town'
ridge(texts()).predict(texts(c=ANY)) -> X has 'c', which fit has not seen
*(cv(groups=group_missing(m, k)) for m in MISSING for k in KINDS) -> row 3 has no group
default(weights=np.ones(3)) -> one weight per row
*(default(weights=np.full(40, w)) for w in (-1.0, np.nan)) -> finite and >= 0
default(weights=np.zeros(40)) -> above zero for at least 2 rows
default(weights=["a"] * 40) -> numbers >= 0
cv(groups=np.ones(3)) -> groups needs one entry per row
cv(groups=group_missing(None), cv="loo") -> row 3 has no group
cv(groups=mixed()) -> make all of them text
cv(groups=np.arange(40) // 10, cv=3, nested=2) -> nested, outer fold 1 of 2 | folds of whole
# what a fitted model is asked
default().alternatives(0) -> n must be
default().alternatives(1.5) -> n must be
default().alternatives(True) -> n must be
default().predict_interval(X, 0.0) -> coverage must be
default().predict_interval(X, 1.0) -> coverage must be
default().predict_interval(X, "much") -> coverage must be
default(cv=ShuffleSplit(3, random_state=0)).predict_interval(X) -> hold out every row once
default(weights=np.arange(1, 41)).predict_interval(X) -> no weights
ridge().predict_interval(X) -> need folds: use SparseRidgeCV
ridge().save("m.json", intervals=True) -> use SparseRidgeCV
default(taus=[1, 2]).inference() -> cross-validation | SparseRidge
ridge(weights=np.arange(40.0)).inference() -> sample_weight
ridge(constraints=Constraints(positive=True)).inference() -> signs or bounds
ridge(np.where(X == X[2, 1], np.nan, X), missing="mean").inference() -> missing values
ridge(tau=2).inference(level=1.0) -> level
ridge(tau=2).inference(level="high") -> level must lie between 0 and 1
ridge(tau=2).inference(sigma=0.0) -> sigma
ridge(tau=2).inference(sigma=np.inf) -> sigma
ridge(tau=2).inference(sigma="2") -> sigma
*(ridge(tau=2).near_best(v) for v in (-0.1, np.inf, np.nan, "1", None, [0.1])) -> within
default().row_influence() -> projection
default().row_removals() -> projection
ridge().partitions() -> random folds
cv(cv="loo").partitions() -> random folds
cv(cv=PAIR, groups=["a"] * 40).row_influence() -> no row is left without group 'a'
ridge(tau="bic", y=np.random.default_rng(3).standard_normal(40)).row_removals() -> no columns
ridge(tau=1).row_removals(0) -> most must be a whole number
ridge(tau=1).row_removals(1.5) -> most must be a whole number
ridge(tau=1).row_removals(True) -> most must be a whole number
cv().nested_error_ -> nested_error_ needs a fit with nested=True
cv().nested_std_error_ -> nested_std_error_ needs a fit with nested=True
cv().other_ -> has no attribute 'other_'
# stability and risk
stability(lambdas=[-1.0]) -> lambdas
stability(lambdas=[]) -> lambdas
stability(lambdas=["x"]) -> lambdas
stability(loss="cubed") -> loss
stability(loss="hinge") -> decision_function
stability(loss=lambda y, f: 1.0) -> one number per row
stability(loss=lambda y, f: y * np.inf) -> not finite
stability(param_grid={}) -> param_grid
stability(param_grid={"alpha": []}) -> param_grid
stability(param_grid={"beta": [1]}) -> 'beta'
stability(cv=2) -> 3 folds
stability(cv=PAIR) -> exactly once
stability(np.arange(40), KNeighborsRegressor(), param_grid={"n_neighbors": [2]}) -> takes no weights
stability(-np.arange(40.0), cv=4) -> finite and >= 0
stability(np.arange(40) < 20, cv=[*PAIR, PAIR[0][::-1]], lambdas=0.0) -> fold 1 of 2 has no row
risk.leave_p_out(**MODEL, p=0) -> leave-p-out
risk.leave_p_out(**MODEL, p=40) -> leave-p-out
*(risk.leave_p_out(**MODEL, p=1, most=v) for v in (0, 2.5, np.nan, "9")) -> most
*(risk.repeated_k_fold(**MODEL, repeats=v) for v in (0, 2.5, np.nan, "9")) -> repeats
risk.k_fold(**MODEL, loss="cubed") -> loss
default(np.column_stack([X, np.full(40, np.nan)]), missing="mean") -> column 'x5': drop the column
default(np.column_stack([X, np.full(40, np.nan)])) -> column 'x5': drop the column
risk.k_fold(KNeighborsClassifier(), X, Y > 0.0, cv=1) -> n_splits=2
risk.k_fold(KNeighborsClassifier(), X, Y > 0.0, cv=41) -> n_splits=41
partial_errors(KNeighborsRegressor(), [-1, 1, -1, 1], 2, nested=False) -> label 4 rows 0..k-1
partial_errors(KNeighborsRegressor(), [0.0, 0.9, 1.0, 1.0], 2, nested=False) -> label 4 rows 0..k-1
risk.nested_cv(**SEARCH, inner="x") -> inner
risk.nested_cv(**SEARCH, cv=2) -> 3 folds
risk.nested_cv(**SEARCH, cv=RepeatedKFold(n_splits=4, n_repeats=2)) -> every row exactly once
*(risk.development_set(**SEARCH, size=v) for v in (0.0, np.nan, np.inf, "0.2", None)) -> side
risk.development_set(**SEARCH, loss=lambda y, f: -abs(y - f), loss_bound=9.0) -> negative
risk.k_fold_deviation(**GOOD, k=3) -> equal size
risk.k_fold_deviation(**GOOD, k=40) -> 40 folds
risk.k_fold_deviation(**GOOD, k=1) -> k must
risk.k_fold_deviation(**GOOD | {"k": 4, "delta": 0.5}) -> delta
risk.k_fold_deviation(**GOOD | {"k": 4, "delta": 0.0}) -> delta
risk.k_fold_deviation(**GOOD | {"k": 4, "stability": -1.0}) -> stability
risk.k_fold_deviation(**GOOD | {"k": 4, "loss_bound": float("nan")}) -> loss_bound
risk.leave_p_out_deviation(**GOOD, p=20) -> p < n
risk.cv_deviation(**GOOD, n_train=10, n_validation=5) -> must be n
risk.corrected_deviation(**GOOD, n_train=20) -> below n
risk.corrected_k_fold_deviation(**GOOD | {"k": 4, "delta": 0.2}) -> delta
risk.selection_excess(**GOOD, models=0) -> models
risk.stability_bound(2.0, 0.1, k=5, **BOUND) -> exceeds loss_bound
risk.training_error_bound(2.0, 0.1, **BOUND) -> exceeds loss_bound
# a problem, its moments and its size
s.solve(problem(X0, 0.0 * Y0)).certificate() -> no certificate
asked(groups={"1": [0, 1], 1: [2, 3]}) -> two names of the same text
problem(X0, Y0[:3]) -> must be
problem(X0[0]) -> must be
problem(X0[None]) -> must be
problem(X0, Y0[:, None]) -> must be
problem(np.zeros((0, 3)), np.zeros(0)) -> at least one
problem(np.zeros((3, 0)), np.zeros(3)) -> at least one
problem(np.where(X0 > 30.0, np.nan, X0)) -> finite
problem(np.where(X0 > 30.0, np.inf, X0)) -> finite
problem(X0, np.where(Y0 > 2.0, -np.inf, Y0)) -> finite
*(problem(gamma=v) for v in GAMMAS) -> gamma
*(moments(np.eye(3), np.zeros(3), 1.0, gamma=v) for v in GAMMAS) -> gamma
*(problem().replace(gamma=v) for v in GAMMAS) -> gamma
*(problem(tau=v) for v in TAUS) -> tau
*(moments(np.eye(3), np.zeros(3), 1.0, tau=v) for v in TAUS) -> tau
*(problem().replace(tau=v) for v in TAUS if v is not None) -> tau
moments(np.eye(3), np.zeros(2), 1.0) -> must be
moments(np.eye(3)[:2], np.zeros(3), 1.0) -> must be
moments(np.eye(3), np.zeros((3, 1)), 1.0) -> must be
moments(np.zeros((0, 0)), np.zeros(0), 1.0) -> must be
moments(np.full((2, 2), np.nan), np.zeros(2), 1.0) -> finite
moments(np.eye(2), np.array([np.inf, 0.0]), 1.0) -> finite
moments(np.eye(2), np.zeros(2), np.nan) -> finite
moments(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2), 1.0) -> semidefinite
moments(np.eye(2), np.ones(2), 1.0) -> semidefinite
moments(np.eye(2), np.zeros(2), -1.0) -> semidefinite
moments(np.diag([1e-24, 0.0]), np.array([1e-13, 1e-9]), 1.0) -> semidefinite
moments(np.diag([1.0, -1e-18]), np.zeros(2), 1.0) -> semidefinite
*(problem(X0 * f, gamma=g) for f in FACTORS for g in (0.0, 1.0)) -> column 0 holds values too small
*(problem(X0 * [1.0, 1.0, f]) for f in FACTORS) -> column 2 holds values too small or too large
*(problem(y=Y0 * f) for f in FACTORS) -> y holds values too small or too large to square
problem(X0 * 1e-100, Y0 * 1e-100, gamma=1e-200) -> too small or too large to be multiplied
problem(X0 * 1e100, Y0 * 1e100, gamma=1e200) -> too small or too large to be multiplied
*(moments(np.eye(3) * f**2, np.ones(3) * f**2, 9.0 * f**2) for f in PRODUCTS) -> to be multiplied
*(ridge(weights=np.full(40, f**2)) for f in PRODUCTS) -> weights
ridge(pd.DataFrame(X * [1.0, 1e-160, 1.0, 1.0, 1.0], columns=NAMES)) -> 'b c' holds values too small
ridge(y=1e-300 * Y) -> the response holds values too small
# a search
*(s.best_subsets(problem(), sizes=v) for v in SIZES) -> sizes
*(s.best_subsets_rows_deleted(problem(), X0, Y0, sizes=v) for v in SIZES) -> sizes
*(s.support_path(problem(), [1.0], v) for v in SIZES[1:]) -> sizes
*(grown(problem(), v) for v in ([0], [1, 4], [], [-1])) -> sizes
*(s.best_subsets(problem(), warm_starts=[v]) for v in STARTS) -> warm start
*(s.best_subsets_rows_deleted(problem(), X0, Y0, warm_starts=[v]) for v in STARTS) -> warm start
*(s.solve(problem(), warm_start=v) for v in STARTS) -> warm start
*(s.solve_sizes(problem(), warm_starts=[v]) for v in STARTS) -> warm start
*(s.branch_and_bound(problem(), warm_starts=[v]) for v in STARTS) -> warm start
*(s.heuristic_support(problem(), warm_starts=[v]) for v in STARTS) -> warm start
s.relaxation_path(problem(), [1, 1.5]) -> tau must be a whole number
*(s.branch_and_bound(problem(), tol=v) for v in (-1e-9, np.nan, -np.inf)) -> tol
s.ellipsoid(problem(), np.nan) -> upper must be
s.screen(problem(), np.zeros(3), np.nan) -> upper must be
s.best_subsets(within(groups=[*"aabbcc"], tau=3), sizes=[1, 4]) -> a size of 4 is too large
s.solve(problem(), time_limit=-1.0) -> time_limit
s.solve(problem(), time_limit=np.nan) -> time_limit
s.solve(problem(), node_limit=-1) -> node_limit
*(s.solve(problem(), tol=v) for v in (-1e-9, -1.0, np.nan, -np.inf)) -> tol
s.solve(problem(), backend="cplex") -> cplex | auto | native
s.support_path(problem(), [-1.0], [1]) -> gamma
s.support_path(problem(), [1.0], [1], solver="quick") -> solver must be one of
s.supports_along_gamma(problem(np.eye(46), np.ones(46)), 0.1, 1.0) -> at most 45 columns
*(s.supports_along_gamma(problem(), *ends) for ends in RANGES) -> 0 <= low < high
s.best_subsets_rows_deleted(problem(), X0[:, :2], Y0) -> rows must be
s.best_subsets_rows_deleted(problem(), X0, Y0[:3]) -> rows must be
s.best_subsets_rows_deleted(problem(), X0[0], Y0[:1]) -> rows must be
s.best_subsets_rows_deleted(problem(), X0, Y0[:, None]) -> rows must be
s.best_subsets_rows_deleted(problem(WIDE, Y0[:3]), WIDE, Y0[:3]) -> 168
s.perspective_relaxation(problem(), epsilon=1.0) -> epsilon
s.screen(problem(), np.array([1.0, np.nan, 0.0]), 1.0) -> beta
s.screen(problem(), np.ones(2), 1.0) -> beta
s.ellipsoid(problem(), 9.0, epsilon=1.0) -> epsilon must be < gamma
s.ellipsoid(problem(), 9.0, epsilon=-1e5) -> indefinite
s.ellipsoid(problem(), 9.0, beta=[1.0, np.nan, 0.0]) -> beta must be 3 finite numbers
s.solve(problem(X, Y, tau=2), node_limit=0, tol=0.0).certificate() -> needs a proved solution
# constraints
asked(include="age") -> include must be a list of columns, such as
asked(include=["d"]) -> include: there is no column 'd'
asked(include=["timE=1:30"]) -> did you mean 'time=1:30'?
asked(exclude=[6]) -> no column 6; columns are 0 to 5
asked(exclude=[1.5]) -> a column is a name or a position; got 1.5
asked(include=["a"], exclude=["a"]) -> column 'a' is both included and excluded
asked(exclude=list(range(6))) -> every column is excluded
asked(groups=["x", "y"]) -> 2 labels for 6 columns
asked(groups={"x": ["a"], "y": ["a", "b"]}) -> is in the groups 'x' and 'y'
asked(groups="x") -> groups must be labels
asked(groups={"both": "ab"}) -> groups must be a list
asked(positive=["z"]) -> positive: there is no column 'z'
asked(positive="b") -> positive must be a list
asked(bounds={"a": (1, 2)}) -> bounds of 'a': give (low, high) with low <= 0 <= high
asked(bounds={"a": 3}) -> give (low, high)
asked(bounds={"a": (False, 2.0)}) -> bounds of 'a': True and False are no numbers
asked(bounds={"a": (None, np.True_)}) -> bounds of 'a': True and False are no numbers
asked(bounds=[1]) -> bounds must map columns
asked(bounds={"b": (None, "2")}) -> bounds of 'b':
within(include=[1, 3, 4, 5], tau=3) -> a size of 3 is too small | take 4
within(exclude=[0, 1], tau=5) -> a size of 5 is too large: 4 can be in
ridge(constraints=Constraints(include=["d"])) -> the columns have no names here
ridge(texts(), constraints=Constraints(include=["tow"])) -> no column 'tow'; did you mean 'town'
ridge(texts(), constraints=Constraints(groups=["a"] * 5)) -> 5 labels for 3 columns
ridge(pd.DataFrame(X, columns=[4, 3, 2, 1, 0]), constraints=Constraints(include=[7])) -> column 7
stability(estimator=SparseRidge(constraints=TWO), param_grid=SMALL) -> a size of 1 is too small
"""
MISSING = (None, np.nan, pd.NA, pd.NaT)
KINDS = (np.asarray, pd.Series, pd.Categorical)
GAMMAS = (-1.0, np.nan, np.inf, -np.inf)
RANGES = ((-1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (0.1, np.inf))
TAUS = (0, -1, 4, True, False, 2.0, 1.5, "2", None, np.float64(1.0))
FACTORS = (1e-300, 1e-160, 1e160)
PRODUCTS = (1e-155, 1e-100, 1e100)
SIZES = ([0], [1, 4], [], [-1], [1.5], [np.nan], [True])
STARTS = ([3], [0, 3], [-1, 0], [0.5], [True, False, True])
SMALL, TWO = {"gamma": [1.0], "tau": [1]}, Constraints(include=[0, 1])
WIDE = np.random.default_rng(0).standard_normal((3, 169))
# Of these the table alone makes use.
USED = (
    KNeighborsClassifier,
    KNeighborsRegressor,
    partial_errors,
    RepeatedKFold,
    ShuffleSplit,
    grown,
    risk,
    s,
)


def refused() -> list[Any]:
    """The call and the words of every line."""
    lines = (line for line in TABLE.splitlines() if line and not line.startswith("#"))
    return [pytest.param(*line.split(" -> "), id=line[:60]) for line in lines]


def calls(text: str) -> Iterator[Callable[[], Any]]:
    """The call of a line, or each of several calls that a generator expression makes."""
    tree = ast.parse(text.removeprefix("*"), mode="eval")
    if isinstance(tree.body, ast.GeneratorExp):
        nothing = ast.parse("lambda: 0", mode="eval").body
        assert isinstance(nothing, ast.Lambda)
        tree.body.elt = ast.Lambda(nothing.args, tree.body.elt)
        yield from eval(compile(ast.fix_missing_locations(tree), "table", "eval"), globals())
    else:
        yield lambda: eval(text, globals())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("text", "words"), refused())
def test_one_line_names_what_is_wrong(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for call in calls(text):
        with pytest.raises((ValueError, AttributeError)) as caught:
            call()
        message = str(caught.value)
        assert "\n" not in message
        for word in words.split(" | "):
            assert word in message
