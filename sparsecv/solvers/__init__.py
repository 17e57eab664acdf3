"""Exact solvers of one training problem: best-subset ridge regression at fixed (γ, τ).

Nothing here knows of folds or cross-validation.
"""

from ..errors import SolverUnavailable
from . import backends  # noqa: F401  # The package registers its solvers.
from .api import available_backends, register_backend
from .branching.single import branch_and_bound
from .branching.size_sweep import solve_sizes
from .core.problem import SparseRidgeProblem
from .core.result import Answer, Status
from .leaps.all_sizes import best_subsets
from .leaps.deleted_rows import best_subsets_rows_deleted
from .leaps.gamma_range import supports_along_gamma
from .paths import support_path
from .relaxation.ellipsoid import ellipsoid
from .relaxation.perspective import perspective_relaxation, relaxation_path, screen
from .ridge_fits import SupportPath
from .solution import Solution, solve
from .supports.path import heuristic_support

__all__ = [
    "Answer",
    "Solution",
    "SolverUnavailable",
    "SparseRidgeProblem",
    "Status",
    "SupportPath",
    "available_backends",
    "best_subsets",
    "best_subsets_rows_deleted",
    "branch_and_bound",
    "ellipsoid",
    "heuristic_support",
    "perspective_relaxation",
    "register_backend",
    "relaxation_path",
    "screen",
    "solve",
    "solve_sizes",
    "support_path",
    "supports_along_gamma",
]
