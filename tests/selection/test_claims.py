"""What is claimed of a choice is proved, over the range and by the rule that the claim names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.claim_attacks import CLAIMS
from support.claims import wrong_claims
from support.commands import run_json
from support.fresh import draws
from support.inside import CHOOSERS, RULES, claim_of
from support.studies import first_of, is_proved, made, study_of
from support.tables import write_csv

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.cv.results import bounds_text, rounded_bound
from sparsecv.errors import UnprovedWarning
from sparsecv.selection.choice import chosen_again

RANGE = "global:0.1:10"


def fitted(rows: int = 24, p: int = 4, **options: Any) -> SparseRidgeCV:
    """A fit that may leave its choice open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        return SparseRidgeCV(cv=3, **options).fit(*made(rows, p))


@pytest.mark.parametrize(("family", "name"), list(enumerate(CLAIMS)))
def test_claims_of_random_tables_are_those_of_enumeration(family: int, name: str) -> None:
    for note, rng in draws(240, 700 + family):
        number = int(rng.integers(2**31))
        lines = list(CLAIMS[name](rng, number))
        assert not lines, f"{note}: {lines}"


@pytest.mark.parametrize("limit", [None, 0.001, 0])
@pytest.mark.parametrize("gammas", [None, 1.0, [0.1, 3.0, 40.0], RANGE])
@pytest.mark.parametrize("rule", list(RULES))
def test_every_claim_is_recomputed(rule: str, gammas: Any, limit: float | None) -> None:
    if rule == "projected" and gammas == RANGE:  # This rule takes no range.
        return
    methods = ["exact"]
    if gammas != RANGE and gammas is not None:
        methods += ["grid", "search"] if rule == "minimum" else ["grid"]
    for method in methods:
        model = fitted(rule=rule, gammas=gammas, time_limit=limit, method=method)
        assert list(wrong_claims(model._run_, *made(24, 4))) == []
        claim = model._run_.claim
        assert (model.claim_, model.certified_) == (claim.sentence, claim.proved)
        assert model.cv_error_bounds_ == (claim.lower, claim.upper)
        assert model.certified_ or limit is not None
        # Where the time does not suffice for the rule, the least CV error counts, and is named.
        named = {rule, "minimum"} if limit else {rule}
        assert model.rule_ in named
        assert f"(rule {model.rule_}; " in model.claim_


@pytest.mark.parametrize(("rule", "span"), [(r, r == "minimum") for r in RULES if r != "projected"])
def test_every_gamma_of_a_range_is_claimed_for_the_least_error_alone(rule: str, span: bool) -> None:
    """The other rules compare some γ of the range, and say so."""
    model = fitted(rule=rule, gammas=RANGE, time_limit=None)
    claim, printed = model._run_.claim, " ".join(str(model.summary()).split())
    assert model.certified_
    assert (claim.span is not None) == span
    assert claim.gammas.size == 12
    words = "every γ from 0.1 to 10" if span else "the 12 γ from 0.1 to 10 that were compared"
    assert f"(rule {rule}; τ from 0 to 4; {words})" in model.claim_
    assert model.claim_.removeprefix("It is proved that ").removesuffix(".") in printed
    assert "no τ and no γ" not in printed


@pytest.mark.parametrize("rule", ["stability", "corrected"])
def test_a_size_is_proved_by_a_criterion_only_where_all_its_models_are(
    rule: str, tmp_path: Path
) -> None:
    """Beyond 45 columns CV errors are proved, and models that the criteria need are not."""
    X, y = made(20, 46)
    options = ["--gamma", "1", "--tau", "1,2", "--folds", "3", "--rule", rule, "--size", "1"]
    table = write_csv(tmp_path / "wide.csv", X, y)
    found = run_json("cv", table, *options, "--no-nested", folder=tmp_path)
    exact = [error is not None for error in found["results"][0]["cv_error"]]
    assert all(exact)
    assert found["chosen"]["certified"] == (rule == "corrected")
    claim = found["chosen"]["claim"]
    assert claim["proved"] == found["chosen"]["certified"]
    assert claim["sizes"] == [1]
    assert "with τ = 1 no γ has" in claim["sentence"]


def test_the_least_error_counts_the_projections() -> None:
    """The error of a projection may be below that of every pair, and is no less than the bound."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((16, 4))
    y = X @ [1.0, 0.5, 0.3, 0.2] + rng.standard_normal(16)
    model = SparseRidgeCV(cv=4, gammas=[0.1, 1000.0]).fit(X, y)
    assert model.cv_error_ < model.surface_["cv_error"].min() * (1.0 - 1e-3)
    least = model.path_["cv_error"].min()
    assert model.cv_error_bounds_ == pytest.approx((least, least), rel=1e-12)
    assert "the least CV error of a pair (τ, γ)" in " ".join(str(model.summary()).split())


def test_half_an_interval_is_no_bound() -> None:
    assert bounds_text(0.9, 1.0, 1.2) == "[0.9, 1.2]"
    assert bounds_text(1.0, 1.0, 1.0) == ""
    for lower, upper in ((0.0, 1.2), (0.9, np.inf), (0.1, 1.2), (0.9, 2.1)):
        assert bounds_text(lower, 1.0, upper) == ""


def test_a_bound_that_is_printed_holds() -> None:
    assert bounds_text(1.2345678, 1.3, 1.4567894) == "[1.23456, 1.45679]"
    assert bounds_text(1.1, 1.2, 1.1e-4 + 1.2) == "[1.1, 1.20011]"
    bounds = np.random.default_rng(0).lognormal(0.0, 20.0, 200)
    for bound in [0.0, 0.9, 1.0, 1e22, 5e-324, *bounds.tolist()]:
        low, high = (float(rounded_bound(bound, up=up, digits=3)) for up in (False, True))
        assert low <= bound <= high <= low * 1.011 + 1e-323
    assert rounded_bound(np.inf, up=True) == "inf"


def test_what_is_proved_after_the_choice_changes_it() -> None:
    X, y = made(40, 5)
    study = study_of(X, y, taus=[1, 2, 3])
    first = first_of(study)
    before = CHOOSERS["minimum"](study, first)
    corrected = CHOOSERS["corrected"](study, first)
    g, t = 1 - before.position[0], before.position[1]
    for name in ("cv_error", "lower", "upper"):
        first.result.tables[name][g][t] = 0.5 * before.cv_error
    _, after = chosen_again(study, first, before)
    assert (after.position, after.cv_error) == ((g, t), 0.5 * before.cv_error)
    assert is_proved(study, first.result, after)
    assert not is_proved(study, first.result, before)
    own = replace(study, rule="corrected")
    first.result.tables["cv_error"][corrected.position[0]][corrected.position[1]] = 0.25
    _, again = chosen_again(own, first, corrected)
    assert (again.position, again.cv_error) == (corrected.position, 0.25)


def test_a_run_that_was_cut_short_proves_nothing() -> None:
    study = study_of(*made(40, 5))
    first = first_of(study)
    choice = CHOOSERS["minimum"](study, first)
    assert is_proved(study, first.result, choice)
    assert not is_proved(study, first.result, replace(choice, cut_short=True))


def test_claims_name_their_range() -> None:
    X, y = made(40, 5)

    def over(gammas: Any, taus: Sequence[int], rule: str = "minimum") -> str:
        study = study_of(X, y, gammas=gammas, taus=taus, rule=rule)
        first = first_of(study)
        sentence = claim_of(study, first.result, CHOOSERS[rule](study, first)).sentence
        return sentence[sentence.index("(rule") :]

    assert over(1.0, [2]) == "(rule minimum; τ = 2; γ = 1)."
    assert over([1.0, 0.0], [1, 3, 4]) == "(rule minimum; τ of 1, 3, 4; γ of 0, 1)."
    many = np.geomspace(0.1, 10.0, 6)
    assert (
        over(many, [2, 3]) == "(rule minimum; τ from 2 to 3; the 6 γ from 0.1 to 10 of the grid)."
    )
    assert "that the search of γ tried)." in over(None, [1, 2])
    projected = over(many, [2, 3], "projected")
    assert projected.startswith("(rule projected; the average is over τ from 1 to 5; the 6 γ ")


def test_claims_hold_within_constraints() -> None:
    X, y = made(40, 5)
    asked = Constraints(include=[3])
    model = SparseRidgeCV(cv=3, gammas=1.0, rule="minimum", constraints=asked).fit(X, y)
    assert ", within the constraints (rule minimum; " in model.claim_
    single = SparseRidge(2, constraints=asked).fit(X, y)
    assert "better at this γ, within the constraints" in " ".join(str(single.summary()).split())
