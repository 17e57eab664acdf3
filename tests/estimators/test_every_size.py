"""Every size of a fit: its model, and R's criteria."""

from __future__ import annotations

import pickle
from math import comb, log, pi
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit
from support.brute_force import Data, enumerate_all
from support.inside import RULES
from support.problems import scaled, three_matter

import sparsecv
from sparsecv import Constraints, SparseRidge, SparseRidgeCV, load
from sparsecv.errors import InputError

Array = NDArray[np.float64]
GAMMAS = [0.1, 1.0, 30.0]


@pytest.mark.parametrize("rule", list(RULES))
def test_every_rule_has_a_model_of_every_size(rule: str) -> None:
    X, y = three_matter()
    model = SparseRidgeCV(rule=rule, gammas=GAMMAS).fit(X, y)
    path = model.path_
    np.testing.assert_array_equal(path["tau"], np.arange(7))
    assert path["proved"].all()
    for t, size in enumerate(path["tau"]):
        other = model.at_size(size)
        assert isinstance(other, SparseRidge)
        np.testing.assert_array_equal(other.coef_[path["columns"][t]], path["coef"][t])
        np.testing.assert_array_equal(np.flatnonzero(other.coef_), path["columns"][t])
        assert other.tau == size
        np.testing.assert_equal(path["gamma"][t], other.gamma if size else np.nan)
        assert other.cv_error_ == path["cv_error"][t]
        if rule == "projected":
            continue
        again = other.__class__(**other.get_params()).fit(X, y)
        np.testing.assert_allclose(again.coef_, other.coef_, rtol=1e-9)
        g = GAMMAS.index(other.gamma)
        assert path["cv_error"][t] == model.surface_["cv_error"][g, t]
        if rule in ("minimum", "one-se") and size != model.tau_:
            assert path["cv_error"][t] == model.surface_["cv_error"][:, t].min()
    np.testing.assert_array_equal(model.at_size(model.tau_).coef_, model.coef_)


def same(here: Any, there: Any) -> None:
    if isinstance(there, pd.DataFrame):
        pd.testing.assert_frame_equal(here, there, check_exact=True)
    else:
        np.testing.assert_equal(here, there)


def everything(model: Any, new: Array, folder: Path) -> list[Any]:
    """What a fitted model says, in an order that asks for each thing the first time."""
    found = [model.predict(new), model.path_, model.criteria_, model.coefficients()]
    found += [model.alternatives(2), model.at_size(2).coef_]
    if isinstance(model, SparseRidgeCV) and model._run_.table.source.weights is None:
        found += [model.predict_interval(new)]
    intervals = isinstance(model, SparseRidgeCV) and model._run_.table.source.weights is None
    model.save(folder / "m.json", intervals=intervals)
    model.report(folder / "r.html")
    found += [(folder / name).read_text(encoding="utf-8") for name in ("m.json", "r.html")]
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        SparseRidge(tau=3),
        SparseRidgeCV(gammas=[0.1, 1.0]),
        SparseRidgeCV(gammas=[0.1, 1.0], fit_intercept=False, standardize=False),
        SparseRidgeCV(gammas=[0.1, 1.0], rule="projected"),
    ],
)
def test_arrays_that_change_after_the_fit_change_nothing(
    model: Any, weighted: bool, tmp_path: Path
) -> None:
    X, y = three_matter()
    new, weights = X[:5].copy(), np.linspace(1.0, 2.0, len(y)) if weighted else None
    expected = everything(clone(model).fit(X, y, sample_weight=weights), new, tmp_path)
    changed = clone(model).fit(X, y, sample_weight=weights)
    X *= 2.0
    y[:] = 0.0
    if weights is not None:
        weights[::2] = 0.0
    for here, there in zip(everything(changed, new, tmp_path), expected, strict=True):
        same(here, there)


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_wide_table_in_a_file_is_fitted_as_one_in_memory(
    kind: type, mode: str, tmp_path: Path
) -> None:
    X, y = three_matter(n=12, p=14)
    np.save(tmp_path / "X.npy", X.astype(kind))
    mapped, model = np.load(tmp_path / "X.npy", mmap_mode=mode), SparseRidgeCV(gammas=[0.1, 1.0])
    expected = everything(clone(model).fit(mapped.astype(float), y), X[:5], tmp_path)
    model.fit(mapped, y)
    y[:] = 0.0
    if mode == "r+":
        mapped *= 2.0
    for here, there in zip(everything(model, X[:5], tmp_path), expected, strict=True):
        same(here, there)


@pytest.mark.parametrize("seed", range(3))
def test_the_path_of_a_fit_is_that_of_enumeration(seed: int) -> None:
    X, y = three_matter(seed=seed)
    model = SparseRidge(tau=4, gamma=0.5).fit(X, y)
    every = enumerate_all(Data(*scaled(X, y), 0.5))
    for t in range(4):
        size = model.at_size(t + 1)
        assert size.objective_ == pytest.approx(every[t + 1].least)
        assert every[t + 1].of(model.path_["columns"][t])[0] == pytest.approx(every[t + 1].least)
    assert model.path_["proved"].all()
    np.testing.assert_array_equal(model.path_["coef"].iloc[-1], model.coef_[model.support_])


def subset_criteria(X: Array, y: Array, columns: Array, full: float) -> dict[str, float]:
    n, p, k = len(y), X.shape[1], len(columns)
    A = np.column_stack([np.ones(n), X[:, columns]])
    rss = float(np.square(y - A @ np.linalg.lstsq(A, y, rcond=None)[0]).sum())
    fit = n * log(rss / n) + n * log(2.0 * pi) + n
    bic = fit + log(n) * (k + 2)
    ebic, cp = bic + 2.0 * log(comb(p, k)), rss / (full / (n - p - 1)) - n + 2 * (k + 1)
    return {"rss": rss, "aic": fit + 2 * (k + 2), "bic": bic, "ebic": ebic, "cp": cp}


@pytest.mark.parametrize(
    ("rule", "cv"), [("minimum", 5), ("minimum", TimeSeriesSplit(3)), ("projected", 5)]
)
def test_criteria_equal_their_formulas(rule: str, cv: Any) -> None:
    """The criteria count every row, whichever rows the folds hold out."""
    X, y = three_matter()
    found = SparseRidgeCV(cv=cv, rule=rule, gammas=GAMMAS).fit(X, y).criteria_
    full = subset_criteria(X, y, np.arange(6), 1.0)["rss"]
    for t, columns in enumerate(found["columns"]):
        for name, value in subset_criteria(X, y, columns, full).items():
            assert found[name][t] == pytest.approx(value, rel=1e-10), name
    assert found["cp"].iloc[-1] == pytest.approx(7.0)


def test_weights_count_as_copies() -> None:
    X, y = three_matter()
    times = np.random.default_rng(0).integers(1, 4, 40)
    whole = SparseRidge(tau=3).fit(X, y, sample_weight=times)
    copies = SparseRidge(tau=3).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    for name in ("aic", "bic", "ebic", "cp"):
        np.testing.assert_allclose(whole.criteria_[name], copies.criteria_[name], rtol=1e-9)


def test_criteria_do_not_depend_on_the_units_of_columns() -> None:
    X, y = three_matter(60, 4)
    units = np.array([1e10, 1e-10, 1.0, 1e5])
    plain, scaled = (
        SparseRidge(tau="bic", standardize=False).fit(table, y).criteria_
        for table in (X, X * units)
    )
    for name in ("rss", "aic", "bic", "ebic"):
        np.testing.assert_allclose(scaled[name], plain[name], rtol=1e-6)


def test_more_columns_than_rows_leave_no_cp() -> None:
    X, y = three_matter(8, 12)
    found = SparseRidge(tau=3).fit(X, y).criteria_
    assert np.isnan(found["cp"]).all()
    assert np.isfinite(found["ebic"]).all()


def test_a_pickle_keeps_what_was_asked_for_and_no_rows() -> None:
    X, y = three_matter(400, 6)
    model = SparseRidgeCV(gammas=[1.0]).fit(X, y)
    sent = pickle.dumps(model)
    assert len(sent) < X.nbytes
    other = pickle.loads(sent)
    for name in ("path_", "criteria_"):
        pd.testing.assert_frame_equal(getattr(other, name), getattr(model, name))
    pd.testing.assert_frame_equal(other.coefficients(), model.coefficients())
    assert other.at_size(2).tau_ == 2
    plain = pickle.loads(pickle.dumps(SparseRidge(tau=2).fit(X, y)))
    with pytest.raises(AttributeError, match="needs the rows of the fit"):
        _ = plain.path_


def test_what_has_no_path_says_so(tmp_path: Any) -> None:
    X, y = three_matter()
    model = SparseRidge(tau=2)
    assert not hasattr(model, "path_")
    model.fit(X, y)
    _ = model.path_
    before = set(vars(model.fit(X, y)))
    assert "path_" not in before  # A new fit forgets it.
    model.save(tmp_path / "m.json")
    assert not hasattr(sparsecv.load(tmp_path / "m.json"), "path_")


@pytest.mark.parametrize(
    "options",
    [{"include": [4]}, {"positive": True}, {"groups": ["a", "a", "b", "c", "c", "d"]}],
)
def test_sizes_and_alternatives_know_constraints(options: dict[str, Any]) -> None:
    X, y = three_matter()
    rules = Constraints(**options, count="groups")
    model = SparseRidgeCV(gammas=GAMMAS, constraints=rules).fit(X, y)
    path = model.path_
    for columns in path["columns"]:
        assert 4 in columns or "include" not in options
        assert (0 in columns) == (1 in columns) or "groups" not in options
    least = min(min(coef, default=0.0) for coef in path["coef"])  # The size 0 has none.
    assert least >= 0.0 or "positive" not in options
    np.testing.assert_array_equal(model.at_size(model.tau_).coef_, model.coef_)
    found = model.alternatives(2)
    first = found["rank"] == 1
    assert first.sum() == path["tau"].size
    assert found["proved"].all()
    for columns in found["columns"]:
        assert 4 in columns or "include" not in options
        assert (0 in columns) == (1 in columns) or "groups" not in options
    alone = SparseRidge(tau=2, constraints=rules).fit(X, y).alternatives(2)
    assert alone["proved"].all()


def test_coefficients_are_those_of_the_columns_of_the_model(tmp_path: Path) -> None:
    X, y = three_matter()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = SparseRidgeCV(gammas=GAMMAS, rule="minimum").fit(frame, y)
    model.save(tmp_path / "m.json")
    of_file = load(tmp_path / "m.json")
    for one in (model, model.at_size(2), SparseRidge(tau=3).fit(frame, y), of_file):
        found = one.coefficients()
        assert sorted(found["position"]) == one.support_.tolist()
        assert found.index.tolist() == [frame.columns[c] for c in found["position"]]
        np.testing.assert_array_equal(found["coef"], one.coef_[found["position"]])
        if one is of_file:
            assert found[["effect", "standardised"]].isna().all(axis=None)
            continue
        effects = one.coef_ * X.std(axis=0)
        np.testing.assert_allclose(found["effect"], effects[found["position"]])
        np.testing.assert_allclose(found["standardised"], found["effect"] / y.std())
        assert found["effect"].abs().is_monotonic_decreasing


def test_a_fit_without_folds_compares_criteria() -> None:
    X, y = three_matter()
    model = SparseRidge(tau=5).fit(X, y)
    found, values = model.compare(), model.criteria_.set_index("tau")
    assert found.index.tolist() == ["aic", "bic", "ebic", "cp"]
    assert list(found) == list(SparseRidgeCV(gammas=1.0).fit(X, y).compare())
    for name, row in found.iterrows():
        assert row["tau"] == values[name].idxmin()
        assert row["criterion"] == values[name].min()
        assert row["columns"] == model.at_size(row["tau"]).support_.tolist()
        assert row["names"] == [f"x{c}" for c in row["columns"]]
    assert found["cv_error"].isna().all()
    assert found["certified"].all()
    few = SparseRidge(tau=2).fit(X[:5], y[:5]).compare()  # No rows are left for Cp.
    assert few.index.tolist() == ["aic", "bic", "ebic"]


def test_who_changes_a_frame_of_alternatives_changes_no_summary() -> None:
    X, y = three_matter()
    model = SparseRidge(tau=2).fit(X, y)
    found = model.alternatives(2)
    text = model.summary()
    found["objective"] = 0.0
    found["names"] = "none"
    assert model.summary() == text


def test_intervals_of_a_model_without_folds(tmp_path: Path) -> None:
    X, y = three_matter()
    with pytest.raises(InputError, match="need folds: use SparseRidgeCV"):
        SparseRidge(tau=2).fit(X, y).predict_interval(X)
    model = SparseRidgeCV(gammas=1.0).fit(X, y)
    model.save(tmp_path / "m.json", intervals=True)
    found = load(tmp_path / "m.json").predict_interval(X)
    np.testing.assert_allclose(found, model.predict_interval(X), rtol=1e-12)
