"""Supports of every size without a proof: how far above what trees find, and at what cost.

    python experiments/heuristic_path.py problems [--seconds 4] [--last 240] [--known FILE]
    python experiments/heuristic_path.py data [--names bardet,vessel,topgear,riboflavin,housing2]

"problems": 240 tables of 46 to 59 columns; the path of all sizes at one γ against branch and bound
at four of them, by the training objective. What the trees found is kept in FILE, and not searched
for again where it is there. "data": CPU seconds of the path of ten γ, and the mean logarithm of its
objectives, to compare two versions by.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from common import machine, rows

from sparsecv.cv.settings import default_taus
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.solvers import SparseRidgeProblem, solve_sizes, support_path

ROWS, CORRELATION = (60, 100, 200, 500), (0.0, 0.5, 0.7, 0.9)
SIGNAL, GAMMAS = (0.5, 2.0, 10.0), (0.01, 0.1, 1.0, 10.0)
SETS = "bardet,vessel,topgear,riboflavin,housing2"
# A problem is missed where the worst size's objective exceeds the tree's by more than this share.
ENOUGH = 0.01


def prepared(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centred columns of unit variance, centred response."""
    names = [f"x{j}" for j in range(X.shape[1])]
    return make_design(Summary.of(X, y), Protocol(), names, warn=False).apply(X, y)


def drawn(number: int) -> tuple[SparseRidgeProblem, list[int], np.ndarray]:
    """Problem ``number``, four sizes to compare at, and the sizes of its path."""
    rng = np.random.default_rng(number)
    p, n = int(rng.integers(46, 60)), ROWS[number % 4]
    rho, signal = CORRELATION[number // 4 % 4], SIGNAL[number // 16 % 3]
    gamma = GAMMAS[number // 48 % 4]
    X = np.empty((n, p))
    X[:, 0] = rng.standard_normal(n)
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * rng.standard_normal(n)
    if number % 6 == 0:  # the same column twice, up to its length
        X[:, rng.permutation(p)[:3]] = -2.0 * X[:, rng.permutation(p)[:3]]
    if number % 6 == 3:  # sums of other columns, nearly
        for j in rng.permutation(p)[:3]:
            X[:, j] = X[:, rng.permutation(p)[:4]].sum(axis=1) + 1e-4 * rng.standard_normal(n)
    true = rng.permutation(p)[: int(rng.integers(5, 21))]
    mean = X[:, true] @ rng.standard_normal(true.size)
    y = mean + np.std(mean) / np.sqrt(signal) * rng.standard_normal(n)
    taus = default_taus(n, p)
    sizes = rng.choice(np.arange(2, min(int(taus[-1]), p - 1) + 1), 4, replace=False)
    problem = SparseRidgeProblem(*prepared(X, y), gamma=gamma, tau=1)
    return problem, sorted(sizes.tolist()), taus


def problems(first: int, last: int, seconds: float, known: Path | None) -> None:
    found = json.loads(known.read_text()) if known is not None and known.exists() else {}
    far, total, worst_of_all = [], 0.0, []
    for number in range(first, last):
        problem, sizes, taus = drawn(number)
        if str(number) not in found:
            tree = solve_sizes(problem, sizes=sizes, time_limit=seconds)
            found[str(number)] = tree.objective.tolist()
            if known is not None:
                known.write_text(json.dumps(found))
        started = time.process_time()
        path = support_path(problem, [problem.gamma], taus, solver="heuristic")
        total += time.process_time() - started
        at = np.searchsorted(taus, sizes)
        above = path.objective[0, at] / np.array(found[str(number)]) - 1.0
        worst_of_all.append(float(above.max()))
        if above.max() > ENOUGH:
            far.append(number)
            p, n = problem.p, problem.n
            print(f"{number}: n = {n}, p = {p}, γ = {problem.gamma:g}, ", end="")
            print("; ".join(f"τ = {s} {a:+.2%}" for s, a in zip(sizes, above, strict=True)))
    above_all = np.array(worst_of_all)
    print(f"{above_all.size} problems, {total:.2f} CPU seconds")
    print(f"above the trees: {(above_all > 1e-6).sum()}, by more than {ENOUGH:.0%}: {len(far)}")
    print(f"below the trees at every size: {(above_all < -1e-6).sum()}; most {above_all.max():.2%}")


def data(names: str) -> None:
    for name in names.split(","):
        X, y = prepared(*rows(name))
        problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
        taus = default_taus(*X.shape)
        started = time.process_time()
        path = support_path(problem, np.logspace(-4, 4, 10), taus, solver="heuristic")
        took = time.process_time() - started
        level = float(np.log(path.objective).mean())
        print(
            f"{name:<12} {X.shape} τ ≤ {taus[-1]}: {took:.3f} s, mean log {level:.6f}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=("problems", "data"))
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=240)
    parser.add_argument("--known", type=Path)
    parser.add_argument("--names", default=SETS)
    given = parser.parse_args()
    print(machine())
    warm, _, taus = drawn(0)
    support_path(warm, [1.0], taus[:3], solver="heuristic")  # compiles
    if given.table == "data":
        data(given.names)
    else:
        problems(given.first, given.last, given.seconds, given.known)


if __name__ == "__main__":
    main()
