"""The options that ask something of columns, and what ``cv`` and ``fit`` say of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError, file_faults
from .options import Options, names_in, note, option

if TYPE_CHECKING:
    from ..design.design import Design
    from ..solvers.core.column_rules import ResolvedRules
    from ..tables.rows import RowSource

OPTIONS: Options = {
    "include": option(str | None, "Columns that are in every model, as a,b."),
    "exclude": option(str | None, "Columns that are in no model, as a,b."),
    "column_groups": option(
        list[str] | None,
        "Columns that enter together and count once: NAME=a,b,c (repeatable), or a CSV file "
        "of the columns column,group.",
    ),
    "split_factors": option(
        bool,
        "With --one-hot: each 0/1 column enters alone, not the columns of a factor together.",
        "--split-factors",
    ),
    "heredity": option(
        Literal["strong", "weak"] | None,
        "A column named a:b needs a and b (strong), or one of them (weak).",
    ),
    "positive": option(
        str | None,
        "Columns whose coefficients are not negative; without names all.",
        metavar="[a,b]",
    ),
    "bounds": option(
        list[str] | None,
        "Bounds on a coefficient, in the table's units, such as age:0:2 or age::2; may be "
        "repeated.",
        "--bounds",
        metavar="COL:LOW:HIGH",
    ),
    "penalty_factors": option(
        list[str] | None,
        "Factor F of a column's penalty; with 0 the column is in every model, not penalised "
        "and not counted; may be repeated.",
        "--penalty-factors",
        metavar="COL:F",
    ),
}


def asked_of(
    source: RowSource,
    quiet: bool,
    *,
    include: str | None,
    exclude: str | None,
    column_groups: list[str] | None,
    split_factors: bool,
    heredity: str | None,
    positive: str | None,
    bounds: list[str] | None,
    penalty_factors: list[str] | None,
) -> ResolvedRules | None:
    """What the options ask of the columns of a table; None where nothing is asked.

    The 0/1 columns of a text column are a group unless ``split_factors``. The text column's name
    stands for its 0/1 columns everywhere.

    quiet: No remark is printed on groups that nobody has asked for.
    Raises InputError: An option cannot be read, names an unknown column, or contradicts another.
    """
    from ..solvers.core.column_rules import Constraints

    names, factors = source.feature_names, _factors(source)
    if split_factors and not factors:
        raise InputError("--split-factors: the table has no factor; it goes with --one-hot")

    def columns(text: str | None) -> list[str]:
        return [c for one in names_in(text or "") for c in _columns_named(one, names, factors)]

    every = positive == "all" and "all" not in names
    limits = [(c, ends) for one in bounds or () for c, ends in _bound(one, names, factors)]
    weights = [(c, f) for one in penalty_factors or () for c, f in _weight(one, names, factors)]
    groups = {name: columns(text) for name, text in _groups(column_groups or ())}
    grouped = {column for found in groups.values() for column in found}
    if not split_factors:
        own = {f: found for f, found in factors.items() if not grouped & set(found)}
        groups = own | groups
        if (several := [f for f, found in own.items() if len(found) > 1]) and not quiet:
            what = f"the 0/1 columns of {', '.join(several[:6])}" + ", …" * (len(several) > 6)
            note(f"{what} enter together and count once (--split-factors lets each enter alone)")
    rules = Constraints(
        include=columns(include),
        exclude=columns(exclude),
        groups=groups,
        heredity=heredity,
        positive=True if every else columns(positive),
        bounds=dict(limits),
    )
    found = rules.resolve(len(names), names, dict(weights))
    return None if found.plain else found


def _factors(source: RowSource) -> dict[str, list[str]]:
    """The 0/1 columns of every text column."""
    known = set(source.feature_names)
    coded = {
        name: [column for level in levels if (column := f"{name}={level}") in known]
        for name, levels in source.levels.items()
    }
    return {name: columns for name, columns in coded.items() if columns}


def _columns_named(name: str, names: Sequence[str], factors: dict[str, list[str]]) -> list[str]:
    """The columns that a name stands for: a text column's are its 0/1 columns."""
    return factors[name] if name in factors and name not in names else [name]


def _groups(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the columns, as a,b,c, of every group that --column-groups names."""
    for text in given:
        name, equals, columns = text.partition("=")
        path = Path(text)
        with file_faults(f"--column-groups {text}"):
            is_file = path.is_file()
        if equals and not is_file:
            yield name.strip(), columns
        elif is_file:
            yield from _groups_in(path)
        else:
            raise InputError(
                f"--column-groups {text}: no such file; give NAME=a,b,c or a CSV file with the "
                "columns column,group"
            )


def _groups_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the groups of a CSV file of two columns, whose first line may be a header."""
    with file_faults(f"--column-groups {path}"):
        text = path.read_text(encoding="utf-8-sig")
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if any(row)]
    if rows and [cell.lower() for cell in rows[0]] == ["column", "group"]:
        rows = rows[1:]
    found: dict[str, list[str]] = {}
    for row in rows:
        if len(row) != 2:
            raise InputError(
                f"--column-groups {path}: a line holds a column and its group; got "
                f"{json.dumps(','.join(row), ensure_ascii=False)}"
            )
        if row[1]:
            found.setdefault(row[1], []).append(row[0])
    yield from ((group, ",".join(columns)) for group, columns in found.items())


def _bound(
    text: str, names: Sequence[str], factors: dict[str, list[str]]
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield every column that COL:LOW:HIGH names with its bounds; an empty end is no bound."""
    name, *ends = text.rsplit(":", 2)
    try:
        low, high = (float(end or far) for end, far in zip(ends, ("-inf", "inf"), strict=True))
    except ValueError:
        raise InputError(f"--bounds takes COL:LOW:HIGH, such as age:0:2; got {text!r}") from None
    for column in _columns_named(name, names, factors):
        yield column, (low, high)


def _weight(
    text: str, names: Sequence[str], factors: dict[str, list[str]]
) -> Iterator[tuple[str, float]]:
    """Yield every column that COL:F names with its penalty factor."""
    name, _, factor = text.rpartition(":")
    try:
        value = float(factor)
    except ValueError:
        name = ""
    if not name:
        raise InputError(f"--penalty-factors takes COL:F, such as age:0; got {text!r}")
    for column in _columns_named(name, names, factors):
        yield column, value


def document(asked: ResolvedRules | None, names: Sequence[str]) -> dict[str, Any] | None:
    """What is asked of the columns, as JSON values; None where nothing is."""
    if asked is None:
        return None
    held = asked.by_position()
    kind, parents = held.heredity or (None, {})
    groups = {name: [names[j] for j in g] for name, g in asked.groups.items() if len(g) > 1}

    def end(value: float) -> float | None:
        return value if abs(value) < float("inf") else None

    return {
        "include": [names[j] for j in held.include],
        "exclude": [names[j] for j in held.exclude],
        "groups": groups,
        "heredity": kind,
        "parents": {names[c]: [names[a] for a in above] for c, above in parents.items()},
        "bounds": {names[j]: [end(v) for v in b] for j, b in held.bounds.items()},
        "penalty_factors": {
            names[j]: float(f) for j, f in enumerate(asked.factors.tolist()) if f != 1.0
        },
        "sizes": list(asked.sizes),
    }


def lines(design: Design, names: Sequence[str], most: int = 6) -> Iterator[str]:
    """Yield a line for every kind of constraint that holds.

    most: The number of columns that a line names; of more it gives the number.
    """
    found = document(design.asked, names)
    if found is None:
        return

    def listed(texts: Sequence[str]) -> str:
        more = f" and {len(texts) - most} more" if len(texts) > most else ""
        return ", ".join(texts[:most]) + more

    free = [name for name, f in found["penalty_factors"].items() if f == 0.0]
    weighed = [f"{name} {f:g}" for name, f in found["penalty_factors"].items() if f > 0.0]
    signs = [name for name, ends in found["bounds"].items() if ends == [0.0, None]]
    ends = [
        f"{name} in [{'−∞' if a is None else f'{a:g}'}, {'∞' if b is None else f'{b:g}'}]"
        for name, (a, b) in found["bounds"].items()
        if [a, b] != [0.0, None]
    ]
    children = [f"{c} of {' and '.join(above)}" for c, above in found["parents"].items()]
    groups = [f"{name} ({len(group)} columns)" for name, group in found["groups"].items()]
    needs = "all parents" if found["heredity"] == "strong" else "a parent"
    for what, texts in (
        ("in every model", found["include"]),
        ("in every model, not penalised and not counted", free),
        ("in no model", found["exclude"]),
        ("columns that enter together and count once", groups),
        (f"columns that need {needs}", children),
        ("coefficients that are not negative", signs),
        ("bounds", ends),
        ("penalty factors", weighed),
    ):
        if texts:
            yield f"{what}: {listed(texts)}"


def selectable(design: Design) -> str:
    """How many features can be chosen, in words; a group counts once."""
    number, rules = design.n_units, design.rules
    groups = rules is not None and rules.constraints.grouped
    return f"{number} feature{'s' * (number != 1)}" + ", a group counting once" * groups


def within_constraints(design: Design) -> str:
    """Words behind a proof that holds among the models that obey constraints; else none."""
    rules = design.rules
    return "" if rules is None or rules.constraints.plain else ", within the constraints"
