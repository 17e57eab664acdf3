"""What every rule of selection needs of a study, which folds it takes, and what "auto" stands for.

How a rule chooses is a function in :mod:`sparsecv.selection.choice`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from ..cv.settings import Settings
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds
from ..errors import InputError
from ..solvers.leaps.all_sizes import TREE_ONLY
from .partial_errors import checked_partition

# The rule stability refuses more rows than this, summed over all pairs of folds: a model without
# each pair predicts every row, so this many losses take 200 MB. Twice the number takes 400 MB.
MAX_ROWS_OF_PAIRS = 25_000_000


def redrawn(folds: Folds) -> bool:
    """Whether other random partitions of the rows into folds of the same kind can be drawn."""
    return folds.kind in ("kfold", "size")


def _any_folds(data: FoldData) -> None:
    """Refuse no folds."""


def _refuse_stability(data: FoldData) -> None:
    folds = data.folds
    if not isinstance(data, RowFolds):
        raise InputError("rule stability needs the rows in memory: this table is too large")
    checked_partition(folds.label, folds.n)
    if folds.k < 3:
        raise InputError(f"rule stability needs at least 3 folds; got {folds.k}")
    if data.weights is not None:
        raise InputError("rule stability takes no weights: choose another rule")
    pairs = folds.k * (folds.k - 1) // 2
    if pairs * folds.n > MAX_ROWS_OF_PAIRS:
        raise InputError(
            f"rule stability solves every pair of folds, {pairs:,} here: use fewer folds"
        )


def _refuse_corrected(data: FoldData) -> None:
    if not data.folds.is_partition:
        raise InputError("rule corrected needs folds that hold out every row once")


def _refuse_repeated(data: FoldData) -> None:
    if not (data.folds.leave_one_out or redrawn(data.folds)):
        raise InputError(
            "rule repeated draws partitions of its own: give the folds as a number K or size:M"
        )


def _refuse_averaged(data: FoldData) -> None:
    """Refuse two folds of a table that is read by chunks, whose training rows have no folds."""
    if not isinstance(data, RowFolds) and data.folds.k < 3:
        raise InputError(
            "a table that is read by chunks needs at least 3 folds for the rules averaged and "
            "projected, whose weights come from inner folds: use more folds or rule minimum"
        )


@dataclass(frozen=True)
class Rule:
    """What one rule needs.

    least: What the rule minimises, in words for a table.
    needs: What the study evaluates for the rule beside the surface h(γ, τ) of the first partition.
        "stability": models without pairs of folds. "corrected": errors on training rows.
        "partitions": surfaces of other random partitions. "averages": inner folds, which weigh the
        models; a rule that averages models needs no proof of the least CV error. "projection":
        models of all sizes, and projections of their average.
    refuse: Raises an InputError where the folds do not allow the rule.
    every_tau: The rule needs h(γ, τ) at every τ, not only at the best τ.
    """

    least: str
    needs: frozenset[str] = frozenset()
    refuse: Callable[[FoldData], None] = _any_folds
    every_tau: bool = True


RULES = {
    "minimum": Rule("CV error", every_tau=False),
    "one-se": Rule("τ within a standard error"),
    "stability": Rule("CV error + λ·stability", frozenset({"stability"}), _refuse_stability),
    "corrected": Rule("bias-corrected CV error", frozenset({"corrected"}), _refuse_corrected),
    "repeated": Rule(
        "CV error averaged over partitions", frozenset({"partitions"}), _refuse_repeated
    ),
    "averaged": Rule(
        "no pair: all models, weighted by their errors",
        frozenset({"partitions", "averages"}),
        _refuse_averaged,
    ),
    "projected": Rule(
        "held-out distance to the average",
        frozenset({"partitions", "averages", "projection"}),
        _refuse_averaged,
    ),
}


def checked_repeats(repeats: Any) -> int:
    """Validate a number of partitions."""
    if not isinstance(repeats, Integral) or isinstance(repeats, bool) or repeats < 2:
        raise InputError(f"repeats must be a whole number >= 2; got {repeats!r}")
    return int(repeats)


def checked_rule(rule: str) -> None:
    """Refuse an unknown rule."""
    if rule != "auto" and rule not in RULES:
        raise InputError(f"rule must be auto or one of {', '.join(RULES)}; got {rule!r}")


def resolved_rule(rule: str, data: FoldData, settings: Settings) -> str:
    """The rule that "auto" stands for: projected beyond 45 columns that vary, else minimum.

    The methods search and bounds look for the least CV error alone, so that "auto" stands for
    minimum there.
    """
    if rule != "auto":
        return rule
    return "projected" if data.p > TREE_ONLY and not settings.searches else "minimum"


def rule_reason(rule: str, data: FoldData, settings: Settings) -> str:
    """Why a rule is taken, in words that can stand behind the name of the rule.

    rule: As the user asked for it.
    """
    if rule != "auto":
        return "as asked"
    if settings.searches:
        return f"method {settings.method} looks for the least CV error alone"
    many = f"more than {TREE_ONLY}" if data.p > TREE_ONLY else f"at most {TREE_ONLY}"
    return f"the default for {data.p} feature{'s' if data.p > 1 else ''}, {many}"


def allowed_rule(rule: str, data: FoldData, settings: Settings) -> str:
    """The rule, with "auto" resolved, once the folds and the method are known to allow the rule.

    Raises InputError: The rule is unknown, the folds do not allow the rule, or the rule needs
        h(γ, τ) at every τ where the method looks for the best τ alone.
    """
    checked_rule(rule)
    rule = resolved_rule(rule, data, settings)
    if RULES[rule].every_tau and settings.searches:
        raise InputError(f"rule {rule} needs h at every tau: use method exact or grid")
    RULES[rule].refuse(data)
    return rule
