"""Compiled evaluation of one support on many neighbours, by down-dates of one factorisation."""

from __future__ import annotations

from ..kernels.compiled import kernel
from ..kernels.linalg import cholesky, dot, factor_row, invert_factor

SOUND = 1e-6  # least pivot of I − D A Dᵀ: below it a down-date has lost its digits


@kernel
def factor_support(nb, G, b, support):  # type: ignore[no-untyped-def]
    """Inverse Cholesky factor of G_S + γ/2 I, w = L⁻¹b_S; what the support gains, |w|²."""
    L, w, tau = nb.L, nb.w, support.shape[0]
    gain = 0.0
    cholesky(G, nb.settings[0].ridge, support, tau, L)
    for a in range(tau):
        w[a] = (b[support[a]] - dot(L[a], w, a)) / L[a, a]
        gain += w[a] * w[a]
    invert_factor(L, tau, nb.top)
    return gain


@kernel
def try_support(nb, support, gain, yy, here, count):  # type: ignore[no-untyped-def]
    """Enter a factored support as incumbent of the neighbours ``here[:count]`` it improves on.

    Returns how many it could not be judged on, first in ``nb.doubt``: where next to nothing of a
    row is left by the others a down-date loses its digits.
    """
    D, T, start, L, w = nb.D, nb.T, nb.start, nb.L, nb.w
    V, S, e, v, upper, record = nb.V, nb.S, nb.e, nb.v, nb.upper, nb.support
    doubt = nb.doubt
    tau, doubtful = support.shape[0], 0
    inflated, margin = nb.settings[0].inflated, nb.settings[0].margin
    for place in range(count):
        j = here[place]
        first, m = start[j], start[j + 1] - start[j]
        for r in range(m):
            for a in range(tau):
                v[a] = D[first + r, support[a]]
            e[r] = T[first + r]
            for a in range(tau):
                V[r, a] = dot(L[a], v, a + 1)
                e[r] -= V[r, a] * w[a]
        value, sound, least = yy - gain, True, 1.0
        for r in range(m):
            for s in range(r):
                S[r, s] = -dot(V[r], V[s], tau)
            S[r, r] = 1.0 - dot(V[r], V[r], tau)
            total = factor_row(S, r, 0.0)
            if total < SOUND:
                sound = False
                break
            least = min(least, total)
            e[r] = (e[r] - dot(S[r], e, r)) / S[r, r]
            value -= e[r] * e[r]
        # what rounding of I − DADᵀ does to the value
        lost = (yy - gain - value) * inflated / least
        if not sound or lost > 1e-8 * max(value, 0.0) + margin:
            doubt[doubtful] = j
            doubtful += 1
            continue
        if value < upper[j]:
            upper[j] = value
            for a in range(tau):
                record[j, a] = support[a]
    return doubtful
