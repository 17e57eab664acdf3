"""Exact cross-validation of best-subset ridge regression.

The estimators are loaded on first use, so that the command line starts without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .estimators import SparseRidge, SparseRidgeCV
    from .stability import StabilityCV

__all__ = ["SparseRidge", "SparseRidgeCV", "StabilityCV", "__version__"]


def __getattr__(name: str) -> Any:
    if name in ("SparseRidge", "SparseRidgeCV"):
        from . import estimators

        return getattr(estimators, name)
    if name == "StabilityCV":
        from .stability import StabilityCV

        return StabilityCV
    raise AttributeError(f"module 'sparsecv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
