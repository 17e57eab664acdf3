"""Estimates of the risk (expected loss on new data) of any learner, and bounds on their errors.

The package adds theorems as functions. Without it a fit has the same model and the same error to
expect on new data, and no bound on how far that error may be off.
"""

from .candidates import development_set, nested_cv
from .deviations import (
    corrected_deviation,
    corrected_k_fold_deviation,
    cv_deviation,
    development_set_bound,
    k_fold_deviation,
    k_fold_lower_bound,
    leave_p_out_deviation,
    ridge_stability,
    selection_excess,
    stability_bound,
    training_error_bound,
)
from .estimates import corrected_k_fold, k_fold, leave_one_out, leave_p_out, repeated_k_fold

__all__ = [
    "corrected_deviation",
    "corrected_k_fold",
    "corrected_k_fold_deviation",
    "cv_deviation",
    "development_set",
    "development_set_bound",
    "k_fold",
    "k_fold_deviation",
    "k_fold_lower_bound",
    "leave_one_out",
    "leave_p_out",
    "leave_p_out_deviation",
    "nested_cv",
    "repeated_k_fold",
    "ridge_stability",
    "selection_excess",
    "stability_bound",
    "training_error_bound",
]
