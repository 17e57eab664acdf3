"""Certificates of folds: no pair (γ, τ) has a smaller CV error; the best columns without rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.results import CVResult
from ..design.design import Array, Design
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Index
from ..errors import InputError
from ..solvers.certificate import (
    SHARE,
    Form,
    block_of,
    certified_shares,
    fit_certificate,
    leaves_of,
    points_of,
    refuse,
)
from ..solvers.core.certificate_file import Certificate, CertifiedTable
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.relaxation.gram import GramForm
from ..solvers.supports.rounding import pad_support
from .result import Result
from .row_influence import chosen_support, parts_of, row_influence

# The tree that all left-out rows share is pruned at this much above the objective of all rows: the
# bounds of the folds are smaller. The number is a choice.
RAISED = 0.01
# The objective of every other subset of a fold is shown to exceed that of the fold's subset by this
# share of it, so that the fold's subset is the only best one. Where rounding, or a tie, prevents
# that, the certificate says that the fold's subset is the best up to 1e-6 of its objective
# (``SHARE``). The number is a choice, well above rounding.
WORSE = 1e-9


def source_of(
    design: Design, rows: Array, names: Sequence[str], response: str = "y"
) -> CertifiedTable:
    """The table of a certificate: rows of [X y] with the columns that are solved.

    rows, shape (n, p + 1): In the units of the user's table.
    names: Of all columns that were given.
    """
    if design.protocol.name != "honest" or design.asked is not None:
        what = "paper protocol" if design.asked is None else "constraints"
        raise InputError(f"a certificate serves no {what}: go without")
    named = [*(names[j] for j in design.kept), response]
    if response in named[:-1]:
        named[-1] = f"response {response}"
    how = design.protocol.intercept, design.protocol.scale, design.scale[: design.p]
    return CertifiedTable.of(rows, named, *how)


def model_certificate(
    data: FoldData,
    design: Design,
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    status: str,
    names: Sequence[str],
    response: str = "y",
) -> Certificate:
    """The certificate that no support of the problem's size is better than a proved one.

    problem: All rows of the data, at the γ and τ of the fit.
    support: The proved support, in columns of the problem.
    status: The status of the fit; another than "optimal" is refused.
    """
    if status != str(Status.OPTIMAL):
        raise InputError(f"a certificate needs a proved fit; this one is: {status}")
    refuse(problem)
    source = source_of(design, _rows(data), names, response)
    return fit_certificate(problem, support, source)


def _rows(data: FoldData) -> Array:
    """The rows of [X y] of a table that certificates serve."""
    rows = data.rows_for("a certificate needs")
    if rows.unweighted_rows is None:
        raise InputError("a certificate needs a table without weights or missing values")
    return rows.given


def choice_certificate(
    data: FoldData, design: Design, result: CVResult, names: Sequence[str], response: str = "y"
) -> Certificate:
    """The certificate that no pair of a surface has a smaller CV error than its best pair.

    names: Of all columns that were given.
    """
    source = source_of(design, _rows(data), names, response)
    if not data.folds.is_partition:
        raise InputError("a certificate needs folds that hold out every row once")
    if not result.complete:
        raise InputError(
            "a certificate needs every fold proved at every pair: take time_limit=None and "
            "prove='all', or fewer sizes and values of gamma"
        )
    best = result.best()
    supports = [
        [[*(at.supports[c] for c in of_size), at.models[t]] for t, of_size in enumerate(at.choice)]
        for at in result.by_gamma
    ]
    folds = Folded(data.rows_for("a certificate needs"), result.gammas, result.taus, supports)
    return folds.certificate(
        source,
        [held for _, held in data.folds.splits()],
        pair_share=repr(SHARE),
        gamma=repr(float(best.gamma)),
        size=int(best.tau),
        cv_error=repr(float(best.cv_error)),
    )


def row_certificate(fit: Result, limits: Limits) -> Certificate:
    """The certificate of the best columns without each row, or each group of rows, of a fit."""
    if fit.criterion is not None:
        raise InputError("a certificate of rows serves one size, which no criterion chooses")
    problem, data, support = chosen_support(fit)
    source = source_of(fit.design, _rows(data), fit.names, fit.target)
    parts = list(parts_of(fit).values())
    found = row_influence(problem, data, support, parts, limits)
    if not found.proved.all():
        raise InputError("a certificate needs every row proved: take time_limit=None")
    sizes, gammas = np.array([problem.tau]), np.array([problem.given_gamma])
    folds = Folded(data.without_each(parts), gammas, sizes, [[[*found.supports, support]]])
    supports = [pad_support(one, problem.tau, data.p).tolist() for one in found.supports]
    return folds.certificate(source, parts, supports=supports)


class Folded(NamedTuple):
    """Folds and their best supports, of every γ and size.

    supports: Under the numbers of γ and size, those of all folds and, at last, that of all rows.
    """

    data: RowFolds
    gammas: Array
    sizes: Index
    supports: list[list[list[Index]]]

    def certificate(
        self, source: CertifiedTable, parts: Sequence[Index], **claim: Any
    ) -> Certificate:
        """The certificate of a claim on folds that leave out these parts of the rows."""
        refuse(self.data.full().replace(gamma=float(min(self.gammas))))
        for worse in (WORSE, -SHARE):
            if blocks := self.blocks(source, worse):
                break
        else:
            why = "columns nearly depend or the fit is perfect"
            raise InputError(f"no certificate: rounding hides the proof, as {why}")
        numbers: dict[str, Any] = {
            "gammas": [repr(float(gamma)) for gamma in self.gammas],
            "sizes": self.sizes.tolist(),
            "held_out": [part.tolist() for part in parts],
            "share": "0" if worse > 0.0 else repr(SHARE),
        }
        return Certificate.of(source, source.head(**numbers, **claim), blocks)

    def blocks(self, source: CertifiedTable, worse: float) -> list[dict[str, Any]]:
        """Trees for every fold, γ and size; empty where one of them does not prove its fold.

        worse: Bounds of other subsets exceed 1 + worse times the objective of a fold's subset.
        """
        data, units, blocks = self.data, source.integer_scale, list[dict[str, Any]]()
        k = data.folds.k
        problems = [data.problem(j) for j in range(k + 1)]
        lengths = [*(data.lengths(j) for j in range(k)), np.ones(data.p)]
        grams = [GramForm.of(problem) for problem in problems]
        ratios = [
            certified_shares(gram, gram.D, length / units.ratio)
            for gram, length in zip(grams, lengths, strict=True)
        ]
        joint = all(train.size == data.n - 1 for train, _ in data.folds.splits())
        if joint:
            ratios = [np.min(ratios, axis=0)] * (k + 1)
        for g, gamma in enumerate(map(float, self.gammas)):
            for size, known in zip(self.sizes.tolist(), self.supports[g], strict=True):
                here = [problem.replace(gamma=gamma, tau=size) for problem in problems]
                each = zip(here, grams, ratios, lengths, strict=True)
                forms = [Form.of(*one) for one in each]
                supports = [pad_support(np.asarray(s, dtype=np.intp), size, data.p) for s in known]
                goals = [
                    problem.objective(support) * (1.0 + min(worse, 0.0))
                    for problem, support in zip(here, supports, strict=True)
                ]
                left = np.arange(k)
                if joint:
                    leaves = leaves_of(forms[k], supports[k], RAISED)
                    points, closed = points_of(forms[:k], goals[:k], supports[:k], leaves, units)
                    some = np.flatnonzero(closed)
                    parts = [forms[j] for j in some], some.tolist(), [supports[j] for j in some]
                    if some.size:
                        blocks.append(block_of(*parts, leaves, points, units, g))
                    left = np.flatnonzero(~closed)
                for j in left.tolist():
                    own = [forms[j]], [goals[j]], [supports[j]]
                    leaves = leaves_of(forms[j], supports[j], worse)
                    points, closed = points_of(*own, leaves, units)
                    if not closed.all():
                        return []
                    parts = [forms[j]], [j], [supports[j]]
                    blocks.append(block_of(*parts, leaves, points, units, g))
        return blocks
