"""Answers at every γ and τ of all problems: exact where a small tree proves them, up to 45 columns.

All other answers are good supports. A unit of work gets the training rows of one fold, all γ and
all sizes. A fold's answer without a proof comes from its unit alone, and so depends on the fold's
training rows alone. For leave-one-out up to 45 columns, blocks of folds share a tree, at one γ
after the other; every fold that such a tree does not prove gets a support without a proof from its
own unit.
Units are functions whose arguments can be pickled, and no unit depends on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..design.fold_data import FoldData
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status, Work
from ..solvers.leaps.deleted_rows import DeletedRowSubsets, best_subsets_rows_deleted
from ..solvers.leaps.gamma_trees import Listed
from ..solvers.paths import path_of_one_tree, support_path
from ..solvers.ridge_fits import SupportPath
from ..solvers.supports.path import GrownUnits
from .executor import Batch, Late, Report, Run, workers
from .ledger import Ledger
from .plan import RunPlan

# Up to 45 columns, at most this many folds of leave-one-out share a tree. The tree holds a few
# arrays of one number for every fold and column; 512 folds and 45 columns take 180 kB each, which
# stays in the processor's cache. Every γ has as many trees as are needed for all rows. It is a
# choice.
FOLDS_PER_TREE = 512
# Where the nearest of several γ is looked for on a logarithmic scale, γ = 0 counts as this share of
# the least γ above 0. The number is a choice.
ZERO_GAMMA_AS_SHARE = 1e-8


def fold_unit(
    data: FoldData,
    j: int,
    gammas: Array,
    taus: NDArray[np.intp],
    solver: str,
    listed: Listed,
    grown: dict[float, GrownUnits] | None,
    most_nodes: int | None,
    limits: Limits,
) -> tuple[SupportPath, Array]:
    """The unit of problem j: its supports and fits at every γ and τ, and their held-out errors.

    gammas: Best both ends first: what trees list at two γ often proves the supports between them,
        without another tree. In increasing order what a tree lists proves some at the next γ.
    solver: "estimate", which proves what takes few nodes, "heuristic", which proves nothing, or
        "exact", which proves all that the limits allow.
    listed: What trees of this fold have listed at other γ. It is read, and not changed.
    grown: As of :func:`~sparsecv.solvers.paths.support_path`.
    most_nodes: The searches at each γ end after this many nodes; None for no limit.
    Returns: The path, and Σ (t − Hβ)² over the held-out rows H with targets t, shape (γ, τ), which
        is 0 for the problem of all rows.
    """
    problem, limits = data.problem(j), limits.within(nodes=most_nodes)
    path = support_path(
        problem, gammas, taus, solver=solver, limits=limits, listed=listed, grown=grown
    )
    return path, _held_out_errors(data, j, path)


def tree_unit(
    data: FoldData,
    j: int,
    gamma: float,
    taus: NDArray[np.intp],
    starts: Sequence[NDArray[np.intp]],
    most_nodes: int,
    limits: Limits,
) -> tuple[SupportPath, Array]:
    """The unit of problem j at one γ: one tree of all sizes, of at most so many nodes.

    starts: Supports that the tree starts from.
    Returns: As :func:`fold_unit`.
    """
    problem = data.problem(j).replace(gamma=gamma)
    path = path_of_one_tree(problem, taus, starts, limits.within(nodes=most_nodes))
    return path, _held_out_errors(data, j, path)


def _held_out_errors(data: FoldData, j: int, path: SupportPath) -> Array:
    """The squared errors of a path of problem j on its held-out rows; 0 for all rows."""
    if j == data.folds.k:
        return np.zeros(path.objective.shape)
    return path.squared_errors(*data.held_out(j, path.used), path.used)


def _block(
    data: FoldData,
    block: NDArray[np.intp],
    gamma: float,
    taus: NDArray[np.intp],
    models: Sequence[NDArray[np.intp]],
    limits: Limits,
) -> tuple[DeletedRowSubsets, Status, Work]:
    """The unit of some leave-one-out folds that share a tree.

    block: Numbers of rows of the table; each is held out by a fold.
    taus: Sizes above 0.
    models: The best known support of all rows for every τ, from which the tree starts.
    Returns: What the tree gives of every row's fold, how it has ended, and its work.
    """
    deleted = data.deleted_rows
    assert deleted is not None
    return best_subsets_rows_deleted(
        data.full().replace(gamma=gamma),
        deleted.rows[block],
        deleted.targets[block],
        sizes=taus,
        warm_starts=models,
        limits=limits,
    )


def row_blocks(n: int) -> list[NDArray[np.intp]]:
    """The numbers of the rows, of n, whose leave-one-out folds share a tree, tree by tree."""
    return [np.arange(i, min(i + FOLDS_PER_TREE, n)) for i in range(0, n, FOLDS_PER_TREE)]


def units(data: FoldData, plan: RunPlan) -> list[NDArray[np.intp]]:
    """The numbers of the problems that every unit of work answers, an array for each unit.

    Where leave-one-out folds share trees, the first units are blocks of such folds. Then every
    problem has a unit of its own; the last one is the problem of all rows.
    """
    alone = list(np.arange(data.folds.k + 1)[:, None])
    if not plan.one_tree_for_rows:
        return alone
    label = data.folds.label
    assert label is not None
    return [np.sort(label[block]) for block in row_blocks(data.folds.n)] + alone


def estimate_models(
    ledger: Ledger,
    rows: list[int],
    plan: RunPlan,
    limits: Limits,
    n_jobs: int | None,
    late: Late,
    report: Report,
) -> None:
    """Give the problem of all rows an answer at every γ and τ, unless the ledger has answers.

    rows: Rows of the ledger.
    limits: The limits of all estimates, those of the folds included.
    late: What becomes of the answers where the time is up; they may be left out.
    """
    data, k, clock = ledger.data, ledger.k, Limits()
    missing = [g for g in rows if not np.isfinite(ledger.answer.objective[g, :, k]).all()]
    if missing:
        report("fitting all rows", 0, 1)
        # The k folds follow in rounds of one fold for each worker, and all rows get the time of a
        # round. Where folds share trees, two thirds of the time are theirs: a choice.
        rounds = 3.0 if plan.estimates_by_row_tree else k / workers(n_jobs) + 1.0
        share, searches = limits.share(rounds), not plan.estimates_by_heuristics
        for some, sizes, solver in _by_solver(ledger, missing, k, plan, searches):
            gammas = [ledger.gammas[g] for g in some]
            if not late.leaves_out(share):
                full, grown = data.full(), _grown(ledger, k, plan)
                path = support_path(full, gammas, sizes, solver=solver, limits=share, grown=grown)
                ledger.enter_answers(some, k, path, error=0.0)
        ledger.work.seconds[missing] += clock.elapsed() / len(missing)


def estimate_folds(
    ledger: Ledger,
    rows: list[int],
    plan: RunPlan,
    limits: Limits,
    run: Run,
    late: Late,
    report: Report,
) -> None:
    """Give every fold an answer at every γ and τ.

    Up to 45 columns the folds of leave-one-out share a tree where the problem of all rows is
    proved, as their tree would not end elsewhere. A fold that no shared tree proves is answered
    from its own training rows without a proof, always by the same search, and may be proved later.

    The answers, and intervals of folds whose trees were left open, are entered in the ledger.

    rows: Rows of the ledger; answers that are exact already are kept.
    limits: The limits of all folds together, which are shared out among units.
    run: Runs a batch of units.
    late: What becomes of a fold whose time is up before its unit begins; it may be left out.
    """
    data, k, by_tree = ledger.data, ledger.k, plan.estimates_by_row_tree
    shared = [g for g in rows if by_tree and ledger.cells.exact[g, :, k].all()]
    for done, g in enumerate(shared):
        detail = f"every row left out at γ = {ledger.gammas[g]:.4g}"
        if limits.reached(0) is not None:
            break  # What no shared tree proves gets an answer below.
        report("fitting the folds", done, len(shared), detail)
        run(_deleted_rows(ledger, g, limits.share(float(len(rows) - done))))
    rest = [g for g in rows if not ledger.proved(g)]
    folds = np.flatnonzero(~ledger.cells.exact[rest, :, :k].all(axis=(0, 1))).tolist()
    # One unit for every fold, solver and sizes: the fold, the rows of its γ, the sizes, the solver.
    parts = [
        (j, *part)
        for j in folds
        for part in _by_solver(ledger, rest, j, plan, plan.estimates_by_fold_trees)
    ]

    def enter(index: int, found: tuple[SupportPath, Array]) -> Status:
        (j, some, _, _), (path, errors) = parts[index], found
        ledger.enter_answers(some, j, path, errors)
        return path.status

    if parts:
        gammas, told = np.array(ledger.gammas), partial(report, "fitting the folds")
        listed, most_nodes = Listed(), None
        tasks = [
            (j, gammas[some], sizes, how, listed, _grown(ledger, j, plan), most_nodes)
            for j, some, sizes, how in parts
        ]
        unit = late.unit(fold_unit)
        run(Batch(rest, unit, data, tasks, enter, limits.share, told, keep=True))


def _by_solver(
    ledger: Ledger, rows: list[int], j: int, plan: RunPlan, searches: bool
) -> list[tuple[list[int], NDArray[np.intp], str]]:
    """Some rows of the ledger, divided by the solver that answers problem j at their γ, and sizes.

    Where a tree of all sizes would hardly end, the problem gets a good support without a proof, by
    the solver "heuristic".

    searches: Whether the problem gets a search of few nodes elsewhere, by the solver "estimate";
        else "heuristic" answers it everywhere.
    Returns: Rows, at least one, the sizes that they lack, and their solver
        (``paths.support_path``).
    """
    hard = [g for g in rows if plan.all_size_trees and _is_hard(ledger, g, j)]
    easy = [g for g in rows if g not in hard]
    solver = "estimate" if searches else "heuristic"
    parts = list[tuple[list[int], NDArray[np.intp], str]]()
    for same_solver, name in ((easy, solver), (hard, "heuristic")):
        by_sizes = ledger.rows_by_sizes_to_grow(same_solver, j)
        parts += [(some, sizes, name) for some, sizes in by_sizes]
    return parts


def _grown(ledger: Ledger, j: int, plan: RunPlan) -> dict[float, GrownUnits] | None:
    """What the search of problem j goes on from; None where sizes are never extended."""
    return ledger.grown[j] if plan.needs_no_proof else None


def _is_hard(ledger: Ledger, g: int, j: int) -> bool:
    """Whether a tree of all sizes of problem j would hardly end at the γ of row g.

    The trees of problem j at the γ that were visited first (``ledger.first_rows``) decide: the tree
    at the nearest of these γ was left open. At these γ themselves nothing counts as hard. Nothing
    else may decide, other folds and proofs included, because a fold's answer depends on its
    training rows alone.
    """
    if g in ledger.first_rows:
        return False
    gammas = np.asarray(ledger.gammas)
    least = ZERO_GAMMA_AS_SHARE * float(gammas[gammas > 0.0].min(initial=np.inf))
    logs = np.log(np.maximum(gammas, least))
    nearest = min(ledger.first_rows, key=lambda i: float(abs(logs[i] - logs[g])))
    return bool(ledger.cells.left_open[nearest, :, j].any())


def _deleted_rows(ledger: Ledger, g: int, limits: Limits) -> Batch:
    """The batch of shared trees of all leave-one-out folds at the γ of row g.

    The problem of all rows has an answer there at every size. The size 0, if it is one, is answered
    at once. Folds whose row cannot be deleted without loss of digits get no answer from the trees.
    """
    data, k = ledger.data, ledger.k
    deleted = data.deleted_rows
    assert deleted is not None
    assert data.folds.label is not None
    fold_of, blocks = data.folds.label, row_blocks(data.folds.n)
    ledger.enter_no_column(g)
    some = np.flatnonzero(ledger.taus)
    models = [ledger.support(g, t, k) for t in some.tolist()]

    def enter(index: int, ended: tuple[DeletedRowSubsets, Status, Work]) -> Status:
        block, (found, status, work) = blocks[index], ended
        ledger.enter_deleted_rows(g, fold_of[block], found, deleted.factor[block])
        # A tree was searched unless no row of the block could be deleted. It serves every τ.
        has_tree = found.skipped.size < block.size
        ledger.work.n_mio[g] += has_tree
        ledger.work.trees[g] += has_tree
        ledger.work.n_nodes[g] += work.n_nodes
        ledger.worsen_status(g, status)
        return status

    tasks = [(block, ledger.gammas[g], ledger.taus[some], models) for block in blocks]
    return Batch([g], _block, data, tasks, enter, limits.share, keep=True)
