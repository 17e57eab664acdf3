"""The numbers of README and docs are those that the scripts printed into experiments/results.

A row of a table, or a sentence, is compared with the lines of a result file that name the same
thing: every number on the page must be a number there, rounded to the digits that the page shows.
"""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
if not RESULTS.is_dir():
    pytest.skip("no results beside the tests: this is not a checkout", allow_module_level=True)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?|(?<![\w.\d])\.\d+")


def numbers(text: str) -> list[str]:
    return [found.replace(",", "") for found in NUMBER.findall(text)]


def agrees(shown: str, stored: str) -> bool:
    """Whether a number on a page is a stored number, rounded; half a unit may go either way."""
    digits = len(shown.split(".")[1]) if "." in shown else 0
    return abs(float(shown) - float(stored)) <= 0.5 * 10.0**-digits * (1 + 1e-9)


def missing(shown: str, stored: str) -> list[str]:
    """The numbers of ``shown`` that ``stored`` does not have."""
    known = numbers(stored)
    return [one for one in numbers(shown) if not any(agrees(one, other) for other in known)]


def result(name: str, *keys: str) -> str:
    """The lines of a result file that begin with one of the keys, blanks and case left aside."""
    lines = (RESULTS / name).read_text(encoding="utf-8").splitlines()
    wanted = [key.lower() for key in keys]
    found = [line for line in lines if any(line.strip().lower().startswith(k) for k in wanted)]
    assert found, f"{name} has no line that begins with {keys}"
    return "\n".join(found)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def row(name: str, key: str, size: int | None = None) -> list[str]:
    """The cells after the first of the only row of a page whose first cell is ``key``.

    size: How many cells those are, where tables of several widths have a row of that name.
    """
    rows = re.findall(rf"^\| {re.escape(key)} \|(.*)\|$", page(name), re.M)
    found = [[cell.strip() for cell in one.split("|")] for one in rows]
    found = [cells for cells in found if len(cells) == (size or len(cells))]
    assert len(found) == 1, f"{name} has {len(found)} rows that begin with {key}"
    return found[0]


@pytest.mark.parametrize("name", ["README.md", "docs/benchmarks.md"])
@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("Diabetes (442 × 11)", "Diabetes"),
        ("Housing (506 × 13)", "Housing"),
        ("Servo (167 × 19)", "Servo"),
        ("AutoMPG (392 × 25)", "AutoMPG"),
    ],
)
def test_table_1(name: str, key: str, data: str) -> None:
    problems, seconds, hours = row(name, key, 3)
    stored = result("exact_cv_timings.txt", f"{data}  ")
    n, p = map(int, re.findall(r"\d+", key))
    assert problems == f"{n * p * 7:,}"  # one problem for each row, τ and γ
    assert missing(f"{seconds} {hours}", stored.split("ratio")[0]) == []


def test_one_training_problem() -> None:
    """Rows of the table of solvers stand in the result file word for word."""
    text, stored = page("docs/benchmarks.md"), page("experiments/results/solver_benchmark.txt")
    shown = re.findall(r"^\| .* \d×? \|$|^\| .*×\s\|$", text.split("## Hard problems")[0], re.M)
    lines = [line for line in shown if line.count("|") == 9]
    assert len(lines) == 20
    assert [line for line in lines if line not in stored] == []
    said = re.search(r"Over (\d+) instances .* needs (\d+) times", " ".join(text.split()))
    assert said
    assert missing(" ".join(said.groups()), result("solver_benchmark.txt", "56 instances")) == []


def test_every_size() -> None:
    seconds = row("docs/benchmarks.md", "seconds until all are proved")
    stored = (RESULTS / "all_sizes.txt").read_text(encoding="utf-8")
    assert missing(" ".join(seconds), stored) == []


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("20 × 8", "20 × 8  "),
        ("20 × 8 dense", "20 × 8 dense"),
        ("50 × 8", "50 × 8"),
        ("100 × 8 dense", "100 × 8 dense"),
        ("Prostate, 48 × 8", "prostate"),
        ("Diabetes, 221 × 10", "diabetes10"),
        ("25 × 21 dense", "25 × 21 dense"),
        ("Steam, 12 × 8", "steam"),
        ("100 × 21", "100 × 21"),
        ("50 × 21", "50 × 21  "),
        ("20 × 21", "20 × 21"),
        ("50 × 21 dense", "50 × 21 dense"),
    ],
)
def test_the_error_to_expect(key: str, data: str) -> None:
    cells = row("docs/benchmarks.md", key)
    stored = result("error_to_expect.txt", data)
    assert missing(" ".join(cells), stored) == []


@pytest.mark.parametrize(
    "key",
    ["Prostate (97 × 8)", "Housing (506 × 13)", "AutoMPG (392 × 25)", "Wine (6497 × 11)"],
)
def test_nested_cross_validation(key: str) -> None:
    text = page("docs/benchmarks.md").split("## Nested cross-validation")[1]
    found = re.search(rf"^\| {re.escape(key)} \|(.*)\|$", text, re.M)
    assert found
    plain, nested, other, *seconds = (cell.strip() for cell in found[1].split("|"))
    for name, cells in ((key, (plain, nested)), (other, seconds)):
        stored = result("nested_sparse_ridge.txt", name.split()[0] + " ")
        shown = " ".join(cells).replace(" s", "")
        assert missing(shown, stored.replace("s ", " ")) == []


def test_the_mean_of_nested_cross_validation() -> None:
    text = " ".join(page("docs/benchmarks.md").split())
    said = re.search(r"geometric mean over the 13 data sets of \[3\] is ([\d.]+) s", text)
    assert said
    stored = result("nested_sparse_ridge.txt", "geometric mean")
    assert missing(said[1], stored) == []


def test_outer_approximation() -> None:
    shown = row("docs/benchmarks.md", "Diabetes, γ = 0.1, τ = 1..11 in all")
    assert missing(" ".join(shown), result("outer_approximation.txt", "in all")) == []


def test_reading() -> None:
    stored = (RESULTS / "reading.txt").read_text(encoding="utf-8")
    for key, data in (
        ("sparsecv", "sparsecv:"),
        ("pandas", "pandas"),
        ("polars", "polars"),
        ("pyarrow alone", "pyarrow"),
        ("sparsecv, a million rows (625 MB) in blocks, read twice", "a million rows"),
    ):
        cells = row("docs/benchmarks.md", key)
        assert missing(" ".join(cells), result("reading.txt", data)) == [], stored


def test_exact_cv_of_many_columns() -> None:
    text = page("docs/benchmarks.md")
    for key, file, data in (
        ("Housing2 (506 × 91), 5 folds, τ ≤ 20", "many_columns.txt", "housing2     506×91      5"),
        ("Housing2, leave-one-out, τ ≤ 20", "shared_tree.txt", "housing2"),
        ("Bardet (120 × 200), leave-one-out, τ ≤ 10", "shared_tree.txt", "bardet"),
        ("Riboflavin (71 × 4088), 5 folds, τ ≤ 4", "many_columns.txt", "riboflavin"),
    ):
        problems, seconds, proved = row("docs/benchmarks.md", key)
        shown = f"{problems} {seconds} {proved}"
        assert missing(shown, result(file, data)) == [], text


@pytest.mark.parametrize(
    "key",
    [
        *("Bardet (96 × 200)", "TopGear (194 × 373)", "Riboflavin (57 × 4088)"),
        *("Vessel (144 × 486)", "Permeability (132 × 1107)", "Meats (172 × 100)"),
        "Housing2 (405 × 91)",
    ],
)
def test_projections_beyond_45_columns(key: str) -> None:
    stored = result("projection.txt", f"{key.split()[0]} ").replace("(", " ").replace(")", " ")
    assert missing(" ".join(row("docs/projection.md", key)), stored) == []


def test_projections_by_groups_and_sizes() -> None:
    stored = page("experiments/results/projection.txt")
    base = stored.split("over that of projected")[1].split("few rows")[0]
    for way in ("lasso", "elastic net", "relaxed lasso", "MCP", "SCAD", "L0Learn", "abess"):
        for cell, size in zip(row("docs/projection.md", way, 3), (3, 5, 8), strict=True):
            line = next(one for one in base.splitlines() if one.startswith(f"{way}@{size} "))
            assert missing(cell, line.split("@")[1][2:]) == [], (way, size)
    head = re.search(
        r"^\| \| (projected .*) \| columns of the lasso \|$", page("docs/projection.md"), re.M
    )
    assert head
    for key, group in (
        ("20 to 78 rows, at most 25 columns: 14 sets", "few rows"),
        ("134 to 5,198 rows, at most 25 columns: 10 sets", "many rows"),
        ("91 to 4,088 columns: 7 sets", "more than 45 columns"),
    ):
        part = stored.split(group)[1]
        for way, cell in zip(head[1].split(" | "), row("docs/projection.md", key), strict=False):
            line = next(one for one in part.splitlines() if one.startswith(f"{way} "))
            assert missing(cell, line) == [], (key, way)


def test_a_number_that_is_not_stored_is_found() -> None:
    assert missing("0.10 s, 5 h", "0.104 s 5.0 h") == []
    assert missing("0.12 s", "0.104 s 5.0 h") == ["0.12"]
    assert missing(".79 1,024", "0.788 1023") == ["1024"]


def test_words_beside_the_papers_tables() -> None:
    """Numbers in paper/differences.md stand in the summaries below the words, or in a script.

    Brackets that begin with "paper:" hold what a paper prints, and are left aside.
    """
    experiments = ROOT / "experiments"
    index = runpy.run_path(str(experiments / "index.py"))
    scripts = [*(experiments / "paper").glob("*.py"), *(experiments / "scale").glob("*.py")]
    known = [ast.get_docstring(ast.parse(one.read_text(encoding="utf-8"))) for one in scripts]
    parts = page("experiments/paper/differences.md").split("### ")[1:]
    assert {part.partition("\n")[0] for part in parts} == set(index["SUMMARIES"])
    every = {name for names in index["SUMMARIES"].values() for name in names}
    for part in parts:
        heading, _, words = part.partition("\n")
        words = re.sub(r"\(paper: [^()]*\)", "", words)
        names = index["SUMMARIES"][heading] or every
        stored = "\n".join([*map(str, known), *((RESULTS / n).read_text("utf-8") for n in names)])
        assert missing(words, stored) == [], heading
