"""This script measures certificates: the time to write and to check each one, and its size.

    python -m experiments.solvers.certificates [--fits] [--choices] [--rows]

With --fits it writes and checks a certificate of every instance of the solver benchmark that has
at most 200 columns. With --choices it does so for five folds with 20 values of γ on Diabetes,
Housing and Servo, and for leave-one-out on Diabetes with 5 values of γ. With --rows it certifies
which columns are the best without each row. Seconds are CPU seconds of one process; kernels are
compiled before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import machine, rows
from experiments.instances import benchmark
from sparsecv import SparseRidge, SparseRidgeCV, verify
from sparsecv.solvers import SparseRidgeProblem, solve

MOST_COLUMNS = 200
OF_ROWS = ("diabetes", "hitters", "autompg")
CHOICES = (("diabetes", 5, 20), ("housing", 5, 20), ("servo", 5, 20), ("diabetes", "loo", 5))


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """What an action returns, and its CPU seconds."""
    started = time.process_time()
    found = action()
    return found, time.process_time() - started


def checked(path: Path) -> float:
    """CPU seconds in which the file verify.py, alone, accepts a certificate."""
    command = [sys.executable, "-I", verify.__file__, str(path), f"{path}.csv"]
    before = os.times().children_user
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout.endswith("VERIFIED\n"), done.stderr
    return os.times().children_user - before


def line(name: str, fit: float, write: float, path: Path) -> None:
    size, seconds = path.stat().st_size / 1e3, checked(path)
    print(f"| {name} | {fit:.3f} | {write:.3f} | {seconds:.2f} | {size:,.0f} |", flush=True)


def fits(path: Path) -> None:
    for instance in benchmark():
        X, y = instance.rows()
        if X.shape[1] > MOST_COLUMNS:
            continue
        problem = SparseRidgeProblem(X, y, gamma=instance.gamma, tau=instance.tau)
        found, fit = timed(lambda problem=problem: solve(problem, time_limit=60.0))
        _, write = timed(lambda found=found: found.certificate().save(path))
        line(instance.name, fit, write, path)


def choices(path: Path) -> None:
    for name, cv, n_gammas in CHOICES:
        X, y = rows(name)
        gammas = np.geomspace(1e-2, 1e4, n_gammas)
        model = SparseRidgeCV(cv=cv, gammas=gammas, rule="minimum", time_limit=None)
        model.fit(X, y)  # what is compiled or read once
        found, fit = timed(lambda model=model, X=X, y=y: model.fit(X, y))
        _, write = timed(lambda found=found: found.certificate(path))
        line(f"{name}, folds: {cv}, {n_gammas} γ", fit, write, path)


def of_rows(path: Path) -> None:
    for name in OF_ROWS:
        model = SparseRidge(5, 1.0).fit(*rows(name))
        model.row_influence()  # what is compiled once
        found, fit = timed(model.row_influence)
        _, write = timed(lambda model=model: model.certificate(path, rows=True))
        line(f"{name} without each of {len(found)} rows, τ = 5, γ = 1", fit, write, path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fits", action="store_true")
    parser.add_argument("--choices", action="store_true")
    parser.add_argument("--rows", action="store_true")
    asked = parser.parse_args()
    print(machine() + "\n")
    print("| problem | fit (s) | writing (s) | checking (s) | certificate (kB) |")
    print("|---|---:|---:|---:|---:|")
    rng = np.random.default_rng(0)
    for p in (8, 60):  # compile the searches before the clock starts
        X, y = rng.standard_normal((80, p)), rng.standard_normal(80)
        solve(SparseRidgeProblem(X, y, gamma=1.0, tau=3)).certificate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "certificate")
        if asked.fits:
            fits(path)
        if asked.choices:
            choices(path)
        if asked.rows:
            of_rows(path)


if __name__ == "__main__":
    main()
