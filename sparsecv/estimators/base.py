"""What both estimators share: input checks, prediction, files, and what is said of every size."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..design.design import Array, Protocol
from ..design.fold_models import FoldModels
from ..design.folds import check_groups
from ..design.missing import checked_fill, filled
from ..design.model import FittedModel, SizeModels
from ..design.prepare import ALL_ROWS, Prepared, prepare
from ..design.saved import SavedModel
from ..errors import InputError
from ..plots.size_path import draw_sizes
from ..report.details import sections
from ..report.outcome import Result
from ..report.page import write_page
from ..report.screen import as_html, printed
from ..selection.study import check_size
from ..solvers.core.certificate_file import Certificate
from ..solvers.core.column_rules import Constraints, ResolvedRules
from ..tables.coding import Coding
from ..tables.frames import (
    check_frame_of_numbers,
    check_names_match,
    coding_of,
    encoded,
    frame_names,
    numbers_as_names,
)
from ..tables.table import Table
from .pipelines import pipeline_of_levels, pipeline_of_numbers
from .validation import as_dense, checked_weights, na_as_nan, refuse_text_response

if TYPE_CHECKING:
    from typing import Self


# What the message about a sparse table that is too large to be made dense says to do.
SCREEN = (
    "screen the columns inside the folds, by a Pipeline of SelectKBest and SparseRidge in "
    "GridSearchCV, or take a lasso"
)
PART = "pass fewer rows at a time"


class SparseLinearModel(SelectorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: input checks, units, prediction, selection, files, every size.

    ``get_support``, ``transform`` and ``get_feature_names_out`` are those of a feature selector:
    the columns of the support, whatever the size of their coefficients. What is said of every size
    is computed when first asked for; the fitted estimator keeps its rows for that, and a pickle
    leaves them out.
    """

    coef_: Array
    intercept_: Any
    fit_intercept: bool
    standardize: bool
    gamma: float
    tau_: int
    constraints: Constraints | None
    missing: str | None
    time_limit: Any
    n_jobs: int | None
    unknown: str
    _coding_: Coding | None = None  # How text columns became columns of numbers.
    coef_names_: NDArray[Any]
    levels_: dict[str, list[str]]
    _saved_: SavedModel | None = None  # What a model that was loaded holds.
    _fills_: Array | None = None  # What missing values of X are filled with, shape (p,).
    status_: Any
    # What :meth:`alternatives` was asked for last, and what it has found.
    _ranked_: tuple[int, dict[str, Any]] | None = None
    _run_: Result  # The fit with its rows.

    def predict(self, X: ArrayLike) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like, shape (n, p)
            The frame may hold text columns where the one fitted to did; the same holds for a model
            that was saved, here or by ``sparsecv cv --save``. A sparse matrix or array of
            scipy is made dense, up to 1.5 GB.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        InputError
            A frame whose columns have other names, or another order, than the one fitted to; or a
            text that is none of its column's levels, unless ``unknown="zero"``.
        """
        return np.asarray(self._checked_columns(X) @ self.coef_ + self.intercept_)

    def _checked_columns(self, X: ArrayLike) -> Any:
        """Rows to predict, checked and dense, with the columns passed to ``fit``."""
        check_is_fitted(self)
        given, fitted = frame_names(X), getattr(self, "feature_names_in_", None)
        saved, fills = self._saved_, self._fills_
        if given is not None and saved is not None and (saved.levels or saved.fills):
            return np.asarray(saved.features_of(X, self.unknown))
        if self._coding_ is not None:
            values = encoded(self._coding_, X, fills is not None, self.unknown)
            return values if fills is None else filled(values, fills, "K")
        with warnings.catch_warnings():
            if given is not None and fitted is not None:
                # older scikit-learn cannot read the names of every frame library
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            finite = True if fills is None else "allow-nan"
            checks = {"dtype": np.float64, "ensure_all_finite": finite, "accept_sparse": True}
            try:
                values = validate_data(self, na_as_nan(X), reset=False, **checks)
            except ValueError:
                check_frame_of_numbers(X)
                raise
        values = as_dense(values, PART)
        if given is not None and fitted is not None:
            check_names_match(given, list(fitted))
        return values if fills is None else filled(values, fills, "K")

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
        """
        if self._coding_ is None:
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

    def save(self, path: str | PathLike[str], *, intervals: bool = False) -> None:
        """Write the fitted model as plain JSON, which ``sparsecv predict`` also reads.

        Parameters
        ----------
        path : path-like
        intervals : bool
            Also write the models of the folds and their residuals, from which ``predict_interval``
            and ``sparsecv predict --coverage`` make prediction intervals.

        Raises
        ------
        InputError
            The file cannot be written, or there are no intervals.
        NotFittedError
            There is no model yet.
        """
        self._saved(intervals).write(path)

    def to_sklearn(self) -> Any:
        """Return the model as a fitted pipeline of scikit-learn's own classes.

        Returns
        -------
        sklearn.pipeline.Pipeline
            A ColumnTransformer that selects the columns of the support, and makes 0/1 columns of
            text columns by a OneHotEncoder; where the model fills missing values, a SimpleImputer
            that fills the same values; and a LinearRegression. It takes the columns passed to
            ``fit`` and predicts what this model predicts. Converters such as skl2onnx, sklearn2pmml
            and orbital know these steps.

        Raises
        ------
        InputError
            The model fills missing values and has text columns.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
        >>> SparseRidge(tau=1).fit(X, 2.0 * X[:, 0]).to_sklearn()["model"].coef_.shape
        (1,)
        """
        check_is_fitted(self)
        coding = self._coding_
        if coding is None:
            names = getattr(self, "feature_names_in_", None)
            columns = np.flatnonzero(self._get_support_mask())
            return pipeline_of_numbers(columns, self.coef_, self.intercept_, names, self._fills_)
        if self._fills_ is not None:
            raise InputError(
                "to_sklearn: scikit-learn cannot fill a missing text as this model does: fill the "
                "missing values of text columns, and fit without missing"
            )
        return pipeline_of_levels(self.coef_, self.intercept_, coding, self.unknown)

    def _saved(self, intervals: bool) -> SavedModel:
        """The model as a file holds it."""
        check_is_fitted(self)
        return SavedModel.of(
            self._fitted(),
            self._labels(self.coef_.size),
            named=self._coding_ is not None or hasattr(self, "feature_names_in_"),
            tau=int(self.tau_),
            gamma=self._own_gamma(),
            levels={} if self._coding_ is None else dict(self._coding_.levels),
            unknown=self.unknown,
            fills=self._fills_,
            intervals=self._intervals() if intervals else None,
        )

    def _fitted(self) -> FittedModel:
        """The model, proved where everything that was searched for is."""
        proof = self.objective_, self.lower_bound_, self.status_ == "optimal"
        return FittedModel(self.support_, self.coef_, self.intercept_, *proof)

    def _own_gamma(self) -> float:
        """The γ of the model, whether it was chosen or given."""
        return float(self.gamma_ if hasattr(self, "gamma_") else self.gamma)

    def _labels(self, p: int) -> list[str]:
        """Names of the p columns of ``coef_``; x0, x1 and so on where they have none."""
        if self._coding_ is not None:
            return list(self.coef_names_)
        return [
            str(name) for name in getattr(self, "feature_names_in_", map("x{}".format, range(p)))
        ]

    def _intervals(self) -> FoldModels:
        """What prediction intervals are made from."""
        raise InputError("prediction intervals need folds: use SparseRidgeCV")

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
        model._saved_ = saved
        model._keep(saved.fitted())
        model.unknown = saved.unknown
        model.n_features_in_ = len(saved.features)
        if saved.named:
            model.feature_names_in_ = np.array(saved.features, dtype=object)
        model.status_ = "optimal" if saved.proved else "not proved"
        model.tau_ = len(saved.support) if saved.tau is None else saved.tau
        model.gamma_ = np.nan if saved.gamma is None else saved.gamma
        if saved.fills:
            model._fills_ = np.array([saved.fills[name] for name in saved.features])
        if saved.fold_models is not None:
            model._fold_models_ = saved.fold_models
        return model

    def _prepared(
        self, X: Any, y: Any, weights: Any = None, groups: Any = None, cv: Any = ALL_ROWS
    ) -> Prepared:
        """What was passed to ``fit``, checked, standardised and laid out in folds."""
        source = self._source(X, y, weights, groups)
        named = self._coding_ is not None or hasattr(self, "feature_names_in_")
        how: dict[str, Any] = {"seed": getattr(self, "random_state", 0)}
        how["partitions"] = self._partitions(source.p)
        names = source.feature_names if named else None
        how["asked"] = self._asked(source.p, names, numbers_as_names(X))
        ready = prepare(source, cv, self._protocol(), **how)
        self._fills_ = ready.fills
        return ready

    def _partitions(self, p: int) -> int:
        """The number of partitions into folds that a fit of p columns needs."""
        return 1

    def _source(self, X: Any, y: Any, weights: Any, groups: Any) -> Table:
        """Check what was passed to ``fit``; X and y come back as 64-bit numbers."""
        if self.unknown not in ("error", "zero"):
            raise InputError(f"unknown must be 'error' or 'zero'; got {self.unknown!r}")
        given, coding = frame_names(X), coding_of(X, self.missing is not None)
        if coding is not None:
            X = encoded(coding, X, True, "error")
        X, y = na_as_nan(X), na_as_nan(y)
        values = np.asarray(y)
        if values.dtype.kind in "mM":
            raise InputError("y holds dates: it must be numeric")
        if values.dtype.kind in "OUS":
            refuse_text_response(values, getattr(y, "name", None))
        if issparse(y):
            raise InputError("y must be dense: pass y.toarray()")
        checks: dict[str, Any] = {"dtype": np.float64, "accept_sparse": True, "y_numeric": True}
        checks |= {"ensure_min_samples": 2, "ensure_all_finite": False}
        if values.ndim == 2 and values.shape[1] > 1:
            raise InputError(
                f"y has {values.shape[1]} columns, and a model explains one response: fit "
                "sklearn.multioutput.MultiOutputRegressor of this estimator"
            )
        X, y = validate_data(self, X, y, **checks)
        X, y = as_dense(X, SCREEN), y.astype(np.float64)
        if coding is not None:
            self._coding_, self.n_features_in_ = coding, len(coding.names)
            self.levels_ = {name: list(found) for name, found in coding.levels.items()}
            self.coef_names_ = np.array(coding.features, dtype=object)
        if given is not None and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(given, dtype=object)
        labels = self._labels(X.shape[1])
        checked_fill(self.missing)
        for j in _columns_not_finite(X).tolist():
            column = X[:, j]
            if self.missing and not (np.isinf(column).any() or np.isnan(column).all()):
                continue
            found = f"{_not_finite(column)} in column {labels[j]!r}"
            mend = "drop or impute those rows"
            if "missing" in self.get_params() and not np.isinf(column).any():
                mend += ", or pass missing='mean'" if self.missing is None else ""
            raise InputError(f"Input X contains {found}: {mend}")
        if not np.isfinite(y).all():
            raise InputError(f"Input y contains {_not_finite(y)}: drop those rows")
        weights = checked_weights(weights, len(y))
        if groups is not None:
            check_groups(groups, len(y))
            groups = np.asarray(groups)
        own = {"weights": weights, "groups": groups, "missing": self.missing}
        return Table.checked(X, y, labels, **own)

    def _asked(
        self, p: int, names: Sequence[str] | None, numbers: Sequence[int] | None
    ) -> ResolvedRules | None:
        """What the parameters ask of p columns; None where they ask for nothing."""
        rules = Constraints() if self.constraints is None else self.constraints
        if not isinstance(rules, Constraints):
            what = "constraints must be None or sparsecv.Constraints(include=..., ...)"
            raise InputError(f"{what}; got {rules!r}")
        places = None if self._coding_ is None else self._coding_.places
        found = rules.resolve(p, names, places, numbers=numbers)
        return None if found.constraints.plain else found

    def _protocol(self) -> Protocol:
        scale = "unit-variance" if self.standardize else "none"
        return Protocol("honest", scale, bool(self.fit_intercept))

    def _keep(self, model: FittedModel) -> None:
        self.coef_, self.intercept_, self.support_ = model.coef, model.intercept, model.support
        self.objective_, self.lower_bound_ = model.objective, model.lower_bound
        self.gap_ = model.gap

    def _forget(self) -> None:
        """Drop what the last fit has found: this fit may set other attributes."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    @abstractmethod
    def _of_size(self, tau: int, gamma: float) -> SparseLinearModel:
        """An estimator for a model of another size, not yet fitted."""

    @abstractmethod
    def _certified(self, fit: Result) -> Certificate:
        """The certificate of the fit."""

    def certificate(self, path: str | PathLike[str]) -> Certificate:
        """Write a proof of the fit that ``sparsecv verify`` checks with whole numbers alone.

        For :class:`SparseRidge` it proves that no other support of this size has an objective that
        is smaller by a millionth; for :class:`SparseRidgeCV`, whatever its rule, that no pair of
        the γ and sizes that were evaluated has a CV error that is smaller by a millionth than the
        least. The proof is searched for anew, with the supports known. ``python verify.py`` checks
        it as well, without this package.

        Parameters
        ----------
        path : path-like
            The file of the certificate; the table that it is about is written beside it, under the
            same name with ".csv" appended.

        Returns
        -------
        Certificate
            Its ``claim`` says in words what is proved.

        Raises
        ------
        InputError
            Something is not proved, a file cannot be written, or the fit has what certificates do
            not serve: constraints, weights, missing values, γ = 0, more than 500
            columns, or folds that do not hold out every row once.
        AttributeError
            The model was read from a file or a pickle, which have no rows.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> from sparsecv.verify import check
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> model = SparseRidge(tau=1).fit(X, X[:, 2] + X[:, 1] ** 2)
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "proof.txt"
        ...     claim = model.certificate(path).claim
        ...     check(str(path), f"{path}.csv") == claim
        True
        """
        found = self._certified(self._fit())
        found.save(path)
        return found

    @cached_property
    def _sizes_(self) -> SizeModels:
        return self._fit().sizes

    @cached_property
    def path_(self) -> dict[str, Any]:
        """The model of every size with its CV error; see the class."""
        return self._named(self._sizes_.table())

    def _named(self, table: dict[str, Any]) -> dict[str, Any]:
        """A table with the names of its columns beside their positions, where X had names."""
        found = dict(table)
        if self._coding_ is None and not hasattr(self, "feature_names_in_"):
            return found
        labels = self._labels(self.coef_.size)
        if "columns" in table:
            found["names"] = [[labels[c] for c in some] for some in table["columns"]]
        return found

    @cached_property
    def criteria_(self) -> dict[str, Any]:
        """AIC, BIC, EBIC and Mallows' Cp of every size; see the class."""
        found, sizes = self._fit().criteria(), self._sizes_
        columns = [model.support for model in sizes.models]
        return self._named({"tau": sizes.tau, "columns": columns, **found})

    def alternatives(self, n: int = 5) -> dict[str, Any]:
        """Return the n best subsets of every size, by size and then in order of objective.

        Parameters
        ----------
        n : int
            How many subsets of each size.

        Returns
        -------
        dict
            An entry for every subset: "tau", "rank" (1 is the best), "gamma", "columns"
            (positions; and "names", where X had names), "objective", "proved" (every other subset
            of this size with a smaller
            objective at this γ is listed before it), "cv_error" and "std_error". Where the search
            has taken ``time_limit`` (else 60 s), it ends, and good subsets stand there that are not
            proved, and beyond 168 columns those known besides. The CV errors of
            :class:`SparseRidgeCV` are those of the same columns fitted in every fold. The columns
            were found with all rows, the held-out ones too, so that these errors are mostly below
            those of ``path_``, whose folds search for columns of their own. :class:`SparseRidge`
            holds nothing out, and has NaN.

        Raises
        ------
        InputError
            ``n`` is no whole number >= 1.
        AttributeError
            The model has no rows any more.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> y = X @ [3.0, 2.0, 1.0, 0.0]
        >>> found = SparseRidge(tau=2).fit(X, y).alternatives(2)
        >>> [columns.tolist() for columns in found["columns"][2:]]
        [[0, 1], [0, 2]]
        """
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise InputError(f"n must be a whole number >= 1; got {n!r}")
        if self._ranked_ is None or self._ranked_[0] != n:
            limit = None if self.time_limit in (None, "auto") else float(self.time_limit)
            self._ranked_ = int(n), self._named(self._fit().alternatives(int(n), limit))
        return self._ranked_[1]

    def at_size(self, size: int) -> Any:
        """Return the model of another size; nothing is fitted again.

        Parameters
        ----------
        size : int
            One of ``path_["tau"]``.

        Returns
        -------
        SparseRidge
            Fitted: it has this size's coefficients, ``tau_``, ``gamma_`` and ``cv_error_``. With
            the rule projected, it is the projection of that size, and its objective is that of the
            projection.

        Raises
        ------
        InputError
            There is no such size.
        AttributeError
            The model was read from a file, or from a pickle made before ``path_`` was asked for.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> y = X @ [3.0, 2.0, 1.0, 0.0]
        >>> SparseRidgeCV().fit(X, y).at_size(2).support_
        array([0, 1])
        """
        check_is_fitted(self)
        sizes = self._sizes_
        check_size(sizes.tau, size)
        t = int(np.flatnonzero(sizes.tau == size)[0])
        tau, gamma, model = int(sizes.tau[t]), float(sizes.gamma[t]), sizes.models[t]
        other: Any = self._of_size(tau, gamma)
        other._keep(model)
        other.tau_, other.gamma_, other.cv_error_ = tau, gamma, float(sizes.cv_error[t])
        other.status_ = "optimal" if model.proved else "not proved"
        same = "n_nodes_", "n_features_in_", "feature_names_in_"
        for name in (*same, "_coding_", "coef_names_", "levels_", "_fills_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    def plot(self, ax: Any = None) -> Any:
        """Draw the CV error by size, and the coefficients by size.

        Nothing is held out for :class:`SparseRidge`: its picture has the training objective in
        place of the CV error, and asks for ``path_``.

        Parameters
        ----------
        ax : axes of matplotlib, a pair of axes, or None
            One axes gets the errors; of a pair, the second gets the coefficients, times the
            standard deviations of their columns. With None, pyplot opens a figure with two axes,
            which a notebook then shows.

        Returns
        -------
        axes or array of axes
            Where the picture is.

        Raises
        ------
        InputError
            matplotlib is not installed, or ``ax`` is something else.
        AttributeError
            The model was read from a file or a pickle, which have no rows.

        Examples
        --------
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> model = SparseRidgeCV().fit(X, X[:, 0] + X[:, 1] ** 2)
        >>> errors, coefficients = model.plot(Figure().subplots(1, 2))
        >>> errors.get_ylabel()
        'CV error'
        """
        found = self._fit()
        return draw_sizes(ax, found.sizes, found.position, found.design.raw_spread, found.names)

    def summary(self, *, table: bool = False) -> str:
        """Return what the command prints of a fit: the model, its errors, proofs and other sizes.

        Nothing is searched for: of :class:`SparseRidge` it has the other sizes only once ``path_``
        was asked for, and other subsets once :meth:`alternatives` was called.

        Parameters
        ----------
        table : bool
            Whether every table has all its rows. By default all takes at most 60 lines.

        Returns
        -------
        str
            Lines as wide as the terminal, or of 80 characters where there is none.

        Raises
        ------
        AttributeError
            The model was read from a file or a pickle, which have no rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> model = SparseRidgeCV(gammas=[1.0]).fit(X, X[:, 0] + X[:, 1] ** 2)
        >>> print(model.summary().splitlines()[1])
        columns   x0
        """
        return printed(sections(self._result()), "" if table else "summary(table=True)")

    def report(self, path: str | PathLike[str]) -> None:
        """Write a report on the model as one self-contained HTML page.

        The page has all that :meth:`summary` tells, in full, how ridge and lasso do on the same
        folds, and a picture of the CV error of every size. Ridge and lasso are fitted for the page.
        Nothing is searched for it: of :class:`SparseRidge` it has the other sizes only once
        ``path_`` was asked for.

        Parameters
        ----------
        path : path-like
            The file, such as ``report.html``.

        Raises
        ------
        InputError
            matplotlib is not installed, or the file cannot be written.
        AttributeError
            The model was read from a file or a pickle, which have no rows.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> model = SparseRidgeCV().fit(X, X[:, 0] + X[:, 1] ** 2)
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "report.html"
        ...     model.report(path)
        ...     "How sure" in path.read_text(encoding="utf-8")
        True
        """
        found = self._result()
        write_page(path, found.title, sections(found, peers=True))

    def _result(self) -> Result:
        """What the sections are made from."""
        found = self._fit()
        found.answers = {} if self._ranked_ is None else {"alternatives_": self._ranked_[1]}
        return found

    def __dir__(self) -> list[str]:
        """Names of attributes; scikit-learn's own way would compute what nobody has asked for."""
        kept = vars(self)

        def there(name: str) -> bool:
            if isinstance(getattr(type(self), name, None), cached_property):
                return name in kept or "_run_" in kept
            return hasattr(self, name)

        return [name for name in object.__dir__(self) if there(name)]

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """What scikit-learn shows of the fit: a copy has no rows to compute anything more from."""
        shown = type(self)()
        rows = ("_run_", "_given_")
        shown.__dict__.update({name: kept for name, kept in vars(self).items() if name not in rows})
        return super(SparseLinearModel, shown)._get_fitted_attr_html(doc_link)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._known_sections()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        found = dict(super()._repr_mimebundle_(**options))
        if "text/html" in found:
            found["text/html"] += self._known_sections()
        return found

    def _known_sections(self) -> str:
        """The sections that need no further fit, as HTML below scikit-learn's own picture."""
        if not hasattr(self, "_run_"):
            return ""
        return "\n".join(map(as_html, sections(self._result(), fits=False)))

    def _fit(self) -> Result:
        """The fit with its rows; an AttributeError where these are not there."""
        check_is_fitted(self)
        if not hasattr(self, "_run_"):
            raise AttributeError(
                "this needs the rows of the fit, which a file, a pickle and the model of another "
                "size do not hold: ask the fitted estimator itself, for a pickle before it is made"
            )
        return self._run_

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds the model and what was asked for, not the rows."""
        kept = dict(super().__getstate__())
        for name in ("_run_", "_given_"):
            kept.pop(name, None)
        return kept


def _columns_not_finite(X: Array) -> NDArray[np.intp]:
    """The numbers of the columns of X that hold NaN or an infinite value."""
    finite = np.isfinite(X)
    return np.flatnonzero([] if finite.all() else ~finite.all(axis=0))


def _not_finite(values: Array) -> str:
    """What a column holds that is not finite, in words."""
    return "NaN" if np.isnan(values).any() else "inf"
