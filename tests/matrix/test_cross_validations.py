"""Every way from a table to a cross-validated choice, against enumeration in every fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_force import Data, enumerate_size, fit_rounding
from support.cross_validations import ESTIMATORS, Case, draw_case
from support.folds import Bracket, inside
from support.fresh import examples

from sparsecv import SparseRidgeCV
from sparsecv.solvers import available_backends

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
DOORS: dict[str, dict[str, Any]] = {
    "auto": {},
    "auto, every cell": {"prove": "all"},
    "exact": {"method": "exact", "prove": "all"},
    "exact, two threads": {"method": "exact", "prove": "all", "n_jobs": 2},
    "grid": {"method": "grid", "prove": "all"},
    "search": {"method": "search", "tol": 0.0},
    "search, tolerance": {"method": "search", "tol": 0.3},
    "no time": {"time_limit": 0.0},
}
if "highs" in available_backends():
    DOORS["grid by HiGHS"] = {"method": "grid", "backend": "highs", "prove": "all"}


def contradicted(case: Case, truth: Bracket, door: str) -> list[str]:
    """What is wrong of the errors, intervals, choice and model that a fit shows."""
    protocol, wrong = case.protocol, []
    model = SparseRidgeCV(
        cv=case.pairs,
        gammas=case.gammas,
        rule="minimum",
        standardize=protocol.scale != "none",
        fit_intercept=protocol.intercept,
        **{"time_limit": None} | DOORS[door],  # Every cell is proved, however busy the machine is.
    ).fit(case.X, case.y)
    found = model.surface_
    least, most = found["lower"], found["upper"]
    exact, error = found["exact"], found["cv_error"]
    room = 1e-6 if "backend" in DOORS[door] else 1e-9
    if not inside(least, most, truth, room).all():
        wrong.append(f"{door}: intervals {least} to {most} miss {truth.low} to {truth.high}")
    if not inside(error, error, truth, room)[exact].all():
        wrong.append(f"{door}: {error} called exact where {exact}, not {truth.low}")
    outside = "backend" in DOORS[door]  # An outside solver may leave the gap of its tolerances.
    if DOORS[door].get("prove") == "all" and not exact.all() and not outside:
        wrong.append(f"{door}: cells {exact} are exact, and all were asked for")
    at = list(case.gammas).index(model.gamma_), model.tau_
    if not (outside or "time_limit" in DOORS[door] or model.certified_):
        wrong.append(f"{door}: the choice is not certified")
    if model.certified_:
        room = truth.size**2 * (1e-6 + 10.0 * float(truth.slack.max()))
        tol = DOORS[door].get("tol", 0.01 if "search" in door else 0.0)
        limit = float(truth.high.min()) * (1.0 + 1e-6) / (1.0 - tol) + room
        if float(truth.low[at]) > limit:
            wrong.append(f"{door}: {at} is chosen at {truth.low[at]}, of {truth.high}")
    data = Data(case.whole, case.b, float(model.gamma_))
    best = enumerate_size(data, model.tau_).least
    lost = 1e-6 * best + fit_rounding(data, range(case.whole.shape[1]), best)
    if model.lower_bound_ > best + lost:
        wrong.append(f"{door}: the model's bound {model.lower_bound_} is above {best}")
    if model.status_ == "optimal" and abs(model.objective_ - best) > lost:
        wrong.append(f"{door}: the model is called optimal at {model.objective_}, not {best}")
    return wrong


def test_a_model_has_the_scale_of_all_rows_where_folds_have_their_own() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((5, 2)), rng.standard_normal(5)
    pairs = [([0, 1, 2], [3]), ([0, 1, 2, 3], [4])]
    case = Case(X, y, ESTIMATORS[0], pairs, [1.0])
    assert not np.allclose(case.whole, case.A)
    truth = case.truth(mean_alone=True)
    for door in DOORS:
        assert contradicted(case, truth, door) == []


@settings(max_examples=examples(10))
@given(st.data())
def test_no_claim_about_a_table_is_contradicted(data: st.DataObject) -> None:
    case = draw_case(data.draw, -6.0, 6.0, honest=True)
    truth = case.truth(mean_alone=True)
    for door in DOORS:
        assert contradicted(case, truth, door) == []


@pytest.mark.parametrize("cv", [4, "loo"])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1e8])
def test_no_claim_about_more_columns_is_contradicted(cv: Any, gamma: float) -> None:
    """Of eight columns two are equal, or of five none; 13 rows; γ far from the data, and none."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((13, 8 if gamma else 5)) + 0.7 * rng.standard_normal((13, 1))
    X[:, -1] = X[:, 0] if gamma else X[:, -1]
    y = X[:, :3].sum(axis=1) + rng.standard_normal(13)
    case = Case(X, y, ESTIMATORS[0], cv, [gamma, 2.0])
    truth = case.truth(mean_alone=True)
    for door in DOORS:
        assert contradicted(case, truth, door) == []
