"""This script plants small faults, one at a time, and says which tests or checks find each one.

    python -m experiments.solvers.mutants [--only WORDS] [--check]

A fault is one changed text in a copy of the package: a factor in a bound, a leaf dropped, a sign, a
stale incumbent, a rule loosened, a held-out row let in. The tests that are listed with the fault
run on the copy, and stop at the first that fails; the checker is among them, as tests of
certificates run it. --check only says whether the texts are still there, once each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiments.common import machine

ROOT = Path(__file__).parents[2]
# A fault that makes a test run longer than so many seconds counts as found.
MOST_SECONDS = 900.0


class Fault(NamedTuple):
    """A fault: what it is, the module, the text and what replaces the text, and tests."""

    what: str
    module: str
    text: str
    planted: str
    tests: str


TREES = "matrix/test_doors.py solvers/test_branch_and_bound.py solvers/test_certified_solvers.py"
BOUNDS = "matrix/test_doors.py solvers/test_perspective.py solvers/test_branch_and_bound.py"
ROWS = "solvers/test_row_deletion.py solvers/test_left_out.py"
LEAPS = "matrix/test_doors.py solvers/test_all_sizes.py solvers/test_certified_solvers.py"
FOLDS = "design/test_folds.py design/test_design.py cv/test_invariance.py cv/test_engine.py"
RULES = "cv/test_results.py selection/test_rules.py selection/test_criteria_of_r.py"
INNER = "cv/test_splits.py selection/test_inner.py cv/test_error_margins.py"
COUNTED = "solvers/test_counted_units.py"
CHECKS = "test_verify.py"
FAULTS = (
    # Bounds.
    Fault(
        "a dual bound counts 99 percent of every g²/w",
        "solvers/relaxation/dual_bound.py",
        "    return size * size / w\n",
        "    return 0.99 * size * size / w\n",
        BOUNDS,
    ),
    Fault(
        "the best multiple of a residual gives one percent too much",
        "solvers/relaxation/dual_bound.py",
        "bound, square = scale * above * (1.0 - 4.0 * EPS), scale * scale",
        "bound, square = 1.01 * scale * above, scale * scale",
        BOUNDS,
    ),
    Fault(
        "columns are excluded at 99 percent of the target",
        "solvers/relaxation/dual_bound.py",
        "if value < last and bound + last - value >= target:",
        "if value < last and bound + last - value >= 0.99 * target:",
        BOUNDS,
    ),
    Fault(
        "columns are included although the next column could take their place",
        "solvers/relaxation/dual_bound.py",
        "elif including and value > following and bound + value - following >= target:",
        "elif including and value > following and bound + value >= target:",
        BOUNDS,
    ),
    Fault(
        "a bound of many coefficients forgets βᵀQβ",
        "solvers/relaxation/dual_bound.py",
        'constant = yy - np.einsum("...i,...i->...", beta, b - g) - eps * reach * reach',
        "constant = yy + 0.0 * np.asarray(reach)",
        "solvers/test_cuts.py cv/test_bounds.py solvers/test_outside_backends.py",
    ),
    Fault(
        "the diagonal is the second eigenvalue of G, not the first",
        "solvers/relaxation/extraction.py",
        "least = values[0] - eigenvalue_loss",
        "least = values[min(1, p - 1)] - eigenvalue_loss",
        BOUNDS,
    ),
    Fault(
        "the diagonal of many columns is not lowered until it is allowed",
        "solvers/relaxation/extraction.py",
        "return np.asarray(D + min(float(values[0]) - lost, 0.0))",
        "return np.asarray(D + 0.0 * lost)",
        "solvers/test_refitted.py solvers/test_certified_solvers.py",
    ),
    # Trees.
    Fault(
        "nodes are pruned at 99 percent of the incumbent",
        "solvers/branching/driver.py",
        "    if bound >= now.upper * (1.0 - now.tolerance):",
        "    if bound >= now.upper * (0.99 - now.tolerance):",
        CHECKS + " " + TREES,
    ),
    Fault(
        "the child that includes the column is dropped",
        "solvers/branching/driver.py",
        "    enqueue(st, open_nodes, row, raised, later)\n",
        "    node.lam[0] = raised\n",
        TREES,
    ),
    Fault(
        "a search of one size goes on without the open node of least bound",
        "solvers/branching/single.py",
        "            return self.below.run(limits)\n        problem, tol",
        "            self.below.tree.add(self.below.tree.emptied().some(slice(1, None)))\n"
        "            return self.below.run(limits)\n        problem, tol",
        TREES,
    ),
    Fault(
        "the child that excludes the column keeps it",
        "solvers/branching/node.py",
        "    node.state[0, i] = OUT\n",
        "    node.state[0, i] = IN\n",
        TREES,
    ),
    Fault(
        "the incumbent stays when enumeration finds a better one",
        "solvers/branching/node.py",
        "    if gain > before:\n",
        "    if gain > 1.05 * before:\n",
        TREES,
    ),
    Fault(
        "a better support takes the place of the incumbent, but not its objective",
        "solvers/branching/node.py",
        "        now.upper = value\n",
        "        now.upper = 0.999 * value\n",
        TREES,
    ),
    Fault(
        "enumeration passes over choices by the share of one column too many",
        "solvers/branching/node.py",
        "    for c in range(k):\n        total += top[c]\n    list_columns(st, 0, n)\n",
        "    for c in range(k + 1):\n        total += top[c]\n    list_columns(st, 0, n)\n",
        TREES + " solvers/test_outside_backends.py",
    ),
    Fault(
        "the tree of all sizes prunes children that could be the best",
        "solvers/leaps/depth_first.py",
        "better += losses[0] <= kept[size, 0]",
        "better += 1.001 * losses[0] <= kept[size, 0]",
        LEAPS,
    ),
    Fault(
        "the tree of all sizes drops a member at a price without its square",
        "solvers/leaps/depth_first.py",
        "losses[i] = loss[level, i] + shifted * shifted / (d + w * w / remain[level, i])",
        "losses[i] = loss[level, i] + shifted * shifted / (d - w * w / remain[level, i])",
        LEAPS + " cv/test_engine.py",
    ),
    Fault(
        "a leaf of the shared tree is closed by the objective of another problem",
        "solvers/branching/family.py",
        "            if objective < upper[j]:\n",
        "            if objective < np.inf:\n",
        ROWS,
    ),
    Fault(
        "every column of a group has the level of the whole group",
        "solvers/branching/row_deletion.py",
        "max(v - level * part[i], 0.0)",
        "max(v - level, 0.0)",
        ROWS,
    ),
    Fault(
        "one open leaf of every problem is lost",
        "solvers/branching/family.py",
        "        at = pairs[first[j] : first[j + 1]] - m * j\n",
        "        at = pairs[first[j] + 1 : first[j + 1]] - m * j\n",
        ROWS,
    ),
    # Folds.
    Fault(
        "deleted rows stay in the matrix of a fold",
        "solvers/branching/row_deletion.py",
        "            G=gram.G - rows.T @ rows,\n",
        "            G=gram.G - 0.5 * rows.T @ rows,\n",
        ROWS,
    ),
    Fault(
        "held-out rows are let into the training rows",
        "design/folds.py",
        "        return np.flatnonzero(~held), np.flatnonzero(held)\n",
        "        return np.arange(held.size), np.flatnonzero(held)\n",
        FOLDS,
    ),
    Fault(
        "a fold is centred by the means of all rows",
        "design/row_table.py",
        "            rows, origin = self._solved(counted, own_scale)\n",
        "            _, origin = self._solved(self.every, own_scale)\n"
        "            rows = self.moved(counted, origin)\n",
        FOLDS,
    ),
    Fault(
        "the deleted residual is divided by one plus the leverage",
        "solvers/leaps/deleted_rows.py",
        "        deleted = residual / one_minus_leverage\n",
        "        deleted = residual / (2.0 - one_minus_leverage)\n",
        "solvers/test_all_sizes.py cv/test_engine.py",
    ),
    Fault(
        "the CV error is the mean over folds, not over rows",
        "cv/results.py",
        "    mean = sums.sum(axis=-1) / total\n",
        "    mean = sums.sum(axis=-1) / weight.size\n",
        "cv/test_results.py cv/test_engine.py",
    ),
    # Rules.
    Fault(
        "the rule one-se takes two standard errors",
        "cv/results.py",
        "<= estimates[g, t] + std_error[g, t]",
        "<= estimates[g, t] + 2.0 * std_error[g, t]",
        RULES,
    ),
    Fault(
        "of equal errors the larger size is taken",
        "cv/results.py",
        "key=lambda gt: (taus[gt[1]], -gammas[gt[0]])",
        "key=lambda gt: (-taus[gt[1]], -gammas[gt[0]])",
        RULES,
    ),
    Fault(
        "a choice is certified at a lower bound five percent below",
        "selection/claims.py",
        "upper - max(2.0 * EQUAL_SHARE, tolerance) * abs(upper)",
        "upper - max(0.05, tolerance) * abs(upper)",
        RULES + " cv/test_limits.py cv/test_alternating.py",
    ),
    Fault(
        "BIC takes the number of columns without the variance",
        "selection/criteria.py",
        "    bic = fit + log(n) * (k + own + 1.0)\n",
        "    bic = fit + log(n) * (k + own)\n",
        RULES + " estimators/test_every_size.py",
    ),
    Fault(
        "rows that are removed together count as if no two were alike",
        "selection/row_removals.py",
        "yield h + np.partition(pairs, min(last, h.size - 1), axis=1)[:, last:].sum(axis=1) + off",
        "yield h + off",
        "selection/test_robustness.py",
    ),
    # Certificates.
    Fault(
        "the checker leaves out one of the largest free columns",
        "verify.py",
        "reverse=True)[: k - len(inside)])",
        "reverse=True)[: max(k - len(inside) - 1, 0)])",
        CHECKS,
    ),
    Fault(
        "the checker takes multiples of a residual where D is not 0",
        "verify.py",
        "scaled = self.plain and along > 0 and",
        "scaled = along > 0 and",
        CHECKS,
    ),
    Fault(
        "the checker accepts every diagonal",
        "verify.py",
        "need(min(diagonal) >= 0 and problem.semidefinite(), ",
        "need(True, ",
        CHECKS,
    ),
    Fault(
        "the checker lets held-out rows into the training rows",
        "verify.py",
        "z = [[s - x * y for s, y in zip(z[a], row, strict=True)]",
        "z = [[s - 0 * x * y for s, y in zip(z[a], row, strict=True)]",
        CHECKS,
    ),
    Fault(
        "the checker scales the columns without a row by all rows",
        "verify.py",
        "table.variances(z if own_scale else table.sums)",
        "table.variances(table.sums)",
        CHECKS,
    ),
    Fault(
        "the checker accepts other columns without a row than those that are proved",
        "verify.py",
        "chosen = best == [columns for columns, *_ in found]",
        "chosen = True",
        CHECKS,
    ),
    Fault(
        "the checker takes the error of rounded coefficients for the exact one",
        "verify.py",
        "moved = isqrt((length * self.off >> 64) + 1) + 1",
        "moved = 0 * length",
        CHECKS,
    ),
    Fault(
        "a unit of one column counts once, whatever it counts",
        "solvers/core/constraints.py",
        "self.grouped or self.weighted,",
        "self.grouped,",
        COUNTED,
    ),
    Fault(
        "an open node says nothing of sizes above its number of columns where units count more",
        "solvers/leaps/open_nodes.py",
        "(sizes <= fits.high) | problem.constraints.weighted",
        "sizes <= fits.high",
        COUNTED,
    ),
    Fault(
        "every support of the full size is the only one",
        "solvers/leaps/all_sizes.py",
        "everything &= np.diff(row, prepend=-1) > 0",
        "pass",
        COUNTED,
    ),
    # Models that weigh others.
    Fault(
        "an inner model trains on one of the two blocks that it predicts",
        "selection/inner_folds.py",
        "train = np.flatnonzero((block != b) & (block != c))",
        "train = np.flatnonzero(block != b)",
        INNER,
    ),
    Fault(
        "the errors of a search that a limit has ended replace an estimate",
        "cv/splits.py",
        "new = one.proved & ~known.proved[..., some.split][self._cells(some)]",
        "new = ~known.proved[..., some.split][self._cells(some)]",
        INNER,
    ),
    Fault(
        "weights are called proved whatever rounding does to errors",
        "selection/inner_folds.py",
        "proved &= bool((blocks.margins(rows, b) <= most)[weights[b] > 0.0].all())",
        "pass",
        INNER,
    ),
    Fault(
        "the projections of a fold take the ridge weights of all rows",
        "selection/projection.py",
        "ridge_unit(self.data, m)\n",
        "ridge_unit(self.data, self.data.folds.k)\n",
        "cv/test_invariance.py selection/test_projection.py",
    ),
    Fault(
        "the checker follows a tree that lost its last leaf",
        "verify.py",
        "    need(not stack, ",
        "    need(True, ",
        CHECKS,
    ),
    Fault(
        "a certificate exchanges the children of a node",
        "solvers/certificate.py",
        "stack += [(at[~within], used), (at[within], used)]",
        "stack += [(at[within], used), (at[~within], used)]",
        CHECKS,
    ),
)


def planted(fault: Fault, folder: Path) -> None:
    """Copy the package and the tests, and plant a fault in the copy."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", "site", "results"))
    path = folder / "sparsecv" / fault.module
    path.write_text(path.read_text(encoding="utf-8").replace(fault.text, fault.planted))


def found_by(fault: Fault, folder: Path) -> str | None:
    """The first test that fails on the copy with the fault, or None."""
    tests = [f"tests/{name}" for name in fault.tests.split()]
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "-rfE"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the time limit"
    if done.returncode == 0:
        return None
    named = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return named[0].split()[1] if named else done.stdout.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    chosen = [one for one in FAULTS if asked.only in one.what]
    wrong = 0
    for fault in chosen:
        text = (ROOT / "sparsecv" / fault.module).read_text(encoding="utf-8")
        if text.count(fault.text) != 1:
            print(f"{fault.module} has this text {text.count(fault.text)} times: {fault.text!r}")
            wrong += 1
    if asked.check:
        raise SystemExit(wrong > 0)
    print(machine() + "\n")
    survivors = 0
    for fault in chosen:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            planted(fault, copy)
            test = found_by(fault, copy)
        survivors += test is None
        print(f"{'SURVIVES' if test is None else test:90} {fault.what}", flush=True)
    print(f"\n{len(chosen)} faults, {survivors} found by nothing")


if __name__ == "__main__":
    main()
