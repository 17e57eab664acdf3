"""This script fits exponents of the time of a fit in n, p, folds, sizes and number of γ.

    python -m experiments.scale.scaling [--quick] [exponents] [defaults] [fits] [small]

``exponents``: One number of a base problem changes at a time, on simulated data (ρ = .5, signal to
noise 1, ten true columns). A fit is ``SparseRidgeCV`` with rule "minimum" over a grid of γ from .01
to 100. Up to 45 columns ("proved") the fit proves what the choice needs; beyond them ("estimates")
it finds good supports and proves nothing, as proofs end at a time limit and so have no exponent.
A time is the least CPU time of three fits, on one thread. The exponent is the slope of log time
over log value on the upper half of the values, with its standard error.

``defaults``: ``SparseRidgeCV().fit(X, y)``, its defaults and all, by number of rows and columns of
the same simulated data, in CPU seconds on one thread. docs/start.md shows this table.

``fits``: Whole fits with five folds on data sets of the papers, in seconds of CPU time: sparsecv by
default and with 20 given γ, LassoCV, cv.glmnet in R, abess, L0Learn's algorithm (fastsparsegams)
and R's leaps, which is exhaustive as sparsecv's trees are but has no ridge term and no
cross-validation of its own: the script cross-validates its best subsets of every size, where the
columns are independent. lmSubsets, the successor of leaps, is no package of Debian. Packages that
are missing are left out. Fits beyond 45 columns stand in results/default_fits.txt, and searches for
γ that are certified beside alternation in results/global_gamma.txt.

``small``: ``SparseRidgeCV().fit(X, y)`` on 200 tables of 8 to 60 rows and 10 to 45 columns (uniform
columns, three of them true, or noise alone): the worst and the median time, in CPU and in wall
seconds, and how many choices are certified, in results/small_tables.txt. It is left out unless it
is named.

``--quick`` takes every other value and two data sets. The script writes results/scaling.csv
as it goes, from which a run that was interrupted goes on, results/scaling.png and
results/scaling.txt.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import csv
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from experiments.common import RESULTS, machine, rows
from experiments.references import PATHS, of_least_error
from sparsecv import SparseRidgeCV
from sparsecv.plots.curves import save
from sparsecv.plots.style import in_style, new_figure
from sparsecv.tables.synthetic import make_synthetic

# n, p, folds, largest size and number of γ of the problem that each series changes in one number.
BASES = {"proved": (500, 25, 10, 25, 10), "estimates": (200, 400, 5, 20, 10)}
AXES = ("n", "p", "folds", "sizes", "γ")
VALUES = {
    "proved": (
        (250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000),
        (10, 15, 20, 25, 30, 35, 40),
        (2, 5, 10, 20, 50, 100, 250, 500),
        (1, 2, 4, 8, 16, 25),
        (1, 2, 5, 10, 20, 50, 100),
    ),
    "estimates": (
        (100, 200, 400, 800, 1600, 3200, 6400),
        (100, 200, 400, 800, 1600, 3200, 6400),
        (2, 5, 10, 20, 50, 100, 200),
        (2, 5, 10, 20, 40, 80),
        (1, 2, 5, 10, 20, 50, 100),
    ),
}
# The numbers of columns of the default fits, each with its numbers of rows; larger tables of many
# columns take many minutes.
DEFAULT_ROWS = (100, 1000, 10000, 100000)
DEFAULTS = dict.fromkeys((10, 20, 30, 35, 40, 100), DEFAULT_ROWS)
DEFAULTS |= {1000: DEFAULT_ROWS[:3], 5000: DEFAULT_ROWS[:1]}
PARTS = ("exponents", "defaults", "fits")
# Number of the small tables, and of those with ``--quick``.
SMALL_TABLES, SMALL_TABLES_QUICK = 200, 40
RUNS = 3
# A fit that takes longer than this many CPU seconds is timed once, and ends its series.
LONG = 20.0
SETS = ("diabetes", "housing", "wine", "prostate", "servo", "hitters_log10", "autompg")
GAMMAS = np.geomspace(2e-3, 2e3, 20)
COLUMNS = ("series", "axis", "value", "seconds")
R_SCRIPT = """
suppressMessages({library(glmnet); library(leaps)})
d <- as.matrix(read.csv("d.csv", header = FALSE)); p <- ncol(d) - 2
X <- d[, 1:p]; y <- d[, p + 1]; fold <- d[, p + 2]
spent <- function(run) {
  run()
  a <- proc.time()
  for (i in 1:10) run()
  (proc.time() - a)[["user.self"]] / 10
}
lasso <- function() cv.glmnet(X, y, foldid = fold)
path <- function(keep) {
  found <- summary(regsubsets(X[keep, ], y[keep], nvmax = p, method = "exhaustive",
                              really.big = TRUE, intercept = TRUE))$which
  apply(found[, -1, drop = FALSE], 1, which, simplify = FALSE)
}
subsets <- function() {
  path(rep(TRUE, length(y)))
  for (f in unique(fold)) {
    keep <- fold != f
    for (s in path(keep)) {
      fit <- lm.fit(cbind(1, X[keep, s]), y[keep])$coefficients
      sum((y[!keep] - cbind(1, X[!keep, s]) %*% fit)^2)
    }
  }
}
cat(spent(lasso), if (qr(cbind(1, X))$rank == p + 1) spent(subsets) else NA, "\\n")
"""


class Times:
    """CPU seconds in a CSV file, to which every measurement is added at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[tuple[str, str, int], float] = {}
        if not path.exists():
            path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
        with path.open(encoding="utf-8", newline="") as stored:
            for row in csv.DictReader(stored):
                key = row["series"], row["axis"], int(row["value"])
                self.known[key] = float(row["seconds"])

    def add(self, series: str, axis: str, value: int, seconds: float) -> None:
        """Keep a measurement."""
        self.known[series, axis, value] = seconds
        with self.path.open("a", encoding="utf-8", newline="") as stored:
            csv.writer(stored).writerow([series, axis, value, f"{seconds:.6g}"])
        print(f"{series:<20} {axis:<18} {value:>6} {seconds:9.4f} s", flush=True)

    def column(self, series: str, axis: str) -> tuple[np.ndarray, np.ndarray]:
        """The values of a series, in order, and the seconds of their fits."""
        both = sorted((key[2], s) for key, s in self.known.items() if key[:2] == (series, axis))
        return np.array([v for v, _ in both], dtype=float), np.array([s for _, s in both])


def least_cpu(fit: Callable[[], Any], runs: int = RUNS) -> float:
    """The least CPU seconds of some fits; a long fit is timed once."""
    found: list[float] = []
    while len(found) < runs and (not found or found[0] < LONG):
        started = time.process_time()
        fit()
        found.append(time.process_time() - started)
    return min(found)


def fit_of(series: str, n: int, p: int, folds: int, most: int, count: int) -> Callable[[], Any]:
    """A fit of simulated data."""
    X, y, _ = make_synthetic(n, p, 10, 0.5, 1.0, seed=0)
    model = SparseRidgeCV(
        cv=folds,
        taus=np.arange(1, most + 1),
        gammas=np.geomspace(0.01, 100.0, count) if count > 1 else [1.0],
        rule="minimum",
        time_limit=None if series == "proved" else 0,
    )
    return partial(model.fit, X, y)


def exponents(times: Times, quick: bool) -> None:
    """Measure every fit of every series that is missing."""
    for series, base in BASES.items():
        fit_of(series, *base)()  # compiles
        for axis, (name, values) in enumerate(zip(AXES, VALUES[series], strict=True)):
            for value in values[::2] if quick else values:
                changed = list(base)
                changed[axis] = value
                changed[3] = min(changed[3], changed[1])
                if (series, name, value) not in times.known:
                    times.add(series, name, value, least_cpu(fit_of(series, *changed)))
                if times.known[series, name, value] > LONG:
                    break


def defaults(times: Times, quick: bool) -> None:
    """Measure the default fits that are missing."""
    for p in (20, 60):  # compiles
        SparseRidgeCV().fit(*default_data(100, p))
    for p, rows_of_p in list(DEFAULTS.items())[: 3 if quick else None]:
        for n in rows_of_p[: 2 if quick else None]:
            if ("default", f"p = {p}", n) not in times.known:
                fit = partial(SparseRidgeCV().fit, *default_data(n, p))
                times.add("default", f"p = {p}", n, least_cpu(fit))


def default_data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulated rows like those of the exponents."""
    X, y, _ = make_synthetic(n, p, min(10, p), 0.5, 1.0, seed=0)
    return X, y


def small(quick: bool) -> str:
    """Default fits of small tables, of which many have more columns than rows."""
    rng, wall, cpu, certified = np.random.default_rng(0), list[float](), list[float](), 0
    SparseRidgeCV().fit(*default_data(100, 10))  # compiles
    for _ in range(SMALL_TABLES_QUICK if quick else SMALL_TABLES):
        n, p = int(rng.integers(8, 61)), int(rng.integers(10, 46))
        X = rng.uniform(size=(n, p))
        signal = X[:, :3].sum(axis=1) if rng.uniform() < 0.7 else 0.0
        y = signal + rng.choice([0.05, 0.3, 1.0]) * rng.standard_normal(n)
        started = time.perf_counter(), time.process_time()
        model = SparseRidgeCV().fit(X, y)
        wall.append(time.perf_counter() - started[0])
        cpu.append(time.process_time() - started[1])
        certified += bool(model.certified_)
        text = f"{n:>3} rows {p:>3} columns {cpu[-1]:7.2f} CPU s {wall[-1]:7.2f} s"
        print(text, "certified" if model.certified_ else "", flush=True)
    return (
        f"default fits of {len(cpu)} tables of 8 to 60 rows and 10 to 45 columns: median "
        f"{np.median(cpu):.2f} CPU s ({np.median(wall):.2f} s of wall time), mean "
        f"{np.mean(cpu):.1f}, 90th of 100 {np.quantile(cpu, 0.9):.1f}, worst {max(cpu):.1f} "
        f"({max(wall):.1f} s of wall time); {certified} choices certified\n"
    )


def default_table(times: Times) -> list[str]:
    """The lines of the table of default fits by rows and columns."""
    known = {(axis, n): s for (series, axis, n), s in times.known.items() if series == "default"}
    if not known:
        return []
    ns = sorted({n for _, n in known})
    lines = ["SparseRidgeCV().fit(X, y), CPU seconds on one thread"]
    lines.append(f"{'':<10}" + "".join(f"{f'n = {n:,}':>14}" for n in ns))
    for axis in sorted({axis for axis, _ in known}, key=lambda text: int(text.split()[-1])):
        cells = (f"{known[axis, n]:>14.2f}" if (axis, n) in known else f"{'-':>14}" for n in ns)
        lines.append(f"{axis:<10}" + "".join(cells))
    return [*lines, ""]


def slope(values: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """The slope of log seconds over log values on the upper half, and its standard error."""
    half = values.size // 2
    x, y = np.log(values[half:]), np.log(seconds[half:])
    x, y = x - x.mean(), y - y.mean()
    at = float(x @ y / (x @ x))
    rest = float(np.sum((y - at * x) ** 2))
    return at, float(np.sqrt(rest / max(1, x.size - 2) / (x @ x)))


def in_r(X: np.ndarray, y: np.ndarray, label: np.ndarray) -> dict[str, float]:
    """CPU seconds of cv.glmnet and of cross-validated leaps in R, without R's start."""
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(Path(folder) / "d.csv", np.column_stack([X, y, label + 1]), "%.17g", ",")
        done = subprocess.run(
            ["Rscript", "-e", R_SCRIPT], cwd=folder, capture_output=True, text=True
        )
    if done.returncode:
        print(done.stderr[-300:], file=sys.stderr)
        return {}
    lasso, leaps = (float(one) for one in done.stdout.replace("NA", "nan").split())
    return {"cv.glmnet (R)": lasso, "leaps (R)": leaps}


def fits(times: Times, quick: bool) -> None:
    """Measure the whole fits of the data sets that are missing."""
    for name in SETS[3:5] if quick else SETS:
        if any(key[0] == f"fit, {name}" for key in times.known):
            continue
        X, y = rows(name)
        folds = KFold(5, shuffle=True, random_state=0)
        label = np.zeros(y.size, dtype=int)
        for number, (_, test) in enumerate(folds.split(X)):
            label[test] = number
        A = StandardScaler().fit_transform(X)
        ways: dict[str, Callable[[], Any]] = {
            "sparsecv, default": partial(SparseRidgeCV(cv=folds).fit, X, y),
            "sparsecv, 20 γ": partial(
                SparseRidgeCV(cv=folds, gammas=GAMMAS, rule="minimum").fit, X, y
            ),
            "LassoCV": partial(LassoCV(cv=folds).fit, A, y),
        }
        if find_spec("abess"):
            from abess import LinearRegression

            ways["abess"] = partial(LinearRegression(cv=5).fit, A, y, cv_fold_id=label)
        if "L0Learn" in PATHS:
            ways["L0Learn"] = partial(of_least_error, PATHS["L0Learn"], X, y, X[:1], (), 0)
        seconds = {}
        for way, fit in ways.items():
            fit()
            seconds[way] = least_cpu(fit)
        if shutil.which("Rscript"):
            seconds |= in_r(X, y, label)
        for way, each in seconds.items():
            times.add(f"fit, {name}", way, 1, each)


@in_style
def draw(times: Times, path: str) -> None:
    """Times over values, a panel for each number that changes."""
    figure, (panels,) = new_figure(1, len(AXES), figsize=(15.0, 3.4))
    for panel, axis in zip(panels, AXES, strict=True):
        for series in BASES:
            panel.loglog(*times.column(series, axis), "o-", label=series)
        panel.set_xlabel({"n": "rows", "p": "columns"}.get(axis, f"number of {axis}"))
    panels[0].set_ylabel("CPU seconds of a fit")
    panels[0].legend()
    save(figure, path)


def summary(times: Times) -> str:
    """Exponents of all series, and the table of whole fits."""
    lines = [machine(), ""]
    for series, base in BASES.items():
        lines.append(
            f"{series}: n = {base[0]}, p = {base[1]}, {base[2]} folds, sizes to {base[3]}, "
            f"{base[4]} γ"
        )
        for axis in AXES:
            values, seconds = times.column(series, axis)
            if values.size < 4:
                continue
            alone = ""
            if axis == "folds" and values[-1] == base[0]:  # another algorithm: one tree for all
                alone = f"; leave-one-out, {values[-1]:g} folds: {seconds[-1]:.3f} s"
                values, seconds = values[:-1], seconds[:-1]
            at, error = slope(values, seconds)
            text = f"  {axis:<6} {values[0]:g} to {values[-1]:g}: {seconds[0]:.3f} to "
            text += f"{seconds[-1]:.3f} s, exponent {at:.2f} ± {error:.2f}"
            if axis == "p" and series == "proved":
                rate = np.polyfit(values[-4:], np.log(seconds[-4:]), 1)[0]
                text += f"; each further column costs {100 * np.expm1(rate):.0f} % more"
            lines.append(text + alone)
        lines.append("")
    lines += default_table(times)
    named = list(dict.fromkeys(key[0] for key in times.known if key[0].startswith("fit, ")))
    if named:
        ways = list(dict.fromkeys(key[1] for key in times.known if key[0] in named))
        lines.append("whole fits with five folds, CPU seconds")
        lines.append(" " * 16 + "".join(f"{way:>19}" for way in ways))
        for name in named:
            each = [times.known.get((name, way, 1), np.nan) for way in ways]
            cells = "".join(f"{one:19.4f}" if np.isfinite(one) else f"{'-':>19}" for one in each)
            lines.append(f"{name.removeprefix('fit, '):<16}{cells}")
    return "\n".join([*lines, ""])


def main() -> None:
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    if "small" in arguments:
        text = f"{machine()}\n\n{small(quick)}"
        (RESULTS / "small_tables.txt").write_text(text, encoding="utf-8")
        print(text)
        return
    parts = [one for one in arguments if one in PARTS] or list(PARTS)
    times = Times(RESULTS / f"scaling{'_quick' if quick else ''}.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "exponents" in parts:
            exponents(times, quick)
            draw(times, str(times.path.with_suffix(".png")))
        if "defaults" in parts:
            defaults(times, quick)
        if "fits" in parts:
            fits(times, quick)
    text = summary(times)
    times.path.with_suffix(".txt").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
