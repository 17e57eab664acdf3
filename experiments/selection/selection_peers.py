"""This script measures test errors of glmnet, MCP and SCAD on the splits of selection_rules.py.

    python -m experiments.selection.selection_peers CSV [splits [data set ...]]

The script needs sparsecv, skglm and python-glmnet in one environment (skglm 0.5 and python-glmnet
2.6.1 with numpy 2.4 gave results/selection_peers.csv). Every model chooses its λ (glmnet also its
α) by the same five folds as the rules, on columns of unit variance. The script appends a row to CSV
for every fit, and ``selection_rules.py --table`` reads the rows.

glmnet has 100 λ and the α 0, .1, .2 to 1 (results/selection_peers.csv: .1, .3, .5, .7, .9, 1).
MCP (γ = 3) and SCAD (γ = 3.7), with ncvreg's
defaults, use skglm's coordinate descent along 100 λ from the largest λ down to λ_max/1000, or to
λ_max/20 where there are more columns than rows, as in ncvreg.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from experiments.references import PATHS, of_least_error
from experiments.selection.selection_rules import NAMES, halves

PEERS = ("glmnet", "MCP", "SCAD")


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    path, splits = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = csv.writer(file)
        if fresh:
            table.writerow(["dataset", "split", "peer seconds", *PEERS])
        for name in tuple(sys.argv[3:]) or NAMES:
            for split in range(splits):
                X, y, Z, z = halves(name, split)
                started = time.perf_counter()
                found = [of_least_error(PATHS[way], X, y, Z, (), split)[0] for way in PEERS]
                seconds = time.perf_counter() - started
                errors = [f"{np.mean((z - one.predicted) ** 2):.8g}" for one in found]
                table.writerow([name, split, f"{seconds:.2f}", *errors])
                file.flush()


if __name__ == "__main__":
    main()
