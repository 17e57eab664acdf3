"""This script compares alternating minimisation over γ and τ, from several starts, with a grid.

python -m experiments.paper.alternation
"""

from __future__ import annotations

import time

import numpy as np

from experiments.common import PAPER_SETS, fold_rows, machine, run
from sparsecv.cv.alternating import alternate
from sparsecv.cv.engine import Surface
from sparsecv.design.design import Protocol


def main() -> None:
    print(machine())
    print("excess over the best point of the grid, in %; where it stopped (γ, τ)\n")
    for name in PAPER_SETS:
        for folds in ("loo", "10", "5"):
            data = fold_rows(name, folds, Protocol())
            taus = np.arange(1, data.p + 1)
            grid = run(data, np.geomspace(1e-4, 1e4, 60), None, taus).best()
            print(f"{name} {folds}: grid γ={grid.gamma:.4g} τ={grid.tau} h={grid.cv_error:.6g}")
            started = time.perf_counter()
            found = alternate(Surface(data, taus))
            seconds = time.perf_counter() - started
            print(f"  default    {_line(found, grid.cv_error)} ({seconds:.1f} s)")
            for start in np.geomspace(1e-4, 1e4, 10):
                found = alternate(Surface(data, taus), start=float(start))
                print(f"  {start:<10.4g} {_line(found, grid.cv_error)}", flush=True)


def _line(found: object, least: float) -> str:
    from sparsecv.cv.results import CVResult

    assert isinstance(found, CVResult)
    best = found.best()
    path = " → ".join(f"({step.gamma:.3g}, {step.tau})" for step in found.trace[:4])
    return f"{100.0 * (best.cv_error / least - 1.0):+8.4f} %  {found.ended:<10} {path}"


if __name__ == "__main__":
    main()
