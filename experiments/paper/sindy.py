"""This script finds equations of simulated systems and checks the proofs by enumeration.

    python -m experiments.paper.sindy [--quick] [--seconds 60] [--only mhd_0p5]

The systems and their sizes are those of the paper on MIOSR (Bertsimas and Gurnee 2023): Lorenz,
Hopf, Roessler and magnetohydrodynamics (SPARSECV_DATA/sindy); every monomial up to a degree is a
column. Each equation is solved at sizes 1 to 6 and α = 0.01, 1e-5 and 0 (γ = 2α), one problem at a
time, and all equations of a system are solved with one budget. Sizes up to 3 (4 up to 56 columns)
are also enumerated in extended precision; at 462 columns a sample of the supports of three columns
is. The table of all problems is written to experiments/results/sindy.csv. Seconds are of processor
time; a problem counts as proved where its proof took at most ten of them.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from experiments.common import RESULTS, machine
from sparsecv.integrations.budget import solve_budget
from sparsecv.solvers import SparseRidgeProblem, solve

# Files and degrees, the systems of few columns first.
CASES = [
    ("hopf_0p5", 5),
    ("hopf_0p5", 8),
    ("lorenz_0p5", 5),
    ("lorenz_10p0", 5),
    ("rossler_0p5", 5),
    ("mhd_0p5", 3),
    ("mhd_10p0", 3),
    ("lorenz_0p5", 7),
    ("lorenz_10p0", 7),
    ("lorenz_0p5", 8),
    ("lorenz_10p0", 8),
    ("mhd_0p5", 5),
    ("mhd_10p0", 5),
]
TRUE_SIZES = {"lorenz": [2, 3, 2], "hopf": [4, 4], "rossler": [2, 2, 3], "mhd": [2] * 6}
ALPHAS = (0.01, 1e-5, 0.0)
SIZES = range(1, 7)
# A proof counts where it takes at most this many seconds of processor time.
SECONDS = 10.0
WALL_SECONDS = 60.0  # after which a problem is given up, on a machine that does other work, too
DEPENDENT = 1e-13  # share of its length below which a column counts as dependent, as in the solvers
SAMPLED_PAIRS = 300  # pairs at 462 columns that every third column is tried beside
TOLERANCE = 2e-6  # relative gap at which a problem counts as solved
NAMES = [
    "system",
    "degree",
    "n",
    "p",
    "equation",
    "alpha",
    "size",
    "status",
    "objective",
    "lower_bound",
    "gap",
    "cpu_seconds",
    "support",
    "enumerated",
    "least",
    "least_support",
]


def load(name: str, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Every monomial of the state up to a degree, and the derivatives."""
    file = np.load(Path(os.environ["SPARSECV_DATA"]) / "sindy" / f"{name}.npz")
    return PolynomialFeatures(degree).fit_transform(file["x"]), file["xdot"]


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a task, and its result."""
    started = time.process_time()
    result = task()
    return time.process_time() - started, result


class Extended:
    """Enumeration in extended precision, of all equations of a system together."""

    def __init__(self, X: np.ndarray, Y: np.ndarray, alpha: float) -> None:
        p = X.shape[1]
        rows = np.column_stack([X, Y]).astype(np.longdouble)
        if rows.shape[0] > rows.shape[1]:
            rows = triangle(rows)
        if alpha > 0.0:
            ridge = np.zeros((p, rows.shape[1]), dtype=np.longdouble)
            ridge[:, :p] = np.sqrt(np.longdouble(alpha)) * np.eye(p, dtype=np.longdouble)
            rows = triangle(np.vstack([rows, ridge]))
        self.X, self.Y = rows[:, :p], rows[:, p:]
        self.X = self.X / np.sqrt((self.X * self.X).sum(axis=0))

    def least(self, size: int, sample: int | None = None) -> list[tuple[float, tuple[int, ...]]]:
        """The least objective of each equation over supports of a size, and its support.

        sample: How many supports of all but the last column are tried, drawn at random; else all.
        """
        best = [(np.longdouble(np.inf), ())] * self.Y.shape[1]
        for chosen, X, Y in self.started(size - 1, sample):
            lengths = (X * X).sum(axis=0)
            independent = np.flatnonzero(lengths > DEPENDENT**2)
            if sample is None and chosen:
                independent = independent[independent > chosen[-1]]
            if independent.size == 0:
                continue
            along = X[:, independent].T @ Y
            objectives = (Y * Y).sum(axis=0) - along * along / lengths[independent, None]
            for t, j in enumerate(objectives.argmin(axis=0)):
                if objectives[j, t] < best[t][0]:
                    support = tuple(sorted((*chosen, int(independent[j]))))
                    best[t] = objectives[j, t], support
        return [(float(value), support) for value, support in best]

    def started(self, depth: int, sample: int | None) -> Iterator[Any]:
        """Supports of ``depth`` columns, and what they leave of all columns and responses."""
        p = self.X.shape[1]
        if sample is None:
            yield from self.deeper((), self.X, self.Y, depth)
            return
        rng = np.random.default_rng(0)
        for _ in range(sample):
            chosen, X, Y = (), self.X, self.Y
            for j in rng.choice(p, depth, replace=False).tolist():
                X, Y = projected(X, Y, j)
                chosen = (*chosen, j)
            yield chosen, X, Y

    def deeper(self, chosen: tuple[int, ...], X: Any, Y: Any, depth: int) -> Iterator[Any]:
        if depth == 0:
            yield chosen, X, Y
            return
        first = chosen[-1] + 1 if chosen else 0
        for j in range(first, X.shape[1]):
            if (X[:, j] * X[:, j]).sum() > DEPENDENT**2:
                rest, left = X.copy(), Y
                rest[:, j:], left = projected(X[:, j:], Y, 0)
                yield from self.deeper((*chosen, j), rest, left, depth - 1)


def projected(X: Any, Y: Any, j: int) -> tuple[Any, Any]:
    """X and Y with column j of X projected out."""
    q = X[:, j] / np.sqrt((X[:, j] * X[:, j]).sum())
    return X - np.outer(q, q @ X), Y - np.outer(q, q @ Y)


def triangle(rows: Any) -> Any:
    """The triangular factor of a table by modified Gram-Schmidt, in the table's precision."""
    rows, width = rows.copy(), rows.shape[1]
    R = np.zeros((width, width), dtype=rows.dtype)
    for j in range(width):
        R[j, j] = np.sqrt((rows[:, j] * rows[:, j]).sum())
        if R[j, j] > 0.0:
            q = rows[:, j] / R[j, j]
            R[j, j + 1 :] = q @ rows[:, j + 1 :]
            rows[:, j + 1 :] -= np.outer(q, R[j, j + 1 :])
    return R


def enumerated(extended: Extended, p: int, size: int) -> tuple[str, list[Any]]:
    """What enumeration finds where there are few supports: "all", "sample" or "no"."""
    if size <= 2 or (size == 3 and p <= 165) or (size == 4 and p <= 56):
        return "all", extended.least(size)
    if size == 3:
        return "sample", extended.least(size, SAMPLED_PAIRS)
    return "no", []


def rows_of(name: str, degree: int, alpha: float, seconds: float) -> Iterator[dict[str, Any]]:
    """One row of the table for every equation and size."""
    X, Y = load(name, degree)
    n, p = X.shape
    extended = Extended(X, Y, alpha)
    for size in SIZES:
        how, known = enumerated(extended, p, size)
        for t in range(Y.shape[1]):
            cpu, found = timed(
                lambda y=Y[:, t], k=size: solve(
                    SparseRidgeProblem(X, y, gamma=2.0 * alpha, tau=k), time_limit=seconds
                )
            )
            values = (name, degree, n, p, t, alpha, size, str(found.status), found.objective)
            values += (found.lower_bound, found.gap, round(cpu, 3), join(found.support), how)
            values += (known[t][0], join(known[t][1])) if known else ("", "")
            yield dict(zip(NAMES, values, strict=True))


def join(support: Any) -> str:
    return " ".join(str(j) for j in support)


def is_proved(row: dict[str, Any]) -> bool:
    return row["status"] == "optimal" and row["cpu_seconds"] <= SECONDS


def checks(row: dict[str, Any]) -> list[str]:
    """What enumeration has against a row."""
    if row["enumerated"] == "no":
        return []
    wrong, least = [], row["least"]
    if row["lower_bound"] > least * (1.0 + 1e-12):
        wrong.append("bound above an objective that is attained")
    if row["status"] == "optimal" and row["objective"] > least * (1.0 + TOLERANCE):
        wrong.append("called optimal, and another support is better")
    return wrong


def summary(table: list[dict[str, Any]]) -> None:
    """What the table says, case by case, then in all."""
    print("unproved of all problems, per α; most CPU seconds at the true sizes, per α")
    for name, degree in CASES:
        here = [r for r in table if (r["system"], r["degree"]) == (name, degree)]
        if not here:
            continue
        sizes = TRUE_SIZES[name.partition("_")[0]]
        cells = []
        for alpha in ALPHAS:
            at = [r for r in here if r["alpha"] == alpha]
            true = [r for r in at if r["size"] == sizes[r["equation"]]]
            unproved = sum(not is_proved(r) for r in true)
            most = max((r["cpu_seconds"] for r in true), default=0.0)
            left = sum(not is_proved(r) for r in at)
            note = f" ({unproved} unproved)" if unproved else ""
            cells.append(f"α {alpha:g}: {left}/{len(at)}, {most:.2f} s{note}")
        print(
            f"{name} degree {degree}, n = {here[0]['n']}, p = {here[0]['p']}: " + "; ".join(cells)
        )
    full = [r for r in table if r["enumerated"] == "all"]
    same = sum(r["support"] == r["least_support"] for r in full)
    print(f"{len(full)} problems enumerated in extended precision: {same} have the same support")
    wrong = [(r, what) for r in table for what in checks(r)]
    for row, what in wrong:
        print(f"WRONG: {what}: {row}")
    left = sum(not is_proved(r) for r in table)
    print(f"wrong: {len(wrong)}")
    print(f"unproved after {SECONDS:g} s each: {left} of {len(table)}, {left / len(table):.1%}")


def budgets(cases: list[tuple[str, int]], seconds: float) -> None:
    """One budget for all equations of a system, at the sum of the true sizes."""
    print("one budget for all equations: CPU seconds, sizes found, status, relative gap")
    for name, degree in cases:
        X, Y = load(name, degree)
        true = TRUE_SIZES[name.partition("_")[0]]
        for alpha in ALPHAS:
            total = sum(true)
            cpu, found = timed(
                lambda X=X, Y=Y, g=2.0 * alpha, k=total: solve_budget(
                    [SparseRidgeProblem(X, y, gamma=g, tau=len(SIZES)) for y in Y.T],
                    k,
                    time_limit=seconds,
                )
            )
            sizes = [proof.support.size for proof in found.answers]
            print(
                f"{name} degree {degree}, α {alpha:g}: {cpu:.2f} s, {sizes} (true {true}), "
                f"{found.status}, {found.gap:.1e}",
                flush=True,
            )


def beside_miosr(cases: list[tuple[str, int]]) -> None:
    """MIOSR with Gurobi at the true sizes, where both packages and a licence are there."""
    try:
        import gurobipy
        from pysindy.optimizers import MIOSR

        from sparsecv.integrations.pysindy import SparseRidgeOptimizer
    except ImportError as error:
        print(f"MIOSR did not run: {error}")
        return
    refused = 0
    for name, degree in cases:
        X, Y = load(name, degree)
        true = tuple(TRUE_SIZES[name.partition("_")[0]])
        for alpha in ALPHAS:
            options = {"target_sparsity": None, "group_sparsity": true, "alpha": alpha}
            try:
                theirs, miosr = timed(lambda X=X, Y=Y, o=options: MIOSR(**o).fit(X, Y))
            except gurobipy.GurobiError as error:
                if "size-limited" not in str(error):
                    raise
                refused += 1
                continue
            ours, found = timed(lambda X=X, Y=Y, o=options: SparseRidgeOptimizer(**o).fit(X, Y))
            worse = 0
            for y, coef, least in zip(Y.T, miosr.coef_, found.objective_, strict=True):
                residual = y - X @ coef
                worse += residual @ residual + alpha * coef @ coef > least * (1.0 + 1e-4)
            print(
                f"{name} degree {degree}, α {alpha:g}: MIOSR {theirs:.2f} s, "
                f"sparsecv {ours:.2f} s, equations of MIOSR that are worse by more than 1e-4: "
                f"{worse} of {len(true)}",
                flush=True,
            )
    print(f"systems and α that Gurobi's licence refused: {refused}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the smallest systems; no file")
    parser.add_argument("--only", help="one system; no file is written")
    parser.add_argument(
        "--seconds", type=float, default=WALL_SECONDS, help="wall time of each problem"
    )
    options = parser.parse_args()
    cases = CASES[:3] if options.quick else CASES
    if options.only:
        cases = [case for case in CASES if case[0] == options.only]
    whole = not (options.quick or options.only)
    print(machine())
    for size in (1, 2, 3):  # compile the kernels
        solve(SparseRidgeProblem(*warm_up(), gamma=0.0, tau=size))
    table: list[dict[str, Any]] = []
    budgets(cases, options.seconds)
    beside_miosr(cases)
    with open(RESULTS / "sindy.csv" if whole else os.devnull, "w", newline="") as file:
        writer = csv.DictWriter(file, NAMES, lineterminator="\n")
        writer.writeheader()
        for name, degree in cases:
            for alpha in ALPHAS:
                for row in rows_of(name, degree, alpha, options.seconds):
                    table.append(row)
                    writer.writerow(row)
                file.flush()
                print(
                    f"{name} degree {degree}, α {alpha:g}: {len(table)} problems so far", flush=True
                )
    summary(table)


def warm_up() -> tuple[np.ndarray, np.ndarray]:
    """Nearly dependent columns, on which the kernels are compiled."""
    t = np.linspace(0.0, 0.3, 100)
    X = np.column_stack([t**a * np.exp(b * t) for a, b in combinations(range(8), 2)])
    return X, np.sin(3.0 * t)


if __name__ == "__main__":
    main()
