"""The constraints on columns that the options of a command, and the file of --constraints, give."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError, file_faults, read_json
from .console import names_in, note

if TYPE_CHECKING:
    from ..solvers.core.column_rules import ResolvedRules
    from ..tables.table import Table


def column_constraints(
    source: Table, asked: SimpleNamespace, levels: list[str], counts: bool
) -> ResolvedRules | None:
    """The constraints that a command's options put on the columns; None if there are none.

    The options --include and --exclude add columns to those that the file of --constraints lists.
    The option --positive replaces what that file says. The 0/1 columns of a text column enter a
    model together, which a note says. In every option, and in the file, the name of the text column
    means all its 0/1 columns.

    source: The table, whose column names the options may use.
    asked: The values of all options of the command.
    levels: What --exclude names beside columns of the file, as :func:`~.console.read` returns it.
    Raises InputError: An option or the file cannot be read, names an unknown column, or contradicts
        another.
    """
    from ..solvers.core.column_rules import Constraints

    names, coding = source.feature_names, source.coding
    rules = _read(asked.constraints, allowed=[*vars(Constraints())])
    for name, more in (("include", names_in(asked.include or "")), ("exclude", levels)):
        in_file = rules.get(name) or []
        if isinstance(in_file, list):  # What is no list is refused by ``resolve``.
            rules[name] = [*in_file, *more]
    if asked.positive == "all" and "all" not in names:
        rules["positive"] = True
    elif asked.positive:
        rules["positive"] = names_in(asked.positive)
    # ``places`` tells where the 0/1 columns of each text column stand.
    own = coding.places if coding.levels else None
    resolved = Constraints(**rules).resolve(len(names), names, own)
    several = [name for name in coding.levels if len(resolved.groups.get(name, ())) > 1]
    if several and not asked.quiet:
        what = f"the 0/1 columns of {', '.join(several[:6])}" + ", …" * (len(several) > 6)
        note(f"{what} enter together")
    resolved = resolved._replace(in_coefficients=resolved.in_coefficients and counts)
    return None if resolved.constraints.plain else resolved


def _read(path: Path | None, allowed: list[str]) -> dict[str, Any]:
    """The entries of a file of constraints; none without a file.

    allowed: The names that entries may have.
    Raises InputError: The file cannot be read, or is no object of such entries.
    """
    if path is None:
        return {}
    try:
        with file_faults(f"--constraints {path}"):
            entries = read_json(path)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"--constraints {path}: {error}") from None
    if not isinstance(entries, dict):
        raise InputError(f"--constraints {path} must hold names and values, as {{...}}")
    if unknown := [name for name in entries if name not in allowed]:
        raise InputError(
            f"--constraints {path}: {unknown[0]!r} is none of the names {', '.join(allowed)}"
        )
    return entries
