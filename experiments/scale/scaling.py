"""This script fits exponents of the time of a fit in n, p, folds, sizes and number of γ.

    python -m experiments.scale.scaling [--quick] [exponents] [fits]

``exponents``: One number of a base problem changes at a time, on simulated data (ρ = .5, signal to
noise 1, ten true columns). A fit is ``SparseRidgeCV`` with rule "minimum" over a grid of γ from .01
to 100. Up to 45 columns ("proved") the fit proves what the choice needs; beyond them ("estimates")
it finds good supports and proves nothing, as proofs end at a time limit and so have no exponent.
A time is the least CPU time of three fits, on one thread. The exponent is the slope of log time
over log value on the upper half of the values, with its standard error.

``fits``: Whole fits with five folds on data sets of the papers, in seconds of CPU time: sparsecv by
default and with 20 given γ, LassoCV, cv.glmnet in R, abess, L0Learn's algorithm (fastsparsegams)
and R's leaps, which is exhaustive as sparsecv's trees are but has no ridge term and no
cross-validation of its own: the script cross-validates its best subsets of every size, where the
columns are independent. lmSubsets, the successor of leaps, is no package of Debian. Packages that
are missing are left out. Fits beyond 45 columns stand in results/default_fits.txt, and searches for
γ that are certified beside alternation in results/global_gamma.txt.

``--quick`` takes every other value and two data sets. The script writes results/scaling.csv (the
times), results/scaling.png and results/scaling.txt.
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
from sparsecv.plots.style import pyplot
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
    data = make_synthetic(n, p, 10, 0.5, 1.0, seed=0)
    model = SparseRidgeCV(
        cv=folds,
        taus=np.arange(1, most + 1),
        gammas=np.geomspace(0.01, 100.0, count) if count > 1 else [1.0],
        rule="minimum",
        time_limit=None if series == "proved" else 0,
    )
    return partial(model.fit, data.X, data.y)


def exponents(quick: bool) -> list[tuple[str, str, float, float]]:
    """CPU seconds of every fit of every series."""
    found = []
    for series, base in BASES.items():
        fit_of(series, *base)()  # compiles
        for axis, (name, values) in enumerate(zip(AXES, VALUES[series], strict=True)):
            for value in values[::2] if quick else values:
                changed = list(base)
                changed[axis] = value
                changed[3] = min(changed[3], changed[1])
                seconds = least_cpu(fit_of(series, *changed))
                found.append((series, name, float(value), seconds))
                print(f"{series:<10} {name:<6} {value:>6} {seconds:9.3f} s", flush=True)
                if seconds > LONG:
                    break
    return found


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


def fits(quick: bool) -> list[tuple[str, str, float, float]]:
    """CPU seconds of whole fits on data sets."""
    found = []
    for name in SETS[3:5] if quick else SETS:
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
        found += [(f"fit, {name}", way, 1.0, each) for way, each in seconds.items()]
        text = "  ".join(f"{way} {each:.3f}" for way, each in seconds.items())
        print(f"{name} {X.shape[0]} × {X.shape[1]}: {text}", flush=True)
    return found


def draw(times: list[tuple[str, str, float, float]], path: str) -> None:
    """Times over values, a panel for each number that changes."""
    plt = pyplot()
    figure, panels = plt.subplots(1, len(AXES), figsize=(15.0, 3.4), layout="constrained")
    for panel, axis in zip(panels, AXES, strict=True):
        for series in BASES:
            here = [row[2:] for row in times if row[:2] == (series, axis)]
            panel.loglog(*zip(*here, strict=True), "o-", label=series)
        panel.set_xlabel({"n": "rows", "p": "columns"}.get(axis, f"number of {axis}"))
    panels[0].set_ylabel("CPU seconds of a fit")
    panels[0].legend()
    save(figure, path)


def summary(times: list[tuple[str, str, float, float]]) -> str:
    """Exponents of all series, and the table of whole fits."""
    lines = [machine(), ""]
    for series, base in BASES.items():
        here = [row for row in times if row[0] == series]
        if not here:
            continue
        lines.append(
            f"{series}: n = {base[0]}, p = {base[1]}, {base[2]} folds, sizes to {base[3]}, "
            f"{base[4]} γ"
        )
        for axis in AXES:
            values, seconds = np.array([row[2:] for row in here if row[1] == axis]).T
            at, error = slope(values, seconds)
            text = f"  {axis:<6} {values[0]:g} to {values[-1]:g}: {seconds[0]:.3f} to "
            text += f"{seconds[-1]:.3f} s, exponent {at:.2f} ± {error:.2f}"
            if axis == "p" and series == "proved":
                rate = np.polyfit(values[-4:], np.log(seconds[-4:]), 1)[0]
                text += f"; each further column costs {100 * np.expm1(rate):.0f} % more"
            lines.append(text)
        lines.append("")
    named = list(dict.fromkeys(row[0] for row in times if row[0].startswith("fit, ")))
    if named:
        ways = list(dict.fromkeys(row[1] for row in times if row[0] in named))
        lines.append("whole fits with five folds, CPU seconds")
        lines.append(" " * 16 + "".join(f"{way:>19}" for way in ways))
        for name in named:
            known = {row[1]: row[3] for row in times if row[0] == name}
            cells = "".join(
                f"{known[way]:19.4f}" if np.isfinite(known.get(way, np.nan)) else f"{'-':>19}"
                for way in ways
            )
            lines.append(f"{name.removeprefix('fit, '):<16}{cells}")
    return "\n".join([*lines, ""])


def main() -> None:
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    parts = [one for one in arguments if one in ("exponents", "fits")] or ["exponents", "fits"]
    file = RESULTS / f"scaling{'_quick' if quick else ''}.csv"
    times: list[tuple[str, str, float, float]] = []
    if file.exists():  # the part that is not asked for stays as it is
        with file.open(encoding="utf-8", newline="") as stored:
            for row in csv.DictReader(stored):
                part = "fits" if row["series"].startswith("fit, ") else "exponents"
                if part not in parts:
                    named = row["series"], row["axis"]
                    times.append((*named, float(row["value"]), float(row["seconds"])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "exponents" in parts:
            times = exponents(quick) + times
        if "fits" in parts:
            times += fits(quick)
    with file.open("w", encoding="utf-8", newline="") as stored:
        writer = csv.writer(stored)
        writer.writerow(COLUMNS)
        writer.writerows([*row[:3], f"{row[3]:.6g}"] for row in times)
    if any(row[0] in BASES for row in times):
        draw(times, str(file.with_suffix(".png")))
    text = summary(times)
    file.with_suffix(".txt").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
