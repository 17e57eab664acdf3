"""This script times leave-one-out on wide tables: one shared tree, Algorithm 1, single solves.

    python -m experiments.solvers.shared_tree

The script takes some four minutes, most of them for the single solves of the grid.
"""

from __future__ import annotations

import time

import numpy as np

from experiments.common import fold_rows, machine, run
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol
from sparsecv.selection.claims import least_is_proved

CASES = (("housing2", 100.0, 20), ("bardet", 100.0, 10))


def main() -> None:
    print(machine())
    print("one thread; every way after a warm-up that compiles\n")
    for name, gamma, top in CASES:
        data = fold_rows(name, "loo", Protocol())
        taus = np.arange(1, top + 1)
        problems = data.folds.k * top
        errors, seconds = {}, {}
        for method in ("exact", "search", "grid"):
            run(data, [1e5], Settings(method, time_limit=2.0), np.arange(1, 3))
            started = time.perf_counter()
            result = run(data, [gamma], Settings(method), taus)
            seconds[method] = time.perf_counter() - started
            one, best = result.by_gamma[0], result.best()
            errors[method] = one.cv_error
            print(
                f"{name} {data.X.shape} γ={gamma:g} τ=1..{top} {method:<6} "
                f"{seconds[method]:8.2f} s, {one.n_mio:>6} of {problems} problems solved "
                f"on their own, {one.n_nodes:>8,} nodes; best τ={best.tau}, "
                f"h={best.cv_error:.6g} in [{best.lower_bound:.6g}, "
                f"{best.upper:.6g}], proved: {least_is_proved(result)}",
                flush=True,
            )
            if method == "exact":
                branched = one.n_mio - top
                print(
                    f"{'':>10} settled without branching of their own: "
                    f"{100.0 * (1.0 - branched / problems):.1f} % of (fold, τ)"
                )
        same = np.abs(errors["exact"] / errors["grid"] - 1.0).max()
        print(
            f"{'':>10} grid / exact {seconds['grid'] / seconds['exact']:.1f}×, grid / search "
            f"{seconds['grid'] / seconds['search']:.1f}×; largest relative difference of h "
            f"{same:.1g}\n"
        )


if __name__ == "__main__":
    main()
