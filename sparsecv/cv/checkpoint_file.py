"""Files of a run that was cut short: whole or not at all, and believed only if they prove it.

A file is one JSON document that names the run it belongs to by a key and carries a hash of its
content. Damaged or changed files and those of other runs are passed over with a warning.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import CheckpointWarning, file_faults, read_json

FORMAT = 4
# A partial file older than this was left by a run that was killed, and is removed.
MAX_WRITING_SECONDS = 5.0
POLL_SECONDS = 0.01  # A writer that waits for another one looks again after so long.
Content = TypeVar("Content")


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder for checkpoints where it is missing.

    Raises InputError: It cannot be made.
    """
    path = Path(folder)
    with file_faults(f"--checkpoint {path}"):
        path.mkdir(parents=True, exist_ok=True)
    return path


def read_sealed(path: Path, key: str, take: Callable[[Any], Content], anew: str) -> Content | None:
    """What ``take`` makes of a file's content, or None with a warning where it is not believed.

    path: A file that does not exist counts as none, silently.
    key: Of the run: its data and everything else the content depends on.
    take: Checks shapes, order and values; raises ValueError, TypeError or KeyError with the reason.
    anew: What happens instead, for the warning.
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
        if stored.get("hash") != _hash(stored.get("content")):
            raise ValueError("its content was changed")
        return take(stored["content"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        warnings.warn(
            f"checkpoint file {path} is passed over, {anew}: {error}",
            CheckpointWarning,
            stacklevel=3,
        )
        return None


@contextmanager
def only_writer(path: Path) -> Iterator[Callable[[str, Any], None]]:
    """Be the only one who writes a file, so that what stands in it can be read and added to.

    The partial file is what keeps other writers waiting. It becomes the file whole or not at all,
    and is removed where nothing was written.

    Yields: Takes the key of the run and plain JSON values, and writes them.
    Raises InputError: The file cannot be written.
    """
    partial = path.with_suffix(".tmp")

    def write(key: str, content: Any) -> None:
        document = {"format": FORMAT, "key": key, "hash": _hash(content), "content": content}
        partial.write_text(json.dumps(document), encoding="utf-8")
        os.replace(partial, path)

    with file_faults(f"--checkpoint {path.parent}"):
        while True:
            try:
                os.close(os.open(partial, os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                with suppress(FileNotFoundError):  # the other writer has just finished
                    if time.time() - partial.stat().st_mtime > MAX_WRITING_SECONDS:
                        partial.unlink()
                time.sleep(POLL_SECONDS)
        try:
            yield write
        finally:
            partial.unlink(missing_ok=True)


def write_sealed(path: Path, key: str, content: Any) -> None:
    """Store ``content``, plain JSON values, so that the file appears whole or not at all.

    Raises InputError: The file cannot be written.
    """
    with only_writer(path) as write:
        write(key, content)


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checked_support(stored: Any, p: int) -> NDArray[np.intp]:
    """Validate a stored support: columns in 0..p−1, increasing.

    Raises ValueError: It is no such list.
    """
    found = checked_array("a support", stored, np.zeros(np.size(stored), dtype=np.intp))
    if found.size and (found[-1] >= p or (np.diff(found) <= 0).any()):
        raise ValueError("a support names columns that do not exist, or not in order")
    return found


def checked_array(name: str, stored: Any, expected: NDArray[Any]) -> NDArray[Any]:
    """Validate stored values of the shape and kind of an array, or of a number.

    Numbers are at least 0; a number that stands alone is finite.

    Raises ValueError: Another shape, or values of another kind.
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
