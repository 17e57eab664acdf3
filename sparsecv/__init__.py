"""Exact cross-validation of best-subset ridge regression.

The estimators are loaded on first use, so that the command line starts without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .cv import bounds
    from .estimators import SparseRidge, SparseRidgeCV
    from .estimators.sparse_ridge import load
    from .estimators.stability_cv import StabilityCV
    from .solvers.core.column_rules import Constraints

__all__ = [
    "Constraints",
    "SparseRidge",
    "SparseRidgeCV",
    "StabilityCV",
    "__version__",
    "bounds",
    "load",
]

_HOMES = {
    "Constraints": ("solvers.core.column_rules", "Constraints"),
    "SparseRidge": ("estimators", "SparseRidge"),
    "SparseRidgeCV": ("estimators", "SparseRidgeCV"),
    "StabilityCV": ("estimators.stability_cv", "StabilityCV"),
    "bounds": ("cv.bounds", ""),
    "load": ("estimators.sparse_ridge", "load"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sparsecv' has no attribute {name!r}")
    home, inside = _HOMES[name]
    module = import_module(f".{home}", __name__)
    return getattr(module, inside) if inside else module


def __dir__() -> list[str]:
    return sorted(__all__)
