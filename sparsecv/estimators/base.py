"""What both estimators do with tables: checks before a fit, predictions, and columns selected."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from ..design.design import Array, Protocol
from ..design.fold_models import FoldModels, checked_coverage
from ..design.folds import check_groups
from ..design.missing import filled
from ..design.model import Model
from ..design.prepare import ALL_ROWS, Prepared, prepare
from ..design.saved import SavedModel
from ..errors import InputError
from ..report.progress import telling
from ..selection.result import Result
from ..solvers.core.column_rules import Constraints, ResolvedRules
from ..tables.coding import Coding
from ..tables.frames import (
    check_names_match,
    coding_of,
    encoded_frame,
    frame_names,
    na_as_nan,
    numbers_as_names,
    response_name,
)
from ..tables.table import Table
from .validation import as_dense, checked_offset, checked_weights, refuse_text_response


class SparseLinearModel(SelectorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: checks of tables, units, prediction, selection.

    ``get_support``, ``transform`` and ``get_feature_names_out`` are those of a feature selector:
    the columns of the support, whatever the size of their coefficients. Classes below add what a
    fit tells (``answers.py``), how it is shown (``views.py``), and files (``files.py``).

    A frame with columns of text or categories is coded: each of them becomes 0/1 columns, and
    ``coef_`` counts the columns of numbers that result.
    """

    coef_: Array
    intercept_: Any
    fit_intercept: bool
    standardize: bool
    gamma: float | None
    tau_: int
    constraints: Constraints | None
    missing: str | None
    time_limit: Any
    n_jobs: int | None
    unknown: str
    _coding_: Coding | None = None  # How text columns became columns of numbers.
    coef_names_: NDArray[Any]
    levels_: dict[str, list[str]]
    _saved_: SavedModel | None = None  # The content of the file that the model was read from.
    _offset_: str | None = None  # The name of what was taken off y; None where nothing was.
    _counts_: str = "features"  # What a size counts, as a saved model says it.
    _fills_: Array | None = None  # What missing values of X are filled with, shape (p,).
    status_: Any
    _run_: Result  # The fit with its rows, where it was neither read from a file nor a pickle.
    # The standard deviations of the columns, shape (p,), and of the response.
    _spreads_: tuple[Array, float] | None = None

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Rows with the columns passed to ``fit``. A frame may hold text columns where the one
            fitted to did; the same holds for a model that was read from a file. A sparse matrix or
            array of scipy is made dense, up to 1.5 GB.
        offset : array-like, shape (n,), optional
            What is added to the predictions: the offsets of these rows, where the model was fitted
            with offsets.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        InputError
            A frame has columns of other names, or in another order, than the one fitted to, or a
            text that is none of its column's levels, unless ``unknown="zero"``. Or ``offset`` is
            missing though the model was fitted with one, or is given though it was not.
        ValueError
            X has another number of columns, or NaN although ``missing`` is None, or infinite values
            (scikit-learn's words; an InputError is a ValueError, too).
        NotFittedError
            There is no model yet.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
        >>> SparseRidge(tau=1, gamma=0.0).fit(X, 2.0 * X[:, 0]).predict([[5.0, 0.0]]).round(6)
        array([10.])
        """
        columns = self._checked_columns(X)
        own = columns @ self.coef_ + self.intercept_
        return np.asarray(own + self._added(offset, columns))

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return R² of the predictions, as scikit-learn's regressors do.

        Parameters
        ----------
        X, y : array-like, shape (n, p) and (n,)
        sample_weight : array-like, shape (n,), optional
            Weights of the squared errors.
        offset : array-like, shape (n,), optional
            The offsets of the rows, as :meth:`predict` takes them; y is the whole response, its
            offset included.

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the mean of y; there is no lower limit.

        Raises
        ------
        InputError, ValueError, NotFittedError
            Those of :meth:`predict`.
        """
        return float(r2_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def _added(self, offset: Any, columns: Any) -> Any:
        """What is added to the predictions of n rows, shape (n,), or 0.

        offset: The argument of :meth:`predict`.
        columns: The rows that are predicted, shape (n, p), of which only the number n is used.
        Raises InputError: There is an offset and the model has none, or the other way round; or the
            offsets are not n finite numbers.
        """
        if self._offset_ is None:
            if offset is not None:
                raise InputError("the model was fitted without an offset: leave offset out")
            return 0.0
        if offset is None:
            raise InputError(
                f"the model was fitted to y less an offset ({self._offset_}): pass "
                "predict(X, offset=...), or zeros to predict y less the offset"
            )
        return checked_offset(offset, len(columns))

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.9, offset: ArrayLike | None = None
    ) -> Array:
        """Prediction intervals from held-out residuals: jackknife+, or CV+ with K folds.

        Every held-out row gives the prediction of the model that has not seen it, plus and minus
        the absolute value of its residual; the interval's ends are quantiles of these (Barber,
        Candès, Ramdas and Tibshirani 2021). The models of the folds are those of the chosen pair
        (γ, τ), each with the columns that its own training rows gave. Where the model is the
        projection of an average of models on few columns, as with the default rule, the model of a
        fold is the projection of the average that its training rows gave. The first call makes
        all these models, even once ``time_limit`` is over; searches in them then end at once.

        With leave-one-out, new responses lie in the interval with probability at least
        2·coverage − 1, and in practice about ``coverage``; with K folds of n rows the guarantee is
        lower by at most √(2/n). It holds for any distribution if old and new rows are exchangeable
        (no time order, no groups that only the old rows have), on average over tables and new rows,
        not for each X. It does not cover that (γ, τ) and the scaling of columns were chosen on the
        same rows: with few rows and many candidates the intervals are somewhat too short. Measured
        coverage: ``experiments/results/interval_coverage.txt``.

        Parameters
        ----------
        X : array-like, shape (r, p)
        coverage : float
            Between 0 and 1. With fewer than 1/(1 − coverage) − 1 rows the ends are infinite.
        offset : array-like, shape (r,), optional
            The offsets of these rows, as :meth:`predict` takes them.

        Returns
        -------
        ndarray, shape (r, 2)
            Lower and upper ends, in the units of y.

        Raises
        ------
        InputError
            The folds do not hold out every row once, rows have weights, the rows are not
            in memory, or ``coverage`` is no such number; or the model is a :class:`SparseRidge`,
            which has no folds, unless it was read from a file that keeps intervals. Or X or
            ``offset`` is refused as :meth:`predict` refuses it.
        AttributeError
            The model comes from a pickle that was made before intervals were asked for.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((60, 4))
        >>> y = X[:, 0] + 0.1 * X[:, 3] ** 2
        >>> model = SparseRidgeCV(cv="loo").fit(X, y)
        >>> model.predict_interval(X[:1], coverage=0.8).shape
        (1, 2)
        """
        coverage = checked_coverage(coverage)
        models = self._intervals()
        columns = self._checked_columns(X, fill=False)
        added = np.reshape(self._added(offset, columns), (-1, 1))
        return np.asarray(models.interval(columns[:, models.columns], coverage) + added)

    def _intervals(self) -> FoldModels:
        """The models of folds from which intervals are made; here those that a file holds.

        Raises InputError: There are none.
        """
        check_is_fitted(self)
        if self._saved_ is None:
            raise InputError("prediction intervals need folds: use SparseRidgeCV")
        kept = self._saved_.intervals
        if kept is None:
            raise InputError(
                "the file of this model keeps nothing for intervals: write it by sparsecv cv "
                "--save, or by save(path, intervals=True) of the fitted SparseRidgeCV"
            )
        return kept

    def _checked_columns(self, X: ArrayLike, fill: bool = True) -> Any:
        """Rows to predict, checked and dense, with the columns that ``coef_`` counts, shape (n, p).

        X: A table as :meth:`predict` takes it. Of a frame, a model from a file that has levels,
            fills or codes of missing values reads the columns that predictions and intervals need;
            all other columns of the result are 0.
        fill: Whether missing values are filled, where they may be missing; else they are NaN.
        Raises InputError, or a ValueError of scikit-learn: The table is not as the one fitted to.
        """
        check_is_fitted(self)
        given, fitted = frame_names(X), getattr(self, "feature_names_in_", None)
        saved, fills = self._saved_, self._fills_
        if given is not None and saved is not None and (saved.levels or saved.fills or saved.codes):
            # The file says how text and missing values of a frame become numbers.
            return np.asarray(saved.features_of(X, self.unknown, fill))
        if self._coding_ is not None:
            values = encoded_frame(self._coding_, X, fills is not None, self.unknown)
            return filled(values, fills, "K") if fill and fills is not None else values
        with warnings.catch_warnings():
            if given is not None and fitted is not None:
                # Older scikit-learn cannot read the names of every frame library. They are checked
                # below.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            finite = True if fills is None else "allow-nan"
            checks = {"dtype": np.float64, "ensure_all_finite": finite, "accept_sparse": True}
            try:
                known = na_as_nan(X)
                if saved is not None and saved.codes and not issparse(known):
                    known = np.where(np.isin(known, saved.codes), np.nan, known)
                values = validate_data(self, known, reset=False, **checks)
            except ValueError:
                if given is not None:  # Text and infinite values get an error that names the cells.
                    encoded_frame(Coding(given), X, missing_allowed=True, unknown="error")
                raise
        if issparse(values):
            values = as_dense(values, "pass fewer rows at a time")
        if given is not None and fitted is not None:
            check_names_match(given, list(fitted))
        return filled(values, fills, "K") if fill and fills is not None else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        tags.input_tags.sparse = True
        return tags

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.coef_.size, dtype=bool)
        mask[self.support_] = True
        return mask

    def transform(self, X: ArrayLike) -> Any:
        """Return the columns of the support; of text columns these are 0/1 columns.

        Parameters
        ----------
        X : array-like, shape (n, p)

        Returns
        -------
        array or frame, shape (n, number of columns)
            A frame where ``set_output`` asks for one. NaN of a table of numbers alone stays, and
            next to text columns it is filled as :meth:`predict` fills it.

        Raises
        ------
        InputError, ValueError, NotFittedError
            Those of :meth:`predict`, apart from the offset. Where ``missing`` is given, infinite
            values of a table of numbers alone are not refused.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
        >>> SparseRidge(tau=1).fit(X, X[:, 1]).transform(X[:2])
        array([[0.],
               [1.]])
        """
        check_is_fitted(self)
        if not self.levels_:
            return super().transform(X)
        return self._checked_columns(X)[:, self._get_support_mask()]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the columns of the support.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns passed to ``fit``, where those had none.

        Returns
        -------
        ndarray of str
        """
        if self._coding_ is None:
            return np.asarray(super().get_feature_names_out(input_features))
        return np.asarray(self.coef_names_[self._get_support_mask()])

    def _labels(self, p: int) -> list[str]:
        """Names of the p columns of ``coef_``; x0, x1 and so on where they have none."""
        if self._coding_ is not None:
            return list(self._coding_.features)
        return [
            str(name) for name in getattr(self, "feature_names_in_", map("x{}".format, range(p)))
        ]

    def _name_columns(self, labels: Sequence[str], levels: Mapping[str, Sequence[str]]) -> None:
        """Set the attributes that name the columns of ``coef_``, and the levels of factors."""
        self.coef_names_ = np.array(labels, dtype=object)
        self.levels_ = {name: list(own) for name, own in levels.items()}

    def _prepared(
        self,
        X: Any,
        y: Any,
        weights: Any = None,
        groups: Any = None,
        cv: Any = ALL_ROWS,
        partitions: int = 1,
        offset: Any = None,
        counts: bool = True,
    ) -> Prepared:
        """What was passed to ``fit``, checked, standardised and laid out in folds.

        It sets the attributes that describe the columns, and what missing values are filled with.

        weights, groups, offset: The arguments ``sample_weight``, ``groups`` and ``offset`` of
            ``fit``.
        cv: The folds as the user asked for them; by default nothing is held out.
        partitions: The number of partitions into folds that the fit needs.
        counts: Whether the searches of the fit allow sizes that count the coefficients of a group;
            else a group counts once.
        Raises InputError, or a ValueError of scikit-learn: Something cannot be used.
        """
        source = self._source(X, y, weights, groups, offset)
        named = self._coding_ is not None or hasattr(self, "feature_names_in_")
        names = source.feature_names if named else None
        ready = prepare(
            source,
            cv,
            self._protocol(),
            seed=getattr(self, "random_state", 0),
            partitions=partitions,
            asked=self._asked(source.p, names, numbers_as_names(X), counts),
        )
        self._fills_ = ready.fills
        return ready

    def _source(self, X: Any, y: Any, weights: Any, groups: Any, offset: Any) -> Table:
        """Check what was passed to ``fit``, and set the attributes that describe the columns.

        NaN stays in X where ``missing`` says what fills it, if a column has other values, too.

        Returns: The table, with X and y as dense 64-bit numbers, the offset taken off y.
        Raises InputError, or a ValueError of scikit-learn: Something cannot be used.
        """
        if self.unknown not in ("error", "zero"):
            raise InputError(f"unknown must be 'error' or 'zero'; got {self.unknown!r}")
        if self.missing not in (None, "mean"):
            raise InputError(f"missing must be mean or None; got {self.missing!r}")
        given, coding = frame_names(X), coding_of(X, self.missing is not None)
        if coding is not None:
            X = encoded_frame(coding, X, missing_allowed=True, unknown="error")
        response, X, y = y, na_as_nan(X), na_as_nan(y)
        values = np.asarray(y)
        if values.dtype.kind in "mM":
            raise InputError("y holds dates: it must be numeric")
        if values.dtype.kind in "OUS":
            refuse_text_response(values, getattr(y, "name", None))
        if issparse(y):
            raise InputError("y must be dense: pass y.toarray()")
        if values.ndim == 2 and values.shape[1] > 1:
            raise InputError(
                f"y has {values.shape[1]} columns, and a model explains one response: fit "
                "sklearn.multioutput.MultiOutputRegressor of this estimator"
            )
        checks: dict[str, Any] = {"dtype": np.float64, "accept_sparse": True, "y_numeric": True}
        # What is not finite is refused below, in words that name the column.
        checks |= {"ensure_min_samples": 2, "ensure_all_finite": False}
        X, y = validate_data(self, X, y, **checks)
        advice = (
            "screen the columns inside the folds, by a Pipeline of SelectKBest and SparseRidge "
        )
        if issparse(X):
            X = as_dense(X, advice + "in GridSearchCV, or take a lasso")
        y = y.astype(np.float64)
        if coding is not None:
            self._coding_, self.n_features_in_ = coding, len(coding.names)
        # Older scikit-learn cannot read the names of every frame library.
        if given is not None and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(given, dtype=object)
        labels = self._labels(X.shape[1])
        self._name_columns(labels, {} if coding is None else coding.levels)
        for j in _columns_not_finite(X).tolist():
            infinite, empty = np.isinf(X[:, j]).any(), np.isnan(X[:, j]).all()
            if self.missing is not None and not infinite and not empty:
                continue  # Its missing values are filled by the mean of the others.
            mend = "drop the column" if empty else "drop or impute those rows"
            if self.missing is None and not empty and not infinite:
                mend += ", or pass missing='mean'"
            found = f"{_not_finite(X[:, j])} in column {labels[j]!r}"
            raise InputError(f"Input X contains {found}: {mend}")
        if not np.isfinite(y).all():
            raise InputError(f"Input y contains {_not_finite(y)}: drop those rows")
        if weights is not None:
            weights = checked_weights(weights, len(y))
        if groups is not None:
            check_groups(groups, len(y))
            groups = np.asarray(groups)
        own: dict[str, Any] = {"weights": weights, "groups": groups, "missing": self.missing}
        own["coding"] = Coding() if coding is None else coding
        table = Table(X, y, labels, target_name=response_name(response, labels), **own)
        if offset is not None:
            taken = [*labels, table.target_name]
            otherwise = "offset" + "_" * ("offset" in taken)
            self._offset_ = response_name(offset, taken, otherwise)
            table.take_off(checked_offset(offset, len(y)), self._offset_)
        return table

    def _asked(
        self,
        p: int,
        names: Sequence[str] | None,
        numbers: Sequence[int] | None,
        counts: bool,
    ) -> ResolvedRules | None:
        """What ``constraints`` asks of p columns of numbers; None where it asks for nothing.

        names: Names of these columns, if they have some.
        numbers: The names of the columns of the user's frame, where these are whole numbers.
        counts: Whether sizes may count the coefficients of a group; else a group counts once.
        Raises InputError: The constraints name no column, or contradict each other.
        """
        if self.constraints is None and self._coding_ is None:
            return None
        rules = Constraints() if self.constraints is None else self.constraints
        if not isinstance(rules, Constraints):
            what = "constraints must be None or sparsecv.Constraints(include=..., ...)"
            raise InputError(f"{what}; got {rules!r}")
        # The 0/1 columns of a text column enter together, whether or not the user asks for more.
        places = None if self._coding_ is None else self._coding_.places
        resolved = rules.resolve(p, names, places, numbers=numbers)
        resolved = resolved._replace(in_coefficients=resolved.in_coefficients and counts)
        return None if resolved.constraints.plain else resolved

    def _protocol(self) -> Protocol:
        """How columns are centred and scaled."""
        scale = "unit-variance" if self.standardize else "none"
        return Protocol("honest", scale, bool(self.fit_intercept))

    def _keep(self, model: Model) -> None:
        """Set the attributes of a model, but not ``gamma_``, ``status_`` and those of errors."""
        self.tau_ = model.tau
        self.coef_, self.intercept_, self.support_ = model.coef, model.intercept, model.support
        self.objective_, self.lower_bound_ = model.objective, model.lower_bound
        self.gap_ = model.gap

    def _remember(self, fit: Result) -> None:
        """Keep a fit with its rows, of which all else that users ask for is computed."""
        fit.shown.name = type(self).__name__
        self._run_ = fit
        self._spreads_ = fit.design.raw_spread, float(fit.design.spread[-1])
        self._counts_ = f"{fit.design.counts}s"

    def _forget(self) -> None:
        """Drop the attributes of the last fit, as the fit that begins may set others.

        Their names end with an underscore.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _seconds(self) -> float | None:
        """The most seconds of each computation that is asked for after the fit; None: no limit."""
        return None if self.time_limit is None else float(self.time_limit)

    def _telling(self, what: str) -> AbstractContextManager[None]:
        """A block that takes long, in which a terminal or a notebook shows what is done."""
        return telling(what, getattr(self, "verbose", None))

    def _kept_fit(self) -> Result:
        """The fit with its rows; an AttributeError where these are not there."""
        check_is_fitted(self)
        if not hasattr(self, "_run_"):
            raise AttributeError(
                "this needs the rows of the fit, which a file, a pickle and the model of another "
                "size do not hold: ask the fitted estimator itself, for a pickle before it is made"
            )
        return self._run_


def _columns_not_finite(X: Array) -> NDArray[np.intp]:
    """The numbers of the columns of X that hold NaN or an infinite value."""
    finite = np.isfinite(X)
    return np.flatnonzero([] if finite.all() else ~finite.all(axis=0))


def _not_finite(values: Array) -> str:
    """What a column holds that is not finite, in words."""
    return "NaN" if np.isnan(values).any() else "inf"
