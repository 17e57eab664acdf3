"""How a fitted model is shown: a picture, a summary as text, and a report as a page."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from ..plots.size_path import draw_sizes
from ..report.audit import AUDITED, PROOF_SUFFIX, audited, proof_of
from ..report.audit_sections import audit_sections
from ..report.details import sections, why_chosen
from ..report.page import Page, page
from ..report.screen import as_html, printed
from ..report.sections import Section
from ..selection.result import Result
from ..solvers.core.limits import Limits, StopFlag
from .robustness import ModelRobustness


class ModelViews(ModelRobustness):
    """Shows a fit: all views are made from one list of sections."""

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
        found = self._kept_fit()
        with self._telling("the best of every size"):
            _ = found.sizes  # Nothing else of a picture takes long.
        return draw_sizes(
            ax,
            found.sizes,
            found.marks,
            found.effects_by_size,
            found.features.names,
            why_chosen(found),
        )

    def summary(self, *, table: bool = False) -> str:
        """Return what the command prints of a fit: the model, its errors, proofs and other sizes.

        Nothing is searched for: of :class:`SparseRidge` it has the other sizes only once ``path_``
        was asked for, other subsets once :meth:`alternatives` was called, and p-values once
        :meth:`inference` was. What the columns hang on is there once :meth:`row_influence`,
        :meth:`row_removals` or :meth:`partitions` was called.

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

    def report(
        self, path: str | PathLike[str] | None = None, *, audit: bool = False
    ) -> Page | None:
        """Write a report on the model as one self-contained HTML page, or show it in a notebook.

        The page has all that :meth:`summary` tells, in full, how ridge and lasso do on the same
        folds, and a picture of the CV error of every size. Ridge and lasso are fitted for the page.
        Nothing is searched for it: of :class:`SparseRidge` it has the other sizes only once
        ``path_`` was asked for, and p-values once :meth:`inference` was called.

        Parameters
        ----------
        path : path-like or None
            The file, such as ``report.html``. With None the page is returned and not written.
        audit : bool
            Put everything that says whether the columns can be trusted on top: for each column its
            interval and p-value, in how many models that fit nearly as well it is and with which
            sign, what is lost without it, how many rows remove it and how many are proved not to,
            and a judgement by rules that the page states; for the model the error to expect beside
            those of the mean, lasso and ridge, and the choices on other partitions. What the fit
            does not allow says why. All that is computed now, in at most ``time_limit``, unless it
            was asked for before. Beside ``report.html`` stands ``report.proof.txt``, a certificate
            of the list of these models and of the choice, with its table: ``sparsecv verify
            report.proof.txt report.proof.txt.csv`` checks it.

        Returns
        -------
        sparsecv.report.page.Page or None
            Without ``path``: the page, which a notebook shows where it is the last value of a cell.

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
        ...     path.read_text(encoding="utf-8") == model.report().html
        True
        """
        found = self._result()
        with self._telling("the page of a report"):
            top = list[Section]()
            if audit:
                limits = Limits(self._seconds(), stop=StopFlag())
                record = audited(found, getattr(self, "cv", None), limits)
                self._answers_ = (self._answers_ or {}) | {
                    name: one for name, one in found.answers.items() if name in AUDITED
                }
                if path is not None and (proof := proof_of(record, found, limits)) is not None:
                    record.save_proof(proof, Path(path).with_suffix(PROOF_SUFFIX))
                top = list(audit_sections(record))
            made = page(found.title, [*top, *sections(found, peers=True)])
        if path is None:
            return made
        made.write(path)
        return None

    def _result(self) -> Result:
        """The fit with all frames that were asked for, from which sections are made."""
        found = self._kept_fit()
        found.answers = {} if self._ranked_ is None else {"alternatives": self._ranked_[1]}
        found.answers |= self._answers_ or {}
        return found

    def __dir__(self) -> list[str]:
        """Names of attributes; scikit-learn's own way would compute what nobody has asked for.

        A cached property is there where it was computed, or can be: where the rows are kept.
        """
        kept = vars(self)

        def there(name: str) -> bool:
            if isinstance(getattr(type(self), name, None), cached_property):
                return name in kept or "_run_" in kept
            return hasattr(self, name)

        return [name for name in object.__dir__(self) if there(name)]

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """What scikit-learn shows of the fit, asked of a copy without rows.

        scikit-learn reads every attribute, and with rows that would compute what nobody asked for.
        """
        shown = type(self)()
        shown.__dict__.update({name: kept for name, kept in vars(self).items() if name != "_run_"})
        return super(ModelViews, shown)._get_fitted_attr_html(doc_link)

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
