"""This script compares AIC, BIC, EBIC and Mallows' Cp of the best subsets with those of R.

    SPARSECV_DATA=folder python -m experiments.selection.criteria [--r]

For every size of Hitters (logarithms of salaries), diabetes and the prostate data, ``regsubsets``
of R's package leaps finds the best subset of least squares, and R computes its criteria: ``AIC``
and ``BIC`` of ``lm``, and ``cp`` and ``bic`` of ``summary(regsubsets)``. R has no EBIC of linear
models: it is computed in R from ``BIC(lm)`` and ``lchoose``. R's numbers stand in
results/criteria.csv, where a test reads them; ``--r`` computes that file anew, which needs R with
the package leaps.

The script prints the largest difference from ``SparseRidge(tau=p, gamma=0).criteria_``, relative to
R's number or to 1, and in how many sizes the subsets are the same.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import RESULTS, machine, rows
from sparsecv import SparseRidge

FILE = RESULTS / "criteria.csv"
SETS = ("hitters", "diabetes", "prostate")
CRITERIA = ("rss", "aic", "bic", "ebic", "cp", "leaps_bic")
# With p columns: every best subset of leaps, then lm on its columns. Columns are numbered from 0.
SCRIPT = r"""
library(leaps)
given <- commandArgs(TRUE)
t <- read.csv(given[2])
p <- ncol(t) - 1
X <- as.matrix(t[, 1:p])
s <- summary(regsubsets(X, t$y, nvmax=p, method="exhaustive"))
for (k in 1:p) {
  at <- which(s$which[k, -1])
  m <- lm(t$y ~ X[, at])
  cat(sprintf("%s,%d,%s,%.15g,%.15g,%.15g,%.15g,%.15g,%.15g\n", given[1], k,
              paste(at - 1, collapse=" "), deviance(m), AIC(m), BIC(m), BIC(m) + 2*lchoose(p, k),
              s$cp[k], s$bic[k]))
}
"""
VERSION = 'cat(R.version.string, "leaps", as.character(packageVersion("leaps")))'


def from_r() -> None:
    """Run R on every data set and write what it prints to the file of references."""

    def run(*arguments: str) -> str:
        return subprocess.run(
            ["Rscript", *arguments], capture_output=True, text=True, check=True
        ).stdout

    lines = [f"# {run('-e', VERSION)}; python -m experiments.selection.criteria --r"]
    lines.append(",".join(("data", "size", "columns", *CRITERIA)))
    with tempfile.TemporaryDirectory() as folder:
        script, data = Path(folder) / "criteria.R", Path(folder) / "table.csv"
        script.write_text(SCRIPT)
        for name in SETS:
            X, y = rows(name)
            head = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
            values = np.column_stack([X, y])
            np.savetxt(data, values, "%.17g", delimiter=",", header=head, comments="")
            lines += run(str(script), name, str(data)).splitlines()
    FILE.write_text("\n".join(lines) + "\n")


def references() -> Iterator[tuple[str, list[list[int]], dict[str, np.ndarray]]]:
    """Every data set with R's subsets by size, and the criteria of the subsets."""
    lines = [line.split(",") for line in FILE.read_text().splitlines()[2:]]
    for name in dict.fromkeys(line[0] for line in lines):
        some = [line for line in lines if line[0] == name]
        subsets = [[int(column) for column in line[2].split()] for line in some]
        values = np.array([line[3:] for line in some], dtype=float)
        yield name, subsets, dict(zip(CRITERIA, values.T, strict=True))


def ours(name: str) -> dict[str, Any]:
    """``criteria_`` of sparsecv on a data set, and its BIC as leaps prints it."""
    X, y = rows(name)
    found = SparseRidge(tau=X.shape[1], gamma=0.0).fit(X, y).criteria_
    # The BIC of leaps leaves out what all subsets of a table share.
    shared = y.size * (np.log(2.0 * np.pi * y.var()) + 1.0) + np.log(y.size)
    return {**found, "leaps_bic": found["bic"] - shared}


def main() -> None:
    if "--r" in sys.argv[1:]:
        from_r()
    print(machine())
    print(FILE.read_text().partition("\n")[0].removeprefix("# "))
    print(f"\n{'data set':12}{'sizes':>6}{'same subset':>13}", end="")
    print("".join(f"{name:>11}" for name in CRITERIA))
    for name, subsets, values in references():
        found = ours(name)
        same = sum(map(np.array_equal, found["columns"], subsets))
        print(f"{name:12}{len(subsets):>6}{same:>13}", end="")
        for what in CRITERIA:
            off = np.abs(found[what] - values[what]) / np.maximum(1.0, np.abs(values[what]))
            print(f"{off.max():>11.1e}", end="")
        print()


if __name__ == "__main__":
    main()
