"""Selection of hyperparameters that generalise: stability-regularised, nested cross-validation."""

from ..selection.learner import SparseRidgeLearner, largest_tau
from ..selection.partial_errors import criterion, partial_errors, select
from .estimator import StabilityCV
from .learners import EstimatorLearner, cart, svm, xgboost

__all__ = [
    "EstimatorLearner",
    "SparseRidgeLearner",
    "StabilityCV",
    "cart",
    "criterion",
    "largest_tau",
    "partial_errors",
    "select",
    "svm",
    "xgboost",
]
