"""Refuses files that a command names and that cannot be written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from ..errors import InputError, file_faults

# The options of all commands that name a file to be written.
FILES = ("json_file", "save", "html", "csv_file", "out", "plot", "certificate")


def refuse_unwritable(asked: SimpleNamespace) -> None:
    """Refuse, before any work is done, files that cannot be written.

    asked: The values of a command's options; options that it lacks name no file.
    Raises InputError: A path is a folder, its folder does not exist, the file cannot be opened, or
        two options name the same file, however it is written. Matplotlib is missing, which --plot
        and --html need, or it has no format of the ending of a picture's name.
    """
    if getattr(asked, "plot", None) is not None:
        from ..plots.curves import check_writable

        check_writable(str(asked.plot))
    if getattr(asked, "html", None) is not None:
        from ..plots.style import matplotlib

        matplotlib()
    options: dict[Path, str] = {}
    for name in FILES:
        option, path = name.removesuffix("_file"), getattr(asked, name, None)
        if path is None:
            continue
        with file_faults(f"--{option} {path}"):
            if path.is_dir() or not path.absolute().parent.is_dir():
                raise InputError(f"--{option} {path}: not a file in an existing folder")
            target = path.resolve()  # A link to a file that does not exist yet stays a link.
            if target in options:
                other = options[target]
                raise InputError(f"--{other} and --{option} name the same file {path}")
            options[target] = option
            existed = target.exists()
            if str(path) == "-" or (existed and not target.is_file()):
                continue  # Standard output, or a device or pipe, which is opened once.
            target.open("ab").close()  # A file that exists keeps what it holds until it is written.
            if not existed:
                target.unlink()
