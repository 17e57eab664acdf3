"""A linear model as one SQL expression."""

from __future__ import annotations

from ..errors import InputError
from .saved import SavedModel


def sql_expression(model: SavedModel) -> str:
    """The model's prediction as an expression over the columns of a table, in standard SQL.

    Names of columns stand in double quotes and levels of text columns in single quotes. A text
    column of which --one-hot made 0/1 columns becomes a CASE over the levels that the model was
    fitted to. A row whose value is missing, or is a level that the model has not seen, gets NULL;
    where the model fills missing values, or gives an unknown text no level, the expression does,
    too.
    Numbers have all their digits, and the database computes in double precision.

    Raises InputError: A name or a level holds the character NUL, which SQL has no way to write.
    """
    levels_of = model.coded
    numbers: list[tuple[str, float]] = []
    cases: dict[str, dict[str, float]] = {}
    for name, coef in zip(model.support, model.coef, strict=True):
        if name in levels_of:
            column, level = levels_of[name]
            cases.setdefault(column, {})[level] = coef
        else:
            numbers.append((name, coef))
    text = _number(model.intercept)
    for name, coef in numbers:
        sign = "-" if coef < 0.0 else "+"
        value = _quoted(name, chr(34))
        if name in model.fills:
            value = f"COALESCE({value}, {_number(model.fills[name])})"
        text += f" {sign} {_number(abs(coef))} * {value}"
    for column, coefs in cases.items():
        whens = " ".join(
            f"WHEN {_quoted(level, chr(39))} THEN {_number(coefs.get(level, 0.0))}"
            for level in model.levels[column]
        )
        name = _quoted(column, chr(34))
        if model.unknown == "zero":
            whens = f"{whens} ELSE CASE WHEN {name} IS NOT NULL THEN 0.0 END"
        case = f"CASE {name} {whens} END"
        if model.fills:
            filled = sum(coef * model.fills[f"{column}={level}"] for level, coef in coefs.items())
            case = f"CASE WHEN {name} IS NULL THEN {_number(filled)} ELSE {case} END"
        text += f" + {case}"
    return text


def _number(value: float) -> str:
    """A number with all its digits, as a literal of double precision."""
    text = repr(float(value))
    return text if "e" in text or "." in text else text + ".0"


def _quoted(text: str, mark: str) -> str:
    """A text in quotation marks, which are doubled inside."""
    if "\0" in text:
        raise InputError(f"{text!r} holds the character NUL, which SQL cannot write")
    return mark + text.replace(mark, 2 * mark) + mark
