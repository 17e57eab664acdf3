"""Checkpoint files: written whole or not at all, and checked whenever they are read.

A file is one JSON document that names its run by a key and carries a hash of its content. A file
that is damaged, changed or of another run is ignored with a warning.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import CheckpointWarning, file_faults, read_json, warn_caller

# A file of another format number is ignored; the number grows whenever the content changes.
FORMAT = 5
Content = TypeVar("Content")


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """The path of a folder for checkpoints, which is made where it does not exist.

    Raises InputError: The folder cannot be made.
    """
    path = Path(folder)
    with file_faults(f"--checkpoint {path}"):
        path.mkdir(parents=True, exist_ok=True)
    return path


def read_checkpoint(
    path: Path, key: str, take: Callable[[Any], Content], instead: str
) -> Content | None:
    """What ``take`` returns for a file's content; None, with a warning, where the file is invalid.

    path: The file; where it does not exist the result is None without a warning.
    key: A text that identifies the run: its data and everything else the content depends on.
    take: Checks shapes, order and values; raises ValueError, TypeError or KeyError with the reason.
    instead: Words for the warning that say what happens without the file.
    """
    try:
        stored = read_json(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        stored = None
    try:
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise ValueError("it is not a checkpoint of this version")
        if stored.get("key") != key:
            raise ValueError("it belongs to other data or settings")
        if stored.get("hash") != content_hash(stored.get("content")):
            raise ValueError("its content was changed")
        return take(stored["content"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        warnings.warn(
            f"checkpoint file {path} is passed over, {instead}: {error}",
            CheckpointWarning,
            stacklevel=3,
        )
        return None


def write_checkpoint(path: Path, key: str, content: Any, warned: set[Path]) -> bool:
    """Write ``content``, plain JSON values, so that the file appears whole or not at all.

    The file is first written under a name that no other writer uses. A file that stood at the path
    before is replaced. Where the file cannot be written (a full disk), there is a warning, one for
    a folder in a run.

    key: A text that identifies the run.
    warned: The folders that a warning of this run has named, to which this one is added.
    Returns: Whether the file was written.
    """
    document = {"format": FORMAT, "key": key, "hash": content_hash(content), "content": content}
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        partial.write_text(json.dumps(document), encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        text = f"--checkpoint {path.parent}: {error.strerror or error}; the run goes on, and what "
        if path.parent not in warned:
            warned.add(path.parent)
            warn_caller(text + "could not be kept would be computed again", CheckpointWarning)
        return False
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return True


def content_hash(content: Any) -> str:
    """A hash of plain JSON values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checked_support(stored: Any, p: int) -> NDArray[np.intp]:
    """A stored support as an array, once its columns are known to be increasing and in 0..p−1.

    Raises ValueError: The stored value is no such list.
    """
    found = checked_array("a support", stored, np.zeros(np.size(stored), dtype=np.intp))
    if found.size and (found[-1] >= p or (np.diff(found) <= 0).any()):
        raise ValueError("a support names columns that do not exist, or not in order")
    return found


def checked_array(name: str, stored: Any, expected: NDArray[Any]) -> NDArray[Any]:
    """Stored values as an array, once they have the shape and the kind of ``expected``.

    Numbers must be at least 0, and a number without a shape must be finite.

    name: What the message calls the values.
    Raises ValueError: The shape or the kind of the values is another, or a number is out of range.
    """
    found = np.asarray(stored)
    if found.shape != expected.shape:
        raise ValueError(f"{name} has another shape")
    kinds = {"b": "b", "i": "i", "f": "fi"}[expected.dtype.kind]
    if found.size and found.dtype.kind not in kinds:
        raise ValueError(f"{name} holds values of another kind")
    most = np.inf if found.ndim else np.finfo(np.float64).max
    if found.dtype.kind != "b" and not ((found >= 0.0) & (found <= most)).all():
        raise ValueError(f"{name} holds values that cannot be")
    return found.astype(expected.dtype)
