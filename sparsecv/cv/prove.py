"""Which of the two provers proves what estimates leave open."""

from __future__ import annotations

from collections.abc import Sequence

from .fold_proofs import ProofRun, Prover
from .ledger import Ledger
from .plan import RunPlan
from .prove_cells import CellProver
from .prove_sizes import SizesProver


def prover_of(plan: RunPlan, ledger: Ledger, rows: Sequence[int], work: ProofRun) -> Prover:
    """The prover of a plan: by trees of all sizes, or one cell after the other.

    rows: Rows of the ledger, in which every fold has an incumbent at every τ.
    """
    if plan.trees:
        return SizesProver(ledger, rows, work)
    return CellProver(ledger, rows, work, plan)
