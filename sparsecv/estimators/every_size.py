"""What both estimators say of every size: models, criteria, forward steps and other supports."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from functools import cached_property
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np

from ..design.model import SizeModels
from ..errors import InputError
from ..plots.outcome import Result
from ..plots.page import report, short
from ..plots.size_path import draw_sizes
from ..selection.study import check_size
from ..solvers.core.certificate_file import Certificate
from .base import SparseLinearModel


class EverySize(SparseLinearModel):
    """What both estimators say of every size; everything is computed when first asked for.

    The fitted estimator keeps its rows for that. A pickle leaves them out.
    """

    # What :meth:`alternatives` was asked for last, and what it has found.
    _ranked_: tuple[int, dict[str, Any]] | None = None
    _run_: Result  # The fit with its rows.

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
            not serve: constraints, penalty factors, weights, missing values, γ = 0, more than 500
            columns, or folds that do not hold out every row once.
        AttributeError
            The model was read from a file or a pickle, which have no rows, or there are several
            responses.

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
        if "column" in table:
            found["name"] = [labels[c] for c in table["column"]]
        return found

    @cached_property
    def criteria_(self) -> dict[str, Any]:
        """AIC, BIC, EBIC and Mallows' Cp of every size; see the class."""
        found, sizes = self._fit().criteria(), self._sizes_
        columns = [model.support for model in sizes.models]
        return self._named({"tau": sizes.tau, "columns": columns, **found})

    @cached_property
    def forward_steps_(self) -> dict[str, Any]:
        """Forward selection beside the best known support of every size; see the class."""
        return self._named(self._fit().forward_steps())

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
            objective at this γ is listed before it), "cv_error" and "std_error". Where
            ``time_limit`` (else 60 s) ends the search, good subsets stand there that are not
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
            There are several responses, or the model has no rows any more.

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
            self._ranked_ = int(n), self._named(self._fit().alternatives(int(n)))
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
            There are several responses, or there is no such size.
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
        self._refuse_several("at_size gives a model of")
        sizes = self._sizes_
        check_size(sizes.tau, size)
        t = int(np.flatnonzero(sizes.tau == size)[0])
        tau, gamma, model = int(sizes.tau[t]), float(sizes.gamma[t]), sizes.models[t]
        other: Any = self._of_size(tau, gamma)
        other._keep(model)
        other.tau_, other.gamma_, other.cv_error_ = tau, gamma, float(sizes.cv_error[t])
        other.status_ = "optimal" if model.proved else "not proved"
        same = "n_nodes_", "n_features_in_", "feature_names_in_"
        for name in (*same, "_coding_", "coef_names_", "levels_"):
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
            matplotlib is not installed, ``ax`` is something else, or there are several responses.
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
        self._refuse_several("plot draws")
        found = self._fit()
        return draw_sizes(ax, found.sizes, found.position, found.design.raw_spread, found.names)

    def report(self, path: str | PathLike[str]) -> None:
        """Write a report on the model as one self-contained HTML page.

        The page says which columns the model has, with their coefficients, which error to expect,
        what is proved, what every size would be, how ridge and lasso do on the same folds, how
        often folds select a column, and, once :meth:`alternatives` was called, which other subsets
        are close. Ridge and lasso are fitted for the page. Nothing is searched for it: of
        :class:`SparseRidge` it has the other sizes only once ``path_`` was asked for.

        Parameters
        ----------
        path : path-like
            The file, such as ``report.html``.

        Raises
        ------
        InputError
            matplotlib is not installed, the file cannot be written, or there are several responses.
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
        self._refuse_several("report describes")
        report(path, self._result())

    def _result(self) -> Result:
        """What the report is made from."""
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
        return super(EverySize, copy(self))._get_fitted_attr_html(doc_link)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._short_report()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        found = dict(super()._repr_mimebundle_(**options))
        if "text/html" in found:
            found["text/html"] += self._short_report()
        return found

    def _short_report(self) -> str:
        """The short report below scikit-learn's own picture; empty where there is no fit."""
        if not hasattr(self, "_run_") or self.coef_.ndim > 1:
            return ""
        return short(self._result())

    def _fit(self) -> Result:
        """The fit with its rows; an AttributeError where these are not there."""
        self._refuse_several("this is computed for", AttributeError)
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
