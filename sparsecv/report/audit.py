"""The audit of a fit: one record of everything that says whether its columns can be trusted.

The record calls what answers each question once. The screen, the page and the JSON file read it,
and compute nothing themselves.

The module adds ``report(audit=True)`` and ``--audit``. Without it the same questions are asked one
by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..schedule import HALVES, PARTS_OF_AN_AUDIT
from ..selection.certified_choice import near_certificate, proved_choice_certificate
from ..selection.claims import aim_of, beyond_certificate
from ..selection.criteria import least_squares
from ..selection.nested import NestedError, PeerError, nested_error, peer_errors
from ..selection.result import Result
from ..solvers.core.certificate_file import Certificate
from ..solvers.core.limits import Limits
from .frames import comparison
from .peers import fitted_peers
from .questions import (
    importance_of,
    inference_of,
    influence_of_rows,
    near_best_of,
    partitions_of_rows,
    removals_of_features,
)
from .sections import counted, listed, number, p_value_text, percent

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
# Near-best models are counted up to these shares above the least value.
WITHIN = (0.01, 0.02, 0.05)
# A column is judged by the near-best models within the first of WITHIN that is at least this number
# over n, the number of rows or the sum of their weights. A sum of squares that is larger by the
# share 2/n has an AIC that is larger by 2. Burnham and Anderson (2002) say that data hardly tell
# this difference from none.
AIC_DIFFERENCE = 2.0
# A column holds where its p-value, if there is one, is below this: the usual level.
LEVEL = 0.05
# At most so many rows are removed, a choice, and so many partitions of the rows are drawn. The
# second number is the default of ``partitions``.
MOST_ROWS, PARTITIONS_DRAWN = 10, 20
# Where n·R²/(1 − R²) over the number of columns is below this, p-values have little power. In
# experiments/results/inference_power.txt searches find .11 to .27 of the columns that matter where
# that number is 5, and .80 to .93 where it is 23. The number between these is a choice.
LEAST_SIGNAL = 15.0
# Above this R² a criterion with an estimated σ loses some strong columns, in the same file.
HIGH_R2 = 0.9
# A certificate lists at most so many near-best models. Checking 2,000 takes some 3 s: a choice.
MOST_CERTIFIED = 2000
# A sentence has at most so many characters of row labels, and of names of columns: choices.
ROW_CHARACTERS, NAME_CHARACTERS = 40, 75


# The answers of an audit that a result keeps, under the names of the methods that return them.
AUDITED = ("inference", "row_influence", "partitions")
# The certificate of a page has the page's name with this ending.
PROOF_SUFFIX = ".proof.txt"
# What is said of columns of each verdict, of one and of several.
VERDICTS = {
    "holds": ("holds", "hold"),
    "falls": ("falls", "fall"),
    "open": ("stays open", "stay open"),
}
ONLY_MODEL = "no other model is near-best"
NOTHING_HELD_OUT = (
    "nothing is held out; SparseRidgeCV(rule='minimum'), and sparsecv cv DATA --rule minimum "
    "--audit, have it"
)


class AuditedColumn(NamedTuple):
    """What is known of a column of the model; a factor or a group is one. NaN stands for nothing.

    name, coef: Its name, and the coefficient of the model; NaN for a factor or a group.
    p_low, p_high, low, high: The two numbers between which its p-value lies, and the ends of its
        interval. They know about the search.
    near, positive, negative: For every share of WITHIN the number of near-best models that have it,
        and that have it with this sign.
    lost, lost_proved: The share by which the least value rises without it; whether it is proved.
    alone: The labels of the rows, or groups, each of which alone removes it from the best columns.
    removed_by: The labels of the rows, as few as are known, that together remove it: where a single
        row does, the first of ``alone``. They are rows, too, where ``alone`` has groups.
    safe: So many rows are proved not to remove it, whichever they are.
    unproved: The number of single rows, or groups, of which it is not proved what is best.
    partitions: The share of other partitions on which it is chosen.
    verdict, sentence: "holds", "falls" or "open", and why.
    """

    name: str
    coef: float = math.nan
    p_low: float = math.nan
    p_high: float = math.nan
    low: float = math.nan
    high: float = math.nan
    near: Sequence[int] = ()
    positive: Sequence[int] = ()
    negative: Sequence[int] = ()
    lost: float = math.nan
    lost_proved: bool = True
    alone: Sequence[Any] = ()
    removed_by: Sequence[Any] = ()
    safe: int = 0
    unproved: int = 0
    partitions: float = math.nan
    verdict: str = ""
    sentence: str = ""


@dataclass
class Audit:
    """The audit of a fit.

    chosen: How the columns were chosen, in words.
    judged: The position in WITHIN of the share by which columns are judged.
    columns: The columns of the model, those of the largest effects first.
    models: The near-best models, a row for each, as ``near_best`` lists them; None for no list.
    near: The number of near-best models within every share of WITHIN; empty where they are unknown.
    complete: For every share whether it is proved that there are no more.
    about: What near-best models are compared by, in words.
    expected, peers: The error to expect on new data, and those of the mean, the lasso and ridge.
    partitions: How many other partitions were drawn, on what share of them the columns are the
        same, the sizes chosen on each, and whether the fit's own size was given, which that of the
        partitions is not; empty where none were.
    rules: The sizes that all rules choose, under their names; empty where nothing is held out.
    counts: What these sizes count, as a word.
    sigma, sigma_source, level: Of the p-values and intervals.
    what: What is removed alone: "row" or "group".
    first_row: The number from which labels count rows: in the command 1, as they are the numbers of
        the data rows of the file; in Python 0, as they are positions in the table.
    warnings: Sentences on the power of the p-values.
    missing: Why something is not there, under its name.
    proof: What the certificate proves, in words; empty where there is none.
    """

    chosen: str
    judged: int
    columns: list[AuditedColumn] = field(default_factory=list)
    models: DataFrame | None = None
    near: list[int] = field(default_factory=list)
    complete: list[bool] = field(default_factory=list)
    about: str = ""
    expected: NestedError | None = None
    peers: dict[str, PeerError] = field(default_factory=dict)
    partitions: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)
    counts: str = "feature"
    sigma: float = math.nan
    sigma_source: str = ""
    level: float = 1.0 - LEVEL
    what: str = "row"
    first_row: int = 0
    warnings: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    proof: str = ""

    @property
    def share(self) -> float:
        """The share above the least value within which near-best models judge columns."""
        return WITHIN[self.judged]

    @property
    def headline(self) -> str:
        """Which columns hold, and which do not."""
        if not self.columns:
            return "the model has no column"
        parts = list[str]()
        for verdict, verbs in VERDICTS.items():
            names = [one.name for one in self.columns if one.verdict == verdict]
            if names or not parts:
                text = f"{len(names)} of {len(self.columns)}" if not parts else f"{len(names)}"
                text += f" {verbs[len(names) != 1]}"
                parts.append(text + (f" ({listed(names, NAME_CHARACTERS)})" if names else ""))
        return "; ".join(parts)

    def save_proof(self, proof: Certificate, path: Path) -> None:
        """Write the certificate to a file, and name the file."""
        proof.save(path)
        name = path.name
        self.proof = f"{name} proves {self.proof}. Check it by sparsecv verify {name} {name}.csv"

    def entries(self) -> dict[str, Any]:
        """The record as entries of a JSON document; frames are in lists."""
        kept = {name: value for name, value in vars(self).items() if name != "models"}
        kept["columns"] = [one._asdict() for one in self.columns]
        kept["peers"] = {name: one._asdict() for name, one in self.peers.items()}
        if (own := self.expected) is not None:
            kept["expected"] = {"error": own.error, "std_error": own.std_error, "folds": own.folds}
        return kept | {"within": WITHIN, "judged_within": self.share, "headline": self.headline}


def no_audit(result: Result) -> str:
    """Why a fit has no audit: it has no columns; empty where it can be audited."""
    if result.model.tau > 0 or result.criterion is not None:
        return ""
    return (
        "the model is the mean alone; an audit is about the columns of a model, and the size 0 has "
        "none: name sizes from 1 on (taus=, or --tau) to have a model with columns"
    )


def audited(result: Result, cv: Any, limits: Limits) -> Audit:
    """The audit of a fit; frames that were asked for before are not computed again.

    cv: The folds of the fit as the user asked for them; not used where nothing was held out.
    limits: The limits of the whole audit. Its parts share the time, and say what they have not
        proved.
    Raises InputError: The fit has no audit (:func:`no_audit`).
    """
    if why := no_audit(result):
        raise InputError(why)
    n, asked = result.design.total, _Asked(result, limits)  # AIC counts rows by their weights.
    judged = next((i for i, w in enumerate(WITHIN) if w >= AIC_DIFFERENCE / n), len(WITHIN) - 1)
    found = Audit(_chosen(result), judged, missing=asked.missing)
    found.first_row = int(result.table.source.data_rows is not None)
    _ask_models(found, asked)
    tests, rows = asked.tests(), asked.rows()
    found.what = found.what if rows is None else str(rows.index.name)
    removals = asked.removals()
    worth = asked.ask(
        "importance", lambda: importance_of(result, asked.part("importance").remaining())
    )
    if tests is not None:
        found.sigma, found.sigma_source = tests.attrs["sigma"], tests.attrs["sigma_source"]
        found.level, found.warnings = tests.attrs["level"], list(_power(result, tests))
    _ask_of_the_rule(found, asked, cv)
    drawn = result.answers.get("partitions")
    chosen = result.features.among(result.model.support)
    effects = np.abs(result.feature_effects(result.model)[chosen])
    for u in chosen[np.argsort(-effects, kind="stable")].tolist():
        one = AuditedColumn(result.features.names[u])
        own = result.features.columns[u]
        if own.size == 1:
            one = one._replace(coef=float(result.model.coef[own[0]]))
        one = _tested(one, tests)
        one = _near(one, int(own[0]) if own.size == 1 else None, found.models)
        one = _removed(one, rows, removals)
        if worth is not None:
            lost, known = worth["without"][one.name] - 1.0, worth["proved"][one.name]
            one = one._replace(lost=float(lost), lost_proved=bool(known))
        if drawn is not None:
            one = one._replace(partitions=float(drawn.iloc[:, 1][one.name]))
        hidden = tests is not None and one.name in tests.attrs["hidden"]
        found.columns.append(_judged(found, one, hidden))
    return found


def proof_of(audit: Audit, result: Result, limits: Limits) -> Certificate | None:
    """One certificate of the near-best models, their best included, and of the choice of a pair.

    The audit takes what it proves, or why there is none.

    limits: Of the searches for it.
    """
    if audit.models is None:
        return None
    try:
        return _proof(audit, result, limits)
    except InputError as error:
        audit.missing["certificate"] = str(error)
        return None


def _proof(audit: Audit, result: Result, limits: Limits) -> Certificate:
    """The certificate; InputError where there is none."""
    assert audit.models is not None
    within = [
        share
        for share, count, known in zip(WITHIN, audit.near, audit.complete, strict=True)
        if known and count <= MOST_CERTIFIED
    ]
    if not within:
        raise InputError(f"no list of at most {MOST_CERTIFIED:,} near-best models is complete")
    share = within[-1]
    models = audit.models[audit.models["excess"] <= share]
    supports = [np.array(one, dtype=np.intp) for one in models["columns"]]
    made = [near_certificate(result, supports, share, limits.share(HALVES))]
    said = f"the {counted(len(models), 'near-best model')} within {percent(share)}, and that there "
    said += "are no others; the columns of the model are the best of them"
    if result.held_out is not None:
        try:
            made.append(proved_choice_certificate(result, limits.share(1.0)))
        except InputError as error:
            said += f"; nothing of the CV error ({error})"
        else:
            beyond = beyond_certificate(*result.held_out[1:], result.claim)
            said += f"; and the least CV error of all pairs{f' ({beyond})' if beyond else ''}"
    audit.proof = said
    return Certificate.joined(made)


class _Asked:
    """The questions of an audit, each of which is asked once.

    missing: Why a question has no answer, under the question's name.
    """

    def __init__(self, result: Result, limits: Limits) -> None:
        self.result, self.limits = result, limits
        self.missing: dict[str, str] = {}

    def part(self, question: str, asked_before: int = 0) -> Limits:
        """What a question may take of the time that is left, by the page of all budgets.

        asked_before: How often it was asked before, for which there is a part less each time.
        """
        return self.limits.share(PARTS_OF_AN_AUDIT[question] - asked_before)

    def ask(self, name: str, answer: Callable[[], T]) -> T | None:
        """The answer to a question; None where the fit allows none, and the reason is kept."""
        try:
            return answer()
        except InputError as error:
            self.missing[name] = str(error)
            return None

    def kept(self, name: str, answer: Callable[[], DataFrame]) -> DataFrame | None:
        """A frame that was asked for before, or the answer, which the result keeps for sections."""
        answers = self.result.answers
        if name not in answers and (found := self.ask(name, answer)) is not None:
            answers[name] = found
        return answers.get(name)

    def tests(self) -> DataFrame | None:
        """p-values and intervals."""
        result, seconds = self.result, self.part("inference").remaining()
        found = self.kept("inference", lambda: inference_of(result, 1.0 - LEVEL, None, seconds))
        if found is None and result.held_out is not None:
            self.missing["inference"] += " (sparsecv fit DATA --tau bic --audit)"
        return found

    def rows(self) -> DataFrame | None:
        """The best columns without each row under its label, or without each group of rows."""
        part = self.part("row_influence")

        def answer() -> DataFrame:
            found = influence_of_rows(self.result, part)
            if found.index.name == "row":
                found.index = found.index.map(self._label)
            return found

        return self.kept("row_influence", answer)

    def removals(self) -> DataFrame | None:
        """How many rows remove each column, with the labels of as few as are known to."""

        def answer() -> DataFrame:
            found = removals_of_features(self.result, MOST_ROWS, self.part("removals"))
            found["rows"] = [[*map(self._label, rows)] for rows in found["rows"]]
            return found

        return self.ask("removals", answer)

    def _label(self, row: int) -> int:
        """The number of a row in the file that was read; of rows in memory their position."""
        data_rows = self.result.table.source.data_rows
        return row if data_rows is None else int(data_rows[row])


def _ask_models(found: Audit, asked: _Asked) -> None:
    """List the near-best models, within the largest share of WITHIN whose list is complete."""
    for i, share in enumerate(reversed(WITHIN)):
        seconds = asked.part("near_best", i).remaining()
        ask = partial(near_best_of, asked.result, share, seconds)
        if (models := asked.ask("near_best", ask)) is None:
            return
        found.models, found.about = models, models.attrs["about"]
        excess, within = models["excess"].to_numpy(), models.attrs["within"]
        found.near = [int((excess <= one).sum()) for one in WITHIN]
        found.complete = [bool(models.attrs["complete"]) and one <= within for one in WITHIN]
        if found.complete[-1 - i]:
            return


def _ask_of_the_rule(found: Audit, asked: _Asked, cv: Any) -> None:
    """Ask what is known of the rule: the error to expect, other partitions, other rules.

    cv: The folds of the fit as the user asked for them.
    """
    result, groups = asked.result, asked.result.table.source.groups
    if result.study is None:
        asked.missing |= dict.fromkeys(("nested", "partitions"), NOTHING_HELD_OUT)
        return
    rules = asked.ask("rules", lambda: comparison(result, asked.part("rules")))
    if rules is not None:
        found.counts = result.design.counts
        found.rules = dict(zip(map(str, rules.index), map(int, rules["tau"]), strict=True))
    if result.expected is None and result.choice is not None and result.choice.size_given:
        asked.missing["nested"] = "it judges the choice of a size, and the size was given"
    elif result.expected is None:
        study = result.study.again(asked.part("nested"))
        result.expected = asked.ask("nested", lambda: nested_error(study, cv, groups=groups))
    if (own := result.expected) is not None:
        found.expected, again = own, result.study.again(asked.part("peers"))
        found.peers = peer_errors(again, cv, own, fitted_peers, groups)
    last = asked.part("partitions")  # The rest of the time is for the certificate.
    drawn = asked.kept(
        "partitions", lambda: partitions_of_rows(result, PARTITIONS_DRAWN, every=False, limits=last)
    )
    if drawn is not None:
        sizes = drawn.attrs["sizes"]
        given = result.choice is not None and result.choice.size_given
        found.partitions = {"drawn": len(sizes), "same": drawn.attrs["same"], "sizes": sizes}
        found.partitions["size_given"] = given


def _chosen(result: Result) -> str:
    """How the columns were chosen, in words."""
    model = result.model
    if result.choice is not None:
        return f"rule {result.choice.rule}: {aim_of(result.choice, result.design.counts)}"
    if result.criterion is not None:
        return f"the least {result.criterion.upper()} of all subsets of all sizes"
    size = counted(model.tau, result.design.counts)
    return f"the best fit of {size} at γ = {number(model.gamma)}; the size was given"


def _tested(one: AuditedColumn, tests: DataFrame | None) -> AuditedColumn:
    """The column with its p-value and its interval, where it was tested."""
    if tests is None or one.name not in tests.index:
        return one
    line: Any = tests.loc[one.name]
    p_low, p_high = float(line["p_low"]), float(line["p_high"])
    return one._replace(
        p_low=p_low, p_high=p_high, low=float(line["low"]), high=float(line["high"])
    )


def _near(one: AuditedColumn, position: int | None, models: DataFrame | None) -> AuditedColumn:
    """The column with how many near-best models have it, and with which sign.

    position: The position of the column in the table; None for a factor or a group, which has no
        sign.
    """
    if models is None:
        return one
    excess = models["excess"].to_numpy()
    supports: list[Any] = models["columns"].tolist()
    coefs: list[Any] = models["coef"].tolist()
    has = np.array([one.name in names for names in models["names"]])
    sign = np.zeros(len(models))
    if position is not None:
        for i in np.flatnonzero(has).tolist():
            sign[i] = np.sign(coefs[i][supports[i].index(position)])

    def counts(which: NDArray[np.bool_]) -> list[int]:
        return [int(np.count_nonzero(which & (excess <= share))) for share in WITHIN]

    return one._replace(near=counts(has), positive=counts(sign > 0), negative=counts(sign < 0))


def _removed(
    one: AuditedColumn, rows: DataFrame | None, removals: DataFrame | None
) -> AuditedColumn:
    """The column with the rows that remove it, and how many are proved not to.

    rows: The best columns without each row, or each group; None where they are unknown.
    removals: How many rows remove each column; None where that is unknown.
    """
    if rows is not None:
        lacks = np.array([one.name not in names for names in rows["names"]], dtype=bool)
        # Without a row that is not proved, columns that are not known yet may be the best.
        alone = rows.loc[lacks & rows["proved"]].sort_values("lead").index.tolist()
        one = one._replace(alone=alone, unproved=int((~rows["proved"]).sum()))
        if rows.index.name == "row":  # A group that removes the column is several rows.
            one = one._replace(removed_by=alone[:1])
    if removals is None or one.removed_by:
        return one
    line: Any = removals.loc[one.name]
    return one._replace(safe=int(line["safe"]), removed_by=list(line["rows"]))


def _judged(audit: Audit, one: AuditedColumn, hidden: bool) -> AuditedColumn:
    """The column with its verdict, and the sentence that says why.

    hidden: Whether its p-value is large because of what it conditions on.
    """
    falls, unsure, good, at = list[str](), list[str](), list[str](), audit.judged
    if audit.models is None:
        unsure.append("near-best models are not known")
    else:
        models = f"{counted(audit.near[at], 'near-best model')} within {percent(audit.share)}"
        if (without := audit.near[at] - one.near[at]) > 0:
            lack = "lack it" if without > 1 else "lacks it"
            falls.append(f"{without:,} of the {models} {lack}")
        elif audit.complete[at]:
            good.append(f"all of the {models} have it" if audit.near[at] > 1 else ONLY_MODEL)
        else:
            unsure.append(f"more near-best models within {percent(audit.share)} may exist")
        if one.positive[at] and one.negative[at]:
            signs = f"positive in {one.positive[at]:,}, negative in {one.negative[at]:,}"
            falls.append(f"its sign changes among them ({signs})")
        elif one.positive[at] or one.negative[at]:
            good.append(f"always with a {'positive' if one.positive[at] else 'negative'} sign")
    if one.alone:
        names = listed(list(map(str, one.alone)), ROW_CHARACTERS)
        plural = len(one.alone) > 1
        falls.append(
            f"the best columns lack it without {audit.what} {names}"
            + (f" (each of these {len(one.alone):,} alone decides)" if plural else "")
        )
    elif "row_influence" in audit.missing:
        unsure.append("what single rows decide is not known")
    elif one.unproved:
        unsure.append(f"{counted(one.unproved, audit.what)} may decide: the search ended early")
    else:
        good.append(f"no single {audit.what} removes it (proved)")
    p_value = _p_words(one.p_low, one.p_high)
    if hidden:
        unsure.append(f"{p_value}, but it is large because of what it conditions on")
    elif one.p_low >= LEVEL:
        falls.append(p_value)
    elif one.p_high >= LEVEL:
        unsure.append(p_value)
    elif p_value:
        good.append(p_value)
    verdict = "falls" if falls else "open" if unsure else "holds"
    reasons = falls + unsure if falls or unsure else good
    sentence = f"{one.name} {VERDICTS[verdict][0]}: {'; '.join(reasons)}."
    return one._replace(verdict=verdict, sentence=sentence)


def _p_words(low: float, high: float) -> str:
    """A p-value, or the two numbers between which it lies; empty where there is none."""
    text = p_value_text(low, high)
    return text and (f"p lies in {text}" if " to " in text else f"p = {text}")


def _power(result: Result, tests: DataFrame) -> Iterator[str]:
    """Yield warnings where few rows, many columns or R² leave p-values little power."""
    k, problem, design = result.model.support.size, result.problem, result.design
    if k == 0:
        return
    support = np.searchsorted(design.kept, result.model.support)
    squares, _ = least_squares(problem.data, support, design.total)
    own = int(design.protocol.intercept)
    free = max(design.total - k - own, 1.0)
    # R² is adjusted for the number of columns.
    left = min(squares / problem.yy * (design.total - own) / free, 1.0) if problem.yy > 0 else 1.0
    signal = design.total * (1.0 - left) / max(left, 1e-12) / k
    if signal < LEAST_SIGNAL:
        yield (
            f"The p-values have little power here: n·R²/(1 − R²) is {signal:.2g} per column. Where "
            "it is 5, such tests find .1 to .3 of the columns that matter, and where it is 23 they "
            "find .8 to .9. A large p-value does not say that a column is useless."
        )
    given = tests.attrs["sigma_source"] == "given"
    if result.criterion is not None and not given and 1.0 - left > HIGH_R2:
        yield (
            f"R² is {1.0 - left:.3f}: where a criterion has chosen and σ is estimated, some .3 to "
            "2 % of strong columns get large p-values. A σ that is given, or a given size, loses "
            "none of them."
        )
