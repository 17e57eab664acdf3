"""This script counts what is proved of whole surfaces h(γ, τ) on data sets of many columns.

python -m experiments.solvers.surfaces [--sets housing2 bardet] [--prove all] [--cpu] [--sizes]
    [--share S] [--least-gamma G] [--jobs N] [--without sharing diagonal raising ...]

``--without`` measures what a part of the search is worth by leaving it out: "sharing" takes the
bounds on the optimum of all rows to other γ and τ, "diagonal" gives all problems of a fold one
diagonal, and "raising" raises the least lower bound between the proofs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from experiments.common import fold_rows, machine, run
from sparsecv.clock import CLOCK
from sparsecv.cv import fold_proofs, prove_cells
from sparsecv.cv.ledger import Ledger
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol
from sparsecv.solvers.branching.size_sweep import solve_sizes
from sparsecv.solvers.core.limits import Limits

GAMMAS = np.geomspace(0.01, 1000.0, 11)
# Seconds for the whole surface of a data set, estimates included, and its number of folds.
SURFACES = {"housing2": (200.0, "5"), "bardet": (120.0, "5")}
# All sizes of one problem: the data set, γ, and the seconds.
SIZES = (("housing2", 10.0, 60.0), ("housing2", 1.0, 60.0), ("housing2", 0.03, 60.0))
PARTS = ("sharing", "diagonal", "raising")


def leave_out(part: str) -> None:
    """Have every search from now on run without one of ``PARTS``."""
    if part == "sharing":
        Ledger.share_bounds = lambda self: None  # type: ignore[method-assign]
    elif part == "diagonal":
        fold_proofs.shared_diagonal = lambda gram: gram.D  # type: ignore[attr-defined]
    else:
        prove_cells.BOUNDING_SHARE = 0.0


def surface(name: str, gammas: np.ndarray, prove: str, share: float, jobs: int) -> None:
    """Print, for every γ, how many τ are proved, and the interval of the least error."""
    seconds, folds = share * SURFACES[name][0], SURFACES[name][1]
    data = fold_rows(name, folds, Protocol())
    started, used = time.perf_counter(), time.process_time()
    result = run(data, gammas, Settings(time_limit=seconds, prove=prove, n_jobs=jobs))
    best, upper = result.best(), float(result.table("upper").min())
    proved = [int(one.exact.sum()) for one in result.by_gamma]
    sizes = result.by_gamma[0].exact.size
    print(
        f"{name}: {sum(proved)} of {sizes * gammas.size} cells proved in "
        f"{time.perf_counter() - started:.0f} s ({time.process_time() - used:.0f} s CPU); least "
        f"error {best.cv_error:.4g} at γ={best.gamma:.4g}, τ={best.tau}, "
        f"in [{best.lower_bound:.4g}, {upper:.4g}], its own error at most {best.upper:.4g}",
        flush=True,
    )
    for gamma, count in zip(gammas, proved, strict=True):
        print(f"  γ={gamma:<9.4g} {count:>3} of {sizes} sizes proved")


def sizes(name: str, gamma: float, seconds: float) -> None:
    """Print how many sizes of one problem of all rows are proved, and the largest gap."""
    problem = fold_rows(name, "5", Protocol()).full().replace(gamma=gamma)
    started = time.perf_counter()
    found = solve_sizes(problem, sizes=np.arange(1, problem.p + 1), limits=Limits(seconds))
    gap, proved = max(one.gap for one in found), sum(one.proved for one in found)
    print(
        f"{name} γ={gamma:g}: {proved} of {len(found)} sizes proved in "
        f"{time.perf_counter() - started:.0f} s, gaps up to {100.0 * gap:.2g} %",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SURFACES), choices=list(SURFACES))
    parser.add_argument("--prove", default="choice", choices=("choice", "all"))
    parser.add_argument("--cpu", action="store_true", help="seconds of this process, not the clock")
    parser.add_argument("--share", type=float, default=1.0, help="of the seconds of SURFACES")
    parser.add_argument("--least-gamma", type=float, default=0.0, help="leave out smaller γ")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--without", nargs="*", default=[], choices=PARTS)
    parser.add_argument("--sizes", action="store_true", help="all sizes of one problem, too")
    chosen = parser.parse_args()
    print(machine())
    if chosen.cpu:  # Other work on the machine then changes nothing.
        warm = fold_rows("housing2", "5", Protocol())
        run(warm, [1.0], Settings(time_limit=2.0), np.arange(1, 21))
        CLOCK.now = time.process_time
    for part in chosen.without:
        leave_out(part)
    for name in chosen.sets:
        gammas = GAMMAS[chosen.least_gamma * (1.0 - 1e-9) <= GAMMAS]
        surface(name, gammas, chosen.prove, chosen.share, chosen.jobs)
    for case in SIZES if chosen.sizes else ():
        sizes(*case)


if __name__ == "__main__":
    main()
