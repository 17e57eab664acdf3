"""A fitted model as files: plain JSON, a certificate, a pickle, and scikit-learn's own classes."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..design.model import Model
from ..design.saved import SavedModel, named_fills
from ..errors import InputError
from ..selection.certified_choice import model_certificate, row_certificate
from ..selection.result import Result
from ..solvers.core.certificate_file import Certificate
from ..solvers.core.limits import Limits
from .base import SparseLinearModel
from .pipelines import pipeline_of_levels, pipeline_of_numbers

if TYPE_CHECKING:
    from typing import Self


class ModelFiles(SparseLinearModel):
    """Writes a fitted model to files, and reads it."""

    def save(self, path: str | PathLike[str], *, intervals: bool = False) -> None:
        """Write the fitted model as plain JSON, which ``sparsecv predict`` also reads.

        Parameters
        ----------
        path : path-like
            The file; what it held before is lost.
        intervals : bool
            Also write the models of the folds and their residuals, from which ``predict_interval``
            and ``sparsecv predict --coverage`` make prediction intervals.

        Raises
        ------
        InputError
            The file cannot be written, or ``intervals`` asks for what :meth:`predict_interval`
            refuses.
        AttributeError
            ``intervals`` are asked of a pickle that was made before intervals were made.
        NotFittedError
            There is no model yet.
        """
        self._saved(intervals).write(path)

    def _take(self, saved: SavedModel) -> Self:
        """Take over a model that a file holds, in place of a fit; return self.

        The columns of ``X`` are then those of numbers: ``n_features_in_`` counts the 0/1 columns of
        a text column, which ``predict`` and ``transform`` read from a frame by the text as well.
        """
        self._saved_ = saved
        model = saved.model
        self._keep(model)
        # Values may be missing where the file says what fills them, which are means.
        self.unknown, self.missing = saved.unknown, "mean" if saved.fills else None
        self.n_features_in_ = len(saved.features)
        if saved.named:
            self.feature_names_in_ = np.array(saved.features, dtype=object)
        self._name_columns(saved.features, saved.levels)
        self.status_ = "optimal" if model.proved else "not proved"
        self.gamma_, self._offset_ = model.gamma, saved.offset
        if saved.fills:
            self._fills_ = np.array([saved.fills[name] for name in saved.features])
        return self

    def to_sklearn(self) -> Any:
        """Return the model as a fitted pipeline of scikit-learn's own classes.

        Returns
        -------
        sklearn.pipeline.Pipeline
            A ColumnTransformer that selects the columns of the support (with text columns in X,
            those whose coefficients are not 0), and makes 0/1 columns of text columns by a
            OneHotEncoder; where the model fills missing values, a SimpleImputer
            that fills the same values of numbers, while a missing text is a category; and a
            LinearRegression. It takes the columns passed to ``fit`` and predicts what this model
            predicts. A model from a file does not know the cells of text columns: its pipeline
            takes the columns of ``coef_names_``, and missing values as NaN, whatever codes the file
            has. Converters such as skl2onnx, sklearn2pmml and orbital know these steps.

        Raises
        ------
        InputError
            The model has no column, or has text columns and no coefficient but 0; it was fitted
            with an offset; or a factor holds numbers beside text, or tuples.
        NotFittedError
            There is no model yet.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
        >>> SparseRidge(tau=1).fit(X, 2.0 * X[:, 0]).to_sklearn()["model"].coef_.shape
        (1,)
        """
        check_is_fitted(self)
        if self._offset_ is not None:
            raise InputError(
                "to_sklearn: scikit-learn's pipelines add no offset: fit y - offset, and add the "
                "offset to what the pipeline predicts"
            )
        coding = self._coding_
        # The pipeline of a table with factors leaves out columns whose coefficients are 0.
        if self.support_.size == 0 or (coding is not None and not self.coef_.any()):
            raise InputError(
                "to_sklearn: the model has no column whose coefficient is not 0, and predicts "
                "intercept_ for every row, as sklearn.dummy.DummyRegressor does"
            )
        if coding is None:
            names = getattr(self, "feature_names_in_", None)
            columns = np.flatnonzero(self._get_support_mask())
            return pipeline_of_numbers(columns, self.coef_, self.intercept_, names, self._fills_)
        return pipeline_of_levels(self.coef_, self.intercept_, coding, self.unknown, self._fills_)

    def certificate(self, path: str | PathLike[str], rows: bool = False) -> Certificate:
        """Write a proof of the fit that ``sparsecv verify`` checks with whole numbers alone.

        For :class:`SparseRidge` it proves that no other support of this size has an objective that
        is smaller by more than a millionth of the model's objective. For :class:`SparseRidgeCV`,
        whatever its rule, it proves that no pair of the γ and sizes that were evaluated has a CV
        error that is smaller than the least one by more than a millionth of it. The proof is
        searched for anew, with the supports known. ``python verify.py`` checks it as well, without
        this package.

        Parameters
        ----------
        path : path-like
            The file of the certificate; the table that it is about is written beside it, under the
            same name with ".csv" appended.
        rows : bool
            Whether to prove what :meth:`row_influence` says instead: which columns of the model's
            size are the best at its γ without each row, or without each group of rows.

        Returns
        -------
        Certificate
            Its ``claim`` says in words what is proved. After a fit with an offset its response is y
            less the offset, and is called so.

        Raises
        ------
        InputError
            Something is not proved; a file cannot be written; or certificates do not serve the fit,
            because it has constraints, weights, missing values, γ = 0, more than 500 columns, or
            folds that do not hold out every row once. With ``rows`` they do not serve columns that
            a criterion has chosen, or that are a projection of an average, either.
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
        fit = self._kept_fit()
        with self._telling("the proof of a certificate"):
            made = row_certificate(fit, Limits(self._seconds())) if rows else self._certified(fit)
        made.save(path)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds the model and what was asked for, not the rows."""
        kept = dict(super().__getstate__())
        kept.pop("_run_", None)
        return kept

    def _saved(self, intervals: bool) -> SavedModel:
        """The content of the file that :meth:`save` writes.

        intervals: Whether the file also holds the models of the folds, for prediction intervals.
        Raises NotFittedError; an InputError or an AttributeError where intervals are asked for and
            cannot be made.
        """
        check_is_fitted(self)
        fold_models = self._intervals() if intervals else None
        if self._saved_ is not None:
            # The model was read from a file, whose entries this object does not have: how to read
            # tables, the name of the response, and notes.
            return replace(self._saved_, unknown=self.unknown, intervals=fold_models)
        labels = self._labels(self.coef_.size)
        tau, gamma, proved = int(self.tau_), float(self.gamma_), self.status_ == "optimal"
        fitted = self.support_, self.coef_, self.intercept_, tau, gamma
        model = Model(*fitted, self.objective_, self.lower_bound_, proved)
        return SavedModel(
            model,
            labels,
            named=self._coding_ is not None or hasattr(self, "feature_names_in_"),
            levels={} if self._coding_ is None else self._coding_.levels,
            fills=named_fills(labels, self._fills_),
            intervals=fold_models,
            unknown=self.unknown,
            offset=self._offset_,
            counts=self._counts_,
        )

    def _certified(self, fit: Result) -> Certificate:
        """The certificate of a fit of one size, where no rows were held out.

        Raises InputError: The support is not proved, or certificates do not serve the fit.
        """
        return model_certificate(fit)
