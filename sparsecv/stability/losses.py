"""Losses per row, and which output of a learner they look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Array = NDArray[np.float64]
TINY = 1e-15  # probabilities are kept this far from 0 in the logarithm


@dataclass(frozen=True)
class Loss:
    """ℓ(y, ŷ) of every row.

    Attributes
    ----------
    name : str
    output : str
        "predict", "decision_function" or "predict_proba": what ŷ is.
    of : callable
        (y, ŷ, classes) → losses, shape (n,); ``classes`` is None for regressors.
    """

    name: str
    output: str
    of: Callable[[Any, Any, Any], Array]

    def __call__(self, estimator: Any, X: Any, y: Any) -> Array:
        """Losses of a fitted estimator on rows."""
        if not hasattr(estimator, self.output):
            raise InputError(f"loss {self.name} needs an estimator with {self.output}")
        predicted = getattr(estimator, self.output)(X)
        values = np.asarray(self.of(y, predicted, getattr(estimator, "classes_", None)))
        if values.shape != (len(y),):
            raise InputError(
                f"loss {self.name} must give one number per row; got shape {values.shape}"
            )
        losses = values.astype(np.float64)
        if not np.isfinite(losses).all():
            raise InputError(f"loss {self.name} is not finite: the model's predictions overflow")
        return losses


def _squared(y: Any, predicted: Any, classes: Any) -> Array:
    return np.asarray((np.asarray(y, dtype=np.float64) - predicted) ** 2)


def _absolute(y: Any, predicted: Any, classes: Any) -> Array:
    difference: Array = np.asarray(y, dtype=np.float64) - np.asarray(predicted, dtype=np.float64)
    return np.abs(difference)


def _zero_one(y: Any, predicted: Any, classes: Any) -> Array:
    wrong: Array = (np.asarray(y) != np.asarray(predicted)).astype(np.float64)
    return wrong


def _hinge(y: Any, score: Any, classes: Any) -> Array:
    if classes is None or len(classes) != 2 or np.ndim(score) != 1:
        raise InputError("loss hinge needs two classes and a decision_function")
    sign = np.where(np.asarray(y) == classes[1], 1.0, -1.0)
    return np.asarray(np.maximum(0.0, 1.0 - sign * np.asarray(score)))


def _log(y: Any, probability: Any, classes: Any) -> Array:
    if classes is None:
        raise InputError("loss log needs a classifier with predict_proba")
    probability = np.clip(np.asarray(probability), TINY, 1.0)
    found = np.full(len(y), TINY)
    for c, label in enumerate(classes):  # a class the training rows did not have keeps TINY
        here = np.asarray(y) == label
        found[here] = probability[here, c]
    return np.asarray(-np.log(found))


LOSSES = {
    "squared": Loss("squared", "predict", _squared),
    "absolute": Loss("absolute", "predict", _absolute),
    "zero-one": Loss("zero-one", "predict", _zero_one),
    "hinge": Loss("hinge", "decision_function", _hinge),
    "log": Loss("log", "predict_proba", _log),
}


def checked_loss(loss: str | Callable[[Any, Any], Any]) -> Loss:
    """The loss a name or a function (y, ŷ) → losses stands for.

    Parameters
    ----------
    loss : str or callable

    Returns
    -------
    Loss

    Raises
    ------
    InputError
        An unknown name.

    Examples
    --------
    >>> from sparsecv.stability import checked_loss
    >>> checked_loss("squared").name
    'squared'
    """
    if callable(loss):
        function = loss
        name = getattr(loss, "__name__", "of yours")
        return Loss(name, "predict", lambda y, predicted, _: np.asarray(function(y, predicted)))
    if loss not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)} or a function; got {loss!r}")
    return LOSSES[loss]
