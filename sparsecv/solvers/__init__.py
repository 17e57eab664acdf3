"""Exact solvers of one training problem: best-subset ridge regression at fixed (γ, τ).

Nothing here knows of folds or cross-validation.
"""

from .api import available_backends, checked_backend, register_backend, solve
from .branching.certificate import Certificate, certify
from .branching.enumeration import few_supports
from .branching.families import JointResult, Neighbour, settle, solve_jointly
from .branching.left_out import LeftOut
from .branching.single import branch_and_bound
from .branching.sizes import solve_sizes
from .executor import on_client, run_units, workers
from .fitted import SupportPath, fit_supports, known_path
from .leaps.all_sizes import MAX_COLUMNS, TREE_ONLY, BestSubsets, best_subsets, pad_support
from .leaps.deleted_rows import DeletedRowSubsets, best_subsets_rows_deleted, deleted_fits
from .leaps.open_nodes import OpenNode, prediction_ranges
from .limits import Limits, StopFlag
from .outside.benders import outer_approximation
from .outside.conic import solve_conic
from .outside.extras import SolverUnavailable
from .paths import support_path
from .problem import SparseRidgeProblem, SubsetFit, gram_root
from .relaxation.ellipsoid import Ellipsoid, Spectrum, centre_bound, ellipsoid, node_bounds
from .relaxation.gram import GramForm, wants_gram
from .relaxation.perspective import Relaxation, perspective_relaxation, relaxation_path
from .relaxation.screening import Screening, screen
from .result import Solution, Status, relative_gap, worst
from .supports.beam import heuristic_support

__all__ = [
    "MAX_COLUMNS",
    "TREE_ONLY",
    "BestSubsets",
    "Certificate",
    "DeletedRowSubsets",
    "Ellipsoid",
    "GramForm",
    "JointResult",
    "LeftOut",
    "Limits",
    "Neighbour",
    "OpenNode",
    "Relaxation",
    "Screening",
    "Solution",
    "SolverUnavailable",
    "SparseRidgeProblem",
    "Spectrum",
    "Status",
    "StopFlag",
    "SubsetFit",
    "SupportPath",
    "available_backends",
    "best_subsets",
    "best_subsets_rows_deleted",
    "branch_and_bound",
    "centre_bound",
    "certify",
    "checked_backend",
    "deleted_fits",
    "ellipsoid",
    "few_supports",
    "fit_supports",
    "gram_root",
    "heuristic_support",
    "known_path",
    "node_bounds",
    "on_client",
    "outer_approximation",
    "pad_support",
    "perspective_relaxation",
    "prediction_ranges",
    "register_backend",
    "relative_gap",
    "relaxation_path",
    "run_units",
    "screen",
    "settle",
    "solve",
    "solve_conic",
    "solve_jointly",
    "solve_sizes",
    "support_path",
    "wants_gram",
    "workers",
    "worst",
]
