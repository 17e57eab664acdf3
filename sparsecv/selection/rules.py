"""What every rule of selection needs of a study, which folds it takes, and what "auto" stands for.

How a rule chooses is a function in :mod:`sparsecv.selection.choice`.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

from ..cv.settings import Settings
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds
from ..errors import InputError
from ..solvers.core.plan import TREE_ONLY
from .partial_errors import checked_partition


def redrawn(folds: Folds) -> bool:
    """Whether other random partitions of the rows into folds of the same kind can be drawn."""
    return folds.kind in ("kfold", "size")


class Rule(NamedTuple):
    """What one rule looks for, and what it needs.

    aim: What the rule looks for, in words for the screen.
    needs: What the study evaluates for the rule beside the surface h(γ, τ) of the first partition.
        "stability": models without pairs of folds. "corrected": errors on training rows.
        "partitions": surfaces of other random partitions. "averages": inner folds, which weigh the
        models; a rule that averages models needs no proof of the least CV error. "projection":
        models of all sizes, and projections of their average.
    """

    aim: str
    needs: frozenset[str]


RULES = {
    name: Rule(aim, frozenset(needs.split()))
    for name, needs, aim in (
        ("minimum", "", "the least CV error"),
        ("one-se", "", "the fewest features within one standard error of the least CV error"),
        ("stability", "stability", "the least sum of CV error and λ times the model's instability"),
        ("corrected", "corrected", "the least bias-corrected CV error"),
        (
            "repeated",
            "partitions",
            "the least CV error averaged over several partitions into folds",
        ),
        ("averaged", "partitions averages", "all models together, weighted by their CV errors"),
        (
            "projected",
            "partitions averages projection",
            "the fewest features that predict nearly like the average of all models",
        ),
    )
}


def _refuse(needs: frozenset[str], data: FoldData) -> None:
    """Raise an InputError where the folds do not allow what a rule needs."""
    folds = data.folds
    if "corrected" in needs and not folds.is_partition:
        raise InputError("rule corrected needs folds that hold out every row once")
    if "averages" in needs:
        if not isinstance(data, RowFolds) and folds.k < 3:  # A fold then trains on one other fold.
            raise InputError(
                "a table that is read by chunks needs at least 3 folds for the rules averaged and "
                "projected, whose weights come from inner folds: use more folds or rule minimum"
            )
    elif "partitions" in needs and not (folds.leave_one_out or redrawn(folds)):
        raise InputError(
            "rule repeated draws partitions of its own: give the folds as a number K or size:M"
        )
    if "stability" in needs:
        if not isinstance(data, RowFolds):
            raise InputError("rule stability needs the rows in memory: this table is too large")
        checked_partition(folds.label, folds.n, True, data.weights)
        if data.missing is not None:
            what = "no missing values but --missing drop"
            raise InputError(f"rule stability takes {what}: choose another rule")
        pairs = folds.k * (folds.k - 1) // 2
        # The rule stability refuses more rows than this, summed over all pairs of folds, which is n
        # k (k − 1) / 2 with k folds and n rows: a model without each pair predicts every row, so
        # this many losses, of one γ and τ, take 200 MB.
        if pairs * folds.n > 25_000_000:
            raise InputError(
                f"rule stability solves every pair of folds, {pairs:,} here: use fewer folds"
            )


def checked_repeats(repeats: Any) -> int:
    """A number of partitions, once it is known to be a whole number of at least 2."""
    if not isinstance(repeats, Integral) or isinstance(repeats, bool) or repeats < 2:
        raise InputError(f"repeats must be a whole number >= 2; got {repeats!r}")
    return int(repeats)


def resolved_rule(rule: str, data: FoldData, settings: Settings) -> str:
    """The rule that "auto" stands for: projected beyond 45 columns that vary, else minimum.

    The methods search and bounds look for the least CV error alone, so that "auto" stands for
    minimum there.
    """
    if rule != "auto":
        return rule
    return "projected" if data.n_units > TREE_ONLY and not settings.searches else "minimum"


def rule_reason(rule: str, data: FoldData, settings: Settings) -> str:
    """Why a rule is taken, in words that can stand behind the name of the rule.

    rule: As the user asked for it.
    """
    if rule != "auto":
        return "as asked"
    if settings.searches:
        return f"method {settings.method} looks for the least CV error alone"
    many = f"more than {TREE_ONLY}" if data.n_units > TREE_ONLY else f"at most {TREE_ONLY}"
    return f"the default for {data.n_units} feature{'s' if data.n_units > 1 else ''}, {many}"


def allowed_rule(rule: str, data: FoldData, settings: Settings) -> str:
    """The rule, with "auto" resolved, once the folds and the method are known to allow the rule.

    Raises InputError: The rule is unknown, the folds do not allow the rule, or the rule needs
        h(γ, τ) at every τ where the method looks for the best τ alone.
    """
    rule = resolved_rule(rule, data, settings)
    if rule not in RULES:
        raise InputError(f"rule must be auto or one of {', '.join(RULES)}; got {rule!r}")
    if rule != "minimum" and settings.searches:
        raise InputError(f"rule {rule} needs h at every tau: use method exact or grid")
    _refuse(RULES[rule].needs, data)
    return rule
