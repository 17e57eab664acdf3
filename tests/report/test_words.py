"""What is printed of a result: how long it is, and which words stand beside which numbers."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args, get_origin

import numpy as np
import pandas as pd
import pytest
from support.inside import RULES, main
from support.problems import regression
from support.tables import five_columns

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.cli.options import COMMANDS
from sparsecv.errors import UnprovedWarning

Capture = pytest.CaptureFixture[str]
BOUNDS = re.compile(r"\[\S+, \S+\]")


@pytest.fixture(scope="module")
def wide() -> SparseRidgeCV:
    """A cross-validation of 165 rows and 1,069 columns, of which many come and go between sizes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((165, 40)) @ rng.standard_normal((40, 1069))
    X += 0.5 * rng.standard_normal((165, 1069))
    y = X[:, :30] @ rng.standard_normal(30) + rng.standard_normal(165)
    frame = pd.DataFrame(X, columns=[f"wavelength_{850 + j} nm" for j in range(1069)])
    quick = {"time_limit": 0.0, "gammas": [1.0], "taus": range(1, 50)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseRidgeCV(rule="projected", **quick).fit(frame, y)


@pytest.fixture(scope="module")
def bounded() -> SparseRidgeCV:
    """A cross-validation of estimates, with bounds on the CV errors of most sizes."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 30))
    y = 100.0 * (X[:, :12].sum(axis=1) + rng.standard_normal(200)) + 1000.0
    frame = pd.DataFrame(X, columns=[f"measurement_{j}" for j in range(30)])
    model = SparseRidgeCV(cv="loo", rule="minimum", gammas=[0.01, 0.1, 1.0], time_limit=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(frame, y)


def sizes_of(text: str) -> list[str]:
    """The lines of the table of sizes."""
    lines = text.split("\nEvery size\n")[1].splitlines()
    assert lines[0].startswith("size ")
    assert set(lines[1]) == {"─"}
    end = next(i for i, line in enumerate(lines[2:], 2) if not re.match(" *[0-9]+  ", line))
    return lines[2:end]


def test_a_full_screen_shows_a_small_model_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor, five numbers and every rule's choice take more than sixty lines at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(4)
    names = [f"measurement_{j}" for j in range(12)]
    frame = pd.DataFrame(rng.standard_normal((400, 12)), columns=names)
    for name in ("town", "trade", "colour"):
        frame[name] = rng.choice(["Bonn", "Graz", "Oslo", "Pisa", "Rome", "Ulm"], 400)
    y = frame[names[:5]] @ [5.0, 4.0, 3.0, 2.0, 1.0]
    y += 3.0 * frame["town"].map({name: j for j, name in enumerate(sorted(set(frame["town"])))})
    y += rng.standard_normal(400)
    model = SparseRidgeCV(gammas=[0.1, 1.0, 10.0]).fit(frame, y.rename("response_of_the_table"))
    text = model.summary()
    assert len(text.splitlines()) <= 60
    own = text.split("The model, fitted to all rows\n")[1].split("The intercept is")[0]
    for name in model.get_feature_names_out():
        assert f"\n{name.partition('=')[0]} " in own
    rules = text.split("What each rule chooses\n")[1]
    assert all(f"\n{rule} " in rules for rule in model.compare().index[:2])
    assert " 1 more " not in text


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("fitted", ["wide", "bounded"])
def test_a_size_takes_one_line_and_all_takes_sixty(
    fitted: str, width: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    model = request.getfixturevalue(fitted)
    text = model.summary()
    lines = text.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= width
    shown = sizes_of(text)
    assert 3 <= len(shown) < len(model.path_["tau"])
    assert f"… {len(model.path_['tau']) - len(shown)} more sizes: summary(table=True)" in text
    (chosen,) = [line for line in shown if " chosen " in line]
    assert chosen.split()[0] == str(model.tau_)
    every = sizes_of(whole := model.summary(table=True))
    assert [int(line.split()[0]) for line in every] == list(model.path_["tau"])
    assert max(map(len, whole.splitlines())) <= width
    for line, error in zip(every, model.path_["cv_error"], strict=True):
        if line.split()[0] == "0":  # The error of the mean alone is exact.
            assert f" {error:.6g} " in line
            continue
        assert f" ≈{error:.6g} " in line
        assert re.search(r" [+−](wave|meas)", line)
    if fitted == "wide":
        assert any(re.search(r"and [0-9]+ more$", line) for line in every)
    else:
        assert sum(BOUNDS.search(line) is not None for line in every) > 5
        assert ("A wider screen also shows" in whole) == (width == 80)


def test_all_that_can_be_asked_for_takes_sixty_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    X, y = regression(60, 12, [1.0] * 6, seed=2)
    pd.DataFrame(X).assign(y=y).to_csv("t.csv", index=False)
    asked = ["--gamma", "0.1,1", "--n-best", "3", "--criteria", "--compare", "--nested"]
    lines = []
    for more in ([], ["--table"]):
        assert main(["cv", "t.csv", *asked, *more]) == 0
        lines.append(capsys.readouterr().out.splitlines())
    assert len(lines[0]) <= 60 < len(lines[1])
    for title in ("Every size", "What each rule chooses", "Criteria of every size"):
        assert title in lines[0]


def test_a_page_has_every_row_and_folds_up_long_tables(tmp_path: Path) -> None:
    X, y = regression(60, 50, [1.0] * 6, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseRidgeCV(rule="minimum", gammas=[0.1, 1.0], time_limit=0.0).fit(X, y)
    model.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for error in model.surface_["cv_error"][:, 1:].flat:
        assert f"≈{error:.6g}" in page
    assert page.count("<details>") == page.count("</details>") == 1
    assert page.index("<summary>CV error at every τ and γ") > page.index("<h2>Every size")


def test_the_line_below_the_sizes_names_the_rule_that_was_applied() -> None:
    X, y = five_columns()
    model = SparseRidgeCV(gammas=[0.1, 1.0], rule="projected").fit(X, y)
    result = model._run_
    projection = result.choice.projection
    distance = projection.average.error * np.linspace(3.0, 2.0, 6)
    far = [replace(m, distance=d) for m, d in zip(projection.sizes, distance, strict=True)]
    left_out = "The rule leaves out 2 sizes of more features and more CV error than the model"
    share = f"at most {100.0 * projection.max_share[5]:.2g} % of that CV error for 5"
    none = f"no such distance is small for their number ({share})"
    for size, words in (3, left_out), (5, none):
        may = {"allowed": np.arange(6) <= size, "near": np.zeros(6, dtype=bool)}
        own = replace(projection, sizes=far, chosen=size, **may)
        choice = replace(result.choice, projection=own)
        shown = replace(result, choices=result.choices | {"projected": choice})
        model._run_ = shown
        text = " ".join(model.summary().split())
        assert words in text
        assert (left_out in text) == (size == 3)
        assert "the size of least distance" in text
        # Nor does the line of the rule say that the model predicts nearly like the average.
        assert "as no size that may be chosen predicts nearly like it" in text
        assert RULES["projected"].aim not in text
        given = replace(choice, size_given=True)
        asked = replace(shown, choices=result.choices | {"projected": given})
        model._run_ = asked
        assert "Chosen: the size that was asked for." in " ".join(model.summary().split())


@pytest.mark.parametrize("near", [True, False])
def test_the_largest_distance_of_a_size_is_not_said_of_other_sizes(near: bool) -> None:
    """Size 1 is at a distance of 1 %, which is too far for it and would do for size 5."""
    X, y = five_columns()
    model = SparseRidgeCV(gammas=[0.1, 1.0], rule="projected").fit(X, y)
    result = model._run_
    projection = result.choice.projection
    distance = projection.average.error * np.array([0.9, 0.01, 0.01, 0.01, 0.01, 0.01])
    sizes = [replace(m, distance=d) for m, d in zip(projection.sizes, distance, strict=True)]
    share = np.array([0.0, 0.005, 0.005, 0.005, 0.005, 0.03])
    where = {"sizes": sizes, "max_share": share, "near": np.arange(6) == 5}
    where |= {"chosen": 5} if near else {"chosen": 1, "allowed": np.arange(6) <= 1}
    choice = replace(result.choice, projection=replace(projection, **where))
    model._run_ = replace(result, choices=result.choices | {"projected": choice})
    text = " ".join(model.summary().split())
    most = "3 % of that CV error for 5" if near else "0.5 % of that CV error for 1"
    assert f"distance is small for their number (at most {most})" in text
    assert "distance is at most" not in text


def test_a_least_error_that_is_known_has_no_bounds() -> None:
    X, y = five_columns()
    model = SparseRidgeCV(gammas=[0.1, 1.0], rule="projected").fit(X, y)
    result = model._run_
    assert result.claim.lower == result.claim.upper
    choice = replace(result.choice, cut_short=True)
    model._run_ = replace(result, choices=result.choices | {"projected": choice})
    text = " ".join(model.summary().split())
    assert "it is not proved that" in text
    assert "proved bounds" not in text
    with pytest.warns(UnprovedWarning, match="It is not proved that") as caught:
        model._warn_of_what_is_open(model._run_.claim, model._run_.model)
    assert "least CV error" not in str(caught[0].message)


def test_seconds_are_those_of_the_whole_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = five_columns()
    pd.DataFrame(X).assign(y=y).to_csv("t.csv", index=False)
    for command in (["cv", "t.csv", "--gamma", "1"], ["fit", "t.csv", "--tau", "2"]):
        assert main(command) == 0
        (said,) = re.findall(r"The whole call took (\S+) s", capsys.readouterr().out)
        assert float(said) > 0.0


def test_help_breaks_no_word_that_an_option_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """On 80 columns: what an option takes stands in one piece."""
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in COMMANDS.items():
        assert main([name, "--help"]) == 0
        words = set(re.findall(r"[\w-]+", capsys.readouterr().out))
        for one in command.options.values():
            kinds = [one.kind, *get_args(one.kind)]
            for kind in [kind for kind in kinds if get_origin(kind) is Literal]:
                assert set(get_args(kind)) <= words, name


def towns() -> tuple[pd.DataFrame, pd.Series[float]]:
    """Four columns of numbers and a text column of three levels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcd"))
    frame["town"] = rng.choice(["Oslo", "Rome", "Bonn"], 60)
    return frame, frame["a"] + (frame["town"] == "Rome") + 0.1 * rng.standard_normal(60)


def test_the_sentence_on_every_size_says_what_its_models_are() -> None:
    """Projections are most like the average, and need not fit the rows best."""
    X, y = regression(60, 5, {0: 2.0, 2: 1.0}, seed=3)
    frame = pd.DataFrame(X, columns=list("abcde"))
    texts = []
    for how in (
        {},
        {"rule": "minimum"},
        {"rule": "minimum", "constraints": Constraints(include=["c"])},
    ):
        model = SparseRidgeCV(**how).fit(frame, y)
        texts.append(" ".join(model.summary(table=True).split("Every size")[1].split()))
    assert "No other set of as many features predicts more like the average." in texts[0]
    assert "No other set of as many features fits all rows better at its γ." in texts[1]
    assert "better at its γ, within the constraints." in texts[2]


def test_a_model_has_one_count_of_features() -> None:
    """Columns of a group count once: both counts stand in one line, and the others are features."""
    frame, y = towns()
    text = " ".join(SparseRidgeCV(gammas=[1.0]).fit(frame, y).summary().split())
    data = "60 rows × 7 columns of 5 features with 6 coefficients, which a size counts, response y"
    assert data in text
    assert not re.search("[67] features", text)
    assert " of 6 coefficients" in text
    groups = SparseRidgeCV(gammas=[1.0], constraints=Constraints(count="groups"))
    text = " ".join(groups.fit(frame, y).summary().split())
    assert "60 rows × 7 columns that count as 5 features, a group once, response y" in text
    assert not re.search("(?<!columns that count as )[67] features", text)
    assert " of 5 features" in text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_the_summary_names_the_response_where_it_has_a_name() -> None:
    frame, y = towns()
    X = frame[["a", "b"]]
    for response, name in (
        (y.rename("price"), "price"),
        (y.rename("price").to_frame(), "price"),
        (y.rename("a"), "y"),
        (y, "y"),
        (y.to_numpy(), "y"),
    ):
        for model in (SparseRidgeCV(gammas=[1.0]), SparseRidge(tau=1)):
            fitted = model.fit(X, response)
            text = " ".join(fitted.summary().split())
            assert f"data 60 rows × 2 features, response {name}" in text
            assert f"is the change of {name} when" in text


@pytest.mark.parametrize(("weight", "rows"), [(20_576.15, "1,234,569"), (0.3757, "22.54")])
def test_rows_are_counted_in_whole_numbers_of_all_digits(weight: float, rows: str) -> None:
    """Rows that have weights count as the sum of these."""
    frame, y = towns()
    fitted = SparseRidge(tau=1).fit(frame[["a", "b"]], y, sample_weight=np.full(60, weight))
    assert f"{rows} rows × 2 features" in " ".join(fitted.summary().split())


def test_constraints_are_named_where_they_were_given() -> None:
    frame, y = towns()
    for asked, named in (
        (None, False),
        (Constraints(include=["b"]), True),
        (Constraints(positive=["a"]), True),
    ):
        model = SparseRidge(tau=2, constraints=asked).fit(frame, y)
        assert ("within the constraints" in " ".join(model.summary().split())) == named


def test_only_nested_errors_stand_below_the_error_to_expect(tmp_path: Path) -> None:
    X, y = five_columns()
    for nested in (False, True):
        model = SparseRidgeCV(gammas=[1.0], nested=nested).fit(X, y)
        model.report(tmp_path / "r.html")
        parts = (tmp_path / "r.html").read_text(encoding="utf-8").split("<h2>")
        below = [part for part in parts if part.startswith("The error to expect</h2>")]
        assert len(below) == nested
        assert all(f"{model.nested_error_:.6g}" in part for part in below)
        assert all("RMSE" not in part for part in below)


def test_a_subset_stands_beside_its_gamma_where_sizes_differ_in_it() -> None:
    """Objectives of different γ do not fall with the size."""
    X, y = regression(40, 6, [1.0, 1.0], seed=5, noise=3.0)
    model = SparseRidgeCV(gammas=np.geomspace(0.01, 1e4, 13), rule="minimum").fit(X, y)
    found = model.alternatives(1)
    assert np.unique(found["gamma"]).size > 1
    assert (np.diff(found["objective"]) > 0.0).any()
    title = "Alternatives: the best subsets, by training objective"
    table = model.summary(table=True).split(title)[1].split("Each size has its own γ")[0]
    head, _, *rows = table.strip().splitlines()
    assert head.split()[:4] == ["size", "rank", "γ", "objective"]
    for row, gamma in zip(rows, found["gamma"], strict=False):
        assert row.split()[2] == f"{gamma:.4g}"
    one = SparseRidge(tau=3).fit(X, y)
    one.alternatives(1)
    assert "Each size has its own γ" not in one.summary()


@pytest.mark.parametrize(
    ("options", "units", "share"),
    [
        ([], "the units of target", 1.0),
        (["--protocol", "paper"], "standard deviations of target", 77.005746),
        (
            ["--protocol", "paper", "--scale", "unit-norm"],
            "lengths of target about its mean",
            77.005746 * 442**0.5,
        ),
    ],
)
def test_the_root_of_the_error_has_units(
    options: list[str], units: str, share: float, capsys: Capture
) -> None:
    """Under the protocol of the papers the response is divided by its spread or by its length."""
    gamma = 1.0 if "unit-norm" not in options else 1.0 / 442.0
    asked = ["cv", "diabetes", "--rule", "minimum", "--tau", "2", "--gamma", repr(gamma)]
    assert main([*asked, *options, "--no-nested"]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    (root,) = re.findall(
        rf"RMSE (\S+), the square root of the CV error, in {units}(?! about)", flat
    )
    assert float(root) * share == pytest.approx(57.2, abs=0.5)


def test_inference_is_printed_once_it_was_asked_for_and_in_words() -> None:
    X, y = regression(60, 5, [1.0, 1.0])
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    model = SparseRidge(tau=4, constraints=Constraints(groups={"pair": ["d", "e"]})).fit(frame, y)
    title = "p-values and intervals that know about the search"
    assert title not in model.summary()
    found = model.inference(0.9, sigma=2.0)
    for text in (model.summary(), model._repr_html_(), model.report().html):  # type: ignore[union-attr]
        words = " ".join(text.split())
        for said in (title, "90 % interval", "these columns are selected (best of size"):
            assert said in words
        assert "not shrunk by γ = 1" in words
        assert "Columns that enter together are searched for, but not tested." in words
    line = next(
        one for one in model.summary().splitlines() if re.match(r"a +\S+ +\S+ +\S+ to", one)
    )
    row = found.loc["a"]
    assert line.split()[1:3] == [f"{row['coef']:.6g}", f"{row['p_high']:.3g}"]
    assert line.split()[3::2] == [f"{row['low']:.6g}", f"{row['high']:.6g}"]
    assert model._answers_ is not None
    shown = model._answers_["inference"]
    shown.attrs["complete"] = False
    shown.loc["a", ["p_low", "p_high", "low", "high"]] = [0.01, 0.02, -np.inf, 3.0]
    shown.loc["b", ["low", "high"]] = [-np.inf, np.inf]
    shown.loc["c", ["low", "high"]] = [0.5, np.inf]
    text = model.summary()
    assert "0.01 to 0.02" in text
    for ends in (
        "every number up to 3",
        "every number\n",
        "every number from 0.5",
        "An end is infinite",
    ):
        assert ends in text
    assert "the search has ended early" in text
    shown.loc["a"] = np.nan
    assert "A column that the others determine" in model.summary()
    model.fit(frame, y)
    assert title not in model.summary()
