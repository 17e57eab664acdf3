"""AIC, BIC, EBIC and Mallows' Cp of given subsets, as R computes these from a least-squares fit."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array, Design
from ..errors import InputError
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.rounding import left_of_perfect_fits
from ..solvers.core.rows import MAX_COLUMNS, Rows
from ..solvers.leaps.gathering import Comparison

# Criteria that can choose the size of a model.
SIZE_CRITERIA = "aic", "bic", "ebic"


def checked_criterion(name: str, gamma: Any) -> str:
    """The criterion that is to choose the size.

    gamma: The ridge weight that was asked for, or None.
    Raises InputError: There is no such criterion, or gamma is not that of least squares.
    """
    if name not in SIZE_CRITERIA:
        known = ", ".join(map(repr, SIZE_CRITERIA))
        raise InputError(f"tau must be a whole number or one of {known}; got {name!r}")
    if gamma is not None and gamma != 0.0:
        raise InputError(
            f"tau={name!r} compares least-squares fits: leave gamma out, or pass 0; got {gamma!r}"
        )
    return name


def check_one_tree(problem: SparseRidgeProblem, what: str, instead: str) -> None:
    """Refuse a problem whose supports of all sizes one tree cannot compare.

    what, instead: Words of the message: what needs the tree, and what to do.
    Raises InputError: Coefficients have bounds, or there are too many columns.
    """
    if problem.constraints.bounded:
        raise InputError(f"{what} serves no signs or bounds on coefficients: {instead}")
    if not problem.holds_tree():
        raise InputError(
            f"{what} needs one tree of all supports, which holds at most {MAX_COLUMNS} columns; "
            f"got {problem.p}: {instead}"
        )


def least_squares(data: Rows, columns: NDArray[np.intp], n: float) -> tuple[float, int]:
    """The residual sum of squares of a least-squares fit on some columns, and the columns' rank.

    A sum of at most n·EPS of yᵀy, which n rows may owe to rounding, counts as 0.

    data: Centred rows if there is an intercept, each times the root of its weight; y is their last
        column.
    n: Number of rows, or the sum of their weights.
    """
    X, y = data.rows[:, columns], data.rows[:, -1]
    lengths = np.linalg.norm(X, axis=0)
    X = X / np.where(lengths > 0.0, lengths, 1.0)
    residual = y - X @ np.linalg.lstsq(X, y, rcond=data.rank_share(columns.size))[0]
    left = float(residual @ residual)
    count = int(data.ranks([columns])[0])
    return left if left > left_of_perfect_fits(n, float(y @ y)) else 0.0, count


def criterion_weights(name: str, n: float, p: int, intercept: int) -> Comparison:
    """How a criterion compares supports: exp(criterion/n), but for a common factor, is w(k)·RSS.

    The formulas are those of :func:`criteria`. An intercept is a coefficient that all models have,
    so that it adds to all criteria alike. A size k is the number of coefficients of a model, L − 1
    for a factor of L levels by itself (:class:`~.coefficients.Coefficients`). Only sizes that leave
    a degree of freedom or more count.

    n: Number of rows, or the sum of their weights. p: Number of columns to choose from. intercept:
        1 where models have an intercept, else 0.
    """
    k = np.arange(p + 1)
    each = {"aic": 2.0}.get(name, log(n))
    penalty = each * k
    if name == "ebic":
        penalty = penalty + 2.0 * np.array([log(comb(p, int(size))) for size in k])
    with np.errstate(over="ignore"):
        return Comparison(np.where(k < n - intercept, np.exp(penalty / n), np.inf), by_rank=True)


def criteria(
    problem: SparseRidgeProblem,
    design: Design,
    supports: Sequence[NDArray[np.intp]],
) -> dict[str, Array]:
    """Criteria of subsets that are fitted by least squares, without a ridge weight.

    With RSS the residual sum of squares, k the rank of the subset's columns, q = k + 1 with an
    intercept and k without, p the number of columns to choose from and s² = RSS / (n − q) of all p:

        aic = n log(2π RSS/n) + n + 2 (q + 1)           R's AIC(lm)
        bic = n log(2π RSS/n) + n + log(n) (q + 1)      R's BIC(lm)
        ebic = bic + 2 log C(p, k)                      Chen and Chen 2008, with their weight 1
        cp = RSS / s² − n + 2 q                         leaps' Cp

    Other conventions differ by terms that all subsets share, so that they choose alike: R's
    ``extractAIC`` is ours − n log(2π) − n − 2, the BIC of leaps is ours − n log(2π TSS/n) − n −
    log(n) with TSS the sum of squares about the mean, and the Cp of textbooks, (RSS + 2 q s²)/n, is
    s² (1 + ours/n). Weights count as copies of rows; ``lm`` takes weights as precisions instead.

    The criteria do not know that the subset was chosen: a search over many subsets makes each of
    the four too small, EBIC least.

    problem: All rows; its γ and τ are not used.
    supports: Numbers of raw columns.
    Returns: Arrays "rss", "aic", "bic", "ebic" and "cp", one entry for every subset. A perfect fit
        has −∞ for the first three criteria. Cp is NaN where all columns leave no error to estimate
        s² from.
    """
    data, own = problem.data, int(design.protocol.intercept)
    scale, n = design.y_scale**2, design.total
    fits = [
        least_squares(data, np.searchsorted(design.kept, one), design.total) for one in supports
    ]
    every, rank = least_squares(data, np.arange(problem.p), design.total)
    free = n - rank - own
    rss = np.array([one for one, _ in fits]) * scale
    k = np.array([one for _, one in fits], dtype=np.float64)
    with np.errstate(divide="ignore"):
        fit = n * np.log(2.0 * pi * rss / n) + n
    bic = fit + log(n) * (k + own + 1.0)
    chosen = np.array([log(comb(problem.p, int(one))) for one in k])
    variance = every * scale / free if free > 0 and every > 0.0 else np.nan
    return {
        "rss": rss,
        "aic": fit + 2.0 * (k + own + 1.0),
        "bic": bic,
        "ebic": bic + 2.0 * chosen,
        "cp": rss / variance - n + 2.0 * (k + own),
    }
