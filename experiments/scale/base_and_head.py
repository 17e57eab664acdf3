"""This script times two checkouts of sparsecv against each other in one run.

    python -m experiments.scale.base_and_head BASE HEAD [--only WORD] [--rounds 5]

BASE and HEAD are folders with a checkout each; both run on the interpreter of this script. Every
checkout works in a process of its own, with one thread. A case is run once to compile, and then in
turn by both processes, so that a change of the machine's load meets both. A case counts with the
least CPU seconds of its rounds; from the second round on short cases are run several times. The
table that is printed has the seconds of both, the ratio of head to base, and the geometric mean of
the ratios of every group. A fit whose choice is not proved is marked with "not proved". A case that
only one of the checkouts can run is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

# A case that takes less than this many seconds is run several times in a round.
SHORT_SECONDS = 0.1
# A round of a short case takes about this many seconds. It is run at most MOST_RUNS times.
SECONDS_OF_A_ROUND = 0.3
MOST_RUNS = 30


def drawn(n: int, p: int, true: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of correlated columns (neighbours 0.5) and a response; signal-to-noise ratio 4."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    coef = np.zeros(p)
    coef[np.linspace(0, p - 1, true).astype(int)] = np.resize([1.0, -1.0], true)
    signal = X @ coef
    return X, signal + random.standard_normal(n) * signal.std() / 2.0


def fits() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Whole fits, nearly all with default settings.

    Up to 45 columns the rule is named, as earlier commits have another default rule there.
    """
    from sparsecv import SparseRidge, SparseRidgeCV

    tables = {
        "diabetes": load_diabetes(return_X_y=True),
        "60 x 25": drawn(60, 25, 5),
        "300 x 20": drawn(300, 20, 6),
        "20000 x 30": drawn(20_000, 30, 6),
        "150 x 120": drawn(150, 120, 6),
        "200 x 1000": drawn(200, 1000, 8),
    }
    for name, (X, y) in tables.items():
        how: dict[str, Any] = {} if X.shape[1] > 45 else {"rule": "minimum"}
        yield (
            f"fits: default, {name}",
            lambda X=X, y=y, how=how: SparseRidgeCV(n_jobs=1, **how).fit(X, y),
        )
    X, y = tables["diabetes"]
    least = partial(SparseRidgeCV, rule="minimum")
    yield "fits: one γ, leave-one-out", lambda: least(cv="loo", gammas=[1.0]).fit(X, y)
    yield (
        "fits: 20 γ, 10 folds",
        lambda: least(cv=10, gammas=np.geomspace(1e-3, 1e3, 20)).fit(X, y),
    )
    yield "fits: global γ", lambda: SparseRidgeCV(gammas="global").fit(X, y)
    yield "fits: one size", lambda: SparseRidge(5).fit(X, y)


def solves() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Single problems of known size, each proved."""
    from sparsecv.solvers import SparseRidgeProblem, solve

    shapes = [(200, 40, 10, 0.1), (500, 100, 5, 1.0), (1000, 200, 8, 0.1), (100, 300, 3, 10.0)]
    for n, p, tau, gamma in shapes:
        X, y = drawn(n, p, tau, seed=1)
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()

        def run(X: np.ndarray = X, y: np.ndarray = y, gamma: float = gamma, tau: int = tau) -> Any:
            return solve(SparseRidgeProblem(X, y, gamma=gamma, tau=tau))

        yield f"solves: {n} x {p}, τ = {tau}, γ = {gamma:g}", run


# Groups of cases: each group yields the names of its cases and the functions that run them.
Groups = Sequence[Callable[[], Iterator[tuple[str, Callable[[], Any]]]]]


def work(groups: Groups, only: str) -> None:
    """Run cases by number as they come in on standard input.

    For each run print the seconds, and whether the choice is proved if a fit was run.
    """
    warnings.simplefilter("ignore")
    cases = [case for group in groups for case in group() if only in case[0]]
    print(json.dumps([name for name, _ in cases]), flush=True)
    repeats: dict[int, int] = {}
    for line in sys.stdin:
        number = int(line)
        run = cases[number][1]
        try:
            if number not in repeats:
                run()
            started = time.process_time()
            for _ in range(repeats.get(number, 1)):
                fitted = run()
            found = (time.process_time() - started) / repeats.get(number, 1)
            if number not in repeats:
                often = min(MOST_RUNS, int(SECONDS_OF_A_ROUND / max(found, 1e-6)))
                repeats[number] = often if found < SHORT_SECONDS else 1
        except Exception as error:
            print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
        else:
            print(json.dumps([found, bool(getattr(fitted, "certified_", True))]), flush=True)


class Checkout:
    """A process that runs the cases of a script with the package of one checkout.

    script: The file of the cases, see :func:`run_script`.
    """

    def __init__(self, folder: Path, only: str, script: str) -> None:
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        environment = {**os.environ, **threads, "PYTHONPATH": str(folder.resolve())}
        command = [sys.executable, __file__, "--work", script, "--only", only]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.names: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self, name: str) -> tuple[float, bool] | str:
        """The seconds of a case and whether its choice is proved, or what went wrong."""
        assert self.process.stdin is not None
        print(self.names.index(name), file=self.process.stdin, flush=True)
        found = self._answer()
        return found if isinstance(found, str) else (found[0], found[1])


def compare(base: Checkout, head: Checkout, rounds: int) -> None:
    """Print the table of both checkouts."""
    ratios: dict[str, list[float]] = {}
    print("| case | base, ms | head, ms | head / base |\n| --- | ---: | ---: | ---: |")
    for name in head.names:
        found = [[one.run(name) for one in (base, head)] for _ in range(rounds)]
        wrong = [one for pair in found for one in pair if isinstance(one, str)]
        if wrong:
            print(f"| {name} | {wrong[0]} | | |", flush=True)
            continue
        old, new = np.array([[one[0] for one in pair] for pair in found], dtype=float).min(axis=0)
        ratios.setdefault(name.partition(":")[0], []).append(new / old)
        cells = []
        for i, seconds in enumerate((old, new)):
            proved = all(pair[i][1] for pair in found)
            cells.append(f"{1e3 * seconds:.1f}{'' if proved else ', not proved'}")
        print(f"| {name} | {' | '.join(cells)} | {new / old:.2f} |", flush=True)
    for group, values in ratios.items():
        print(f"| {group}: geometric mean | | | {np.exp(np.log(values).mean()):.3f} |")


def run_script(script: str, rounds: int) -> None:
    """Compare two checkouts, or work for such a comparison, as the command line says.

    script: A Python file with a sequence ``GROUPS`` of groups of cases. Both checkouts run this
        file, whatever file of its name they have.
    rounds: How often each case is run by default.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(runpy.run_path(args.work)["GROUPS"], args.only)
    else:
        base, head = (Checkout(folder, args.only, script) for folder in args.checkouts)
        compare(base, head, args.rounds)


GROUPS = (fits, solves)

if __name__ == "__main__":
    run_script(__file__, rounds=5)
