"""Where the numbers in the sentences of README and docs come from.

``SENTENCES`` has the sentences that state a measurement, each with what experiments/results stores;
``SETTINGS`` those that state a constant of the program; ``CITED`` numbers that somebody else has
printed, set-ups of experiments, and examples. tests/test_numbers.py compares them, and fails on a
sentence with such a number that stands in none of these lists.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .page_tables import BENCHMARKS, CLUSTERS, GLOBAL, LIMITS, PROJECTION, START
from .pages import RESULTS, aligned, lines, numbers, part, stored

CHANGES = "CHANGELOG.md"


def topgear() -> str:
    """The test errors of the projection and the lasso on every split of TopGear."""
    with (RESULTS / "projection_wide.csv").open(encoding="utf-8", newline="") as file:
        rows = [one for one in csv.DictReader(file) if one["dataset"] == "topgear"]
    return " ".join(one["error"] for one in rows if one["way"] in ("projected", "lasso"))


def sindy_problems() -> str:
    """How many single problems there are, and how many of these are not proved."""
    with (RESULTS / "sindy.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    left = [one for one in rows if one["status"] != "optimal"]
    sizes = {(int(one["p"]) == 462, int(one["size"])) for one in left}
    wide = [size for is_wide, size in sizes if is_wide]
    narrow = {size for is_wide, size in sizes if not is_wide}
    return f"{len(rows)} {len(left)} {min(wide)} 462 {min(narrow)} {max(narrow)}"


def miosr() -> str:
    """Runs, runs with an equation that is worse, least and most seconds, of MIOSR."""
    runs = [one for one in stored("sindy.txt").splitlines() if "MIOSR" in one and "worse" in one]
    worse = [one for one in runs if not re.search(r": 0 of \d$", one)]
    each = [float(re.findall(r"MIOSR ([\d.]+) s", one)[0]) for one in runs]
    columns = re.findall(r"p = (\d+)", lines("sindy.txt", "mhd_10p0 degree 3, n"))[0]
    return f"{len(runs)} {len(worse)} {min(each)} {max(each)} 1e-4 {columns}"


def reported(*columns: str) -> str:
    """The least and the largest number below some columns of the errors to expect."""
    labels = ("prostate", "diabetes10", "steam", "100 × 8", "25 × 21", "100 × 21", "50 × 21  ")
    labels = (*labels, "20 × 8  ", "20 × 8 dense", "50 × 8  ", "20 × 21", "50 × 21 dense")
    each = [
        float(aligned("error_to_expect.txt", label, column))
        for label in labels
        for column in columns
        if (label, column) != ("20 × 21", "nested")
    ]
    return f"{min(each)} {max(each)} 20 21 dense 8"


def five_columns() -> str:
    group = part("projection.txt", "of lasso", "over that of projected").split("more than 45")[1]
    return "\n".join(one for one in group.splitlines() if "@5 " in one)


def ratio_to_minimum() -> str:
    """By how many percent the projection's error is below that of the rule minimum, wide sets."""
    group = part("projection.txt", "over that of projected").split("more than 45")[1]
    line = next(one for one in group.splitlines() if one.startswith("minimum "))
    return f"{100 - 100 / float(line.split()[1])} 91 4088"


def default_of_global() -> str:
    """The largest excess of the default fit over the proved least error, rounded up."""
    rows = [one.split() for one in stored("global_gamma.txt").splitlines()[4:] if one.strip()]
    return f"{np.ceil(1e3 * max(float(one[10]) for one in rows)) / 1e3} {len(rows)}"


def grouped() -> str:
    """Sizes of Ames that are proved, the largest gap of the others, from where gaps are small."""
    table = stored("grouped_factors.txt").split("ames:")[1]
    gaps = {
        int(k): float(gap)
        for k, gap in re.findall(r"^\| (\d+) \| \S+ \| \d+ \| (\S+)", table, re.M)
    }
    proved = [k for k, gap in gaps.items() if gap == 0.0]
    start = next(k for k in proved if k > 10)
    widest = max(gaps, key=gaps.__getitem__)
    below_5, below_1 = (
        min(k for k in gaps if all(gap < limit for i, gap in gaps.items() if i >= k))
        for limit in (0.05, 0.01)
    )
    assert proved == [1, 2, 3, *range(start, max(gaps) + 1)]
    found = [1, 3, start, max(gaps), widest, 100 * gaps[widest], 5, below_5, 1, below_1]
    said = f"{table.splitlines()[0]} 40 {lines('grouped_factors.txt', 'grouped')}"
    return f"{' '.join(map(str, found))} {said}"


def memory() -> str:
    """The most memory of a command, in sizes of the table, rounded up."""
    most = max(float(one) for one in re.findall(r"\(([\d.]+)\)", stored("memory.txt")))
    assert 4.0 < most <= 5.0  # "up to five times"
    return "300000 41"


def whole_fits() -> str:
    """The least and the most CPU seconds of default fits, and on how many sets of which widths."""
    text = stored("default_fits.txt")
    each = [float(cpu) for cpu in re.findall(r"sparsecv +[\d.]+ +([\d.]+)", text)]
    widths = [int(p) for p in re.findall(r"× (\d+)\)", text)]
    return f"{min(each)} {max(each)} {len(each)} {min(widths)} {max(widths)} 45"


def beside_libraries() -> str:
    """The most memory of a command above the imports, in sizes of the table."""
    rows = [re.findall(r"\(([\d.]+)\)", one) for one in stored("memory.txt").splitlines()]
    return f"{max(float(row[1]) for row in rows if len(row) == 3)} 300000 41"


def least_squares() -> str:
    """How many real data sets there are, and the largest difference as a power of ten."""
    found = re.findall(r"^(\w+) +\d+ +(\d+) (\S+) +(\d+) (\d+) ", stored("gamma_zero.txt"), re.M)
    real = [row for row in found if row[0] not in ("synthetic",)]
    most = max(float(row[2]) for row in real)
    assert all(row[1] == row[4] for row in real)  # enumeration proves every size
    assert sum(row[3] != row[1] for row in real) == 1  # the tree does so on all sets but one
    return f"{len(real)} 22 1 {-np.ceil(np.log10(most)):.0f}"


def largest_size() -> str:
    """The largest size that a default fit of 1,000 rows, or of more, and 1,000 columns tries."""
    from sparsecv.cv.settings import default_taus

    sizes = {int(default_taus(n, 1000).max()) for n in (1000, 10000)}
    return f"{sizes} 1000"


def attacks_on_all_sizes() -> str:
    """How many problems of the family there were in all runs; none had a wrong claim."""
    rows = re.findall(r"^\| (.*?) \| ([\d,]+)(?: each)? \| (\d+)", stored("attack.txt"), re.M)
    rows = [row for row in rows if "all sizes" in row[0]]
    assert all(wrong == "0" for _, _, wrong in rows)
    return str(sum(int(count.replace(",", "")) for _, count, _ in rows))


def incumbents() -> str:
    """How many problems there are; no other heuristic is better, and how long two of them take."""
    text = stored("incumbents.txt")
    assert "a peer is better: nowhere" in text
    ours, beam = (
        float(re.findall(rf"in all: .*?{name} ([\d.]+)", text)[0])
        for name in ("sparsecv", "okridge")
    )
    assert 6.5 < beam / ours < 7.5  # "a seventh"
    return f"{len(re.findall('s  okridge', text))} 0"


def rules(*labels: str) -> str:
    return lines("selection_rules.txt", *labels)


# Sentences that state a measurement: page, the words, and what is stored.
SENTENCES: list[tuple[str, str, Callable[[], str]]] = [
    (
        BENCHMARKS,
        "There the fastest other solver takes 97 times sparsecv's time in geometric mean",
        lambda: lines("solver_benchmark.txt", "56 instances"),
    ),
    (
        BENCHMARKS,
        "Over 56 instances the fastest other solver needs 97 times sparsecv's time",
        lambda: lines("solver_benchmark.txt", "56 instances"),
    ),
    (
        BENCHMARKS,
        "Of all 703 problems in [sindy.csv](../experiments/results/sindy.csv), 88 were not proved, "
        "all of them at sizes 5 and 6, or 4 at 462 columns.",
        sindy_problems,
    ),
    (
        BENCHMARKS,
        "387 problems (sizes up to 3; up to 56 columns size 4) were also enumerated in extended "
        "precision: 387 have the same support",
        lambda: lines("sindy.txt", "387 problems") + " 3 56 4",
    ),
    (
        BENCHMARKS,
        "These were stopped after 15 s of wall time on a machine shared with other work, which was "
        "at most 6.7 s of processor time.",
        lambda: lines("sindy.txt", "The machine was shared"),
    ),
    (
        BENCHMARKS,
        "took 0.02 to 15 s for a system of up to 84 columns. In 7 of the 21 runs (system, α) at "
        "least one of its equations was worse than the optimum by more than 1e-4.",
        miosr,
    ),
    (
        BENCHMARKS,
        "at every size of the 20 real data sets with at most 22 columns, to a relative 1e-13. On "
        "one of the 20 rounding leaves the tree without a proof, which enumeration then gives",
        least_squares,
    ),
    (
        BENCHMARKS,
        "all 246 pass",
        lambda: lines("pysindy_own_tests.txt", "optimizers"),
    ),
    (
        BENCHMARKS,
        "Here five draws of the data need 1,529 to 2,142 problems with the paper's bounds, and 16 "
        "to 18 with ours",
        lambda: stored("figure_one.txt"),
    ),
    (
        BENCHMARKS,
        "The geometric mean over the 13 data sets of [3] is 0.45 s",
        lambda: lines("nested_sparse_ridge.txt", "geometric mean") + " 13 3",
    ),
    (
        BENCHMARKS,
        "has the lowest test error, .915: higher than glmnet's",
        lambda: rules("geometric"),
    ),
    (
        BENCHMARKS,
        "On the nine sets with at most 30 columns it has .993.",
        lambda: rules("p <= 30"),
    ),
    (
        BENCHMARKS,
        "its error (.854) equals that of the best other method (lasso .856).",
        lambda: rules("geometric"),
    ),
    (
        BENCHMARKS,
        "Without TopGear the three numbers are .979 (`repeated`), .904 (average) and .907 (lasso)",
        lambda: rules("no topgear"),
    ),
    (
        BENCHMARKS,
        "on the nine narrow sets the lasso is ahead (.899, average .910)",
        lambda: rules("p <= 30"),
    ),
    (
        BENCHMARKS,
        "the CV error of the choice is .34 to .99 of the error on new data",
        lambda: reported("minimum"),
    ),
    (BENCHMARKS, "and the bias-corrected criterion .30 to .98", lambda: reported("criterion")),
    (BENCHMARKS, "are .87 to 1.25 of it", lambda: reported("averaged", "projected")),
    (BENCHMARKS, "it lies between .94 and 1.10, except", lambda: reported("nested")),
    (
        BENCHMARKS,
        "ten outer folds give 1.11 and 1.14, five give 1.12 and 1.17",
        lambda: lines("error_to_expect.txt", "20 × 8 "),
    ),
    (
        BENCHMARKS,
        "reading 100,000 rows of 31 numbers as text (62 MB)",
        lambda: lines("reading.txt", "100,000"),
    ),
    (
        CHANGES,
        "300,000 rows of 41 numbers take at most 2.7 times the size of the table",
        beside_libraries,
    ),
    (
        CHANGES,
        "A fit over 20 γ takes 1.4 times LassoCV's time in geometric mean over six small data sets",
        lambda: lines("fit_times.txt", "geometric means"),
    ),
    (
        CHANGES,
        "Default fits beyond 45 columns take .4 to 4 s of one core on eight data sets of 91 to "
        "4,088 columns",
        whole_fits,
    ),
    (
        CHANGES,
        "Every size of 100 columns, half of them true, is proved in 37 s on one core",
        lambda: lines("all_sizes.txt", "p = 100"),
    ),
    (
        BENCHMARKS,
        "was at least as good as OKRidge's beam search, abess and L0Learn's algorithm on all 92 "
        "problems of `experiments/solvers/incumbents.py`, in a seventh of the beam search's time.",
        incumbents,
    ),
    (
        CLUSTERS,
        "150 folds of 40 columns at ten γ, 123 s in one process, were 1.73 times as fast with two "
        "workers and 0.92 times as fast with one; a unit without work took 6 to 10 ms",
        lambda: stored("executors.txt"),
    ),
    (
        CLUSTERS,
        "2.3 × 10⁷ numbers a second are read from Parquet, sorted by fold and centred, and 3.3 × "
        "10¹⁰ products a second are summed.",
        lambda: lines("parquet_folder.txt", "rates") + " 10",
    ),
    (
        CLUSTERS,
        "For n = 5,000,000 rows of p = 30 columns in 40 files (1.55 GB) the moments of 10 folds "
        "took 6.9 s, 3.6 times as long as a plain pass of pyarrow over the same files. Peak memory "
        "was 494 MB: 197 MB before anything was read, and 363 MB in the plain pass.",
        lambda: stored("parquet_folder.txt"),
    ),
    (
        GLOBAL,
        "came within 0.006 % on all eight",
        default_of_global,
    ),
    (
        "docs/constraints.md",
        "Ames with its 40 factors as groups has 73 groups of 274 columns. In 218 s of one core the "
        "sizes 1 to 3 and 57 to 73 are proved; of the others the gap is largest at size 8 (16 %), "
        "below 5 % from size 17 on, and below 1 % from size 42 on.",
        grouped,
    ),
    (
        "docs/command-line.md",
        "A million rows of 30 features, 10 folds and every τ take about 1.3 s from Parquet",
        lambda: stored("million_rows.txt"),
    ),
    (
        LIMITS,
        "A million rows of 30 features, ten folds, every τ and one γ take 0.7 s from a `.npy` file",
        lambda: stored("million_rows.txt"),
    ),
    (
        LIMITS,
        "300,000 rows of 41 numbers need up to five times the memory of the table",
        memory,
    ),
    (
        PROJECTION,
        "its error is .987 [.967, 1.008] and .991 [.982, 1.001] of the projection's.",
        lambda: "\n".join(
            one
            for one in part("projection.txt", "over that of projected").splitlines()
            if one.startswith("minimum ")
        ),
    ),
    (
        PROJECTION,
        "the minimum's error is 1.239 [1.028, 1.494] of the projection's, `repeated`'s 1.058 "
        "[.988, 1.134], the lasso's 1.056 [.940, 1.188].",
        lambda: part("projection.txt", "over that of projected").split("more than 45")[1],
    ),
    (
        PROJECTION,
        "the largest ratio of a single draw, 1.64",
        lambda: max(re.findall(r" 1\.\d\d  (1\.\d\d) ", stored("projection_long.txt"))),
    ),
    (
        PROJECTION,
        "the ratio is .936 in geometric mean over the tables and at most 1.32. With the limit of "
        "1 % alone it would be 2.929 and up to 200.18: at 20,000 rows, eight true columns, an R² "
        "of .2 and 46 columns, 4 columns would be chosen where 7.7 are now.",
        lambda: (
            lines(
                "projection_long.txt",
                "projected over",
                "one percent over",
                "20000       46   0.2  eight",
            )
            + " 1 20,000"
        ),
    ),
    (
        PROJECTION,
        "simulated tables of 2,000 to 200,000 rows and 46 to 300 columns",
        lambda: " ".join(re.findall(r"(?m)^ *(\d+ +\d+)", stored("projection_long.txt"))),
    ),
    (
        PROJECTION,
        "the projection's error is .512 of the lasso's, abess's .553, L0Learn's .618 and the "
        "relaxed lasso's .680.",
        five_columns,
    ),
    (PROJECTION, "(test error .140, the lasso's .025)", topgear),
    (
        PROJECTION,
        "It was 2.09 times `cv_error_` on the 44 rows of Alcohol, 1.44 times on the 25 of Steam, "
        "1.07 on the 97 of Prostate, and within 2 % on Hitters and Diabetes",
        lambda: part("projection.txt", "--nested", "--weights") + " 44 25 97 2",
    ),
    (
        PROJECTION,
        "a limit of 0.3 % instead of 1 % gains half a percent of error and costs a column",
        lambda: lines("average_weights.txt", "ε=0.003").replace("0.003", "0.3") + " 1",
    ),
    (
        "docs/certified.md",
        'The attack "all sizes" below has found no counterexample in 5,000 problems.',
        attacks_on_all_sizes,
    ),
    (START, "190 columns for 1,000 rows or more of 1,000 columns", largest_size),
    ("docs/wide.md", "its test error is 19 % below that of the rule `minimum`", ratio_to_minimum),
    (
        "docs/wide.md",
        "`SparseRidge(tau=3, gamma=100)` on 4,088 genes takes 8 ms",
        lambda: (
            "3 100 4088 "
            + str(1e3 * float(numbers(lines("solver_benchmark.txt", "| riboflavin γ=100 τ=3"))[2]))
        ),
    ),
]


def constant(path: str) -> Callable[[], float]:
    """A constant of the package, by the dotted path of its module and its name."""

    def found() -> float:
        import importlib

        module, name = path.split(":")
        value: Any = importlib.import_module(f"sparsecv.{module}")
        for one in name.split("."):
            value = getattr(value, one)
        return float(value)

    return found


def good_share() -> float:
    import inspect

    from sparsecv import SparseRidgeCV

    return float(inspect.signature(SparseRidgeCV.column_table).parameters["within"].default)


proving = constant("cv.settings:PROVING_SECONDS")
in_memory = constant("design.prepare:IN_MEMORY_BYTES")
UNITS = {"s": 1.0, "seconds": 1.0, "%": 0.01, "MB": 1e6, "GB": 1e9, "million nodes": 1e6}
# Sentences that state a constant: page, the words that hold one number with its unit, the constant.
SETTINGS: list[tuple[str, str, Callable[[], float]]] = [
    (BENCHMARKS, "reads files above 200 MB in blocks", in_memory),
    (
        BENCHMARKS,
        "Algorithm 1 finds the best τ within 1 %",
        constant("cv.settings:SEARCH_TOLERANCE"),
    ),
    (CHANGES, "for 60 s by default", proving),
    (
        CHANGES,
        "the fit took at most 5 seconds",
        constant("selection.nested:NESTED.max_seconds_unasked"),
    ),
    (CHANGES, "for at most 60 s", proving),
    (CLUSTERS, "Above 200 MB the rows are read once", in_memory),
    (CLUSTERS, "A worker holds a block of 16 MB", constant("design.moments:BLOCK_BYTES")),
    (CLUSTERS, "at most 128 MB", constant("tables.lazy:CHUNK_BYTES")),
    ("docs/command-line.md", "Tables of more than 200 MB", in_memory),
    ("docs/command-line.md", "up to 1.5 GB", constant("design.prepare:MAX_HELD_BYTES")),
    ("docs/command-line.md", "60 s of proving", proving),
    (
        "docs/command-line.md",
        "the fit itself took at most 5 seconds",
        constant("selection.nested:NESTED.max_seconds_unasked"),
    ),
    ("docs/command-line.md", "`--tol` (1 %)", constant("cv.settings:SEARCH_TOLERANCE")),
    ("docs/command-line.md", "a search of at most 60 s unless", proving),
    ("docs/command-line.md", "is at most 2 % above that of the best size", good_share),
    ("docs/command-line.md", "at most 2 % above that of the best subset", good_share),
    (
        "docs/constraints.md",
        "at most 500 MB",
        constant("solvers.leaps.unit_sizes:SETTINGS.max_bytes"),
    ),
    ("docs/how-it-works.md", "for 60 s unless", proving),
    (LIMITS, "Tables of more than 200 MB", in_memory),
    (
        PROJECTION,
        "is at most 1 % of the average's CV error",
        constant("selection.projection:PROJECTION.max_distance_share"),
    ),
    ("docs/python.md", "ends proofs after 60 s", proving),
    ("docs/python.md", "[2 %](command-line.md#cv)", good_share),
    ("docs/wide.md", "for 60 seconds unless", proving),
]

# What is neither measured nor a constant: what somebody else has printed, how an experiment is set
# up, and examples.
CITED = [
    ("README.md", "Python ≥ 3.10"),
    (START, "Python 3.10"),
    (START, "neighbouring columns correlate by 0.5"),
    (CHANGES, "size 4 of 462 columns"),
    (BENCHMARKS, "with a limit of 60 s"),
    (BENCHMARKS, "counts as 60 s"),
    (BENCHMARKS, "the relative gap after 30 s on one thread"),
    (BENCHMARKS, "needs 0.32 s at p = 40, 119 s at p = 60, and 374 s for sizes 30 to 50 at p = 80"),
    (BENCHMARKS, "with α = γ/2 of 0.01, 1e-5 and 0"),
    (BENCHMARKS, "at n = 250 with α = 0.01"),
    (BENCHMARKS, "the paper solved 1,694 of 3,600 problems"),
    (BENCHMARKS, "the paper [3] reports 592 s on average"),
    (BENCHMARKS, "are split 20 times into 80 % and 20 %"),
    (CLUSTERS, "`plan: one pass over 1.24 GB of numbers in 40 tasks, …`"),
    (PROJECTION, "which keep 20 % of the rows for the test"),
    (PROJECTION, "The 95 % intervals"),
    (PROJECTION, "with its 95 % interval"),
    (PROJECTION, "between 1e-4 and 1 times the columns' mean squared length"),
]
