"""This script averages the reductions of Algorithm 1: Tables 1, 2, Figures 2, 3 of the first paper.

    python -m experiments.paper.mio_counts

It runs no fit: it reads the tables that ``sparsecv benchmark`` wrote (results/benchmark_*.csv; four
data sets, seven γ) and prints the mean share of problems and of nodes that are left out beside the
paper's. "grid" solves every problem, "paper" has the paper's bounds, "paper-exact" has u* in
Corollary 3, "best" adds the bounds of this project, and "exact" is the shared tree.
"""

from __future__ import annotations

import csv
from collections import defaultdict

import numpy as np

from experiments.common import RESULTS, machine

# What the paper prints: mean reductions of problems and of nodes, in %.
PRINTED = {"loo": (70, 57), "size:10": (52, 35)}
NAMES = {"loo": "leave-one-out", "size:10": "folds of ten rows", "10": "ten folds"}


def main() -> None:
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for file in sorted(RESULTS.glob("benchmark_*.csv")):
        scale = file.stem.split("_", 2)[2].replace("_", " ")
        with file.open(encoding="utf-8", newline="") as rows:
            for row in csv.DictReader(rows):
                both = float(row["reduction"]), float(row["node_reduction"])
                found[scale, row["folds"], row["way"]].append(both)
    lines = [machine(), "", "mean reduction over four data sets and seven γ, in %", ""]
    for (scale, folds, way), values in sorted(found.items()):
        if way != "grid":
            problems, nodes = 100.0 * np.mean(values, axis=0)
            text = f"{NAMES[folds]:<18} {scale:<14} {way:<12} problems {problems:5.1f}"
            text += f"   nodes {nodes:5.1f}"
            if folds in PRINTED and way.startswith("paper"):
                text += "   (paper: {} and {})".format(*PRINTED[folds])
            lines.append(text)
    text = "\n".join([*lines, ""])
    (RESULTS / "mio_counts.txt").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
