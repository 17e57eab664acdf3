"""What every rule of selection looks for, which folds it takes, and which rule is the default.

A rule chooses from h(γ, τ), the CV error of best-subset ridge regression of at most τ columns at
the ridge weight γ. How a rule chooses is a function in :mod:`sparsecv.selection.choice`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.settings import Settings, asked_gammas
from ..design.design import Array
from ..design.fold_data import FoldData
from ..design.folds import checked_partition
from ..errors import InputError
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.result import Status


class PairCriterion(NamedTuple):
    """The number that a rule minimises, of every pair (γ, τ) of a surface.

    values, shape (γ, τ): The numbers.
    lambda_: λ of the rule stability, chosen by nested folds; else None.
    proved, shape (γ, τ): Whether all models that a number depends on are proved.
    status: Optimal, or the limit that was reached.
    """

    values: Array
    proved: NDArray[np.bool_]
    lambda_: float | None = None
    status: Status = Status.OPTIMAL


class Rule(NamedTuple):
    """What one rule looks for, and what it costs.

    aim: What the rule looks for, in words for the screen; {} stands for what a size counts.
    free: Whether the rule needs nothing beside the surface h(γ, τ) of the first partition.
    """

    aim: str
    free: bool = False


RULES = {
    "minimum": Rule("the least CV error of a pair (τ, γ)", free=True),
    "one-se": Rule("the fewest {} within one standard error of the least CV error", free=True),
    "stability": Rule("the least sum of CV error and λ times the model's instability"),
    "corrected": Rule("the least bias-corrected CV error"),
    "projected": Rule("the fewest {} that predict nearly like the average of all models"),
}


def resolved_rule(settings: Settings, protocol: str) -> tuple[str, str]:
    """The rule that is taken, and why, in words that can stand behind the name of the rule.

    settings: What is asked of the fit. The rule that it names is not checked here. Where it names
        none the rule is projected. It is minimum with the method search, over a range of γ, by the
        protocol paper, and where a certificate is wanted.
    protocol: "honest" or "paper".
    Raises InputError: The γ of the settings cannot be read.
    """
    gammas = asked_gammas(settings.gammas)
    if settings.rule is not None:
        return settings.rule, "as asked"
    if settings.searches:
        return "minimum", "method search looks for the least CV error alone"
    if isinstance(gammas, GammaSpan):
        return "minimum", "over a range of γ the least CV error alone is searched and proved"
    if protocol == "paper":
        return "minimum", "the rule of the papers, as --protocol paper asks for their set-up"
    if settings.certificate:
        return "minimum", "a certificate proves that no CV error is smaller"
    return "projected", "the default"


def takes_average(settings: Settings, protocol: str) -> bool:
    """Whether the rule that is taken under a protocol, "honest" or "paper", averages models."""
    rule, _ = resolved_rule(settings, protocol)
    return rule == "projected"


def check_rule(rule: str, data: FoldData, settings: Settings) -> None:
    """Refuse a rule that the folds or the method do not allow.

    Raises InputError: The rule is unknown, the folds do not allow the rule, or the rule needs
        h(γ, τ) at every τ where the method looks for the best τ alone. The rules minimum and one-se
        take all folds.
    """
    if rule not in RULES:
        raise InputError(f"rule must be one of {', '.join(RULES)}; got {rule!r}")
    if rule != "minimum" and settings.searches:
        raise InputError(f"rule {rule} needs h at every tau: use method exact or grid")
    folds = data.folds
    if rule == "corrected" and not folds.is_partition:
        raise InputError("rule corrected needs folds that hold out every row once")
    if rule == "projected" and not data.has_inner_folds:
        raise InputError(
            "a table whose rows are not in memory needs at least 3 folds for the rule projected, "
            "whose weights come from inner folds: use more folds or rule minimum"
        )
    if rule == "stability":
        rows = data.rows_for("rule stability needs").rows
        # This raises an InputError, too, where pairs of folds cannot be left out.
        checked_partition(folds.label, folds.n, nested=True, weights=rows.weights)
        if rows.missing is not None:
            # Every fold fills its missing values its own way; losses on all rows need one way.
            what = "no missing values but --missing drop"
            raise InputError(f"rule stability takes {what}: choose another rule")
        left = folds.n - int(np.sort(folds.sizes)[-2:].sum())
        if left < 2:
            raise InputError(
                f"rule stability leaves out two folds at once, which leaves {left} of {folds.n} "
                "rows to train on, and at least 2 are needed: use more folds or rows, or another "
                "rule"
            )
        pairs = folds.k * (folds.k - 1) // 2
        # The limit is on the losses of one γ and τ: a model without each pair of folds predicts
        # every row. 25 million of them take 200 MB.
        if pairs * folds.n > 25_000_000:
            raise InputError(
                "rule stability predicts every row without every pair of folds: "
                f"{pairs:,} pairs times {folds.n:,} rows exceed 25,000,000; use fewer folds"
            )
