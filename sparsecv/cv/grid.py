"""The default grid of γ, and how far it goes past its ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..solvers.core.rounding import SIX_DIGITS_OF_SQUARES
from .executor import OutOfTime
from .settings import DEFAULT_GAMMAS

# The default grid, where it is extended past its lower end, goes no lower than this γ. Where
# columns have a spread of 1, so small a ridge changes hardly a digit of the CV error. It is a
# choice.
MIN_GAMMA = 1e-10
# Why a grid goes no lower, as the end of a sentence.
BLURRED = "rounding would move CV errors of smaller γ by more than a millionth"
# A γ is visited between others, or past the end of the grid, only if that can lower, or has
# lowered, the least CV error by this share. The number is a choice.
MIN_GAIN = 1e-4


def grown_grid(
    visit: Callable[[Sequence[float]], object],
    score: Callable[[float], float],
    spent: Callable[[], bool],
    blurred: Callable[[float], bool],
) -> tuple[list[float], str]:
    """Visit γ past an end of the default grid, as long as that lowers the score.

    Where the columns are not standardised and nearly dependent, even a γ of the default grid may be
    so small that rounding moves CV errors noticeably. Such γ are left out at the lower end, except
    that the largest γ always stays.

    visit: Takes γ at which the score is asked for next. Those of the default grid were visited. An
        OutOfTime that it raises ends the grid before these γ.
    score: The score at a γ that was visited; the γ of least score is the best.
    spent: Whether the time is up, so that the grid ends.
    blurred: Whether rounding moves the errors at a γ that was visited by more than
        :func:`~sparsecv.solvers.core.rounding.exact_margin` allows.
    Returns: All γ of the grid; and a text that says why the grid could not be extended, where the
        best γ is at its end, otherwise "".
    """
    start, ratio = DEFAULT_GAMMAS.tolist(), float(DEFAULT_GAMMAS[1] / DEFAULT_GAMMAS[0])
    scores, dropped = {gamma: score(gamma) for gamma in start}, False
    while len(scores) > 1 and blurred(min(scores)):
        del scores[min(scores)]
        dropped = True
    for step in (1.0 / ratio, ratio):
        while True:
            order = sorted(scores, reverse=step > 1.0)
            edge, gamma, best = order[0], order[0] * step, min(scores.values())
            # A single γ, where all others are left out, has no neighbour that could be better.
            worth = len(order) == 1 or best < scores[order[1]] * (1.0 - MIN_GAIN)
            if scores[edge] > best or not worth:
                break
            at_end = f"The best γ of the grid is at its end, {edge:.3g}: "
            # The default grid is not extended past its lower end where the least CV error is at
            # most this share of the largest: the held-out rows are then fitted to five digits, as
            # where they are among the training rows too, and smaller γ compare rounding errors. The
            # value is a choice.
            if step < 1.0 and best <= SIX_DIGITS_OF_SQUARES * max(scores.values()):
                return list(scores), f"{at_end}the CV error there is next to 0"
            if step < 1.0 and dropped:
                return list(scores), f"{at_end}{BLURRED}"
            if gamma < MIN_GAMMA:
                return list(scores), f"{at_end}the grid goes no lower than {MIN_GAMMA:g}"
            try:
                if spent():
                    raise OutOfTime
                visit([gamma])
            except OutOfTime:
                return list(scores), f"{at_end}the time was up before other γ"
            if blurred(gamma):
                return list(scores), f"{at_end}{BLURRED}"
            scores[gamma] = score(gamma)
    return list(scores), ""
