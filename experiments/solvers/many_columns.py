"""This script times exact cross-validation on data sets of 91 to 4,088 columns.

python -m experiments.solvers.many_columns
"""

from __future__ import annotations

import time

import numpy as np

from experiments.common import fold_rows, machine, peak_megabytes, run
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol
from sparsecv.selection.claims import least_is_proved

CASES = (
    ("housing2", "5", 100.0, 20),
    ("housing2", "loo", 100.0, 5),
    ("bardet", "5", 100.0, 10),
    ("bardet", "loo", 100.0, 5),
    ("topgear", "5", 100.0, 5),
    ("vessel", "5", 100.0, 5),
    ("riboflavin", "5", 100.0, 4),
    ("housing2", "5", 1.0, 20),
    ("bardet", "5", 1.0, 10),
)
# The cross-validation of a case stops after this many seconds.
SECONDS = 60.0


def main() -> None:
    print(machine())
    print(f"time limit {SECONDS:g} s for each row; a τ counts as exact when every fold is proved\n")
    for name, folds, gamma, top in CASES:
        data = fold_rows(name, folds, Protocol())
        started = time.perf_counter()
        result = run(data, [gamma], Settings(time_limit=SECONDS), np.arange(1, top + 1))
        one, best = result.by_gamma[0], result.best()
        n, p = data.X.shape
        state = f"in [{best.lower_bound:.4g}, {best.upper:.4g}]"
        state = "proved best" if least_is_proved(result) else state
        print(
            f"{name:<11} {n:>4}×{p:<5} {folds:>3} folds γ={gamma:<4g} τ=1..{top:<3} "
            f"{data.folds.k * top:>5} MIOs {time.perf_counter() - started:7.2f} s, exact at "
            f"{int(one.exact.sum()):>2} of {top:>2} τ; best τ={best.tau:<3} "
            f"h={best.cv_error:.6g} {state}; peak {peak_megabytes():.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
