"""How far from dependent the independent columns of a table are, whichever of them are chosen."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import EPS

Array = NDArray[np.float64]
# A column that, with the other columns of a support projected out, keeps at most this share of its
# length counts as dependent on the other columns: 64-bit numbers keep a column's digits to 1e-16 of
# its length, and factorisations lose two or three digits more. Fits of least norm drop singular
# values below this share of the largest, which decides the rank of every support that is fitted.
# Enumeration of every support (``branching.enumeration``) and the projection on unpenalised columns
# use the share too. The value is a choice.
DEPENDENT_SHARE = 1e-13
# At most so many choices of columns are looked at to find how independent the others are: some 20
# ms. With more choices nothing is known.
MAX_CHOICES = 20_000
# With more columns than this, dependent columns are not looked into, as the projection on the null
# space is a p × p matrix.
MAX_DEPENDENT_COLUMNS = 200


class Independence(NamedTuple):
    """A bound on coefficients that fit any y: some fit of any columns has |β| ≤ |y|/least.

    least: In the span of every set of columns there is a basis of columns of the set with no
        singular value below this one; 0 where nothing is known.
    moved: The columns are off by at most this, in the spectral norm, from a table of which that
        holds and in which columns that are dependent up to rounding are dependent.
    full: Whether all columns are independent.
    """

    least: float
    moved: float
    full: bool


def independence(X: Array) -> Independence:
    """The :class:`Independence` of columns of length 1, an array of shape (m, p).

    Where all columns are independent, the least singular value σ of all is also a bound for some
    of them. Else let Z (p, d) be an orthonormal basis of the null space. A basis of columns is what
    is left without d columns J for which the rows Z_J are a regular matrix, and its least singular
    value is at least σ σ_min(Z_J), where σ is the least singular value above 0: for coefficients v
    that are 0 in J, |v − ZZᵀv| ≥ σ_min(Z_J)|v|. Columns that no dependence connects are looked at
    apart.
    """
    m, p = X.shape
    if p == 0:
        return Independence(1.0, 0.0, True)
    rounding = 8.0 * p * EPS
    if p > m and p > MAX_DEPENDENT_COLUMNS:
        return Independence(0.0, 0.0, False)
    values = np.zeros(p)
    values[: min(m, p)] = np.linalg.svd(X, compute_uv=False)
    rank = int((values > DEPENDENT_SHARE / np.sqrt(p)).sum())
    if rank == p:
        return Independence(max(float(values[-1]) - rounding, 0.0), 0.0, True)
    if p > MAX_DEPENDENT_COLUMNS:
        return Independence(0.0, 0.0, False)
    null = np.linalg.svd(X)[2][rank:]
    least = _least_regular(null.T @ null)
    moved = float(values[rank]) + rounding
    return Independence(max(least * float(values[rank - 1]) - rounding, 0.0), moved, False)


def _least_regular(P: Array) -> float:
    """The least σ_min(Z_J) over sets J of rows for which Z_J is regular; P = ZZᵀ, 0 if unknown."""
    p, least = P.shape[0], 1.0
    left = set(range(p))
    while left:
        block, new = set[int](), {left.pop()}
        while new:  # the columns that dependences connect with one of them
            block |= new
            near = np.abs(P[sorted(new)]).max(axis=0) > DEPENDENT_SHARE
            new = set(np.flatnonzero(near).tolist()) - block
        left -= block
        members = sorted(block)
        d = round(float(P[members, members].sum()))
        if d == 0:
            continue
        if comb(len(members), d) > MAX_CHOICES:
            return 0.0
        Z = np.linalg.eigh(P[np.ix_(members, members)])[1][:, -d:]
        chosen = np.array(list(combinations(range(len(members)), d)))
        values = np.linalg.svd(Z[chosen], compute_uv=False)[:, -1]
        regular = values[values > DEPENDENT_SHARE / p]
        least = min(least, float(regular.min(initial=1.0)))
    return least
