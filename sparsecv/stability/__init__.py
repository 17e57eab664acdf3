"""Selection of hyperparameters that generalise: stability-regularised, nested cross-validation."""

from ..selection.criterion import Selection, criterion, select
from ..selection.learner import SparseRidgeLearner, largest_tau
from ..selection.partial_errors import PartialErrors, partial_errors
from .coordinate import Adaptive, Grid, descend
from .estimator import StabilityCV
from .learners import EstimatorLearner, Recipe, cart, svm, xgboost
from .losses import LOSSES, Loss, checked_loss

__all__ = [
    "LOSSES",
    "Adaptive",
    "EstimatorLearner",
    "Grid",
    "Loss",
    "PartialErrors",
    "Recipe",
    "Selection",
    "SparseRidgeLearner",
    "StabilityCV",
    "cart",
    "checked_loss",
    "criterion",
    "descend",
    "largest_tau",
    "partial_errors",
    "select",
    "svm",
    "xgboost",
]
