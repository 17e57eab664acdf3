"""The audit of a fit: every number by brute force, what it refuses, and where it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.audits import drawn, fitted, wrong
from support.commands import run_json
from support.fresh import draws
from support.inside import Limits, StopFlag, audited, main, removals_of_features
from support.tables import five_columns, write_csv

from sparsecv import SparseRidge, SparseRidgeCV


def test_every_number_is_that_of_brute_force() -> None:
    for note, rng in draws(8, 9101):
        case = drawn(rng)
        model, audit = fitted(case)
        assert list(wrong(case, model, audit)) == [], (note, case.how)


def test_two_columns_that_stand_for_each_other_fall_and_the_others_hold() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((120, 5))
    X[:, 1] = X[:, 0] + 0.02 * rng.standard_normal(120)
    y = X[:, 0] + X[:, 3] + 0.5 * rng.standard_normal(120)
    model = SparseRidge(tau=2).fit(X, y)
    audit = audited(model._kept_fit(), None, Limits(None))
    verdicts = {one.name: one.verdict for one in audit.columns}
    (twin,) = set(verdicts) - {"x3"}
    assert twin in ("x0", "x1")
    assert verdicts == {"x3": "holds", twin: "falls"}
    (fallen,) = [one for one in audit.columns if one.verdict == "falls"]
    assert "lacks it" in fallen.sentence
    assert audit.headline == f"1 of 2 holds (x3); 1 falls ({twin})"


def test_rows_of_weight_zero_do_not_change_what_a_column_is_judged_by() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1060, 4))
    y = X[:, 0] + 0.5 * X[:, 1] + rng.standard_normal(1060)
    some = SparseRidge(tau=2, gamma=0.1).fit(X[:60], y[:60])
    weighted = SparseRidge(tau=2, gamma=0.1)
    weighted.fit(X, y, sample_weight=np.repeat([1.0, 0.0], [60, 1000]))
    shares = [audited(one._kept_fit(), None, Limits(20.0)).share for one in (some, weighted)]
    assert shares == [0.05, 0.05]


def decided_by_row_17() -> SparseRidge:
    """A fit whose best two columns are others without row 17."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4))
    y = X[:, 0] + 0.3 * X[:, 1] + 0.3 * rng.standard_normal(60)
    X[17, 2], y[17] = 6.0, 12.0
    return SparseRidge(tau=2, gamma=0.0).fit(X, y)


def test_a_row_that_decides_is_named() -> None:
    model = decided_by_row_17()
    audit = audited(model._kept_fit(), None, Limits(None))
    (one,) = [one for one in audit.columns if one.name == "x2"]
    assert (one.alone, one.removed_by, one.safe, one.verdict) == ([17], [17], 0, "falls")
    assert "without row 17" in one.sentence


def test_a_row_whose_search_has_ended_early_is_not_said_to_remove_a_column() -> None:
    model = decided_by_row_17()
    fit, rows = model._kept_fit(), model.row_influence()
    rows.loc[17, "proved"] = False
    fit.answers["row_influence"] = rows
    audit = audited(fit, None, Limits(None))
    (one,) = [one for one in audit.columns if one.name == "x2"]
    assert (list(one.alone), one.unproved) == ([], 1)
    assert "1 row may decide: the search ended early" in one.sentence
    assert "the best columns lack it" not in one.sentence


def test_what_a_projection_cannot_give_names_the_rule_that_can() -> None:
    X, y = five_columns()
    model = SparseRidgeCV().fit(X, y)
    audit = audited(model._kept_fit(), 5, Limits(None, stop=StopFlag()))
    for name in ("near_best", "importance", "row_influence", "removals"):
        assert "rule='minimum'" in audit.missing[name]
    assert "tau='bic'" in audit.missing["inference"]
    assert {one.verdict for one in audit.columns} == {"open"}
    assert audit.expected is not None
    model = SparseRidge(tau=2).fit(X, y)
    assert "--rule minimum" in audited(model._kept_fit(), None, Limits(None)).missing["nested"]


def test_other_partitions_say_that_they_are_free_of_a_given_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("t.csv"), *five_columns())
    command = ["cv", "t.csv", "--folds", "4", "--gamma", "1", "--rule", "minimum"]
    for more in ([], ["--size", "3"]):
        assert main([*command, *more, "--audit", "--no-nested"]) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert "other partitions into folds the rule" in words
        assert ("the rule, free to choose another size, takes exactly" in words) == bool(more)


def test_nothing_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = five_columns()
    model = SparseRidge(tau=2).fit(X, y)
    asked = model.inference(sigma=2.0)
    model.row_influence()
    for name in ("inference_of", "influence_of_rows"):
        monkeypatch.setattr(f"sparsecv.report.audit.{name}", None)
    page = model.report(audit=True)
    assert page is not None
    assert "given: p-values rest on it" in page.html  # So was σ.
    assert f"{asked['p_high'].iloc[0]:.3g}" in page.html


def test_a_limit_leaves_open_what_it_does_not_prove() -> None:
    X, y = five_columns()
    model = SparseRidge(tau=2).fit(X, y)
    audit = audited(model._kept_fit(), None, Limits(0.0))
    assert not any(audit.complete)
    assert {one.verdict for one in audit.columns} <= {"open", "falls"}
    assert all(one.safe == 0 for one in audit.columns)


def test_a_factor_is_one_line() -> None:
    rng = np.random.default_rng(3)
    state = rng.choice(["a", "b", "c"], 90)
    frame = pd.DataFrame({"u": rng.standard_normal(90), "state": state, "v": rng.random(90)})
    y = frame["u"] + (state == "a") - (state == "b") + 0.3 * rng.standard_normal(90)
    model = SparseRidge(tau="bic").fit(frame, y)
    audit = audited(model._kept_fit(), None, Limits(None))
    names = [one.name for one in audit.columns]
    assert "state (3 levels)" in names
    factor = audit.columns[names.index("state (3 levels)")]
    assert np.isnan(factor.coef)
    assert np.isnan(factor.p_low) or factor.p_low <= factor.p_high
    assert (factor.verdict, list(factor.positive)) == ("holds", [0, 0, 0])
    assert factor.near[0] == audit.near[0]
    assert factor.safe >= 1


def test_groups_of_rows_are_removed_whole() -> None:
    rng = np.random.default_rng(8)
    X, groups = rng.standard_normal((80, 4)), np.repeat([f"g{i}" for i in range(8)], 10)
    y = X[:, 0] + rng.standard_normal(80)
    y[:10] += 4.0 * X[:10, 2]
    model = SparseRidge(tau=2).fit(X, y, groups=groups)
    audit = audited(model._kept_fit(), None, Limits(None))
    assert audit.what == "group"
    (one,) = [one for one in audit.columns if one.name == "x2"]
    assert one.alone == ["g0"]
    # The rows of the group are ten, and fewer remove the column.
    found = removals_of_features(model._kept_fit(), 10, Limits(None)).loc["x2"]
    assert (one.safe, one.removed_by) == (found["safe"], found["rows"])
    assert 1 <= one.safe < len(one.removed_by) < 10
    assert all(row < 10 for row in one.removed_by)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_and_groups_have_the_names_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((60, 4)), columns=["a", "b", "c", "d"])
    frame["y"] = frame["a"] + 0.3 * frame["b"] + 0.3 * rng.standard_normal(60)
    frame.loc[17, ["c", "y"]] = 6.0, 12.0
    frame.loc[3, "d"] = np.nan
    frame["year"], frame["town"] = 2015 + np.arange(60) // 6, np.repeat(["Zug", "Bern"], 30)
    frame["third"] = np.arange(60) // 20 / 10.0
    save: Any = frame.to_csv if kind == "csv" else frame.to_parquet
    save(f"t.{kind}", index=False)
    command = ["fit", f"t.{kind}", "--target", "y", "--tau", "2", "--gamma", "0"]
    command += ["--missing", "drop", "--audit"]
    groups = {"year": 2017, "town": "Zug", "third": 0.0}
    for name, alone in {None: 18, **groups}.items():
        left = [*groups] if name is None else [one for one in groups if one != name]
        options = ["--exclude", ",".join(left), *(["--groups", name] if name else [])]
        audit = run_json(*command, *options)["audit"]
        (one,) = [one for one in audit["columns"] if one["name"] == "c"]
        assert one["alone"] == [alone]
        assert (one["removed_by"], audit["first_row"]) == ([18], 1)
        assert f"without {'group' if name else 'row'} {alone}" in one["sentence"]


def test_screen_page_and_json_have_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = five_columns()
    write_csv(Path("t.csv"), X, y)
    cv = ["cv", "t.csv", "--folds", "3"]
    for words in (["fit", "t.csv", "--tau", "bic"], [*cv, "--rule", "minimum"]):
        document = run_json(*words, "--audit", "--html", "r.html", quiet=False)
        screen, page = capsys.readouterr().out, Path("r.html").read_text(encoding="utf-8")
        record = document["audit"]
        assert record["headline"] in " ".join(screen.split())
        for column in record["columns"]:
            assert column["sentence"] in " ".join(screen.split())
            assert column["sentence"].split(":")[0] in page
        assert record["near"][0] <= record["near"][1] <= record["near"][2]
        assert ("inference" in record["missing"]) == (words[0] == "cv")
        assert (record["expected"] is None) == (words[0] == "fit")
    assert main([*cv, "--audit", "--quiet", "--json", "j.json"]) == 0
    assert json.loads(Path("j.json").read_text(encoding="utf-8"))["audit"]["missing"]
