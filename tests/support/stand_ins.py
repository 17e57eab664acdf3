"""What tests put something else in the place of: one table of names, and where each stands.

Where a number or a function of the package moves, its line here is the only one of the tests that
changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pkgutil import resolve_name
from typing import Any
from unittest import mock

TARGETS = {
    # numbers that limit searches, tables and waits
    "CELLS_AT_A_TIME": "tables.sources.CELLS_AT_A_TIME",
    "CELLS_OF_TEXT_AT_A_TIME": "tables.text.CELLS_AT_A_TIME",
    "DEFAULT_SECONDS": "schedule.DEFAULT_SECONDS",
    "FIRST_CHUNK_COLUMNS": "solvers.branching.search.FIRST_CHUNK_COLUMNS",
    "FIRST_LINE_SECONDS": "report.progress.FIRST_LINE_SECONDS",
    "FIRST_NODES": "solvers.paths.FIRST_NODES",
    "FIRST_ROWS": "solvers.branching.search.FIRST_ROWS",
    "FITTING_SUPPORTS": "solvers.branching.single.FITTING_SUPPORTS",
    "FOLDS_PER_TREE": "cv.estimate.FOLDS_PER_TREE",
    "HEAD_START_SUPPORTS": "solvers.branching.single.HEAD_START_SUPPORTS",
    "LEAST_SECONDS_AT_FIRST_GAMMA": "solvers.paths.LEAST_SECONDS_AT_FIRST_GAMMA",
    "MAX_BYTES_OF_A_MATRIX": "solvers.core.plan.MAX_BYTES_OF_A_MATRIX",
    "MAX_BYTES_OF_MOMENTS": "design.reduction.MAX_BYTES_OF_MOMENTS",
    "MAX_COPIED_BYTES": "solvers.kernels.compiled.MAX_COPIED_BYTES",
    "MAX_DENSE_BYTES": "estimators.validation.MAX_DENSE_BYTES",
    "MAX_FACTORED_COLUMNS": "solvers.branching.driver.MAX_FACTORED_COLUMNS",
    "MAX_ITERATIONS": "cv.alternating.MAX_ITERATIONS",
    "MAX_LOSSES": "selection.stable_errors.MAX_LOSSES",
    "MAX_OPEN_BYTES": "solvers.branching.size_sweep.MAX_OPEN_BYTES",
    "MAX_SHARE_CLOSED": "solvers.branching.single.MAX_SHARE_CLOSED",
    "MIN_NODES_PER_REFIT": "solvers.branching.sdp_nodes.MIN_NODES_PER_REFIT",
    "MOST_SUPPORTS": "solvers.core.plan.MOST_SUPPORTS",
    "NESTED": "selection.nested.NESTED",
    "NODES_WITHOUT_DIAGONAL": "solvers.leaps.tree.NODES_WITHOUT_DIAGONAL",
    "NODES_OF_A_PROOF": "solvers.paths.NODES_OF_A_PROOF",
    "NODES_OF_LARGE_TREES": "solvers.leaps.gamma_trees.NODES_OF_LARGE_TREES",
    "PROJECTION": "selection.projection.PROJECTION",
    "REFIT_SECONDS": "estimators.stability_cv.REFIT_SECONDS",
    "REFIT_SHARE": "solvers.branching.single.REFIT_SHARE",
    "ROUGH_NODES": "solvers.branching.single.ROUGH_NODES",
    # what searches are planned, and how much they keep
    "holds_tree": "solvers.core.problem.SparseRidgeProblem.holds_tree",
    "most_fitted_nodes": "solvers.branching.sdp_nodes.RefittedTree._most",
    "most_nodes": "solvers.branching.search.Tree._most",
    "relaxation_work": "solvers.relaxation.relaxer.relaxation_work",
    "small_enough": "solvers.branching.driver.small_enough",
    "wants_gram_alone": "solvers.relaxation.perspective.wants_gram",
    "wants_gram_at_the_root": "solvers.relaxation.root.wants_gram",
    "ways": "solvers.branching.size_sweep.ways",
    # searches, and their parts
    "all_seconds": "clock.CLOCK.all_seconds",
    "backends": "solvers.api._BACKENDS",
    "best_model": "selection.run.best_support",
    "best_subsets_rows_deleted": "cv.estimate.best_subsets_rows_deleted",
    "best_support_of_a_fold": "cv.shared_tree.best_support",
    "averaged_coefficients": "selection.averaging.averaged_coefficients",
    "branch_and_bound_of_folds": "cv.shared_tree.branch_and_bound",
    "complete_support": "solvers.supports.promising.complete_support",
    "fold_errors": "selection.alternatives.fold_errors",
    "fold_unit": "cv.estimate.fold_unit",
    "gamma_step": "cv.alternating.gamma_step",
    "grow": "solvers.supports.path.grow",
    "new_refitted_tree": "solvers.branching.sdp_nodes.RefittedTree.__init__",
    "objectives_without_rows": "selection.row_influence.Lighter.objectives",
    "path_of_a_fold": "cv.estimate.support_path",
    "path_of_a_split": "cv.splits.support_path",
    "promising_columns": "solvers.supports.path.promising_columns",
    "prove_a_cell": "cv.prove_cells.CellProver._prove_cell",
    "prove_cells": "cv.prove_cells.CellProver.prove",
    "prove_sizes": "cv.prove_sizes.SizesProver.prove",
    "relaxation_of_a_fold": "cv.fold_proofs.perspective_relaxation",
    "rows_left": "design.fold_data.RowFolds.without",
    "run_search": "solvers.branching.search.Search.run",
    "search_of_a_fold": "cv.fold_proofs.searched",
    "search_model": "cv.fold_proofs.Prover.search_model",
    "solved_by_cones": "solvers.backends.conic.solved",
    # intervals, margins and models
    "bracket": "cv.ledger.Ledger.bracket",
    "fitted_outside": "selection.nested._fitted",
    "models_at_gamma": "selection.result.models_at_gamma",
    "models_by_size": "selection.result.models_by_size",
    "prove": "cv.engine.Surface.prove",
    "prove_model": "cv.engine.Surface.prove_model",
    "prove_rest": "cv.engine.Surface.prove_rest",
    "support_margin": "solvers.core.error_margin.support_margin",
    "visit": "cv.engine.Surface.visit",
    # files, lines and packages
    "alternatives_of_the_command": "cli.cv.alternatives_of_sizes",
    "clock_now": "clock.CLOCK.now",
    "compiles": "clock.CLOCK.compiles",
    "display": "report.progress._display",
    "find_package": "solvers.backends.optional_dependencies.find_spec",
    "save_a_figure": "plots.curves.save",
    "save_a_path": "plots.size_path.save",
    "save_checkpoint": "cv.checkpoint.Checkpoint.save",
    "save_kernel": "solvers.kernels.compiled.KernelCache.save_overload",
    "split_unit": "cv.splits.split_unit",
    "show_steps": "report.progress.Steps.__call__",
    "version_of_checkpoints": "cv.checkpoint.__version__",
    "warn_of_marks": "tables.marks.warn_caller",
}
# Packages that a test takes to be missing.
PACKAGES = {"dask_dataframe": "dask.dataframe", "matplotlib": "matplotlib"}
StandIn = Callable[..., None]


@contextmanager
def standing_in(**new: Any) -> Iterator[None]:
    """Within the block, each of the named parts of the package is another one."""
    with ExitStack() as stack:
        for name, part in new.items():
            if name in PACKAGES:
                stack.enter_context(mock.patch.dict(sys.modules, {PACKAGES[name]: part}))
            else:
                stack.enter_context(mock.patch(f"sparsecv.{TARGETS[name]}", part))
        yield


def until_closed(stack: ExitStack) -> StandIn:
    """What puts named parts in place until a stack of contexts is closed."""

    def stand_in(**new: Any) -> None:
        stack.enter_context(standing_in(**new))

    return stand_in


def real(name: str) -> Any:
    """The part of the package that stands at a name now."""
    return resolve_name(f"sparsecv.{TARGETS[name]}")
