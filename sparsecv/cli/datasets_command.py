"""The command ``sparsecv datasets``, which lists the data sets that can be named."""

from __future__ import annotations

from rich.table import Table

from ..errors import InputError
from ..tables.datasets import describe, list_datasets
from .console import open_console


def datasets(action: str, name: str | None) -> None:
    """List the data sets sparsecv knows, or show one."""
    console = open_console(False)
    if action == "show":
        if name is None:
            raise InputError("datasets show needs a NAME; sparsecv datasets lists them")
        for key, value in vars(describe(name)).items():
            if value not in (None, ""):
                console.print(f"{key:>10}  {value}", markup=False, soft_wrap=True)
        return
    if action != "list" or name is not None:
        given = action if name is None else f"{action} {name}"
        raise InputError(f"datasets knows 'list' and 'show NAME'; got {given!r}")
    table = Table()
    for column in ("name", "n", "p", "task", "response", "here"):
        table.add_column(column, justify="right" if column in "np" else "left")
    for info in list_datasets():
        here = "built in" if info.builtin else ("yes" if info.available else "no")
        cells = (info.name, info.n, info.p, info.task, info.response, here)
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    console.print(table)
    console.print(
        "'here: no' means: set SPARSECV_DATA to a folder that holds the file", style="dim"
    )
