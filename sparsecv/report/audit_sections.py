"""The sections of an audit, which stand above those of the fit: one screen, and the lists below.

Without it an audit is a record that nobody prints.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from .answer import MAX_CHARACTERS
from .audit import AIC_DIFFERENCE, LEVEL, MOST_ROWS, WITHIN, Audit, AuditedColumn
from .sections import (
    Fact,
    Section,
    SectionColumn,
    SectionTable,
    counted,
    interval_text,
    listed,
    number,
    p_value_text,
    percent,
    with_error,
)

# A table of near-best models has at most so many rows on a page. The number is a choice.
MOST_MODELS = 200
# What is missing, in words.
NAMES = {
    "near_best": "near-best models",
    "importance": "what is lost without a column",
    "inference": "p-values",
    "row_influence": "single rows",
    "removals": "several rows",
    "rules": "other rules",
    "nested": "the error to expect",
    "partitions": "other partitions",
    "certificate": "a certificate",
}


def audit_sections(audit: Audit) -> Iterator[Section]:
    """Yield the sections of an audit, those that fill one screen first."""
    yield Section(facts=list(_facts(audit)))
    if audit.columns:
        yield Section("The columns", table=_table(audit), main=True)
        yield Section(sentences=[one.sentence for one in audit.columns])
    yield Section("How columns are judged", sentences=list(_rules(audit)), explains=True)
    if audit.models is not None:
        yield _models(audit)


def refused_section(why: str) -> Section:
    """The section that stands below a fit whose audit was asked for and is refused.

    why: What :func:`~.audit.no_audit` says.
    """
    return Section(facts=[Fact("audit", meaning=f"none: {why}")])


def _lost(one: AuditedColumn) -> str:
    """The share that is lost without a column, after ≈ where a limit has ended the search."""
    return ("" if one.lost_proved or math.isnan(one.lost) else "≈") + percent(one.lost)


def _facts(audit: Audit) -> Iterator[Fact]:
    """Yield the lines of the model, from the judgement to what is not computed."""
    yield Fact("audit", audit.headline)
    yield Fact("chosen", meaning=audit.chosen)
    if audit.models is not None:
        yield Fact("near-best", meaning=_near_text(audit))
    if (own := audit.expected) is not None:
        text = with_error(number(own.error), own.std_error, " (s.e.)")
        meaning = f"the error to expect on new data, from {counted(own.folds, 'outer fold')}"
        yield Fact("error", text, meaning)
        for name, peer in audit.peers.items():
            more = "more" if peer.above >= 0.0 else "less"
            by = f"{with_error(number(abs(peer.above)), peer.std_error_above)} {more}"
            yield Fact(meaning=f"{PEERS[name]} {number(peer.error)}, which is {by}")
    if audit.partitions:
        sizes = Counter(audit.partitions["sizes"])
        same = percent(audit.partitions["same"])
        each = ", ".join(f"{size} (on {count})" for size, count in sorted(sizes.items()))
        free = ", free to choose another size," * audit.partitions["size_given"]
        text = f"on {audit.partitions['drawn']} other partitions into folds the rule{free} takes "
        text += f"exactly these columns in {same}; numbers of features: {each}"
        yield Fact("folds", meaning=text)
    if audit.rules:
        sizes_of = ", ".join(f"{name} {size}" for name, size in audit.rules.items())
        yield Fact("sizes", meaning=f"{audit.counts}s that each rule chooses: {sizes_of}")
    if audit.sigma_source:
        yield Fact("σ", number(audit.sigma), f"{audit.sigma_source}: p-values rest on it")
    if audit.proof:
        yield Fact("proof", meaning=audit.proof)
    for text in audit.warnings:
        yield Fact("warning", meaning=text)
    for why in dict.fromkeys(audit.missing.values()):
        names = [NAMES[name] for name, own in audit.missing.items() if own == why]
        yield Fact("not here", meaning=f"{', '.join(names)}: {why}")


PEERS = {
    "mean": "the mean alone",
    "lasso": "the lasso, at its best penalty,",
    "ridge": "ridge with all columns",
}


def _near_text(audit: Audit) -> str:
    """How many near-best models there are within each share, and what they are compared by."""
    texts = [
        f"{count:,}{'' if known else ' at least'} within {percent(share)}"
        for share, count, known in zip(WITHIN, audit.near, audit.complete, strict=True)
    ]
    known = "proved to be all; " if all(audit.complete) else ""
    return f"{', '.join(texts)} ({known}{audit.about})"


def _table(audit: Audit) -> SectionTable:
    """A line for each column of the model."""
    columns = audit.columns
    near = ["/".join(f"{count:,}" for count in one.near) for one in columns]
    table = [
        SectionColumn("column", [[one.name] for one in columns], "names"),
        SectionColumn("verdict", [one.verdict for one in columns], "words"),
        SectionColumn("coefficient", [number(one.coef) for one in columns]),
        SectionColumn(
            f"{100 * audit.level:g} % interval",
            [interval_text(one.low, one.high) for one in columns],
            minor=True,
        ),
        SectionColumn("p-value", [p_value_text(one.p_low, one.p_high) for one in columns]),
        SectionColumn("near-best", near),
        SectionColumn("sign", [_sign(one) for one in columns]),
        SectionColumn("lost", [_lost(one) for one in columns]),
        SectionColumn("rows", [_rows(audit, one) for one in columns]),
        SectionColumn("folds", [percent(one.partitions) for one in columns], minor=True),
    ]
    return SectionTable(table, what="columns").filled()


def _sign(one: AuditedColumn) -> str:
    """The sign in the near-best models of the largest share; empty where there is none."""
    plus, minus = (max(counts, default=0) for counts in (one.positive, one.negative))
    return f"+{plus:,} −{minus:,}" if plus and minus else "+" * bool(plus) or "−" * bool(minus)


def _rows(audit: Audit, one: AuditedColumn) -> str:
    """The number of rows known to remove a column, and the number proved not to."""
    if "removals" in audit.missing:
        return ""
    known = f"{len(one.removed_by)}" if one.removed_by else "–"
    return f"{known} / {one.safe}"


def _rules(audit: Audit) -> Iterator[str]:
    """Yield what the words and numbers of the table mean, and how columns are judged."""
    share, what = percent(audit.share), audit.what
    yield (
        f"A column holds if every near-best model within {share} has it, with one sign, if no "
        f"single {what} removes it, and if its p-value, where there is one, is below "
        f"{LEVEL:g}. It falls if one of these fails, and stays open if one is not known. {share} "
        f"is the first of {', '.join(f'{100 * w:g}' for w in WITHIN)} % that is at least "
        f"{AIC_DIFFERENCE:g}/n, a difference of AIC of {AIC_DIFFERENCE:g}, and the last of them "
        "where none is."
    )
    shares = ", ".join(f"{100 * share:g}" for share in WITHIN) + " %"
    yield (
        f"“near-best” counts the models that have the column, of those within {shares} "
        "of the least of what models are compared by. “sign” is that of its coefficient in those "
        f"within {percent(WITHIN[-1])}, with their numbers where both signs occur. “lost” is the "
        "share by which the least rises without the column. “rows” is the fewest rows known to "
        f"remove it from the best columns (– for none of up to {MOST_ROWS} found), and after the "
        "stroke the number proved not to, whichever rows they are. When several rows are removed, "
        "models of the size of this one are compared."
        + " “folds” is the share of other partitions that choose it."
        * bool(audit.partitions)
    )
    if any(not math.isnan(one.p_low) for one in audit.columns):
        yield (
            "p-values and intervals are of least-squares coefficients on these columns. They allow "
            "for the search that chose the columns, and not for the number of columns tested."
        )
    yield (
        "What holds is a part of every good description of these rows by few of the columns that "
        "were offered. Nothing here speaks of causes, or of columns that were not offered."
    )
    for one in audit.columns:
        # A single row is named above, where single rows are removed and no groups.
        if len(one.removed_by) > (audit.what == "row"):
            these = "these rows" if len(one.removed_by) > 1 else "this row"
            yield f"Without {these} the best columns lack {one.name}: {_labels(one)}."
    if any(one.removed_by for one in audit.columns):
        where = "the data rows of the file" if audit.first_row else "the rows of the table"
        yield f"Numbers of rows are those of {where}, counted from {audit.first_row}."


def _labels(one: AuditedColumn) -> str:
    return listed([str(label) for label in one.removed_by], MAX_CHARACTERS)


def _models(audit: Audit) -> Section:
    """The near-best models, the best first."""
    assert audit.models is not None
    shown = audit.models.head(MOST_MODELS)
    columns = [
        SectionColumn("excess", [percent(one) or "0 %" for one in shown["excess"]]),
        SectionColumn("size", shown["tau"].tolist()),
        SectionColumn("columns", shown["names"].tolist(), "names"),
    ]
    sentences = []
    if (left := len(audit.models) - len(shown)) > 0:
        sentences.append(f"{counted(left, 'more model')} are in near_best().")
    title = f"Near-best models within {percent(audit.models.attrs['within'])}"
    return Section(title, table=SectionTable(columns, 0, "models"), sentences=sentences, long=True)
