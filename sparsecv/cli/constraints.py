"""What the options of a command, and the file of --constraints, ask of the columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, file_faults
from .console import names_in, note
from .options import CONSTRAINTS

if TYPE_CHECKING:
    from ..solvers.core.column_rules import ResolvedRules
    from ..tables.rows import RowSource

# The names that a file of constraints may have, and the types of their values.
KINDS: dict[str, tuple[type, ...]] = {
    "include": (list,),
    "exclude": (list,),
    "groups": (dict,),
    "heredity": (str, list, dict),
    "positive": (bool, list),
    "bounds": (dict,),
    "penalty_factors": (dict,),
}
WORDS: dict[Any, str] = {
    list: "a list of columns",
    dict: 'names with values, such as {"style": ["s1", "s2"]}',
}


def asked_of(source: RowSource, given: Mapping[str, Any]) -> ResolvedRules | None:
    """What is asked of the columns of a table; None where nothing is asked.

    The 0/1 columns of a text column are a group unless --split-factors. The text column's name
    stands for its 0/1 columns everywhere. What options say is added to what the file says, and
    --heredity and --positive replace the file's.

    given: The values of all options of a command.
    Raises InputError: An option or the file cannot be read, names an unknown column, or contradicts
        another.
    """
    from ..solvers.core.column_rules import Constraints

    names, factors = source.feature_names, _factors(source)
    asked = _read(given["constraints"])

    def columns(some: Iterable[Any]) -> list[Any]:
        return [c for one in some for c in _columns_named(one, names, factors)]

    def spread(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {c: value for name, value in values.items() for c in columns([name])}

    def both(name: str) -> list[Any]:
        return columns([*asked.get(name, ()), *names_in(given[name] or "")])

    every = given["positive"] == "all" and "all" not in names
    positive = names_in(given["positive"] or "") or asked.get("positive", False)
    groups = {name: columns(group) for name, group in asked.get("groups", {}).items()}
    if given["split_factors"] and not factors:
        raise InputError("--split-factors: the table has no factor; it goes with --one-hot")
    if not given["split_factors"]:
        named = (column for group in groups.values() for column in group)
        grouped = {column for column in named if isinstance(column, str)}
        own = {f: found for f, found in factors.items() if not grouped & set(found)}
        groups = own | groups
        if (several := [f for f, found in own.items() if len(found) > 1]) and not given["quiet"]:
            what = f"the 0/1 columns of {', '.join(several[:6])}" + ", …" * (len(several) > 6)
            note(f"{what} enter together and count once (--split-factors lets each enter alone)")
    rules = Constraints(
        include=both("include"),
        exclude=both("exclude"),
        groups=groups,
        heredity=given["heredity"] or asked.get("heredity"),
        positive=every or (positive if isinstance(positive, bool) else columns(positive)),
        bounds=spread(asked.get("bounds", {})),
    )
    found = rules.resolve(len(names), names, spread(asked.get("penalty_factors", {})))
    return None if found.plain else found


def some_asked(given: Mapping[str, Any]) -> bool:
    """Whether an option asks anything of columns."""
    return any(given[name] for name in CONSTRAINTS)


def _read(path: Path | None) -> dict[str, Any]:
    """What a file of constraints asks, with pairs of numbers for bounds.

    Raises InputError: The file cannot be read, or holds something else.
    """
    if path is None:
        return {}
    with file_faults(f"--constraints {path}"):
        text = path.read_text(encoding="utf-8-sig")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"--constraints {path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"--constraints {path} must hold names and values, as {{...}}")
    if unknown := [name for name in found if name not in KINDS]:
        raise InputError(
            f"--constraints {path}: {unknown[0]!r} is none of the names {', '.join(KINDS)}"
        )
    for name, value in found.items():
        whole = isinstance(value, KINDS[name])
        if name == "groups" and whole:
            whole = all(isinstance(group, list) for group in value.values())
        if not whole:
            raise InputError(f"--constraints {path}: {name!r} must be {WORDS[KINDS[name][-1]]}")
    if isinstance(found.get("heredity"), list):  # JSON has no pairs.
        found["heredity"] = tuple(found["heredity"])
    found["bounds"] = {c: _ends(path, c, ends) for c, ends in found.get("bounds", {}).items()}
    return found


def _ends(path: Path, column: str, ends: Any) -> tuple[float, float]:
    """Bounds of a coefficient, of which null is none.

    Raises InputError: They are no pair of numbers.
    """
    try:
        low, high = list(ends if isinstance(ends, list) else ())
        return (
            -float("inf") if low is None else float(low),
            float("inf") if high is None else float(high),
        )
    except (TypeError, ValueError):
        raise InputError(
            f"--constraints {path}: the bounds of {column!r} must be [low, high], each a number or "
            f"null; got {json.dumps(ends)}"
        ) from None


def _factors(source: RowSource) -> dict[str, list[str]]:
    """The 0/1 columns of every text column."""
    known = set(source.feature_names)
    coded = {
        name: [column for level in levels if (column := f"{name}={level}") in known]
        for name, levels in source.levels.items()
    }
    return {name: columns for name, columns in coded.items() if columns}


def _columns_named(name: Any, names: list[str], factors: dict[str, list[str]]) -> list[Any]:
    """The columns that a name stands for: a text column's are its 0/1 columns."""
    factor = isinstance(name, str) and name in factors and name not in names
    return factors[name] if factor else [name]
