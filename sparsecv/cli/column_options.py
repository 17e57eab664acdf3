"""The constraints on columns that the options of a command, and the file of --constraints, give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, file_faults
from .console import names_in, note

if TYPE_CHECKING:
    from ..solvers.core.column_rules import ResolvedRules
    from ..tables.table import Table


def column_constraints(source: Table, given: Mapping[str, Any]) -> ResolvedRules | None:
    """The constraints that a command's options put on the columns; None if there are none.

    The options --include and --exclude add columns to those that the file of --constraints lists.
    The option --positive replaces what that file says. The 0/1 columns of a text column enter a
    model together. In every option, and in the file, the name of the text column means all its 0/1
    columns.

    source: The table, whose column names the options may use.
    given: The values of all options of the command, by name.
    Raises InputError: An option or the file cannot be read, names an unknown column, or contradicts
        another.
    """
    from ..solvers.core.column_rules import Constraints

    names, asked = source.feature_names, _read(given["constraints"], [*vars(Constraints())])
    levels = source.coding.levels
    # --include is one text, and --exclude comes as a list of names.
    for name, more in (
        ("include", names_in(given["include"] or "")),
        ("exclude", given["exclude"]),
    ):
        listed = asked.get(name) or []  # What is no list is refused by ``resolve``.
        asked[name] = [*listed, *more] if isinstance(listed, list) else listed
    if positive := given["positive"]:
        asked["positive"] = (positive == "all" and "all" not in names) or names_in(positive)
    own = source.coding.places if levels else None  # Where each text column's 0/1 columns stand.
    found = Constraints(**asked).resolve(len(names), names, own)
    several = [name for name in levels if len(found.groups.get(name, ())) > 1]
    if several and not given["quiet"]:
        what = f"the 0/1 columns of {', '.join(several[:6])}" + ", …" * (len(several) > 6)
        note(f"{what} enter together and count once")
    return None if found.constraints.plain else found


def _read(path: Path | None, names: list[str]) -> dict[str, Any]:
    """What a file of constraints asks, under ``names``.

    Raises InputError: The file cannot be read, or holds other names or none.
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
    if unknown := [name for name in found if name not in names]:
        raise InputError(
            f"--constraints {path}: {unknown[0]!r} is none of the names {', '.join(names)}"
        )
    return found
