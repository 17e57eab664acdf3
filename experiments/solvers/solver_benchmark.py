"""This script times the proof of one training problem by sparsecv and by other exact solvers.

    python -m experiments.solvers.solver_benchmark [--peers PYTHON] [--limit 60] [--again] [--table]

Every solver runs on every instance in a process of its own, with one thread and 60 s. Solvers that
take an incumbent get the same one (forward selection with swaps). Imports and compilation are not
timed. A solve of less than 0.5 s is repeated five times, a solve of less than 0.05 s fifty times,
and the least time counts; of solvers in R, whose clock counts milliseconds, the mean counts.
sparsecv proves a relative gap of 1e-6, the other solvers 1e-4. Results are kept in
results/solver_benchmark.csv and not computed again; --again repeats those of sparsecv, and --table
only prints the results. PYTHON is an interpreter that has the packages of requirements-peers.txt.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import ONE_THREAD, RESULTS, last_json, machine
from experiments.instances import Instance, benchmark
from sparsecv.solvers import SparseRidgeProblem, solve
from sparsecv.solvers.supports.rounding import forward_order
from sparsecv.solvers.supports.sizes import after_swaps

STORE = RESULTS / "solver_benchmark.csv"
FIELDS = ["instance", "solver", "seconds", "proved", "objective", "lower_bound"]
PEERS = ("gurobi", "l0bnb", "el0ps", "okridge", "leaps")
NAMES = {"gurobi": "Gurobi", "l0bnb": "l0bnb", "el0ps": "El0ps", "okridge": "OKRidge"}
PENALISED = ("l0bnb", "el0ps")
# A solve that takes less time is run five times, and the least time counts.
SHORT_SECONDS = 0.5
# A solve that takes less time is run fifty times, and the least time counts.
VERY_SHORT_SECONDS = 0.05
# An objective that exceeds that of sparsecv by more than this share counts as a wrong answer.
WRONG_RELATIVE = 1e-4


def applies(solver: str, problem: SparseRidgeProblem) -> bool:
    """Sizes beyond a licence or known to crash are not tried."""
    if solver == "gurobi":
        return problem.p <= 100  # the pip licence allows 200 variables
    if solver == "leaps":
        return problem.p <= 50 and shutil.which("Rscript") is not None
    if solver == "okridge":
        return problem.p <= (problem.n or 0)  # 0.1.1 crashes otherwise
    return True


def case_of(problem: SparseRidgeProblem, rows: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    """The input of the solvers: data, an incumbent, λ of the penalised form, and a big-M."""
    X, y = rows
    G, b, ridge, p = problem.G, problem.b, problem.gamma / 2.0, problem.p
    start = after_swaps(G, b, ridge, [forward_order(X, y, problem.tau, problem.gamma)])
    fit = problem.fit(start)
    coef = np.zeros(p)
    coef[start] = fit.coef
    around = [
        solve(problem.replace(tau=t), time_limit=20.0).objective if t else problem.yy
        for t in (problem.tau - 1, problem.tau + 1)
    ]
    inverse = np.linalg.inv(G + ridge * np.eye(p))
    room = max(fit.objective - (problem.yy - float(b @ inverse @ b)), 0.0)
    M = float((np.abs(inverse @ b) + np.sqrt(room * np.diag(inverse))).max())
    return {
        "X": X,
        "y": y,
        "gamma": problem.gamma,
        "tau": problem.tau,
        "start": coef,
        "upper": fit.objective,
        "penalty": max((around[0] - around[1]) / 4.0, 1e-12),
        "M": M,
    }


def worker(path: str, limit: float) -> None:
    """Ours, in its own process."""
    case = np.load(path)
    rng = np.random.default_rng(0)
    for p in (8, 60):  # compile both trees before the clock starts
        solve(
            SparseRidgeProblem(
                rng.standard_normal((80, p)), rng.standard_normal(80), gamma=1.0, tau=3
            )
        )
    seconds = limit
    for number in range(50):
        started = time.perf_counter()
        problem = SparseRidgeProblem(
            case["X"], case["y"], gamma=float(case["gamma"]), tau=int(case["tau"])
        )
        found = solve(problem, time_limit=limit, warm_start=np.flatnonzero(case["start"]))
        seconds = min(seconds, time.perf_counter() - started)
        if seconds > SHORT_SECONDS or (number >= 4 and seconds > VERY_SHORT_SECONDS):
            break
    document = {
        "seconds": seconds,
        "support": found.support.tolist(),
        "lower_bound": found.lower_bound,
        "proved": str(found.status) == "optimal",
    }
    print("\n" + json.dumps(document))


def run(solver: str, python: str, path: str, limit: float) -> dict[str, Any]:
    """Run one process; a crash or a hang is an unfinished solve."""
    script = str(Path(__file__).with_name("solver_peers.py"))
    command = [python, script, solver, path, str(limit)]
    if solver == "sparsecv":
        command = [sys.executable, "-m", __spec__.name, "--worker", path, "--limit", str(limit)]
    try:
        found: dict[str, Any] = last_json(command, 2 * limit + 60, **ONE_THREAD)[0]
    except (subprocess.TimeoutExpired, ValueError):
        return {"seconds": limit, "support": [], "lower_bound": 0.0, "proved": False}
    return found


def entry(
    instance: Instance,
    solver: str,
    found: dict[str, Any],
    problem: SparseRidgeProblem,
    limit: float,
) -> dict[str, str]:
    objective = problem.objective(found["support"])
    bound = found["lower_bound"]
    if found["proved"] and not np.isfinite(bound):
        bound = objective
    proved = found["proved"] and found["seconds"] <= 1.1 * limit
    return {
        "instance": instance.name,
        "solver": solver,
        "seconds": f"{found['seconds']:.6f}",
        "proved": str(int(proved)),
        "objective": repr(objective),
        "lower_bound": repr(max(0.0, float(np.nan_to_num(bound)))),
    }


def settle(
    row: dict[str, str], ours: dict[str, str], case: dict[str, Any], found: dict[str, Any]
) -> None:
    """No λ makes some τ the best size: then its own problem solved counts as ours solved."""
    penalty = float(case["penalty"])
    own = float(row["objective"]) / 2.0 + penalty * len(found["support"])
    at_tau = float(ours["objective"]) / 2.0 + penalty * int(case["tau"])
    if own <= at_tau * (1.0 + WRONG_RELATIVE):
        row["objective"] = ours["objective"]


def stored() -> dict[tuple[str, str], dict[str, str]]:
    if not STORE.exists():
        return {}
    with STORE.open(newline="", encoding="utf-8") as file:
        return {(row["instance"], row["solver"]): row for row in csv.DictReader(file)}


def keep(rows: dict[tuple[str, str], dict[str, str]]) -> None:
    partial = STORE.with_suffix(".tmp")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows.values())
    os.replace(partial, STORE)


def measure(peers: str, limit: float, again: bool, only: tuple[str, ...]) -> None:
    for instance in benchmark():
        problem = instance.problem()
        known = stored()
        todo = [s for s in only if applies(s, problem) and (instance.name, s) not in known]
        if "sparsecv" in only and again and "sparsecv" not in todo:
            todo.insert(0, "sparsecv")
        if not todo:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "case.npz"))
            case = case_of(problem, instance.rows())
            np.savez(path, **case)
            for solver in todo:
                found = run(solver, peers, path, limit)
                row = entry(instance, solver, found, problem, limit)
                ours = stored().get((instance.name, "sparsecv"))
                wrong = ours and float(row["objective"]) > float(ours["objective"]) * (
                    1 + WRONG_RELATIVE
                )
                if solver == "el0ps" and row["proved"] == "1" and wrong:
                    found = run("el0ps-safe", peers, path, limit)
                    row = entry(instance, solver, found, problem, limit)
                if ours and wrong and solver in PENALISED and row["proved"] == "1":
                    settle(row, ours, case, found)
                rows = stored()
                rows[instance.name, solver] = row
                keep(rows)
                print(*row.values(), flush=True)


def gap_of(row: dict[str, str], best: float) -> float:
    """Relative gap between the best objective known and a solver's bound."""
    return max(0.0, 1.0 - float(row["lower_bound"]) / best)


def print_table(limit: float) -> None:
    """Print a line per setting, with geometric means over seeds; gaps in percent if not proved."""
    rows, ratios, slower, loose = stored(), [], [], []
    groups: dict[str, list[Instance]] = {}
    for instance in benchmark():
        if (instance.name, "sparsecv") in rows:
            groups.setdefault(instance.group, []).append(instance)
    print("| instance | sparsecv | " + " | ".join(NAMES.values()) + " | leaps | ratio |")
    print("|---|" + "---:|" * 7)
    for group, members in groups.items():
        cells: dict[str, list[tuple[float, float]]] = {}
        here = []
        for one in members:
            ours = rows[one.name, "sparsecv"]
            others = {s: rows[one.name, s] for s in PEERS if (one.name, s) in rows}
            best = float(ours["objective"])
            for solver, row in {"sparsecv": ours, **others}.items():
                correct = float(row["objective"]) <= best * (1 + WRONG_RELATIVE)
                proved = row["proved"] == "1" and correct
                gap = 0.0 if proved else gap_of(row, best)
                seconds = float(row["seconds"]) if proved else limit
                cells.setdefault(solver, []).append((seconds, gap))
            if not others:
                continue
            time_ours, gap_ours = cells["sparsecv"][-1]
            fastest = min(cells[s][-1][0] for s in others)
            here.append(fastest / time_ours)
            if fastest < time_ours:
                slower.append((one.name, fastest / time_ours))
            if gap_ours > 0 and gap_ours >= min(cells[s][-1][1] for s in others):
                loose.append(one.name)
        ratios += here
        shown = [_cell(cells.get(s), limit) for s in ("sparsecv", *PEERS)]
        ratio = f"{_mean(here):,.0f}×" if here else ""
        print(f"| {group} | " + " | ".join(shown) + f" | {ratio} |")
    if ratios:
        print(
            f"\n{len(ratios)} instances, fastest peer / sparsecv: "
            f"geometric mean {_mean(ratios):,.0f}×"
        )
    print("slower than the fastest peer:", slower or "nowhere")
    print("not proved, and no smaller gap than a peer's:", loose or "nowhere")


def _mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _cell(found: list[tuple[float, float]] | None, limit: float) -> str:
    """Seconds (geometric mean), or how many seeds were not proved and the mean gap left."""
    if not found:
        return "–"
    gaps = [gap for seconds, gap in found if seconds >= limit]
    if gaps and min(gaps) > 0.999:
        return "failed"  # no answer at all: it crashed or hung
    mean = _mean([max(seconds, 1e-4) for seconds, _ in found])
    text = f"{mean:.3g} s" if len(gaps) < len(found) else f"> {limit:g} s"
    if gaps:
        share = "" if len(gaps) == len(found) else f"{len(gaps)} of {len(found)}: "
        text += f" ({share}gap {100 * np.mean(gaps):.2g} %)"
    return text


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--worker")
    parser.add_argument("--solvers", default=",".join(("sparsecv", *PEERS)))
    given = parser.parse_args()
    if given.worker:
        worker(given.worker, given.limit)
        return
    if not given.table:
        measure(given.peers, given.limit, given.again, tuple(given.solvers.split(",")))
    print(machine() + "\n")
    print_table(given.limit)


if __name__ == "__main__":
    main()
