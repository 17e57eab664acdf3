"""What both estimators share: input checks, units, prediction."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..design.design import Array, Design, Protocol, Summary, make_design
from ..design.model import FittedModel
from ..design.saved import SavedModel
from ..errors import InputError
from .validation import checked_weights, frame_names, refuse_bad_columns

if TYPE_CHECKING:
    from typing_extensions import Self


class CheckedRows(NamedTuple):
    """What was passed to ``fit``, checked, and how columns are centred and scaled."""

    X: Array
    y: Array
    weights: Array | None
    groups: NDArray[Any] | None
    design: Design


class SparseLinearModel(SelectorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: input checks, units, prediction, selection, files.

    ``get_support``, ``transform`` and ``get_feature_names_out`` are those of a feature selector:
    the columns of the support, whatever the size of their coefficients.
    """

    coef_: Array
    intercept_: float
    fit_intercept: bool
    standardize: bool
    gamma: float
    tau_: int
    status_: str

    def predict(self, X: ArrayLike) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like, shape (n, p)

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        InputError
            A frame whose columns have other names, or another order, than the one fitted to.
        """
        check_is_fitted(self)
        given, fitted = frame_names(X), getattr(self, "feature_names_in_", None)
        with warnings.catch_warnings():
            if given is not None and fitted is not None:
                # older scikit-learn cannot read the names of every frame library
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            values = validate_data(self, X, reset=False, dtype=np.float64)
        if given is not None and fitted is not None and given != list(fitted):
            raise InputError("the feature names should match those passed to fit, in their order")
        return np.asarray(values @ self.coef_ + self.intercept_)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model as plain JSON, which ``sparsecv predict`` also reads.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        InputError
            The file cannot be written.
        NotFittedError
            There is no model yet.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        features = [f"x{j}" for j in range(self.coef_.size)] if names is None else map(str, names)
        proof = self.objective_, self.lower_bound_, self.status_ == "optimal"
        model = FittedModel(self.support_, self.coef_, self.intercept_, *proof)
        tau, gamma = self.tau_, self.gamma_ if hasattr(self, "gamma_") else self.gamma
        kept = SavedModel.of(model, list(features), named=names is not None, tau=tau, gamma=gamma)
        kept.write(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model that :meth:`save` or ``sparsecv cv --save`` has written.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        estimator
            Fitted: it predicts and selects; how it was found is not in the file.

        Raises
        ------
        InputError
            The file cannot be read, is no model, or is damaged.
        """
        saved = SavedModel.read(path)
        model = cls()
        model._keep(saved.fitted())
        model.n_features_in_ = len(saved.features)
        if saved.named:
            model.feature_names_in_ = np.array(saved.features, dtype=object)
        model.status_ = "optimal" if saved.proved else "not proved"
        model.tau_ = len(saved.support) if saved.tau is None else saved.tau
        model.gamma_ = np.nan if saved.gamma is None else saved.gamma
        return model

    def _checked_rows(self, X: Any, y: Any, weights: Any, groups: Any = None) -> CheckedRows:
        """Check what was passed to ``fit``; rows come back as float64."""
        refuse_bad_columns(X)
        given = frame_names(X)
        if getattr(np.asarray(y), "dtype", np.dtype(float)).kind in "mM":
            raise InputError("y holds dates: it must be numeric")
        checks = {"y_numeric": True, "ensure_min_samples": 2, "ensure_all_finite": False}
        X, y = validate_data(self, X, y, dtype=np.float64, **checks)
        y = y.astype(np.float64)
        if given is not None and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(given, dtype=object)
        names = getattr(self, "feature_names_in_", None)
        labels = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(s) for s in names]
        for j in np.flatnonzero(~np.isfinite(X).all(axis=0)):
            found = f"{_not_finite(X[:, j])} in column {labels[j]!r}"
            raise InputError(f"Input X contains {found}: drop or impute those rows")
        if not np.isfinite(y).all():
            raise InputError(f"Input y contains {_not_finite(y)}: drop those rows")
        weights = checked_weights(weights, y.size)
        groups = None if groups is None else np.asarray(groups)
        if groups is not None and groups.shape != y.shape:
            raise InputError(f"groups needs one entry per row ({y.size}); got shape {groups.shape}")
        design = make_design(Summary.of(X, y, weights), self._protocol(), labels)
        return CheckedRows(X, y, weights, groups, design)

    def _protocol(self) -> Protocol:
        scale = "unit-variance" if self.standardize else "none"
        return Protocol("honest", scale, bool(self.fit_intercept))

    def _keep(self, model: FittedModel) -> None:
        self.coef_, self.intercept_, self.support_ = model.coef, model.intercept, model.support
        self.objective_, self.lower_bound_ = model.objective, model.lower_bound
        self.gap_ = model.gap


def _not_finite(values: Array) -> str:
    """What a column holds that is not finite, in words."""
    return "NaN" if np.isnan(values).any() else "inf"
