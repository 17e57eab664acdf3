"""Writes the files that a command names, and refuses files that cannot be written."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

from ..errors import InputError, file_faults

# The options of all commands that name a file to be written.
FILES = ("json_file", "save", "html", "csv_file", "out", "plot", "certificate")


def refuse_unwritable(asked: SimpleNamespace) -> None:
    """Refuse files that cannot be written, before any work is done.

    asked: The values of all options of a command.
    Raises InputError: A path is a folder, its folder does not exist, the file cannot be opened, or
        two options name the same file.
    """
    if getattr(asked, "plot", None) is not None:
        from ..plots.curves import check_writable

        check_writable(str(asked.plot))
    if getattr(asked, "html", None) is not None:
        from ..plots.style import matplotlib

        matplotlib()
    taken: dict[Path, str] = {}
    for name in FILES:
        option, path = name.removesuffix("_file"), getattr(asked, name, None)
        if path is None:
            continue
        with file_faults(f"--{option} {path}"):
            if path.is_dir() or not path.absolute().parent.is_dir():
                raise InputError(f"--{option} {path}: not a file in an existing folder")
            other = taken.setdefault(path.absolute(), option)
            if other != option:
                raise InputError(f"--{other} and --{option} name the same file {path}")
            known = path.exists()
            if str(path) == "-" or (known and not path.is_file()):
                continue  # Standard output, or a device or pipe, which is opened once.
            path.open("ab").close()
            if not known:
                path.unlink()


def write_text(path: Path, text: str, option: str) -> None:
    """Write a text to the file of an option, or to standard output where the path is "-".

    Raises InputError: The file cannot be written.
    """
    if str(path) == "-":
        sys.stdout.write(text)
        return
    with file_faults(f"--{option} {path}"):
        path.write_text(text, encoding="utf-8")
