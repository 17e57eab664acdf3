"""Certificates of a fit, which a checker of whole numbers can verify without solving anything.

There are three: of the columns of one fit, of the pair of a size τ and a ridge weight γ with the
least CV error, and of the best columns without each row. A certificate has trees. A leaf of a tree
stands for a set of supports, and has coefficients from which a lower bound on the objectives of
these supports follows.

Without it a fit is proved as before, and whoever does not trust the package has nothing to check.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..design.design import Array
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Index
from ..errors import InputError
from ..solvers.certificate import Listing, ProvedFolds
from ..solvers.core.certificate_file import Certificate, CertifiedTable
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status
from ..solvers.leaps.all_sizes import n_best_subsets
from .near_best import compared
from .result import Result
from .row_influence import chosen_support, parts_of, row_influence
from .surfaces import with_everything


def _source_of(fit: Result, data: FoldData) -> CertifiedTable:
    """The table of a certificate: the rows in the user's units, with the columns that are solved.

    data: The rows of the fit.
    Raises InputError: The rows are not in memory, have weights or missing values, or were solved
        under the papers' protocol or constraints.
    """
    rows, design = data.rows_for("a certificate needs").rows, fit.design
    if rows.weights is not None or rows.missing is not None:
        raise InputError("a certificate needs a table without weights or missing values")
    if design.protocol.name != "honest" or design.asked is not None:
        what = "paper protocol" if design.asked is None else "constraints"
        raise InputError(f"a certificate serves no {what}: go without")
    names, response = [fit.names[j] for j in design.kept], fit.target
    if response in names:  # The names in a certificate have to differ.
        response = f"response {response}"
    protocol, divisors = design.protocol, design.scale[: design.p]
    named = [*names, response]
    return CertifiedTable.of(rows.given, named, protocol.intercept, protocol.scale, divisors)


def model_certificate(fit: Result) -> Certificate:
    """The certificate that no support of the size of a fit is better than the fit's.

    fit: A fit that held nothing out.
    Raises InputError: The fit is not proved, has no column, or a certificate does not serve it.
    """
    if fit.status is not Status.OPTIMAL:
        raise InputError(f"a certificate needs a proved fit; this one is: {fit.status}")
    if fit.model.tau == 0:
        raise InputError("a certificate is about columns, and the size 0 has a model without any")
    # The problem has the columns that vary, and counts them alone.
    support = np.searchsorted(fit.design.kept, fit.model.support)
    return Listing.of_support(fit.problem, support).certificate(
        fit.problem, _source_of(fit, fit.table.data)
    )


def near_certificate(
    fit: Result, supports: Sequence[Index], within: float, limits: Limits
) -> Certificate:
    """The certificate that a list of supports that fit nearly as well as the model is complete.

    The value of a support is its objective times the weight of its size, by which ``compared``
    compares supports.

    supports: Raw columns of every support, the best first, which is the model's.
    within: The list has all supports whose value exceeds the least value by at most this share.
    limits: The limits of the search for the best support of every size.
    Raises InputError: A certificate does not serve the fit, or its proof is not found.
    """
    problem, comparison = compared(fit, "a certificate")
    data = fit.table.data if fit.held_out is None else fit.held_out.study.data
    source, known = _source_of(fit, data), comparison.weight
    weights = {k: float(known[k]) for k in np.flatnonzero(np.isfinite(known)).tolist()}
    sizes = [k for k in weights if k]
    best = dict[int, Index]()
    for size, ranked in zip(sizes, n_best_subsets(problem, sizes, 1, limits=limits), strict=True):
        if ranked[0].status is not Status.OPTIMAL:
            raise InputError(f"a certificate needs the best {size} proved: raise time_limit")
        best[size] = problem.constraints.padded(ranked[0].support, size)
    own = [np.searchsorted(fit.design.kept, support) for support in supports]
    return Listing(own, best, weights, within).certificate(problem, source)


def proved_choice_certificate(fit: Result, limits: Limits | None = None) -> Certificate:
    """The same as :func:`choice_certificate`, once what the fit has left open is proved.

    fit: Rows were held out. Its surface takes the proofs of all CV errors.
    limits: Of these proofs, and of the certificate; by default the proofs have the fit's time
        limit, and the certificate has none.
    Raises InputError: Limits have left a CV error open, or a certificate does not serve the fit.
    """
    assert fit.held_out is not None
    assert fit.first is not None
    if not fit.held_out.surface.complete:
        # The certificate needs a proof of every CV error; the choice may have needed few.
        fit.first = with_everything(fit.held_out.study.again(limits), fit.first)
        fit.surface = fit.first.result
    return choice_certificate(fit, limits)


def choice_certificate(fit: Result, limits: Limits | None = None) -> Certificate:
    """The certificate that no pair of a surface has a smaller CV error than its best pair.

    fit: Rows were held out; its surface is the one that the certificate is about.
    limits: Where they are reached, the certificate is given up.
    Raises InputError: A CV error is not proved, or a certificate does not serve the folds.
    """
    assert fit.held_out is not None
    data, result = fit.held_out.study.data, fit.held_out.surface
    source = _source_of(fit, data)
    if not data.folds.is_partition:
        raise InputError("a certificate needs folds that hold out every row once")
    if not result.complete:
        raise InputError(
            "a certificate needs every fold proved at every pair: take time_limit=None and "
            "prove='all', or fewer sizes and values of gamma"
        )
    best, some = result.best(), np.flatnonzero(result.taus)
    if best.tau == 0:
        raise InputError(
            "the mean alone has the least CV error, and a certificate is about columns: name taus "
            "from 1 on"
        )
    # The one model of the size 0 has nothing to prove.
    supports = [
        [
            [*(one.supports[c] for c in of_folds), one.models[t]]
            for t, of_folds in enumerate(one.choice)
            if t in some
        ]
        for one in result.by_gamma
    ]
    rows = data.rows_for("a certificate needs")
    found = result.gammas, result.taus[some], supports
    parts = [held_out for _, held_out in data.folds.splits()]
    return _of_folds(rows, *found, limits or Limits()).least_pair_certificate(
        source, parts, float(best.gamma), int(best.tau), float(best.cv_error)
    )


def row_certificate(fit: Result, limits: Limits) -> Certificate:
    """The certificate of the best columns without each row, or each group of rows, of a fit.

    limits: Limits of the searches for these columns.
    Raises InputError: Some of them are not proved, or a certificate does not serve the fit.
    """
    if fit.criterion is not None:
        raise InputError("a certificate of rows serves one size, which no criterion chooses")
    problem, data, support = chosen_support(fit)
    source = _source_of(fit, data)
    parts = list(parts_of(fit).values())
    found = row_influence(problem, data, support, parts, limits)
    if not found.proved.all():
        raise InputError("a certificate needs every row proved: take time_limit=None")
    sizes, gammas = np.array([problem.tau]), np.array([problem.given_gamma])
    without = data.without_each(parts)
    folds = _of_folds(without, gammas, sizes, [[[*found.supports, support]]], limits)
    padded = problem.constraints.padded
    supports = [padded(one, problem.tau).tolist() for one in found.supports]
    return folds.certificate(source, parts, supports=supports)


def _of_folds(
    data: RowFolds, gammas: Array, sizes: Index, supports: list[list[list[Index]]], limits: Limits
) -> ProvedFolds:
    """The folds of some rows, with what is claimed to be the best of them.

    gammas, sizes, supports, limits: As of :class:`ProvedFolds`.
    """
    k = data.folds.k  # Also the number of the problem of all rows.
    return ProvedFolds(
        [data.problem(j) for j in range(k + 1)],
        [*(data.lengths(j) for j in range(k)), np.ones(data.p)],
        gammas,
        sizes,
        supports,
        limits,
        joint=all(train.size == data.n - 1 for train, _ in data.folds.splits()),
    )
