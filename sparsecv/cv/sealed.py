"""Files of a run that was cut short: whole or not at all, and believed only if they prove it.

A file is one JSON document that names the run it belongs to by a key and carries a hash of its
content. Damaged or changed files and those of other runs are passed over with a warning.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..errors import CheckpointWarning

FORMAT = 2
Content = TypeVar("Content")


def read_sealed(path: Path, key: str, take: Callable[[Any], Content], anew: str) -> Content | None:
    """What ``take`` makes of a file's content, or None with a warning where it is not believed.

    Parameters
    ----------
    path : Path
        A file that does not exist counts as none, silently.
    key : str
        Of the run: its data and everything else the content depends on.
    take : callable
        Checks shapes, order and values; raises ValueError, TypeError or KeyError with the reason.
    anew : str
        What happens instead, for the warning.

    Returns
    -------
    object or None
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
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


def write_sealed(path: Path, key: str, content: Any) -> None:
    """Store ``content``, plain JSON values, so that the file appears whole or not at all.

    Parameters
    ----------
    path : Path
    key : str
        As for :func:`read_sealed`.
    content : object

    Raises
    ------
    OSError
        The file cannot be written.
    """
    partial = path.with_suffix(f".{os.getpid()}-{id(content)}.tmp")
    document = {"format": FORMAT, "key": key, "hash": _hash(content), "content": content}
    partial.write_text(json.dumps(document), encoding="utf-8")
    os.replace(partial, path)


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
