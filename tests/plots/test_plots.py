"""Pictures of the CV error, and of the models of every size."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from support.inside import (
    CVResult,
    RowFolds,
    RowTable,
    Settings,
    cross_validate,
    least_is_proved,
    main,
    make_folds,
    resolve,
)
from support.problems import regression, three_matter
from support.stand_ins import StandIn
from support.tables import write_csv

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError
from sparsecv.plots import curves as plots
from sparsecv.plots import size_path

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure


def result(
    p: int = 6, gammas: tuple[float, ...] = (0.01, 1.0, 100.0), limit: float | None = None
) -> CVResult:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, p)) + rng.standard_normal((40, 1))
    y = X[:, : min(p, 3)].sum(axis=1) + 3.0 * rng.standard_normal(40)
    data = RowFolds(RowTable(X - X.mean(axis=0), y - y.mean(), True), make_folds(5, 40))
    return cross_validate(data, gammas, np.arange(1, p + 1), Settings(time_limit=limit))


@pytest.fixture
def figures(stand_in: StandIn) -> list[Any]:
    """The figures that are drawn."""
    found: list[Any] = []
    save = plots.save

    def kept(figure: Any, path: str) -> None:
        found.append(figure)
        save(figure, path)

    stand_in(save_a_figure=kept, save_a_path=kept)
    return found


@pytest.mark.parametrize(
    ("cv", "suffix", "head"),
    [
        ((1, (1.0,)), ".png", b"\x89PNG"),
        ((2, (1e-8, 1e8)), ".pdf", b"%PDF"),
        ((6, tuple(10.0**k for k in range(12))), ".svg", b"<?xml"),
    ],
)
def test_few_and_many_curves(
    cv: tuple[int, tuple[float, ...]], suffix: str, head: bytes, tmp_path: Path
) -> None:
    """A file's name is a title: a dollar sign in one is no mathematics."""
    path = tmp_path / f"curve{suffix}"
    plots.plot_cv(result(*cv), str(path), "$x$ and $\\frac$, 100$ a$b, <name> [bold]")
    assert path.read_bytes().startswith(head)
    assert path.stat().st_size > 3000


def test_one_curve_per_gamma_with_the_choice_marked(figures: list[Any], tmp_path: Path) -> None:
    cv = result()
    plots.plot_cv(cv, str(tmp_path / "a.png"), "some title")
    axes, best = figures[0].axes[0], cv.best()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    for gamma in cv.gammas:
        assert f"γ = {gamma:.4g}" in labels
    assert f"chosen: τ = {best.tau}" in labels
    assert f"one standard error: τ = {best.one_se}" in labels
    curves = {line.get_label(): line for line in axes.get_lines()}
    for one in cv.by_gamma:
        line = curves[f"γ = {one.gamma:.4g}"]
        np.testing.assert_array_equal(line.get_xdata(), one.taus)
        np.testing.assert_array_equal(line.get_ydata(), one.cv_error)
    assert axes.get_title(loc="left") == "some title"
    low, high = axes.get_ylim()
    assert low < best.cv_error < high


def test_unproved_errors_are_shaded_and_said_to_be(figures: list[Any], tmp_path: Path) -> None:
    cv = result(p=30, limit=1e-9)
    assert not least_is_proved(cv)
    plots.plot_cv(cv, str(tmp_path / "a.png"), "t")
    labels = [text.get_text() for text in figures[0].axes[0].get_legend().get_texts()]
    assert f"chosen: τ = {cv.best().tau} (an estimate)" in labels
    assert len(figures[0].axes[0].collections) > 0


def test_refusals(tmp_path: Path) -> None:
    cv = result()
    with pytest.raises(InputError, match=r"--plot .*\.xyz"):
        plots.plot_cv(cv, str(tmp_path / "a.xyz"), "t")
    with pytest.raises(InputError, match="--plot") as caught:
        plots.plot_cv(cv, str(tmp_path / "missing" / "a.png"), "t")
    assert "missing" in str(caught.value)


def test_matplotlib_is_optional(stand_in: StandIn) -> None:
    stand_in(matplotlib=None)
    with pytest.raises(InputError, match=r'pip install "sparsecv\[plot\]"$'):
        plots.plot_cv(result(), "a.png", "t")


def test_files_and_given_axes_leave_the_session_alone(tmp_path: Path) -> None:
    """In an interpreter of its own: the backend and the figures of pyplot stay as they are."""
    words = """
        import warnings
        import matplotlib
        from matplotlib import pyplot
        import numpy as np
        from sparsecv import SparseRidge, SparseRidgeCV
        from sparsecv.plots.curves import check_writable, plot_cv
        matplotlib.use("svg")
        pyplot.rcParams["axes.grid"] = "mine" == "other"
        axes = pyplot.figure(7).subplots(1, 2)
        X = np.random.default_rng(0).standard_normal((30, 4))
        model = SparseRidgeCV(gammas=[0.1, 1.0]).fit(X, X[:, 0] + X[:, 1] ** 2)
        check_writable("p.png")
        plot_cv(model._run_.surface, "p.png", "title")
        model.report("r.html")
        model.plot(axes)
        SparseRidge(tau=2).fit(X, X[:, 0]).plot(axes[0])
        assert matplotlib.get_backend().lower() == "svg", matplotlib.get_backend()
        assert pyplot.get_fignums() == [7], pyplot.get_fignums()
        assert pyplot.gcf().number == 7
        assert not pyplot.rcParams["axes.grid"]
        opened = model.plot()
        assert pyplot.get_fignums() == [7, 8]
        assert [one.figure.number for one in opened] == [8, 8]
    """
    command = [sys.executable, "-c", textwrap.dedent(words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.png").stat().st_size > 3000


def test_models_draw_on_axes() -> None:
    X, y = three_matter()
    model = SparseRidgeCV(gammas=[0.1, 1.0], rule="minimum").fit(X, y)
    left, right = model.plot(Figure().subplots(1, 2))
    curve = {line.get_label(): line for line in left.get_lines()}["best subset ± s.e."]
    np.testing.assert_array_equal(curve.get_xdata(), model.path_["tau"])
    np.testing.assert_array_equal(curve.get_ydata(), model.path_["cv_error"])
    (star,) = [line for line in left.get_lines() if line.get_marker() == "*"]
    assert star.get_xydata().tolist() == [[model.tau_, model.cv_error_]]
    (one_se,) = [line for line in left.get_lines() if line.get_marker() == "D"]
    assert one_se.get_xdata().tolist() == [model.tau_1se_]
    assert f"one standard error: τ = {model.tau_1se_}" in legend_of(left)
    drawn = lines(right)
    assert set(legend_of(right)) == {"chosen", *(f"x{c}" for c in range(6))}
    assert drawn["chosen"].get_xdata()[0] == model.tau_
    for c in range(X.shape[1]):
        np.testing.assert_allclose(drawn[f"x{c}"].get_ydata(), effects_of(model, c, X))
    axes = Figure().subplots()
    fit = SparseRidge(tau=3).fit(X, y)
    assert fit.plot(axes) is axes
    objectives = [fit.at_size(size).objective_ for size in (1, 2, 3)]
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), objectives)
    for wrong in (3, "left", Figure().subplots(1, 3)):
        with pytest.raises(InputError, match="ax must be"):
            fit.plot(wrong)


@pytest.mark.parametrize("rule", ["minimum", "one-se", "stability", "projected"])
def test_marks_are_those_of_the_table(rule: str) -> None:
    """Where another size is chosen than that of least error, both are marked, as in the summary."""
    X, y = three_matter(60, 8, seed=3)
    model = SparseRidgeCV(gammas=[0.1, 1.0, 30.0], rule=rule).fit(X, y)
    labels = legend_of(model.plot(Figure().subplots()))
    marked = {name: int(size) for name, size in (one.split(": τ = ") for one in labels[1:])}
    assert marked["chosen"] == model.tau_
    path, t = model.path_, model.path_["cv_error"].argmin()
    if rule == "projected":  # No other model of this size has an error of its own.
        within = path["cv_error"] <= path["cv_error"][t] + path["std_error"][t]
        assert marked["one standard error"] == path["tau"][within].min()
        assert marked.get("least", model.tau_) == path["tau"][t]
    else:
        assert marked["one standard error"] == model.tau_1se_
    words = {marked["one standard error"]: "1 s.e."}
    words |= {marked.get("least", model.tau_): "least"} | {model.tau_: "chosen"}
    table = model.summary(table=True).split("\nEvery size\n")[1]
    rows = re.findall(r"^ *(\d+)  .* (chosen|least|1 s\.e\.) ", table, flags=re.M)
    assert {int(size): word for size, word in rows} == words


def test_a_legend_has_every_column_that_is_drawn() -> None:
    """Columns of the chosen model come first, and columns without a name are counted."""
    X, y = regression(60, 30, [1.0, 1.0, 1.0])
    model = SparseRidgeCV(gammas=[1.0], taus=range(1, 26), rule="minimum").fit(X, y)
    _, axes = model.plot(Figure().subplots(1, 2))
    used = {c for columns in model.path_["columns"] for c in columns}
    names = legend_of(axes)
    assert names[0] == "chosen"
    assert set(names[1 : 1 + model.tau_]) == set(model.get_feature_names_out())
    others = len(used) - size_path.MAX_NAMED
    assert others > 1
    assert names[-1] == f"{others} other features"
    drawn = [one for one in axes.get_lines() if one.get_marker() == "o"]
    assert len(drawn) == len(used)


def legend_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes.lines}


def effects_of(model: Any, c: int, X: Any) -> Any:
    """The effects of a column in the models of all sizes; NaN where a model lacks the column."""
    coef = np.array([model.at_size(size).coef_[c] for size in model.path_["tau"]])
    return np.where([c in some for some in model.path_["columns"]], coef * X[:, c].std(), np.nan)


# --- ``sparsecv fit --plot``: objectives and coefficients of every size --------------------------


def test_the_picture_shows_every_size(figures: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "path.png"
    command = ["fit", "diabetes", "--tau", "5", "--gamma", "2", "--quiet"]
    assert main([*command, "--plot", str(path)]) == 0
    assert path.stat().st_size > 5000
    source = resolve("diabetes")
    X, y = source.load()
    model = SparseRidge(tau=5, gamma=2.0).fit(X, y)
    left, right = map(lines, figures[0].axes)
    best = [model.at_size(size).objective_ for size in range(1, 6)]
    np.testing.assert_allclose(left["best subset"].get_ydata(), best)
    np.testing.assert_allclose(left["proved"].get_ydata(), best)
    used = {source.feature_names[c]: c for columns in model.path_["columns"] for c in columns}
    assert set(used) == set(legend_of(figures[0].axes[1]))
    for name, c in used.items():
        np.testing.assert_allclose(right[name].get_ydata(), effects_of(model, c, X), atol=1e-9)


def test_sizes_that_are_not_proved_have_open_marks(figures: list[Any], tmp_path: Path) -> None:
    X, y = regression(60, 50, [1.0] * 9, noise=9.0, shared=1.0)
    path = write_csv(tmp_path / "t.csv", X, y)
    options = ["--tau", "8", "--time-limit", "0", "--plot", str(tmp_path / "p.svg"), "--quiet"]
    assert main(["fit", str(path), *options]) == 1
    open_marks = lines(figures[0].axes[0])["not proved"]
    assert open_marks.get_fillstyle() == "none"
    assert len(open_marks.get_ydata()) > 1


# --- factors, titles, and lines that are out of the picture --------------------------------------


def with_a_factor(n: int = 150) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    state = np.concatenate([np.arange(30), rng.integers(0, 30, n - 30)])
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    X["state"] = [f"s{k:02d}" for k in state]
    y = X["a"] + 2.0 * rng.standard_normal(30)[state] + 0.3 * rng.standard_normal(n)
    return X, y


def test_a_factor_is_one_line_of_a_picture() -> None:
    X, y = with_a_factor()
    model = SparseRidgeCV(gammas=[0.1], rule="minimum", cv=3).fit(X, y)
    _, axes = model.plot(Figure(figsize=(8.0, 3.5)).subplots(1, 2))
    assert set(legend_of(axes)) == {"chosen", "a", "b", "c", "state (30 levels)"}
    drawn = [one for one in axes.get_lines() if one.get_marker() == "o"]
    assert len(drawn) == 4
    part = pd.get_dummies(X["state"]).to_numpy(dtype=float) @ model.coef_[3:]
    at = model.path_["tau"].tolist().index(model.tau_)
    assert lines(axes)["state (30 levels)"].get_ydata()[at] == pytest.approx(part.std())


@pytest.mark.parametrize("rule", ["projected", "minimum", "one-se"])
def test_a_title_says_why_the_star_is_where_it_is(rule: str) -> None:
    X, y = three_matter(60, 8, seed=3)
    model = SparseRidgeCV(gammas=[0.1, 1.0], rule=rule).fit(X, y)
    said = []
    for size in ((8.0, 3.5), (12.0, 5.0)):
        left, right = model.plot(Figure(figsize=size).subplots(1, 2))
        title = left.get_title(loc="left")
        said.append(" ".join(title.split()))
        assert right.get_title(loc="left").startswith("The effect of each feature")
        # No line is wider than the axes.
        left.figure.canvas.draw()
        box = left.get_window_extent()
        text = left._left_title.get_window_extent()
        assert text.width <= 1.05 * box.width
    assert said[0] == said[1]
    assert said[0].startswith(f"Chosen: τ = {model.tau_}, ")
    assert ("distance to the average of all models" in said[0]) == (rule == "projected")


def test_no_line_of_a_title_begins_with_a_per_cent_sign() -> None:
    for width in np.linspace(2.0, 8.0, 13):
        axes = Figure(figsize=(width, 3.0)).subplots()
        plots.say(axes, "Shares are 3 % or 12 % of errors. " * 9)
        lines = axes.get_title(loc="left").splitlines()
        assert len(lines) > 3
        assert not any(line.startswith("%") for line in lines)


@pytest.mark.parametrize("count", ["coefficients", "groups"])
def test_words_of_sizes_name_what_a_size_counts(count: Literal["coefficients", "groups"]) -> None:
    """The levels of a factor count one by one, or the factor counts once."""
    X, y = with_a_factor()
    X["state"] = X["state"].str[:2]
    asked = Constraints(count=count)
    model = SparseRidgeCV(gammas=[0.1], cv=5, rule="projected", constraints=asked).fit(X, y)
    axes = model.plot(ax=Figure().subplots())
    said = " ".join((axes.get_title("left") + model.summary()).split())
    what, other = "coefficients", "features"
    if count == "groups":
        what, other = other, what
    assert axes.get_xlabel() == "size τ"
    assert f"a model of fewer {what} is at a distance" in said
    assert f"fewest {what} " in said
    assert f"fewest {other} " not in said


def test_a_line_that_is_not_seen_is_said_to_be_elsewhere() -> None:
    X, y = with_a_factor()
    model = SparseRidgeCV(gammas=[0.1, 1.0], cv=3).fit(X, y)
    sizes, marks = model._run_.sizes, model._run_.marks
    error = model.path_["cv_error"].max()
    for values, label in (
        (np.full(len(sizes), 50.0 * error), "lasso: above the picture"),
        (np.full(len(sizes), np.inf), "lasso: selects more columns"),
        (np.full(len(sizes), model.cv_error_), "lasso"),
    ):
        axes = Figure().subplots()
        size_path.draw_errors(axes, sizes, marks, {"lasso": values})
        (found,) = (one for one in legend_of(axes) if one.startswith("lasso"))
        assert found.startswith(label)
        assert (found == "lasso") == (label == "lasso")
