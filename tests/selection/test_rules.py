"""Rules of selection: what each evaluates and chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from support.inside import all_partitions, average_of, make_folds, model_weights
from support.stand_ins import standing_in
from support.studies import Array, choices_of, first_of, is_proved, made, study_of

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError, UnprovedWarning
from sparsecv.selection import rules
from sparsecv.selection.stable_errors import stable_errors
from sparsecv.stability import partial_errors, select


def test_the_default_is_the_same_at_every_width() -> None:
    X = np.random.default_rng(0).standard_normal((30, 46))
    y = X[:, 0]
    pairs = [(np.arange(10, 30), np.arange(10)), (np.arange(20), np.arange(20, 30))]
    options: tuple[dict[str, Any], ...] = (
        {},
        {"cv": "size:6"},
        {"cv": "loo"},
        {"cv": KFold(3)},
        {"cv": pairs},
        {"taus": [1]},
        {"time_limit": 60.0},
        {"time_limit": None},
        {"prove": "all", "time_limit": 0.5},
        {"method": "grid", "taus": [1], "time_limit": 0.5},
    )
    for one in options:
        for p in (1, 45, 46):
            own = dict(one)
            cv, taus = own.pop("cv", 5), own.pop("taus", None)
            study = study_of(X[:, :p], y, cv, 100.0, taus, rule=None, **own)
            assert (study.rule, study.reason) == ("projected", "the default"), one
            for other in rules.RULES:
                named = study_of(X[:, :p], y, 5, 100.0, rule=other)
                assert (named.rule, named.reason) == (other, "as asked")


def test_the_default_is_the_minimum_where_the_least_error_alone_is_looked_for() -> None:
    X, y = made(n=30, p=4)
    for options, words in (
        ({"method": "search"}, "method search"),
        ({"gammas": "global"}, "over a range of γ"),
        ({"certificate": True}, "a certificate"),
    ):
        study = study_of(X, y, rule=None, **options)
        assert study.rule == "minimum"
        assert study.reason.startswith(words)
    paper = rules.resolved_rule(replace(study.settings, certificate=False), "paper")
    assert paper[0] == "minimum"
    assert SparseRidgeCV(gammas="global", taus=[1]).fit(X, y).rule_ == "minimum"
    found = SparseRidgeCV(gammas=100.0).fit(X, y)
    assert found.rule_ == "projected"
    assert found.compare().loc["minimum", "tau"] >= 1  # beside it


@pytest.mark.parametrize("cv", [KFold(3), [(np.arange(10, 30), np.arange(10))]])
def test_folds_that_are_given_are_the_only_ones(cv: Any) -> None:
    X, y = made(30, 50)
    study = study_of(X, y, cv, 100.0, [1, 2], rule=None, time_limit=60.0)
    assert study.rule == "projected"
    average = average_of(study, first_of(study))
    assert average.partitions.others == []
    projection = choices_of(study)["projected"].projection
    assert projection is not None
    assert projection.average.error == pytest.approx(average.error)


def test_weights_do_not_depend_on_where_gamma_is_dense() -> None:
    smooth = np.geomspace(0.01, 100.0, 41)
    more = np.sort(np.append(smooth, np.geomspace(0.9, 1.1, 30)))
    shuffled = np.random.default_rng(0).permutation(more)

    def mass(gammas: Array) -> float:
        surface = 1.0 + 0.1 * np.log(gammas)[:, None] ** 2 * np.ones((1, 2))
        weights = model_weights(surface, gammas, 40)
        assert weights.sum() == pytest.approx(1.0)
        return float(
            weights[gammas < 1.0 - 1e-9].sum() + weights[np.isclose(gammas, 1.0)].sum() / 2
        )

    assert mass(smooth) == pytest.approx(0.5, abs=1e-6)
    assert mass(more) == pytest.approx(0.5, abs=0.02)
    assert mass(shuffled) == pytest.approx(mass(more))
    np.testing.assert_allclose(model_weights(np.array([[1.0, 0.0]]), np.ones(1), 9), [[0.0, 1.0]])
    np.testing.assert_allclose(model_weights(np.ones((2, 1)), np.ones(2), 9), [[0.5], [0.5]])
    # γ = 0 counts as far below the least positive γ as the next γ is above, or a decade below.
    for gammas, expected in (
        ([0.0, 1.0, 4.0], [0.25, 0.5, 0.25]),
        ([3.0, 0.0], [0.5, 0.5]),
        ([0.0, 0.0], [0.5, 0.5]),
    ):
        found = model_weights(np.ones((len(gammas), 1)), np.array(gammas), 9)
        np.testing.assert_allclose(found[:, 0], expected)


@pytest.mark.parametrize(("p", "limit"), [(4, None), (48, 0.0)])
@pytest.mark.parametrize("gammas", [[0.0], [0.0, 1.0]])
def test_averages_take_models_without_a_ridge(
    gammas: list[float], p: int, limit: float | None
) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, p))
    y = X[:, 0] + 0.1 * rng.normal(size=20)
    model = SparseRidgeCV(gammas=gammas, taus=[1, 2], rule="projected", time_limit=limit)
    model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.coef_[0] == pytest.approx(1.0, abs=0.2)
    assert 0.0 < model.cv_error_ < 0.1


def test_leave_one_out_has_one_partition() -> None:
    study = study_of(*made(20, 4), "loo", [0.1, 5.0], rule="projected")
    first = first_of(study)
    partitions = all_partitions(study, first)
    assert partitions.others == []
    assert partitions.whole
    errors = first.result.table("cv_error")
    np.testing.assert_array_equal(partitions.mean[:, 1:], errors[:, 1:])
    assert np.isinf(partitions.mean[:, 0]).all()  # The mean alone carries no weight.


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("cv", "n"), [(3, 25), (5, 31), ("loo", 12)])
def test_stability_is_algorithm_one_of_refitted_models(cv: Any, n: int, intercept: bool) -> None:
    X, y = made(n, 4, seed=n)
    options: dict[str, Any] = {"standardize": False, "fit_intercept": intercept}
    gammas, taus = [0.1, 8.0], [1, 2, 4]
    found = SparseRidgeCV(
        cv=cv, gammas=gammas, taus=taus, random_state=0, rule="stability", **options
    ).fit(X, y)

    def learner(training: NDArray[np.intp], candidates: Sequence[int]) -> Array:
        models = [(gammas[c // 3], taus[c % 3]) for c in candidates]
        return np.array(
            [
                (y - SparseRidge(t, g, **options).fit(X[training], y[training]).predict(X)) ** 2
                for g, t in models
            ]
        )

    errors = partial_errors(learner, make_folds(cv, n, seed=0).label, 6)
    reference = select(errors)
    choice = found._run_.choices["stability"]
    weight = reference.lambda_
    assert choice.lambda_ == weight
    least = (errors.cv_error + weight * errors.stability).min()
    assert choice.criterion == pytest.approx(least, rel=1e-7)
    assert 3 * choice.position[0] + choice.position[1] == reference.theta
    # a block of one candidate at a time gives the same
    with standing_in(MAX_LOSSES=1):
        same = SparseRidgeCV(
            cv=cv, gammas=gammas, taus=taus, random_state=0, rule="stability", **options
        ).fit(X, y)
    again = same._run_.choices["stability"]
    assert (again.tau, again.gamma, again.lambda_) == (choice.tau, choice.gamma, weight)
    assert again.criterion == pytest.approx(choice.criterion)


def test_an_unproved_rule_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 70))
    y = X[:, :10].sum(axis=1) + 3.0 * rng.standard_normal(60)
    for rule in ("corrected", "stability"):
        with pytest.warns(UnprovedWarning, match=f"rule {rule}"):
            found = SparseRidgeCV(
                gammas=0.01, taus=[12], rule=rule, time_limit=0.2, random_state=0
            ).fit(X, y)
        assert not found.certified_
        assert found.status_ == "time limit"


def test_rules_that_overlapping_folds_allow() -> None:
    X, y = made()
    rows = np.arange(30)
    overlapping = [(rows[10:], rows[:10]), (rows[5:], rows[:5])]
    with pytest.raises(InputError, match="can be drawn again"):
        make_folds("loo", 5).again(0, 1)
    fine = SparseRidgeCV(cv=overlapping, gammas=1.0).fit(X, y)
    assert set(fine.compare().index) == {"minimum", "one-se", "projected"}


@pytest.mark.parametrize(("limit", "proved"), [(60.0, True), (None, True), (1e-6, False)])
def test_models_of_the_rule_stability_keep_the_time_limit(limit: Any, proved: bool) -> None:
    X, y = made(n=40, p=20)
    study = study_of(X, y, cv=3, rule="stability", time_limit=limit)
    first = first_of(study)
    assert stable_errors(study, first.result).proved.all() == proved
    choice = choices_of(study, first)["stability"]
    assert is_proved(study, first.refreshed().result, choice) == proved
