"""Rules that choose (τ, γ): against their definitions, in the estimator and on the command line."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold
from support.inside import (
    CHOOSERS,
    PARTITIONS,
    RULES,
    Limits,
    StopFlag,
    Study,
    Surface,
    all_partitions,
    alternate,
    average_of,
    choice_of_size,
    chosen_from,
    make_folds,
    model_weights,
)
from support.stand_ins import StandIn, real
from support.studies import choices_of, first_of, is_proved, made, study_of, surfaces_of

from sparsecv import SparseRidge, SparseRidgeCV, risk
from sparsecv.selection.choice import projection_of
from sparsecv.selection.surfaces import with_everything
from sparsecv.solvers import support_path


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cv", [KFold(5), "loo"])
def test_the_corrected_error_is_that_of_refitted_models(intercept: bool, cv: Any) -> None:
    X, y = made()
    options: dict[str, Any] = {"standardize": False, "fit_intercept": intercept}
    gammas, taus = [0.1, 10.0], [1, 2, 4]
    found = SparseRidgeCV(cv=cv, gammas=gammas, taus=taus, rule="corrected", **options).fit(X, y)
    surface = [
        [risk.corrected_k_fold(SparseRidge(t, g, **options), X, y, cv=cv).value for t in taus]
        for g in gammas
    ]
    choice = found._run_.choices["corrected"]
    g, t = np.unravel_index(int(np.argmin(surface)), (2, 3))
    assert (found.gamma_, found.tau_) == (gammas[g], taus[t])
    assert choice.criterion == pytest.approx(np.min(surface), rel=1e-7)
    assert found.cv_error_ == pytest.approx(found.surface_["cv_error"][g, t])
    assert found.certified_
    np.testing.assert_array_equal(
        found.support_, SparseRidge(found.tau_, found.gamma_, **options).fit(X, y).support_
    )


def test_rules_side_by_side() -> None:
    X, y = made(60, 8)
    found = {
        rule: SparseRidgeCV(gammas=[1.0, 30.0], random_state=0, rule=rule).fit(X, y)
        for rule in RULES
    }
    plain = found["minimum"]
    choices = plain.compare()
    for rule, model in found.items():
        before, coef = repr(model._run_.choices[rule]), model.coef_.copy()
        compared = model.compare()
        assert compared.index.tolist() == list(RULES)
        pd.testing.assert_frame_equal(compared, choices)
        assert before == repr(model._run_.choices[rule])
        np.testing.assert_array_equal(model.coef_, coef)
        choice = choices.loc[rule]
        for name in ("tau", "gamma", "cv_error"):
            assert choice[name] == getattr(model, f"{name}_")
        assert choice["columns"] == model.support_.tolist()
        assert choice["names"] == model.get_feature_names_out().tolist()
        assert model.support_.size == model.tau_
        assert model.certified_
        assert choice["certified"]
        assert np.isfinite(choice["lambda_"]) == (rule == "stability")
    assert found["one-se"].tau_ == plain.tau_1se_ <= plain.tau_
    of_size = plain.surface_["cv_error"][:, plain.surface_["tau"] == plain.tau_1se_]
    assert found["one-se"].cv_error_ == of_size.min()
    assert plain.cv_error_ <= min(model.cv_error_ for model in found.values())


def test_what_costs_more_is_found_where_it_is_asked_for() -> None:
    X, y = made(60, 8)
    shown: tuple[tuple[dict[str, Any], set[str]], ...] = (
        ({"rule": "minimum"}, {"minimum", "one-se"}),
        ({"rule": "corrected"}, {"minimum", "one-se", "corrected"}),
        ({"rule": "stability"}, {"minimum", "one-se", "stability"}),
        ({}, {"minimum", "one-se", "projected"}),
        ({"cv": "loo"}, {"minimum", "one-se", "projected"}),
        ({"method": "search"}, {"minimum"}),
    )
    for options, known in shown:
        assert set(SparseRidgeCV(gammas=1.0, **options).fit(X, y)._run_.choices) == known, options
    assert set(SparseRidgeCV(gammas=1.0, method="search").fit(X, y).compare().index) == {"minimum"}
    known = {"minimum", "one-se", "corrected", "projected"}
    assert set(SparseRidgeCV(gammas=1.0, cv=KFold(2)).fit(X, y).compare().index) == known


@pytest.mark.parametrize("cv", [4, "size:9"])
@pytest.mark.parametrize("seed", [0, 7, "state"])
def test_weights_of_the_average_come_from_several_partitions(cv: Any, seed: Any) -> None:
    X, y = made(30, 5)
    gammas = [0.1, 5.0, 50.0]

    def random_state() -> Any:
        return np.random.RandomState(3) if seed == "state" else seed

    state = random_state()
    folds = make_folds(cv, 30, seed=state)
    every = [folds, *(folds.again(state, number) for number in range(1, PARTITIONS))]
    assert len({one.label.tobytes() for one in every if one.label is not None}) == PARTITIONS
    surfaces = surfaces_of(X, y, every, gammas)
    model = SparseRidgeCV(cv=cv, gammas=gammas, random_state=random_state(), rule="projected")
    average = model.fit(X, y)._run_.choice.projection.average
    mean = np.mean(surfaces, axis=0)
    mean[:, 0] = np.inf  # The mean alone carries no weight.
    np.testing.assert_allclose(average.partitions.mean, mean, rtol=1e-9)
    expected = model_weights(mean, np.array(gammas), 30)
    np.testing.assert_allclose(average.weights, expected, rtol=1e-7)
    assert model.certified_
    assert model.status_ == "optimal"


@pytest.mark.parametrize("p", [5, 50])
@pytest.mark.parametrize("rule", ["projected", "minimum", None])
def test_the_number_of_partitions(p: int, rule: str | None) -> None:
    study = study_of(*made(40, p), rule=rule)
    assert study.partitions == PARTITIONS == 2


def test_partitions_there_was_no_time_for() -> None:
    """They are missing from the mean, and nothing is certified by the others."""
    X, y = made(40, 5)
    study = study_of(X, y, rule="projected", time_limit=1000.0)
    first = first_of(study)
    late = replace(study, plan=replace(study.plan, limits=Limits(0.0, None, StopFlag())))
    partitions = all_partitions(late, first)
    assert partitions.others == []
    assert str(partitions.spent.status) == "time limit"
    errors = first.result.table("cv_error")
    np.testing.assert_array_equal(partitions.mean[:, 1:], errors[:, 1:])
    choice = CHOOSERS["projected"](late, first)
    assert not is_proved(late, first.result, choice)
    assert str(choice.status) == "time limit"
    whole = CHOOSERS["projected"](study, first)
    assert is_proved(study, first.result, whole)
    assert whole.projection is not None
    assert len(whole.projection.average.partitions.others) == PARTITIONS - 1


def test_a_partition_with_open_intervals_certifies_nothing() -> None:
    X, y = made(40, 5)
    study = study_of(X, y, rule="projected")
    average = average_of(study, first_of(study))
    honest = projection_of(study, average)
    assert is_proved(study, average.result, honest)
    (other,) = average.partitions.others
    result = deepcopy(other)
    for one in result.by_gamma:
        one.lower[:] = 0.0
        one.exact[:] = False
    partitions = average.partitions._replace(others=[result])
    again = projection_of(study, replace(average, partitions=partitions))
    assert not is_proved(study, average.result, again)
    assert (again.tau, again.gamma) == (honest.tau, honest.gamma)
    assert again.criterion == honest.criterion


def test_what_is_open_certifies_no_rule() -> None:
    X, y = made(40, 5)
    study = study_of(X, y, taus=[1, 2, 3])
    first = first_of(study)
    assert is_proved(study, first.result, CHOOSERS["corrected"](study, first))
    proved = first.result.tables["model_proved"]
    proved[0] = np.array([True, False, True])
    assert not is_proved(study, first.result, CHOOSERS["corrected"](study, first))
    proved[0] = np.ones(3, dtype=bool)
    honest = CHOOSERS["minimum"](study, first)
    assert is_proved(study, first.result, honest)
    late = first.result.by_gamma[1 - honest.position[0]]
    late.lower[:] = 0.0
    late.exact[:] = False
    assert CHOOSERS["minimum"](study, first).gamma == honest.gamma
    for rule in ("minimum", "one-se", "corrected"):
        assert not is_proved(study, first.result, CHOOSERS[rule](study, first))


@pytest.mark.parametrize(
    ("what", "weighted"),
    [
        *product(["model", "fold", "own weights", "inner"], [True, False]),
        ("other partition", True),  # Others are evaluated at γ that carry weight alone.
    ],
)
def test_a_projection_is_certified_where_what_carries_weight_is_proved(
    what: str, weighted: bool
) -> None:
    """What carries no weight in an average may be an estimate."""
    X = np.random.default_rng(0).standard_normal((60, 5))
    y = X @ [3.0, -2.0, 1.0, 0.0, 0.0] + 0.5 * np.random.default_rng(1).standard_normal(60)
    study = study_of(X, y, gammas=[1.0, 1e5], rule="projected")
    average = average_of(study, first_of(study))
    assert is_proved(study, average.result, projection_of(study, average))
    carries = average.weights > 0.0
    if what == "fold":
        carries[:, 1:] |= (np.array(average.inner.weights) > 0.0).any(axis=0)
    assert carries[0].any()
    assert not carries[1].any()
    g = 0 if weighted else 1
    t = int(np.flatnonzero(carries[g] == weighted)[-1])
    if what == "model":
        average.result.by_gamma[g].model_proved[t] = False
    elif what == "fold":
        average.result.by_gamma[g].exact[t] = False
    elif what == "other partition":
        average.partitions.others[0].by_gamma[g].exact[t] = False
    elif what == "own weights":
        # A pair that carries weight in a fold alone.
        own = average.inner.weights[0]
        own[0], own[0, t - 1], average.weights[0, t] = 0.0, float(weighted), 0.0
        average.in_folds.by_gamma[g].exact[t] = False
    else:
        average = replace(average, inner=average.inner._replace(proved=not weighted))
    assert is_proved(study, average.result, projection_of(study, average)) == (not weighted)


def test_sizes_are_certified_one_by_one(stand_in: StandIn) -> None:
    """A projection of another size may be an estimate; where it is asked for, it is called so."""
    X, y = made(60, 5)
    study = study_of(X, y, rule="projected")
    first = first_of(study)
    average = average_of(study, first)
    choice = projection_of(study, average)
    found = choice.projection
    assert found is not None
    assert found.proved.all()
    other = found.chosen - 1 if found.chosen else 1
    plain = real("split_unit")

    def unproved(splits: Any, j: int, gammas: Any, sizes: Any, *how: Any) -> Any:
        made = plain(splits, j, gammas, sizes, *how)
        made.proved[:, np.isin(sizes, [found.sizes[other].tau])] = False
        return made

    stand_in(split_unit=unproved)
    again = projection_of(study, average)
    assert is_proved(study, first.result, again)
    assert again.tau == choice.tau
    for tau, proved in ((found.sizes[other].tau, False), (choice.tau, True)):
        own = choice_of_size(first.result, again, tau)
        assert is_proved(study, first.result, own) == proved


def test_projections_are_proved_where_the_choice_rests_on_them(
    stand_in: StandIn,
) -> None:
    """Where the first search ends at one node, the choice is that of a search to the end."""
    X, y = made(60, 18, seed=3)
    whole = choices_of(study_of(X, y, rule="projected", prove="all"))["projected"]
    stand_in(FIRST_NODES=1)
    study = study_of(X, y, rule="projected")
    first = first_of(study)
    found = choices_of(study, first)["projected"]
    assert is_proved(study, first.refreshed().result, found)
    assert found.projection is not None
    assert whole.projection is not None
    assert not found.projection.proved.all()
    assert (found.tau, found.gamma) == (whole.tau, whole.gamma)
    assert found.criterion == pytest.approx(whole.criterion, rel=1e-9)
    assert found.projection.average.error == pytest.approx(whole.projection.average.error, rel=1e-9)


def test_other_partitions_skip_gammas_that_are_close() -> None:
    """An alternation visits γ that lie close together, and the average then skips some of them."""
    X, y = made(40, 5)
    study = study_of(X, y, gammas=None, rule="minimum")
    average = average_of(study, first_of(study))
    every, at = average.result, average.partitions.gammas
    walked = alternate(Surface(study.data, np.arange(1, 6)))
    np.testing.assert_array_equal(every.gammas, walked.gammas)
    assert 8 <= at.size < every.gammas.size
    assert every.best().gamma_index in at
    kept = np.sort(every.gammas[at])
    assert np.all(kept[1:] >= 1.5 * kept[:-1])
    np.testing.assert_array_equal(average.partitions.others[0].gammas, kept)
    used = every.gammas[average.weights.any(axis=1)]
    assert np.isin(used, kept).all()


def test_beyond_trees_other_partitions_are_asked_what_counts() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 50))
    y = X[:, :2] @ [3.0, 2.0] + rng.standard_normal(100)
    gammas, taus = np.array([1.0, 20.0, 1e6]), np.arange(1, 41)
    study = study_of(X, y, 5, gammas, taus, rule="projected", time_limit=60.0)
    surface = first_of(study)
    choice = choices_of(study, surface)["projected"]
    assert choice.projection is not None
    average = choice.projection.average
    first, partitions = average.result, average.partitions
    weights = model_weights(first.table("cv_error"), gammas, 100)
    assert not weights[2].any()  # a model of nothing
    np.testing.assert_array_equal(partitions.gammas, [0, 1])
    reach = int(np.flatnonzero(weights.any(axis=0))[-1]) + 1
    (other,) = partitions.others
    assert other.taus.tolist() == first.taus[:reach].tolist()
    assert not other.table("lower").any()  # no bounds
    error = partitions.mean
    every = [first.table("cv_error")[:2, :reach], other.table("cv_error")]
    np.testing.assert_allclose(error[:, :reach], np.mean(every, axis=0))
    assert np.isinf(error[:, reach:]).all()
    expected = model_weights(error, gammas[:2], 100)
    np.testing.assert_allclose(average.weights[:2], expected)
    assert np.isfinite(average.error)
    assert not is_proved(study, surface.result, choice)


@pytest.mark.parametrize("p", [6, 50])
def test_other_partitions_skip_what_carries_no_weight_at_every_width(p: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, p))
    y = X[:, :2] @ [3.0, 2.0] + rng.standard_normal(100)
    study = study_of(X, y, 5, [1.0, 20.0, 1e6], [1, 2, 3], rule="projected", time_limit=60.0)
    partitions = all_partitions(study, first_of(study))
    weights = model_weights(partitions.first.table("cv_error"), partitions.first.gammas, 100)
    np.testing.assert_array_equal(partitions.gammas, np.flatnonzero(weights.any(axis=1)))
    assert partitions.gammas.tolist() == [0, 1]
    (other,) = partitions.others
    assert other.gammas.tolist() == [1.0, 20.0]
    assert other.taus.size == np.flatnonzero(weights.any(axis=0))[-1] + 1


def test_sizes_grow_as_far_as_they_are_worth_it() -> None:
    """Sizes that carry no weight are not tried, and the choice is that of all sizes."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((220, 150))
    y = X[:, ::30].sum(axis=1) + rng.standard_normal(220)
    default, named = SparseRidgeCV().fit(X, y), SparseRidgeCV(taus=range(1, 50)).fit(X, y)
    assert default.taus_[-1] == 32
    assert named.taus_[-1] == 49
    np.testing.assert_array_equal(default.support_, named.support_)
    y = X[:, ::3].sum(axis=1) + 0.1 * rng.standard_normal(220)
    assert SparseRidgeCV().fit(X, y).taus_[-1] > 40


def hard_to_estimate(stand_in: StandIn, rule: str, **options: Any) -> Study:
    """A study of 18 columns whose estimates prove nothing, as their trees have few nodes."""
    stand_in(FIRST_NODES=20)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 18)) + rng.standard_normal((50, 1))
    y = X[:, :3] @ [3.0, -2.0, 1.0] + 0.7 * rng.standard_normal(50)
    return study_of(X, y, gammas=[0.1, 3.0, 1e4], rule=rule, **options)


@pytest.mark.parametrize("rule", ["minimum", "one-se", "projected"])
def test_what_the_choice_needs_is_proved_before_the_rest(rule: str, stand_in: StandIn) -> None:
    """The choice is the one that is made with everything proved."""
    study = hard_to_estimate(stand_in, rule)
    first, choice = chosen_from(study, first_of(study))
    assert is_proved(study, first.result, choice)
    assert not first.result.complete
    harder = hard_to_estimate(stand_in, rule, prove="all")
    every, whole = chosen_from(harder, first_of(harder))
    assert every.result.complete
    assert (whole.tau, whole.gamma) == (choice.tau, choice.gamma)
    assert whole.cv_error == pytest.approx(choice.cv_error, rel=1e-9)
    lower, exact = first.result.table("lower"), every.result.table("cv_error")
    assert bool((lower <= exact * 1.000001).all())
    assert with_everything(study, first).result.complete


def test_pairs_of_weight_are_proved_on_every_partition(stand_in: StandIn) -> None:
    study = hard_to_estimate(stand_in, "projected")
    average = average_of(study, first_of(study))
    weighted = average.weights > 0.0
    assert average.result.table("model_proved")[weighted].all()
    for one in average.partitions.results:
        exact = one.table("exact").astype(bool)
        assert exact[weighted[average.partitions.gammas][:, : one.taus.size]].all()


def test_what_follows_a_fit_has_a_time_limit_of_its_own() -> None:
    """The time of the fit is over when other rules are asked for."""
    X, y = made(40, 5)
    study = study_of(X, y, rule="minimum", time_limit=1000.0)
    first = first_of(study)
    late = replace(study, plan=replace(study.plan, limits=Limits(0.0, None, StopFlag())))
    again = late.again()
    left = again.plan.limits.remaining()
    assert left is not None
    assert left > 900.0
    choice = choices_of(again, first, every=True)["projected"]
    assert is_proved(again, first.result, choice)


def test_a_time_limit_of_0_proves_nothing(stand_in: StandIn) -> None:
    """Estimates take as long as they need, so that no proof may begin among them."""
    solvers = set[str]()

    def noted(*args: Any, solver: str, **options: Any) -> Any:
        solvers.add(solver)
        return support_path(*args, solver=solver, **options)

    stand_in(path_of_a_split=noted)
    study = hard_to_estimate(stand_in, "projected", time_limit=0.0)
    first = first_of(study)
    assert not is_proved(study, first.result, choices_of(study, first)["projected"])
    assert solvers == {"heuristic"}
    assert not first.result.table("exact")[:, 1:].any()
