"""What one method has, the others have: names, groups, refusals of projections, what was filled."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold

import sparsecv
from sparsecv import SparseRidge, SparseRidgeCV, StabilityCV
from sparsecv.errors import InputError

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 4))
Y = X[:, 0] + 0.6 * X[:, 1] + RNG.standard_normal(60)
GROUPS = np.arange(60) // 5
CITY = np.array(["Bonn", "Oslo", "Rom"])[RNG.integers(0, 3, 60)]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(city=CITY)
NAMES = [*"abcd", "city=Bonn", "city=Oslo", "city=Rom"]


@pytest.mark.parametrize(
    ("table", "names", "levels"),
    [
        (X, ["x0", "x1", "x2", "x3"], {}),
        (FRAME.drop(columns="city"), list("abcd"), {}),
        (FRAME, NAMES, {"city": ["Bonn", "Oslo", "Rom"]}),
    ],
)
@pytest.mark.parametrize("estimator", [SparseRidge(tau=2), SparseRidgeCV(rule="minimum")])
def test_the_columns_of_coef_always_have_names(
    estimator: Any, table: Any, names: list[str], levels: dict[str, Any], tmp_path: Path
) -> None:
    model = estimator.fit(table, Y)
    model.save(tmp_path / "m.json")
    for one in (model, model.at_size(1), sparsecv.load(tmp_path / "m.json")):
        assert one.coef_names_.tolist() == names
        assert one.levels_ == levels
        assert len(one.coef_names_) == len(one.coef_)


def test_single_rows_of_a_fit_of_one_size_come_in_groups() -> None:
    """The refusal of a projection leads to ``SparseRidge``, which then knows the groups, too."""
    chosen = SparseRidgeCV(rule="minimum", gammas=[1.0], taus=[2]).fit(X, Y, groups=GROUPS)
    fixed = SparseRidge(tau=2, gamma=1.0).fit(X, Y, groups=GROUPS)
    found, same = fixed.row_influence(), chosen.row_influence()
    assert found.index.name == "group"
    pd.testing.assert_frame_equal(found, same)
    for group, row in found.iterrows():
        rest = group != GROUPS
        without = SparseRidge(tau=2, gamma=1.0).fit(X[rest], Y[rest])
        assert row["columns"] == without.support_.tolist()
    with pytest.raises(InputError, match="groups"):
        SparseRidge().fit(X, Y, groups=GROUPS[1:])


@pytest.mark.parametrize("method", ["near_best", "importance", "row_influence", "row_removals"])
def test_a_projection_is_refused_alike(method: str) -> None:
    model = SparseRidgeCV().fit(X, Y)
    with pytest.raises(InputError, match=r"projection.*SparseRidge\(tau, gamma\)"):
        getattr(model, method)()
    assert len(getattr(SparseRidgeCV(rule="minimum").fit(X, Y), method)())


def test_stability_holds_out_whole_groups() -> None:
    grid = {"alpha": [0.1, 1.0, 10.0]}
    model = StabilityCV(Ridge(), grid, cv=4, random_state=0).fit(X, Y, groups=GROUPS)
    for _, held_out in model.folds_.splits():
        assert not set(GROUPS[held_out]) & set(np.delete(GROUPS, held_out))
    one = StabilityCV(Ridge(), grid, cv="loo").fit(X, Y, groups=GROUPS)
    assert one.folds_.k == 12
    pairs = list(GroupKFold(3).split(X, Y, GROUPS))
    by_splitter = StabilityCV(Ridge(), grid, cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    by_pairs = StabilityCV(Ridge(), grid, cv=pairs).fit(X, Y)
    np.testing.assert_array_equal(
        by_splitter.cv_results_["cv_error"], by_pairs.cv_results_["cv_error"]
    )
    exact = StabilityCV(SparseRidge(), {"tau": [1, 2], "gamma": [1.0]}, cv="loo")
    assert exact.fit(X, Y, groups=GROUPS).folds_.k == 12
    with pytest.raises(InputError, match="groups"):
        StabilityCV(Ridge(), grid).fit(X, Y, groups=GROUPS[1:])


@pytest.mark.parametrize("classes", [2, 3])
def test_folds_of_a_classifier_hold_whole_groups_too(classes: int) -> None:
    labels = np.arange(60) % classes
    model = StabilityCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=4, random_state=0)
    model.fit(X, labels, groups=GROUPS)
    assert model.folds_.k == 4
    for _, held_out in model.folds_.splits():
        assert not set(GROUPS[held_out]) & set(np.delete(GROUPS, held_out))
        assert len(set(labels[held_out])) == classes


@pytest.mark.parametrize("estimator", [SparseRidge, SparseRidgeCV])
def test_summary_and_report_say_what_was_filled(estimator: Any) -> None:
    holes = FRAME.drop(columns="city")
    holes.loc[:2, "a"] = np.nan
    holes.loc[9, "c"] = np.nan
    model = estimator(missing="mean").fit(holes, Y)
    page = unescape(model.report().html)
    for text in (model.summary(), page):
        said = " ".join(text.split())
        assert "Missing values were filled by the mean of" in said
        assert "3 in a, 1 in c." in said
        assert ("of each fold's training rows" in said) == (estimator is SparseRidgeCV)
    whole = estimator(missing="mean").fit(FRAME.drop(columns="city"), Y)
    assert "No value is missing" in whole.summary()
    assert "issing" not in estimator().fit(X, Y).summary()


def test_leads_are_said_to_be_at_least() -> None:
    model = SparseRidge(tau=2).fit(X, Y)
    model.row_influence()
    assert "left out, at least" in model.report().html
