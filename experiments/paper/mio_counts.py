"""This script averages the reductions of Algorithm 1: Tables 1, 2, Figures 2, 3 of the first paper.

    python -m experiments.paper.mio_counts [run]

With "run" the script first writes the tables results/benchmark_*.csv anew (four data sets, seven γ,
some hours). It reads these tables and prints the mean share of problems and of nodes that are left
out beside the paper's. "grid" solves every problem, "paper" has the paper's bounds, "paper-exact"
has u* in Corollary 3, "best" adds the bounds of this project, and "exact" is the shared tree. The
pictures results/benchmark_loo.png and results/benchmark_folds.png are of columns of unit norm.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import PAPER_GAMMAS, PAPER_SETS, RESULTS, machine, table
from sparsecv.cv.benchmark import WAYS, run
from sparsecv.plots.curves import save
from sparsecv.plots.style import in_style, new_figure

# What the paper prints: mean reductions of problems and of nodes, in %.
PRINTED = {"loo": (70, 57), "size:10": (52, 35)}
NAMES = {"loo": "leave-one-out", "size:10": "folds of ten rows", "10": "ten folds"}


def measure() -> None:
    """Write the tables of all folds and scales; the paper's sizes of Diabetes end at 10."""
    for name, folds in (("loo", ["loo"]), ("folds", ["size:10", "10"])):
        for scale in ("unit-norm", "unit-variance"):
            path = RESULTS / f"benchmark_{name}_{scale.replace('-', '_')}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                rows = None
                for data in map(table, PAPER_SETS):
                    taus = range(2, 11) if data.name == "diabetes11" else None
                    for row in run([data], folds, PAPER_GAMMAS, WAYS, scale=scale, taus=taus):
                        entries = asdict(row)
                        if rows is None:
                            rows = csv.DictWriter(file, list(entries))
                            rows.writeheader()
                        rows.writerow(entries)


def main() -> None:
    if "run" in sys.argv[1:]:
        measure()
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
    for name in ("loo", "folds"):
        plot(RESULTS / f"benchmark_{name}_unit_norm.csv", RESULTS / f"benchmark_{name}.png")


@in_style
def plot(source: Path, path: Path) -> None:
    """Draw the distributions over γ of the reductions against the grid.

    source: A table of :func:`measure`.
    """
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = list(dict.fromkeys(row["folds"] for row in rows))
    figure, axes = new_figure(len(kinds), 2, figsize=(10.0, 3.4 * len(kinds)))
    fields = (("reduction", "problems"), ("node_reduction", "nodes"))
    for line, kind in zip(axes, kinds, strict=True):
        here = [row for row in rows if row["folds"] == kind]
        for panel, (field, what) in zip(line, fields, strict=True):
            boxes(panel, here, field)
            panel.set_title(f"{kind}: fewer {what} than the grid", fontsize=10)
    axes[0][0].legend(fontsize=8)
    save(figure, str(path))


def boxes(panel: Any, rows: list[dict[str, str]], field: str) -> None:
    """Draw a box for every data set and every way of Algorithm 1 to bound errors.

    field: A share of work saved, one in each row, which is drawn in percent unless it is not known.
    """
    ways = [way for way in ("paper", "paper-exact", "best") if any(r["way"] == way for r in rows)]
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    for w, way in enumerate(ways):
        values: dict[str, list[float]] = {name: [] for name in names}
        for row in rows:
            if row["way"] == way and np.isfinite(float(row[field])):
                values[row["dataset"]].append(100.0 * float(row[field]))
        at = np.arange(len(names)) + 0.25 * (w - (len(ways) - 1) / 2.0)
        drawn = panel.boxplot(list(values.values()), positions=at, widths=0.2, patch_artist=True)
        for box in drawn["boxes"]:
            box.set_facecolor(f"C{w}")
        panel.plot([], [], "s", color=f"C{w}", label=way)
    panel.set_xticks(range(len(names)), names)
    panel.set_ylabel("reduction in %")


if __name__ == "__main__":
    main()
