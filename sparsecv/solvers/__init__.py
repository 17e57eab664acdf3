"""Exact solvers of one training problem: best-subset ridge regression at fixed (γ, τ).

Nothing here knows of folds or cross-validation.
"""

from .all_sizes import MAX_COLUMNS, BestSubsets, best_subsets
from .backends import available_backends, checked_backend, register_backend, solve
from .benders import outer_approximation
from .branch_and_bound import branch_and_bound
from .certificate import Certificate, certify
from .conic import conic_relaxation, export_mosek, solve_conic
from .ellipsoid import Ellipsoid, Spectrum, centre_bound, ellipsoid, node_bounds
from .enumeration import best_by_enumeration, few_supports
from .extras import SolverUnavailable
from .gamma_path import gamma_path
from .heuristics import heuristic_support
from .joint import JointResult, Neighbour, settle, solve_jointly
from .left_out import LeftOut
from .limits import Limits, StopFlag
from .open_nodes import OpenNode, prediction_ranges
from .perspective import Relaxation, dual_bounds, perspective_relaxation, relaxation_path
from .problem import SparseRidgeProblem, SubsetFit, gram_root
from .root import GramForm, wants_gram
from .row_deletion import DeletedRowSubsets, best_subsets_rows_deleted, deleted_fits
from .screening import Screening, screen
from .sizes import TREE_ONLY, certificates_of, solve_sizes
from .solution import Solution, Status, relative_gap, worst
from .support_path import heuristic_path

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
    "available_backends",
    "best_by_enumeration",
    "best_subsets",
    "best_subsets_rows_deleted",
    "branch_and_bound",
    "centre_bound",
    "certificates_of",
    "certify",
    "checked_backend",
    "conic_relaxation",
    "deleted_fits",
    "dual_bounds",
    "ellipsoid",
    "export_mosek",
    "few_supports",
    "gamma_path",
    "gram_root",
    "heuristic_path",
    "heuristic_support",
    "node_bounds",
    "outer_approximation",
    "perspective_relaxation",
    "prediction_ranges",
    "register_backend",
    "relative_gap",
    "relaxation_path",
    "screen",
    "settle",
    "solve",
    "solve_conic",
    "solve_jointly",
    "solve_sizes",
    "wants_gram",
    "worst",
]
