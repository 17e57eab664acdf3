"""Errors of models that leave out folds: Algorithm 1 of the stability paper, for any learner.

The package adds the rule stability and ``StabilityCV``. Without it every other rule chooses as
before.
"""

from .algorithm import criterion, select
from .fold_losses import partial_errors
from .sparse_ridge import SparseRidgeLearner, largest_tau

__all__ = ["SparseRidgeLearner", "criterion", "largest_tau", "partial_errors", "select"]
