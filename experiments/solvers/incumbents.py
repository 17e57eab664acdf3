"""This script compares the heuristic of sparsecv with those of OKRidge, abess and L0Learn.

    python -m experiments.solvers.incumbents [--peers PYTHON] [--seeds 1]

The instances are those of solver_benchmark.py, and Bardet, Topgear, Vessel and Riboflavin at
γ ∈ {1, 10, 100} and τ ∈ {5, 10, 20}. Every support is fitted again and judged by its objective. For
every peer the script prints the seconds, and by how many percent the peer's best objective exceeds
that of sparsecv (a negative number means that the peer is better).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.common import ONE_THREAD, last_json, machine
from experiments.instances import Instance, benchmark
from sparsecv.solvers import heuristic_support

PEERS = ("okridge", "abess", "fastsparsegams")
# A peer that takes longer on an instance is stopped and has no result.
PEER_SECONDS = 300.0


def instances(seeds: int) -> list[Instance]:
    drawn = [
        one
        for one in benchmark()
        if not one.data.startswith("synthetic:") or int(one.data.split(",")[-1]) < seeds
    ]
    grid = [
        Instance(data, gamma, tau)
        for data in ("bardet", "topgear", "vessel", "riboflavin")
        for gamma in (1.0, 10.0, 100.0)
        for tau in (5, 10, 20)
    ]
    return drawn + grid


def peer(solver: str, python: str, path: str) -> tuple[float, list[list[int]]]:
    command = [python, str(Path(__file__).with_name("incumbent_peers.py")), solver, path]
    try:
        found, _ = last_json(command, PEER_SECONDS, **ONE_THREAD)
    except (subprocess.TimeoutExpired, ValueError):
        return float("nan"), []
    return float(found["seconds"]), found["supports"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    print(machine())
    print("objective above ours in percent (seconds); sparsecv: seconds\n")
    heuristic_support(Instance("servo", 0.1, 4).problem())
    worse, ours_total = [], []
    totals: dict[str, list[float]] = {name: [] for name in PEERS}
    for one in instances(given.seeds):
        X, y = one.rows()
        problem = one.problem()
        started = time.perf_counter()
        ours = problem.objective(heuristic_support(problem))
        seconds = time.perf_counter() - started
        ours_total.append(seconds)
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "case.npz"))
            np.savez(path, X=X, y=y, gamma=one.gamma, tau=one.tau)
            for solver in PEERS:
                took, supports = peer(solver, given.peers, path)
                if not supports:
                    cells.append(f"{solver} failed")
                    continue
                above = min(problem.objective(s[: one.tau]) for s in supports) / ours - 1.0
                totals[solver].append(took)
                cells.append(f"{solver} {100 * above:+.4f} ({took:.3f})")
                if above < -1e-9:
                    worse.append((one.name, solver, above))
        print(f"{one.name:<46} {seconds:7.3f} s  " + "  ".join(cells), flush=True)
    print(f"\nseconds in all: sparsecv {sum(ours_total):.1f}", end="")
    print("".join(f", {name} {sum(took):.1f}" for name, took in totals.items()))
    print("a peer is better:", worse or "nowhere")


if __name__ == "__main__":
    main()
