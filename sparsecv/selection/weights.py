"""Weights of a grid's models in their average, and which sizes are worth a place in it.

Best-subset models change a lot with few rows (Breiman 1996, "Heuristics of instability"), and many
pairs of a size τ and a ridge weight γ have CV errors h(γ, τ) that cannot be told apart: averaging
their models rather than choosing one model lowers the test error where rows are few. On n rows a
model of CV error h has weight h^(−n/10), a tempered form of h^(−n/2), the Gaussian profile
likelihood of the held-out rows. The likelihoods themselves would nearly choose one pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.needs import Known, Need, Needed
from ..cv.plan import RunPlan
from ..design.design import Array
from ..design.folds import Index
from ..schedule import (
    NODES_OF_AVERAGED_PROOFS,
    NODES_OF_AVERAGED_PROOFS_BEYOND,
    UNITS_OF_AVERAGED_PROOFS,
)
from ..solvers.core.plan import window_ends
from ..solvers.core.rounding import EQUAL_SHARE


class AverageSettings(NamedTuple):
    """Numbers that define the average and the inner folds of its weights."""

    # A model of CV error h on n rows has weight h^(−n/temperature), where a row of weight w counts
    # as w rows. The value is measured:
    # experiments/selection/average_weights.py compares test errors under other values.
    temperature: float = 10.0
    # A model whose weight is below this share of the largest weight is left out of the average.
    # Other partitions skip the γ at which every model of the first partition is left out, and the
    # sizes beyond the last that has a model.
    min_weight_share: float = 1e-4
    # More folds than this are joined to this many blocks, and the folds of a block share their
    # weights. With 5 blocks these take 10 inner fits, one without each pair of blocks. The number
    # is a choice.
    max_blocks: int = 5
    # Where sizes grow, the last sizes, this share of those tried, say whether larger ones are worth
    # trying. The share is measured: with a quarter, two splits of each of the eight data sets of
    # experiments/selection/default_fits.py chose as many columns, but for one split of Ames whose
    # test error was .108 in place of .104, and 5,000 x 500 with 20 true columns took 1.7 times as
    # long.
    last_share: float = 0.125
    # The first round of sizes goes at least up to this one. The number is a choice.
    first_end: int = 32
    # A round of sizes ends at most at this share of the largest size; where the next round would
    # end beyond, it has all sizes, because a further round of few sizes would save little. The
    # number is a choice.
    most_of_all: float = 0.7
    # Where there are two folds alone, or the folds do not partition the rows, every fold has at
    # most this many inner folds. The number is a choice.
    inner_folds: int = 4


AVERAGE = AverageSettings()


def _log_weights(errors: Array, n: float) -> tuple[Array, float]:
    """Logarithms of the weights (h / least h)^(−n/temperature) of CV errors h, and log(least h).

    An error of 0 counts as the smallest normal number, and the least error must be below ∞.
    Dividing by the least h keeps the weights from overflowing.
    """
    logs = _log(errors)
    return np.asarray(-(logs - logs.min()) * (n / AVERAGE.temperature)), float(logs.min())


def _log(values: Array) -> Array:
    """Logarithms of numbers >= 0, where 0 counts as the smallest normal number."""
    return np.asarray(np.log(np.maximum(values, np.finfo(np.float64).tiny)))


def model_weights(errors: Array, gammas: Array, n: float) -> Array:
    """Weights of the models of the pairs (γ, τ) in their average, shape (γ, τ), which sum to 1.

    The weight of a pair of CV error h is proportional to h^(−n/10) times the length of the interval
    of log γ around the pair's γ; pairs of a small share of the largest weight get 0.

    errors, shape (γ, τ): CV errors ≥ 0, not all of them ∞; a pair of error ∞ gets 0. A common
        factor of all errors changes no weight, so that sums of squared errors serve as well.
    gammas, shape (γ,): Values of γ in any order.
    n: Number of rows, or the sum of their weights.
    """
    weight = np.exp(_log_weights(errors, n)[0]) * _interval_lengths(gammas)[:, None]
    weight[weight < AVERAGE.min_weight_share * weight.max()] = 0.0
    return np.asarray(weight / weight.sum())


def of_columns(errors: Array, taus: Index) -> Array:
    """CV errors as an average sees them: ∞ at the size 0, which so carries no weight.

    An average with the mean alone in it would be a shrunken average of the others, as larger γ
    give; the mean alone is compared with the projections of the average instead.

    errors, shape (γ, τ), and taus, shape (τ,): The errors of these sizes.
    """
    return np.asarray(np.where(taus > 0, errors, np.inf))


def of_average(known: Known, n: float) -> Needed:
    """What the average needs proved: pairs whose weight can be above 0, and that of least estimate.

    A pair gets the weight 0 where its share of the largest weight is too small, as
    :func:`model_weights` says. The weight falls with the CV error. So a pair weighs at most as much
    as the lower bound on its error says, and the heaviest pair at least as much as the upper bounds
    say.

    known: What is known of h(γ, τ), with bounds.
    n: Number of rows, or the sum of their weights.
    Returns: The same pairs (γ, τ) for errors and for models: the average takes the CV error of a
        pair for its weight, and its model of all rows.
    """
    lengths = _log(_interval_lengths(known.gammas))[:, None]
    lower, upper, error = (
        of_columns(one, known.taus) for one in (known.lower, known.upper, known.error)
    )
    largest = lengths - _log(lower) * (n / AVERAGE.temperature)
    smallest = lengths - _log(upper) * (n / AVERAGE.temperature)
    needed = largest >= smallest.max() + np.log(AVERAGE.min_weight_share) - EQUAL_SHARE
    needed[known._replace(error=error).least()] = True
    return Needed(needed, needed)


def of_pairs(gammas: Array, taus: Index, pairs: NDArray[np.bool_], models: bool = False) -> Need:
    """The need of the CV errors of some pairs, whatever is known of them.

    gammas, shape (γ,), and taus, shape (τ,): Values of γ and sizes.
    pairs, shape (γ, τ): Which pairs are needed.
    models: Whether their models of all rows are needed, too.
    """

    def need(known: Known) -> Needed:
        errors = np.zeros(known.error.shape, dtype=bool)
        sizes = np.flatnonzero(np.isin(known.taus, taus))
        for gamma, some in zip(gammas, pairs, strict=True):
            errors[np.ix_(known.gammas == gamma, sizes)] = some
        return Needed(errors, errors if models else np.zeros_like(errors))

    return need


def worth_more_sizes(errors: Array, gammas: Array, n: float) -> bool:
    """Whether sizes beyond those tried may carry weight in the average.

    They may where one of the last eighth of the sizes (``last_share``; at least two sizes) does,
    or where the least CV error of a size falls over this eighth. A second minimum beyond sizes at
    which errors rise is not looked for.

    errors, shape (γ, τ): CV errors of the sizes tried, in increasing order of the sizes.
    gammas, shape (γ,): Values of γ in any order.
    n: Number of rows, or the sum of their weights.

    Examples
    --------
    >>> errors, gamma = np.array([[9.0, 3.0, 1.0, 1.1, 1.4, 1.9, 2.5, 3.0]]), np.array([1.0])
    >>> worth_more_sizes(errors, gamma, 200), worth_more_sizes(errors, gamma, 20)
    (False, True)
    """
    n_last = max(2, round(AVERAGE.last_share * errors.shape[1]))
    first_of_last = max(0, errors.shape[1] - n_last)
    weighted = model_weights(errors, gammas, n)[:, first_of_last:] > 0.0
    least = errors.min(axis=0)
    return bool(weighted.any() or least[-1] < least[first_of_last])


def soft_least(errors: Array, n: float) -> float:
    """A soft minimum of CV errors ≥ 0 on n rows: the h whose weight h^(−n/10) is their mean weight.

    The result lies between the least and the largest of the errors.
    """
    log_weights, log_least = _log_weights(errors, n)
    log_mean = np.log(np.mean(np.exp(log_weights)))
    return float(np.exp(log_least - log_mean * (AVERAGE.temperature / n)))


def _interval_lengths(gammas: Array) -> Array:
    """The length of the interval of log γ that each γ of a grid stands for, shape (γ,).

    It is half the distance between the two neighbours of the γ on the scale of log γ. At an end of
    the grid it is half the distance to the one neighbour. γ = 0 counts as far below the least γ > 0
    as the next γ is above that, or as a decade below where there is no other. All lengths are 1
    where all γ are equal.

    gammas, shape (γ,): In any order.
    """
    positive = np.log(np.unique(gammas[gammas > 0.0]))
    if positive.size == 0:
        return np.ones(gammas.size)
    order = np.argsort(gammas, kind="stable")
    increasing = gammas[order]
    step_to_zero = positive[1] - positive[0] if positive.size > 1 else np.log(10.0)
    logs = np.log(np.where(increasing > 0.0, increasing, 1.0))
    logs[increasing == 0.0] = positive[0] - step_to_zero
    steps = np.diff(logs)
    if steps.sum() == 0.0:
        return np.ones(gammas.size)
    lengths = np.empty(gammas.size)
    lengths[order] = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    return lengths


class SizeRound(NamedTuple):
    """Sizes that are tried together, before larger ones are.

    taus: The sizes, increasing.
    end: The CV errors of sizes up to this one say whether larger ones are worth trying.
    """

    taus: Index
    end: int


def growing_sizes(every: Index, named: Index) -> list[SizeRound]:
    """Rounds of more and more sizes; each is tried where errors of the one before say so.

    The search for supports without a proof takes ranges of sizes one after the other. A round ends
    where such a range does (:func:`~sparsecv.solvers.core.plan.window_ends`), so that a later
    round goes on there, and finds what one search of all its sizes finds.

    every: All sizes that may be worth trying, increasing.
    named: Sizes that every round has, such as those that the user asks for; may be empty.
    """
    most = int(every[-1])
    below = min(most - 1, AVERAGE.most_of_all * most)
    ends = [end for end in window_ends(most) if AVERAGE.first_end <= end <= below]
    return [SizeRound(np.union1d(every[every <= end], named), end) for end in (*ends, most)]


def proof_nodes(plan: RunPlan, units: int) -> int | None:
    """The most nodes of the proof of an inner model or a projection; None without a time limit.

    units: Number of columns, or of groups of columns.
    """
    if plan.limits.remaining() is None:
        return None
    few = units <= UNITS_OF_AVERAGED_PROOFS
    return NODES_OF_AVERAGED_PROOFS if few else NODES_OF_AVERAGED_PROOFS_BEYOND
