"""Any scikit-learn estimator as a learner, with its folds and its weights of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from ..design.folds import Folds, check_groups, make_folds
from ..errors import InputError
from .fold_losses import Array, Index
from .losses import Loss


class EstimatorLearner:
    """Losses of clones of an estimator with the hyperparameters of every candidate.

    Parameters
    ----------
    estimator : scikit-learn estimator
    candidates : sequence of dict
        Hyperparameters of every candidate.
    X, y : array-like
        All rows.
    loss : Loss
        The loss of every row.
    fit_params : dict, optional
        Handed to ``fit``; parameters with one value per row are cut to the rows fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.stability.learners import EstimatorLearner
    >>> from sparsecv.stability.losses import checked_loss
    >>> X, y = np.eye(4), np.arange(4.0)
    >>> candidates = [{"alpha": 0.1}, {"alpha": 1.0}]
    >>> learner = EstimatorLearner(Ridge(), candidates, X, y, checked_loss("squared"))
    >>> learner(np.array([0, 1, 2]), [0, 1]).shape  # candidates, all rows
    (2, 4)
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Sequence[Mapping[str, Any]],
        X: Any,
        y: Any,
        loss: Loss,
        fit_params: dict[str, Any] | None = None,
    ) -> None:
        self.estimator, self.candidates, self.X, self.y = estimator, candidates, X, y
        self.loss, self.fit_params = loss, fit_params or {}

    def _fitted(self, training: Index, params: Mapping[str, Any]) -> Any:
        """A clone with some hyperparameters, fitted to the rows at the positions ``training``."""
        model = clone(self.estimator).set_params(**params)
        rows, response = _safe_indexing(self.X, training), _safe_indexing(self.y, training)
        fit_params = _check_method_params(self.X, self.fit_params, indices=training)
        return model.fit(rows, response, **fit_params)

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """Losses (c, n); see :class:`~sparsecv.stability.fold_losses.Learner`."""
        models = (self._fitted(training, self.candidates[c]) for c in candidates)
        return np.stack([self.loss(model, self.X, self.y) for model in models])


def folds_for(estimator: Any, cv: Any, X: Any, y: Any, seed: Any, groups: Any = None) -> Folds:
    """The folds that a user asked for; K folds are stratified for a classifier.

    cv: A number K of folds, also as text, or what else ``make_folds`` takes, which stays as it is.
    X, y, shape (n, p) and (n,): The rows.
    seed: A whole number, a RandomState of NumPy or None, by which rows are shuffled into K folds;
        where folds are not stratified also a Generator.
    groups, shape (n,): The group of every row; a fold holds whole groups.
    Raises InputError: Such folds cannot be made of these rows.
    """
    n = len(y)
    if isinstance(cv, str) and cv.strip().isdecimal():
        cv = int(cv)
    by_class = is_classifier(estimator) and type_of_target(y) in ("binary", "multiclass")
    if not isinstance(cv, Integral) or not by_class:
        return make_folds(cv, n, seed=seed, X=X, y=y, groups=groups)
    if groups is not None:
        check_groups(groups, n)
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    try:
        folds = splitter(int(cv), shuffle=True, random_state=seed)
        pairs = list(folds.split(np.zeros((n, 1)), y, groups))
    except ValueError as error:  # K is below 2 or above the rows of every class; or a bad seed.
        raise InputError(" ".join(str(error).split())) from None
    return make_folds(pairs, n, groups=groups)


def weight_params(estimator: Any, weights: Array) -> dict[str, Array]:
    """The parameters of an estimator's ``fit`` that hand weights of rows to the estimator.

    weights, shape (n,): Weights of the rows. A pipeline hands them to each step that takes some.
    Raises InputError: The estimator takes no weights, and neither does a step of a pipeline.
    """
    own, routed = {"sample_weight": weights}, get_config()["enable_metadata_routing"]
    if isinstance(estimator, Pipeline) and routed:
        return own  # The pipeline hands the weights to the steps that request them.
    if isinstance(estimator, Pipeline):
        steps = [name for name, step in estimator.steps if has_fit_parameter(step, *own)]
        own = {f"{name}__sample_weight": weights for name in steps}
    elif not has_fit_parameter(estimator, "sample_weight"):
        own = {}
    if not own:
        raise InputError(f"{type(estimator).__name__} takes no weights of rows (sample_weight)")
    return own
