"""Weights of a grid's models in their average, and which sizes are worth a place in it.

Best-subset models change a lot with few rows (Breiman 1996, "Heuristics of instability"), and many
pairs (τ, γ) have CV errors that cannot be told apart: averaging their models rather than choosing
one model lowers the test error where rows are few. The weights h^(−n/10) are tempered Gaussian
profile likelihoods h^(−n/2) of the held-out rows; the likelihoods would nearly choose one pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cv.needs import Known, Needed
from ..cv.plan import RunPlan
from ..design.design import Array
from ..design.folds import Index
from ..solvers.supports.path import window_ends


class AverageSettings(NamedTuple):
    """Numbers that define the average and the inner folds of its weights."""

    # A model of CV error h on n rows has weight h^(−n/temperature), where a row of weight w counts
    # as w rows. The value is measured:
    # experiments/selection/average_weights.py compares test errors under other values.
    temperature: float = 10.0
    # A model whose weight is below this share of the largest weight is left out of the average.
    # Beyond 45 columns, where estimates suffice, other partitions then skip the γ at which every
    # model is left out, and the sizes beyond the last that has a model.
    min_weight_share: float = 1e-4
    # More folds than this are joined to this many blocks, and the folds of a block share their
    # weights, which takes 10 inner fits.
    max_blocks: int = 5
    # Where sizes grow, the last sizes, this share of those tried, say whether larger ones are worth
    # trying. The share is a choice.
    last_share: float = 0.25
    # The first sizes that are tried go up to this one.
    first_end: int = 32
    # Where the next sizes to try are more than this share of all, all are tried at once, because
    # smaller sizes are then searched again: a choice.
    most_of_all: float = 0.7
    # The proof of an inner model, or of a projection, is left after so many nodes at one γ, which
    # take about a fifth of a second, and at later γ after a tenth of them; without a time limit it
    # is not left. The seconds of a default fit, and what it finds, then seldom depend on the clock.
    # The number is a choice.
    proof_nodes: int = 2_000_000
    # Where there are two folds alone, or the folds do not partition the rows, every fold has at
    # most this many inner folds. The number is a choice.
    inner_folds: int = 4


AVERAGE = AverageSettings()


def _log_weights(errors: Array, n: float) -> tuple[Array, float]:
    """Logarithms of the weights (h / least h)^(−n/temperature) of CV errors h, and log(least h).

    A CV error of 0 counts as the smallest normal number.
    """
    logs = np.log(np.maximum(errors, np.finfo(np.float64).tiny))
    return np.asarray(-(logs - logs.min()) * (n / AVERAGE.temperature)), float(logs.min())


def model_weights(errors: Array, gammas: Array, n: float) -> Array:
    """Weights of the pairs (γ, τ), shape (γ, τ), which sum to 1.

    The weight of a pair of CV error h is proportional to h^(−n/10) times the length of the interval
    of log γ around the pair's γ; pairs of a small share of the largest weight get 0.

    errors, shape (γ, τ): CV errors ≥ 0.
    gammas, shape (γ,): Values of γ in any order.
    n: Number of rows, or the sum of their weights.
    """
    weight = np.exp(_log_weights(errors, n)[0]) * _interval_lengths(gammas)[:, None]
    weight[weight < AVERAGE.min_weight_share * weight.max()] = 0.0
    return np.asarray(weight / weight.sum())


def of_average(known: Known, n: float) -> Needed:
    """What the average needs proved: pairs whose weight can be above 0, and that of least estimate.

    The weight of a pair falls with its CV error. So a pair weighs at most as much as the lower
    bound on its error says, and the heaviest pair at least as much as the upper bounds say. The
    average takes the CV error of these pairs and their models of all rows, so that both are needed.

    n: Number of rows, or the sum of their weights.
    Returns: Pairs (γ, τ), the same for errors and for models.
    """
    lengths = np.log(np.maximum(_interval_lengths(known.gammas), np.finfo(np.float64).tiny))
    tiny = np.finfo(np.float64).tiny
    most, least = (
        lengths[:, None] - np.log(np.maximum(errors, tiny)) * (n / AVERAGE.temperature)
        for errors in (known.lower, known.upper)
    )
    needed = most >= least.max() + np.log(AVERAGE.min_weight_share) - 1e-9
    needed[known.least()] = True
    return Needed(needed, needed)


def worth_more_sizes(errors: Array, gammas: Array, n: float) -> bool:
    """Whether sizes beyond those tried may carry weight in the average.

    They may where one of the last quarter of the sizes does, or where the least CV error of a size
    falls over this quarter. A second minimum beyond sizes at which errors rise is not looked for.

    errors, shape (γ, τ): CV errors, with sizes in increasing order.
    n: Number of rows, or the sum of their weights.

    Examples
    --------
    >>> errors, gamma = np.array([[9.0, 3.0, 1.0, 1.1, 1.4, 1.9, 2.5, 3.0]]), np.array([1.0])
    >>> worth_more_sizes(errors, gamma, 200), worth_more_sizes(errors, gamma, 20)
    (False, True)
    """
    last = max(0, errors.shape[1] - max(2, round(AVERAGE.last_share * errors.shape[1])))
    weighted = model_weights(errors, gammas, n)[:, last:] > 0.0
    least = errors.min(axis=0)
    return bool(weighted.any() or least[-1] < least[last])


def soft_least(errors: Array, n: float) -> float:
    """A soft minimum of CV errors ≥ 0 on n rows: the h whose weight h^(−n/10) is their mean weight.

    The result lies between the least and the largest of the errors.
    """
    weights, least = _log_weights(errors, n)
    return float(np.exp(least - np.log(np.mean(np.exp(weights))) * (AVERAGE.temperature / n)))


def _interval_lengths(gammas: Array) -> Array:
    """The length of the interval of log γ that each γ of a grid stands for, shape (γ,).

    It is half the distance between the two neighbours of log γ. At an end of the grid it is half
    the distance to the one neighbour. γ = 0 counts as far below the least γ > 0 as the next γ is
    above that, or as a decade below where there is no other. All lengths are 1 where γ are equal.

    gammas, shape (γ,): In any order.
    """
    order = np.argsort(gammas, kind="stable")
    positive = np.log(np.unique(gammas[gammas > 0.0]))
    if positive.size == 0:
        return np.ones(gammas.size)
    below = positive[1] - positive[0] if positive.size > 1 else np.log(10.0)
    none = gammas[order] == 0.0
    steps = np.diff(np.where(none, positive[0] - below, np.log(np.where(none, 1.0, gammas[order]))))
    if steps.sum() == 0.0:  # All γ are equal.
        return np.ones(gammas.size)
    found = np.empty(gammas.size)
    found[order] = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    return found


class Tried(NamedTuple):
    """Sizes that are tried together.

    taus: The sizes, increasing.
    end: Sizes up to this one say whether larger ones are worth trying.
    """

    taus: Index
    end: int


def growing_sizes(every: Index, named: Index) -> list[Tried]:
    """The sizes that are tried first, and those that are tried next as long as they are worth it.

    They end where windows of the search for supports end, which then finds the same supports of
    small sizes however far sizes grow.

    every, named: All sizes that may be worth trying, and sizes that are tried in any case.
    """
    most = int(every[-1])
    below = min(most - 1, AVERAGE.most_of_all * most)
    ends = [end for end in window_ends(most) if AVERAGE.first_end <= end <= below]
    return [Tried(np.union1d(every[every <= end], named), end) for end in (*ends, most)]


def proof_nodes(plan: RunPlan) -> int | None:
    """The most nodes of the proof of an inner model or a projection; None without a time limit."""
    return None if plan.limits.remaining() is None else AVERAGE.proof_nodes
