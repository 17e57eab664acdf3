"""Where the numbers of every table of README and docs are stored in experiments/results.

``TABLES`` says for each table of a page what is stored for a row and a column.
tests/test_numbers.py compares both, and fails on a table of numbers that is not listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .pages import aligned, lines, part, stored

Stored = Callable[[str, str], str]
BENCHMARKS, PROJECTION, GLOBAL = "docs/benchmarks.md", "docs/projection.md", "docs/global.md"
CLUSTERS, START, LIMITS = "docs/clusters.md", "docs/start.md", "docs/limits.md"


def first(label: str) -> str:
    return label.replace("*", "").split()[0]


def rows_of(file: str, names: dict[str, str] | None = None) -> Stored:
    """The line of a file that begins with the first word of the row, or with its other name."""
    return lambda label, _: lines(file, (names or {}).get(label, first(label) + " "))


def below(file: str, names: dict[str, str], columns: dict[str, str] | None = None) -> Stored:
    """The number below the column of the same name, or of its other name, in an aligned table."""
    return lambda label, column: " ".join(
        aligned(file, names.get(label, first(label).lower() + " "), name)
        for name in (columns or {}).get(column, column).split(" and ")
    )


def table_one(label: str, _: str) -> str:
    n, p = map(int, re.findall(r"\d+", label))
    line = lines("exact_cv_timings.txt", f"{first(label)}  ").split("ratio")[0]
    return f"{line} {n * p * 7}"  # one problem for each row, τ and γ


def many_columns(label: str, _: str) -> str:
    file, key = {
        "Housing2 (506 × 91), 5 folds, τ ≤ 20": ("many_columns.txt", "housing2     506×91      5"),
        "Housing2, leave-one-out, τ ≤ 20": ("shared_tree.txt", "housing2"),
        "Bardet (120 × 200), leave-one-out, τ ≤ 10": ("shared_tree.txt", "bardet"),
        "Riboflavin (71 × 4088), 5 folds, τ ≤ 4": ("many_columns.txt", "riboflavin"),
    }[label]
    return lines(file, key)


def frontier(label: str, _: str) -> str:
    made = {
        "n=500 p=1000 τ=10 ρ=0.7 ν=1 γ=5": "synthetic:500,1000,10,0.7,1,0 γ=5",
        "n=200 p=100 τ=10 ρ=0.9 ν=1 γ=0.1": "synthetic:200,100,10,0.9,1,0 γ=0.1",
        "n=250 p=500 τ=10 ρ=0.5 ν=5 γ=10": "synthetic:250,500,10,0.5,5,4 γ=10",
    }
    return lines("frontier.txt", f"| {made.get(label, label)}")


def default_fits(label: str, column: str) -> str:
    """CPU seconds, columns and error of one package on one data set."""
    key = {"Ames": "ames", "Riboflavin": "riboflavin"}.get(first(label), first(label).lower())
    block = re.split(r"^(?=\w)", stored("default_fits.txt"), flags=re.M)
    of_set = next(one for one in block if one.startswith(f"{key} ("))
    line = next(one for one in of_set.splitlines() if f" {column} " in one)
    return " ".join(line.split(column)[1].split()[1:])


def sindy(label: str, column: str) -> str:
    """Columns, sizes, most CPU seconds of an equation, least and most of one budget."""
    system, degrees = label.split(", degree ")
    wanted = tuple(
        f"{system.lower().replace('ö', 'o')}_{noise} degree {degree}"
        for degree in degrees.split(" and ")
        for noise in ("0p5", "10p0")
    )
    found = [line for line in stored("sindy.txt").splitlines() if line.startswith(wanted)]
    if column == "columns":
        return " ".join(re.findall(r"p = (\d+)", " ".join(found)))
    if column == "true sizes":
        return " ".join(re.findall(r"\(true (\[.*?\])\)", " ".join(found)))
    if column == "one equation":
        each = [s for line in found if "n = " in line for s in re.findall(r"([\d.]+) s", line)]
        return max(each, key=float)
    each = re.findall(r"α \S+: ([\d.]+) s, \[", "\n".join(found))
    return f"{min(each, key=float)} {max(each, key=float)}"


def algorithm_one(label: str, column: str) -> str:
    way = {
        "the paper's [1]": "paper-exact",
        "its bounds, here": "paper",
        "with u* in Corollary 3": "paper-exact",
        "ours": "best",
    }[column]
    line = next(
        one
        for one in stored("mio_counts.txt").splitlines()
        if re.match(rf"{label} +unit norm +{way} ", one)
    )
    before, _, printed = line.partition("(paper: ")
    return printed if column == "the paper's [1]" else before.split("problems")[1].split("nodes")[0]


def motivating(label: str, column: str) -> str:
    size, p, folds = label.split(", ")
    line = next(
        one
        for one in stored("motivating_example.txt").splitlines()
        if re.match(rf"{'loo' if folds == 'leave-one-out' else '5'} ", one)
        and f"{size.replace(' ', '')} " in one
        and f"{p.replace(' ', '')} " in one
    )
    name = {"least CV error": "plain", "with stability": "stability"}.get(column, "corrected")
    return line.split(f"{name} ")[1].split("(")[0]


def of_size(label: str, column: str) -> str:
    """A ratio to the projection of so many columns, with its interval."""
    base = part("projection.txt", "over that of projected", "few rows")
    name = "subset" if label == "best subset, γ by CV" else label
    line = next(one for one in base.splitlines() if one.startswith(f"{name}@{column.split()[0]} "))
    return line.split("@")[1][2:]


def of_group(label: str, column: str) -> str:
    group = {"20": "few rows", "134": "many rows", "91": "more than 45 columns"}[first(label)]
    name = "lasso" if column == "columns of the lasso" else column
    stands = part("projection.txt", group).splitlines()
    return next(one for one in stands if one.startswith(f"{name} ")) + f" {label}"


def beyond_45(label: str, _: str) -> str:
    found = lines("projection.txt", f"{first(label)} ")
    return found.replace("(", " ").replace(")", " ")


def after(file: str, heading: str, names: dict[str, str] | None = None) -> Stored:
    """The line of a row in the part of a file that a heading begins."""

    def found(label: str, _: str) -> str:
        key = (names or {}).get(label, first(label).lower())
        return next(
            one for one in part(file, f"{heading}\n", "\n\n").splitlines() if one.startswith(key)
        )

    return found


def default_times(label: str, column: str) -> str:
    return aligned("scaling.txt", f"p = {label.replace(',', '')} ", f"n = {column}")


def plan(label: str, _: str) -> str:
    """What a table of 10⁹ rows would take; with 1,000 files, MB of a part are GB in all."""
    key = {
        "numbers": "plan",
        "reading, sorting, centring": "reading",
        "products": "reading",
        "storage of 1 GB/s": "storage",
        "sent to the client": "sent",
        "memory": "sent",
    }
    found = lines("parquet_folder.txt", key.get(label, label))
    if label == "memory":
        found += lines("parquet_folder.txt", "one process")
    return found + " 1000"


# The tables with measurements, by page and by how their header begins; those whose rows stand side
# by side, two in a line, have "twice".
TABLES: dict[tuple[str, str], Stored] = {
    ("README.md", "leave-one-out at every τ, 7 values of γ"): table_one,
    (BENCHMARKS, "leave-one-out at every τ, 7 values of γ"): table_one,
    (BENCHMARKS, "exact CV at one γ = 100"): many_columns,
    (BENCHMARKS, "instance | sparsecv"): lambda label, _: lines(
        "solver_benchmark.txt", f"| {label} |"
    ),
    (BENCHMARKS, "instance | objective"): frontier,
    (BENCHMARKS, "p | 40"): lambda *_: stored("all_sizes.txt"),
    (BENCHMARKS, " | sparsecv | LassoCV"): default_fits,
    (BENCHMARKS, "system | columns"): sindy,
    (BENCHMARKS, "seconds to proof, one thread"): rows_of(
        "outer_approximation.txt",
        {
            "Diabetes, γ = 0.1, τ = 1..11 in all": "in all",
            "n = 200, p = 20, τ = 5, γ = 0.07": "synthetic:200,20,5,0.5,5,0   γ=0.0707",
            "Housing, γ = 0.1, τ = 8": "housing                      γ=0.1   τ=8",
            "Servo, γ = 0.1, τ = 9": "servo                        γ=0.1   τ=9",
            "AutoMPG, γ = 0.1, τ = 10": "autompg                      γ=0.1   τ=10",
            "n = p = 100, τ = 5, γ = 1": "synthetic:100,100,5",
        },
    ),
    (BENCHMARKS, " | the paper's [1]"): algorithm_one,
    (BENCHMARKS, " | plain k-fold"): lambda label, _: lines(
        "nested_sparse_ridge.txt", f"{first(label)} "
    ).replace("s ", " "),
    (BENCHMARKS, " | one-se"): below("selection_rules.txt", {"**geometric mean**": "geometric"}),
    (BENCHMARKS, " | least CV error"): motivating,
    (BENCHMARKS, " | draws"): below(
        "error_to_expect.txt",
        {
            **{
                name: f"{name}  " for name in ("20 × 8", "50 × 8", "20 × 21", "50 × 21", "100 × 21")
            },
            **{name: name for name in ("20 × 8 dense", "100 × 8 dense", "25 × 21 dense")},
            "50 × 21 dense": "50 × 21 dense",
            "Prostate, 48 × 8": "prostate",
            "Diabetes, 221 × 10": "diabetes10",
            "Steam, 12 × 8": "steam",
        },
    ),
    (BENCHMARKS, " | seconds | MB"): rows_of(
        "reading.txt",
        {
            "sparsecv": "sparsecv:",
            "pandas": "pandas:",
            "polars": "polars:",
            "pyarrow alone": "pyarrow:",
            "sparsecv, a million rows (625 MB) in blocks, read twice": "a million rows",
        },
    ),
    (CLUSTERS, "what | how much"): plan,
    (GLOBAL, "data, folds"): lambda label, column: below(
        "global_gamma.txt",
        {label: f"{label.split(',')[0]:<18}" + ("loo" if "leave" in label else " 10").rjust(3)},
        {
            "certified (τ, γ)": "τ and γ",
            "CPU seconds": "cpu s",
            "alternation from ten starts: worst, missed by": "worst and missed",
            "grid of 10": "grid 10",
            "grid of 20": "grid 20",
        },
    )(label, column),
    (PROJECTION, " | projected | average"): of_group,
    (PROJECTION, " | 3 columns"): of_size,
    (PROJECTION, " | projected | minimum"): beyond_45,
    (PROJECTION, " | repeated | projected"): after("projection.txt", "--time"),
    (PROJECTION, " | average, weights of all rows"): after(
        "projection.txt", "--weights", {"pure noise (40 × 10), 20 draws": "noise"}
    ),
    (START, "columns | 100 rows"): lambda label, column: default_times(
        label, column.removesuffix(" rows")
    ),
}
TWICE = {(BENCHMARKS, " | plain k-fold"), (PROJECTION, " | repeated | projected")}
# Tables of numbers that another test looks at, by page and header.
ELSEWHERE = {("docs/textbook.md", "size | terms"): "test_textbook.py"}
