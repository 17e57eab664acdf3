"""This script times exact leave-one-out at every τ against Table 1 of the first paper.

    python -m experiments.paper.exact_cv_timings

The tree time is the time that the solvers report for search, incumbents and final fits. The total
time also contains reading the folds and adding up the errors. Everything runs on one thread.
"""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from experiments.common import (
    PAPER_GAMMAS,
    PAPER_SETS,
    best_of,
    fold_rows,
    machine,
    peak_megabytes,
    run,
)
from sparsecv.design.design import Protocol
from sparsecv.solvers import best_subsets, best_subsets_rows_deleted

# Minutes of Grid in Table 1 of the main paper (Mosek 10, leave-one-out), γ as in PAPER_GAMMAS.
PAPER_GRID_MINUTES = {
    "diabetes11": (68, 52, 42, 39, 35, 32, 34),
    "housing": (247, 187, 166, 40, 82, 90, 107),
    "servo": (466, 110, 44, 23, 15, 10, 8),
    "autompg": (1100, 1356, 519, 355, 143, 66, 68),
}
HONEST = Protocol()


def tree_seconds(name: str, gamma: float) -> tuple[float, int, int]:
    """Seconds and nodes of the full-data tree and the shared tree together, and MIOs served."""
    data = fold_rows(name, "loo", HONEST)
    problem = data.full().replace(gamma=gamma, tau=data.p)
    deleted, targets, *_ = data.deleted_rows

    def both() -> tuple[float, int]:
        whole = best_subsets(problem)
        starts = [one.support for one in whole]
        *_, work = best_subsets_rows_deleted(problem, deleted, targets, warm_starts=starts)
        return whole[0].seconds + work.seconds, whole[0].n_nodes + work.n_nodes

    with threadpool_limits(1):
        both()
        seconds, nodes = min(both() for _ in range(5))
    return seconds, nodes, data.folds.n * data.p


def main() -> None:
    print(machine())
    print("\nLeave-one-out, every τ, one γ (tree time, least of 5)")
    singles = [
        ("diabetes", 0.1, "0.02"),
        ("autompg", 0.1, "0.3"),
        ("synthetic:200,40,10,0.7,1,0", 200**-0.5, "5"),
    ]
    for name, gamma, required in singles:
        seconds, nodes, problems = tree_seconds(name, gamma)
        print(
            f"  {name:<30} γ={gamma:<7.3g} {problems:>6} MIOs {nodes:>10,} nodes "
            f"{seconds:8.4f} s (required {required} s)"
        )
    print("\nTable 1 of the main paper: 4 data sets × 7 γ, leave-one-out, every τ (total time)")
    everything = hours = 0.0
    for name, label in PAPER_SETS.items():
        data = fold_rows(name, "loo", HONEST)
        run(data, PAPER_GAMMAS[:1])
        data = fold_rows(name, "loo", HONEST)
        seconds, _ = best_of(1, lambda d=data: run(d, PAPER_GAMMAS))
        minutes = sum(PAPER_GRID_MINUTES[name])
        everything += seconds
        hours += minutes / 60.0
        print(
            f"  {label:<10} {seconds:7.3f} s   the paper's Grid {minutes / 60.0:6.1f} h   "
            f"ratio {60.0 * minutes / seconds:,.0f}"
        )
    print(f"  together   {everything:7.3f} s (required 5 s); the paper's Grid {hours:.0f} h")
    print(f"\npeak memory {peak_megabytes():.0f} MB (required 500 MB)")


if __name__ == "__main__":
    main()
