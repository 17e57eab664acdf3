"""Losses of every row, and the output of an estimator that a loss takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ..errors import InputError

Array = NDArray[np.float64]
# The loss "log" raises every probability to at least this number, so that a label of probability 0
# has the loss −log 1e-15 = 34.5. A label that the training rows lack has this probability, too. The
# number is a choice.
MIN_PROBABILITY = 1e-15


@dataclass(frozen=True)
class Loss:
    """A loss ℓ(y, ŷ) of every row.

    name: The loss in messages.
    output: The method of an estimator that gives ŷ: "predict", "decision_function" or
        "predict_proba".
    of: A function (y, ŷ, classes) → losses, shape (n,); ``classes`` is None for regressors.
    """

    name: str
    output: str
    of: Callable[[Any, Any, Any], Any]

    def __call__(self, estimator: Any, X: Any, y: Any) -> Array:
        """Losses (n,) of a fitted estimator on n rows X with responses y.

        Raises InputError: The estimator lacks the method :attr:`output`, or the losses are not one
            finite number for each row.
        """
        if not hasattr(estimator, self.output):
            raise InputError(f"loss {self.name} needs an estimator with {self.output}")
        predicted = getattr(estimator, self.output)(X)
        losses = np.asarray(self.of(y, predicted, getattr(estimator, "classes_", None)))
        if losses.shape != (len(y),):
            raise InputError(
                f"loss {self.name} must give one number per row; got shape {losses.shape}"
            )
        losses = losses.astype(np.float64)
        if not np.isfinite(losses).all():
            raise InputError(f"loss {self.name} is not finite: the model's predictions overflow")
        return losses


def _difference(y: Any, predicted: Any) -> Array:
    """Responses less predictions, as 64-bit numbers."""
    return np.asarray(np.asarray(y, dtype=np.float64) - np.asarray(predicted, dtype=np.float64))


def _hinge(y: Any, score: Any, classes: Any) -> Array:
    """max(0, 1 − s·score), where s is 1 for the second of two classes and −1 for the first."""
    if classes is None or len(classes) != 2 or np.ndim(score) != 1:
        raise InputError("loss hinge needs two classes and a decision_function")
    sign = np.where(np.asarray(y) == classes[1], 1.0, -1.0)
    return np.asarray(np.maximum(0.0, 1.0 - sign * np.asarray(score)))


def _log(y: Any, probability: Any, classes: Any) -> Array:
    """−log of the probability of the row's class, shape (n,).

    probability, shape (n, c): The probabilities of all classes.
    classes, shape (c,): The classes of the training rows. The class of a row may be none of them,
        and then has the probability MIN_PROBABILITY.
    """
    if classes is None:
        raise InputError("loss log needs a classifier with predict_proba")
    probability = np.clip(np.asarray(probability), MIN_PROBABILITY, 1.0)
    found = np.full(len(y), MIN_PROBABILITY)  # The training rows may lack a class.
    for c, label in enumerate(classes):
        here = np.asarray(y) == label
        found[here] = probability[here, c]
    return np.asarray(-np.log(found))


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("squared", "predict", lambda y, predicted, _: _difference(y, predicted) ** 2),
        Loss("absolute", "predict", lambda y, predicted, _: np.abs(_difference(y, predicted))),
        Loss("zero-one", "predict", lambda y, predicted, _: np.not_equal(y, predicted)),
        Loss("hinge", "decision_function", _hinge),
        Loss("log", "predict_proba", _log),
    )
}


def checked_loss(loss: str | Callable[[Any, Any], Any], estimator: Any = None) -> Loss:
    """The loss that a name or a function of the user's stands for.

    loss: A name of LOSSES; "auto", which is "zero-one" for a classifier and else "squared"; or a
        function of the responses and the predictions of some rows, which returns a loss for each.
    estimator: The estimator whose predictions have the loss.
    Raises InputError: An unknown name.
    """
    if callable(loss):
        name, function = getattr(loss, "__name__", "of yours"), loss
        return Loss(name, "predict", lambda y, predicted, _: function(y, predicted))
    if loss == "auto":
        loss = "zero-one" if is_classifier(estimator) else "squared"
    if loss not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)} or a function; got {loss!r}")
    return LOSSES[loss]
