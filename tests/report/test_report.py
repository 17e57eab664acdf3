"""The HTML report: what it says, and that it stands alone."""

import io
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from rich.console import Console
from support.inside import main
from support.stand_ins import StandIn, real
from support.tables import five_columns, write_csv

import sparsecv
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.report.screen import show
from sparsecv.report.sections import Section, SectionColumn, SectionTable

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Balanced(HTMLParser):
    """Refuses tags that are closed in another order than they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(text: str) -> str:
    """The words of a page, once it is known to be well formed and to load nothing."""
    parsed = Balanced()
    parsed.feed(text)
    assert parsed.open == []
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert "<script" not in text
    assert not re.search(r'\b(src|href)\s*=\s*"(?!#)', text)
    assert not re.search(r"url\((?!#)|@import", text)
    for used in re.findall(r'(?:url\(|href=")#([^)"]+)', text):
        assert used in parsed.ids
    return " ".join(" ".join(parsed.text).split())


def made(path: Path, *options: str) -> str:
    X, y = five_columns()
    write_csv(Path("t.csv"), X, y, names=["age", "<b>bold</b>", "größe", "x_3", "a&b"])
    assert main(["cv", "t.csv", "--html", str(path), "--quiet", *options]) == 0
    return read(path.read_text(encoding="utf-8"))


def test_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = made(Path("r.html"), "--gamma", "0.1,1", "--nested")
    assert "error to expect on new data" in words
    assert "no other" in words
    words = made(Path("s.html"), "--gamma", "1", "--no-nested", "--tau", "5", "--rule", "one-se")
    assert "<b>bold</b>" in words  # As text: the page has escaped the column's name.
    assert "error to expect on new data" not in words
    assert main(["fit", "t.csv", "--tau", "2", "--html", "f.html", "--quiet"]) == 0
    words = read(Path("f.html").read_text(encoding="utf-8"))
    assert "CV error" not in words
    assert main(["cv", "t.csv", "--html", "no/such/folder.html"]) == 2


def test_figures_are_those_of_the_model(tmp_path: Path) -> None:
    X, y = five_columns()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = SparseRidgeCV(gammas=[0.1, 1.0], nested=True, rule="projected")
    model.fit(frame, y)
    model.alternatives(3)
    model.report(tmp_path / "r.html")
    words = read((tmp_path / "r.html").read_text(encoding="utf-8"))
    for value in (model.cv_error_, model.nested_error_, model.intercept_, *model.path_["cv_error"]):
        assert f"{value:.6g}" in words
    effects = model.coef_ * X.std(axis=0)
    for j in model.support_:
        assert f"{model.coef_[j]:.6g}" in words
        assert f"{effects[j]:.6g}" in words
        assert f"{effects[j] / y.std():.6g}" in words
    assert "Alternatives" in words


def test_ridge_and_lasso_are_held_out_on_the_same_folds(tmp_path: Path) -> None:
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import KFold, cross_val_predict

    X, y = five_columns()
    model = SparseRidgeCV(gammas=[1.0]).fit(X, y)
    model.report(tmp_path / "r.html")
    words = read((tmp_path / "r.html").read_text(encoding="utf-8"))
    scaled, folds = (X - X.mean(axis=0)) / X.std(axis=0), KFold(5, shuffle=True, random_state=0)
    errors = [
        np.mean((y - cross_val_predict(Ridge(alpha), scaled, y, cv=folds)) ** 2)
        for alpha in np.geomspace(1e-3, 1e4, 40)
    ]
    assert f"ridge with all columns has {min(errors):.6g}" in words


def test_reports_of_one_size_and_of_none(tmp_path: Path) -> None:
    X, y = five_columns()
    model = SparseRidge(tau=2).fit(X, y)
    model.alternatives(2)
    model.report(tmp_path / "r.html")
    assert "Alternatives" in read((tmp_path / "r.html").read_text(encoding="utf-8"))
    model.save(tmp_path / "m.json")
    with pytest.raises(AttributeError, match="rows"):
        sparsecv.load(tmp_path / "m.json").report(tmp_path / "m.html")


def test_notebooks_show_what_the_fit_has_computed(stand_in: StandIn) -> None:
    """A notebook shows sections without matplotlib, and fits no model for them."""
    X, y = five_columns()
    stand_in(matplotlib=None)
    fitting = real("models_by_size")
    stand_in(models_by_size=None)
    for model in (SparseRidge(tau=2), SparseRidgeCV(gammas=[1.0], rule="minimum")):
        before = model._repr_html_()
        model.fit(X, y)
        shown = model._repr_html_()
        assert "How sure" in shown
        assert "Every size" not in shown
        assert "How sure" not in before
        assert "sk-top-container" in shown  # scikit-learn's own picture stays.
        assert "How sure" in model._repr_mimebundle_()["text/html"]
        with sklearn.config_context(display="text"):
            assert "text/html" not in model._repr_mimebundle_()
            assert not hasattr(model, "_repr_html_")
    stand_in(models_by_size=fitting)
    projected = SparseRidgeCV(gammas=[0.1, 1.0], rule="projected").fit(X, y)
    assert "Every size" in projected._repr_html_()  # The fit has projected onto every size.


def test_the_summary_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One list of sections is printed by the command, by summary(), and in full on the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    X, y = five_columns()
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.assign(y=y).to_csv("t.csv", index=False)
    model = SparseRidgeCV(gammas=[0.1, 1.0]).fit(frame, y)
    assert main(["cv", "t.csv", "--gamma", "0.1,1", "--no-nested"]) == 0
    printed = capsys.readouterr().out.replace("data      t: ", "data      ")
    own = model.summary().splitlines()
    assert own == [line.rstrip() for line in printed.splitlines()][: len(own)]
    assert len(own) > 30
    model.report("r.html")
    shown = model.report()
    assert shown is not None
    assert shown.html == Path("r.html").read_text(encoding="utf-8")
    (inside,) = re.findall(r'<iframe srcdoc="([^"]*)"', shown._repr_html_())
    assert unescape(inside) == shown.html
    assert len(repr(shown)) < 80
    words = read(Path("r.html").read_text(encoding="utf-8"))
    for line in own:
        if line[:1].isdigit() or line.startswith(" "):
            assert set(line.split()) <= set(words.split())


def test_a_view_searches_nothing(tmp_path: Path, stand_in: StandIn) -> None:
    """A report shows what the fit has found; other sizes are searched once they are asked for."""
    X, y = five_columns()
    model = SparseRidge(tau=3).fit(X, y)
    asked: list[int] = []
    searched = real("models_at_gamma")
    stand_in(models_at_gamma=lambda *a: asked.append(1) or searched(*a))
    assert "How sure" in model._repr_html_()
    assert "path_" in dir(model)
    model.report(tmp_path / "r.html")
    assert "Every size" not in read((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert not asked
    assert len(model.path_["tau"]) == 3
    model.report(tmp_path / "r.html")
    assert "Every size" in read((tmp_path / "r.html").read_text(encoding="utf-8"))


def test_a_cut_table_keeps_the_rows_that_matter() -> None:
    numbers = SectionColumn("size", list(range(1, 41)))
    table = SectionTable([numbers], chosen=30, kept=[0, 20, 39])
    for most in range(1, 41):
        shown = table.around(most)
        cells = list(shown.columns[0].cells)
        assert len(cells) == most
        assert cells == sorted(set(cells))
        assert shown.chosen is not None
        assert cells[shown.chosen] == 31
        assert set(cells) >= {31, 1, 21, 40} or most < 4
    assert list(table._replace(kept=()).around(5).columns[0].cells) == [29, 30, 31, 32, 33]


def test_a_table_is_not_cut_for_a_single_row() -> None:
    table = SectionTable([SectionColumn("size", list(range(1, 41)))], chosen=30, kept=[0, 20, 39])
    assert table.cut(39) is table
    for most in range(1, 39):
        cells = list(table.cut(most).columns[0].cells)
        assert len(cells) == max(most, 4)
        assert set(cells) >= {1, 21, 31, 40}


def test_columns_that_a_narrow_screen_leaves_out_end_in_one_point() -> None:
    names = SectionColumn("columns", [["a long name of a column", "another name"]], "names")
    spread = SectionColumn("± s.e.", ["0.123456"], minor=True)
    section = Section("Sizes", table=SectionTable([names, spread]))
    console = Console(width=33, file=io.StringIO(), record=True)
    show(console, [section])
    assert console.export_text().splitlines()[-1] == "A wider screen also shows: ± s.e."


def test_changes_are_those_from_the_line_above() -> None:
    models = [["a"], ["a", "b"], ["b", "c"], ["b", "c", "d"]]
    sizes = SectionColumn("size", [1, 2, 3, 4])
    table = SectionTable([sizes, SectionColumn("changes", models, "changes")], 3, kept=[0])
    assert table.columns[1].texts == ["+a", "+b", "+c, −a", "+d"]
    assert table.cut(2).columns[1].texts == ["+a", "+b, +c, +d, −a"]


def test_the_last_lines_say_what_to_do_next() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    y = X @ [3.0, 1.0, 0.5, 0.3, 0.2, 0.0] + rng.standard_normal(80)
    model = SparseRidgeCV(rule="minimum").fit(X, y)
    fewest = model.compare().loc["one-se", "tau"]
    assert fewest < model.tau_
    assert f"of the least CV error are {fewest}: --rule one-se" in " ".join(model.summary().split())
    # One standard error is much where rows are few: the rule one-se is far behind.
    model = SparseRidgeCV(rule="one-se").fit(X[:20], y[:20])
    table = model.compare()["cv_error"]
    behind = table["minimum"] < 0.9 * table["one-se"]
    assert ("less CV error here" in " ".join(model.summary().split())) == behind
