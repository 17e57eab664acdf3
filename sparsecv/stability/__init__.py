"""Selection of hyperparameters that generalise: stability-regularised, nested cross-validation."""

from ..selection.criterion import criterion, select
from ..selection.learner import SparseRidgeLearner, largest_tau
from ..selection.partial_errors import partial_errors
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
