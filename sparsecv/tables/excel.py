"""The first sheet of an Excel or OpenDocument workbook, as a table of text (extra ``excel``)."""

import csv
import io
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from ..errors import InputError, first_line, not_installed
from .columns import quoted
from .text import TextFile


def open_workbook(path: Path) -> TextFile:
    """The first sheet of a workbook, whose first row holds the columns' names.

    A formula counts as the value that was computed when the workbook was saved.

    Raises InputError: python-calamine is not installed, or the file is no workbook.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise InputError(
            f"{path.name}: {not_installed('python-calamine', 'excel')}, or save the sheet as CSV"
        ) from None
    try:
        book = CalamineWorkbook.from_path(str(path))
        rows = book.get_sheet_by_index(0).to_python()
    except (CalamineError, OSError, IndexError) as error:
        reason = first_line(error, "it has no sheet")
        raise InputError(
            f"{path.name}: not a readable workbook ({reason}); save it again"
        ) from None
    text = io.StringIO()
    csv.writer(text).writerows([_text(cell) for cell in row] for row in rows if any(row))
    file = TextFile(path, content=text.getvalue().encode())
    file.label = f"{path.name}, sheet {quoted(book.sheet_names[0])}"
    return file


def _text(cell: Any) -> str:
    """A cell as it would stand in a CSV file; a whole number has no decimals."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (date, datetime, time)) else str(cell)
