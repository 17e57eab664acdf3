"""Estimators of scikit-learn: sparse ridge at given (τ, γ), or with both chosen by exact CV."""

from .sparse_ridge import SparseRidge
from .sparse_ridge_cv import SparseRidgeCV

__all__ = ["SparseRidge", "SparseRidgeCV"]
