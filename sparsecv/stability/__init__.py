"""Selection of hyperparameters that generalise: stability-regularised, nested cross-validation."""

from ..selection.learner import SparseRidgeLearner, largest_tau
from ..selection.partial_errors import criterion, partial_errors, select
from .estimator import StabilityCV
from .learners import EstimatorLearner
from .recipes import recipe

__all__ = [
    "EstimatorLearner",
    "SparseRidgeLearner",
    "StabilityCV",
    "criterion",
    "largest_tau",
    "partial_errors",
    "recipe",
    "select",
]
