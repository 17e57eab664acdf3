"""A model as a file: plain JSON, checked on reading."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..errors import InputError, file_faults, is_number, read_json
from ..tables.coding import Coding
from ..tables.marks import AS_SHOWN, Marks, Reading, checked_encoding, possible_marks
from .fold_models import FoldModels
from .model import Model

# A model file begins with these entries; a file with another format or version is refused.
HEAD = {"format": "sparsecv model", "version": 1}


# What a file must hold, in this order, and what files of earlier versions lack.
_ENTRIES = (
    *("features", "named", "support", "coef", "intercept", "target", "tau", "gamma"),
    *("objective", "lower_bound", "proved", "levels"),
)
_LATER: dict[str, Any] = {
    "fills": {},
    "note": "",
    "intervals": None,
    "unknown": "error",
    "reading": {},
    "offset": None,
    "counts": "features",
}


@dataclass(frozen=True)
class SavedModel:
    """A model with what predictions of other tables need, as a file holds both.

    model: The model.
    features: Names of all columns that the model was fitted to.
    named: Whether the data had these names; otherwise the names count the columns.
    target: The name of the response.
    levels: Levels of the text columns that 0/1 columns ``column=level`` stand for.
    fills: What a missing value of a feature is filled with, by the feature's name; empty where
        missing values are errors.
    note: What a user should know of the model, such as that its search was interrupted.
    intervals: The models of the folds with their residuals, which prediction intervals are made
        from; None where they were not asked for.
    unknown: With "zero" a text that is none of its column's levels has no level.
    reading: How the text of the table's file was read, as files of new rows are. Its codes of
        missing values are missing in data frames, too.
    offset: The name of what was taken off the response, which predictions add again; None where
        nothing was.
    counts: What the model's τ counts: "coefficients", or "features" where a group of columns, such
        as a factor, counts once, as it does in files that do not say.
    """

    model: Model
    features: list[str]
    named: bool = True
    target: str = "y"
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fills: dict[str, float] = field(default_factory=dict)
    note: str = ""
    intervals: FoldModels | None = None
    unknown: str = "error"
    reading: Reading = AS_SHOWN
    offset: str | None = None
    counts: str = "features"

    @property
    def support(self) -> list[str]:
        """Names of the features that the model uses."""
        return [self.features[column] for column in self.model.support]

    @property
    def codes(self) -> list[float]:
        """The numbers that stand for missing values."""
        values = [Marks().number(code) for code in self.reading.na]
        return [value for value in values if value is not None]

    def needed(self, intervals: bool = False) -> list[str]:
        """Names of the features that predictions need, or predictions with their intervals."""
        folds = self.intervals if intervals else None
        more = [] if folds is None else [self.features[column] for column in folds.columns]
        return list(dict.fromkeys([*self.support, *more]))

    def coding(self, intervals: bool = False, known: Collection[str] = ()) -> Coding:
        """The table's columns that predictions need, and which features they become.

        known: Features that are columns of the table themselves.
        """
        every = Coding([*self.levels], self.levels, missing=bool(self.fills))
        table = {feature: name for name, own in every.columns.items() for feature in own}
        names = [one if one in known else table.get(one, one) for one in self.needed(intervals)]
        return every._replace(names=list(dict.fromkeys(names)))

    def features_of(
        self, frame: Any, unknown: str = "error", fill: bool = True
    ) -> NDArray[np.float64]:
        """The features of the rows of a data frame, shape (n, p); 0 where predictions need none.

        The frame may hold the text columns that 0/1 columns stand for, or the 0/1 columns
        themselves. Missing values are filled where the model says with what.

        unknown: With "zero" a text that is no level has no level.
        fill: Whether missing values are filled; else they are NaN.
        Raises InputError: A column is missing, or holds an unknown level, text or no value.
        """
        from ..tables.factors import features
        from ..tables.faults import Faults
        from ..tables.frames import as_frame
        from ..tables.source import source_of_frame

        source, needed = (
            source_of_frame("X", as_frame(frame), self.reading),
            self.needed(intervals=True),
        )
        coding = self.coding(intervals=True, known=source.names)
        faults = Faults("X", None, bool(self.fills), coding.names)
        values = features(source, coding, needed, faults, self.fills if fill else None, unknown)
        faults.check()
        X = np.zeros((len(values), len(self.features)))
        X[:, [self.features.index(feature) for feature in needed]] = values
        return X

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) for rows X (m, len(support)) of the support's columns, in its order.

        They lack the offset, which the caller adds.
        """
        return np.asarray(X @ self.model.coef[self.model.support] + self.model.intercept)

    def document(self) -> dict[str, Any]:
        """The entries of the file."""
        model, known = self.model, {}
        for name in ("gamma", "objective", "lower_bound"):
            value = float(getattr(model, name))
            known[name] = None if math.isnan(value) else value
        return {
            "features": self.features,
            "named": self.named,
            "support": self.support,
            "coef": model.coef[model.support].tolist(),
            "intercept": float(model.intercept),
            "target": self.target,
            "tau": int(model.tau),
            "counts": self.counts,
            **known,
            "proved": bool(model.proved),
            "levels": dict(self.levels),
            "fills": self.fills,
            "note": self.note,
            "intervals": None if self.intervals is None else self.intervals.document(self.features),
            "unknown": self.unknown,
            "reading": self.reading._asdict(),
            "offset": self.offset,
        }

    def write(self, path: str | PathLike[str]) -> None:
        """Write the file.

        Raises InputError: The file cannot be written.
        """
        document = HEAD | {"sparsecv": __version__} | self.document()
        text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
        with file_faults(f"cannot write {path}"):
            Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: str | PathLike[str]) -> SavedModel:
        """Read a file that :meth:`write` has written.

        Raises InputError: The file cannot be read, is no model, or is damaged.
        """
        try:
            with file_faults(f"cannot read {path}"):
                found = read_json(Path(path))
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{path} is not a model file: {error}") from None
        if not isinstance(found, dict) or found.get("format") != HEAD["format"]:
            raise InputError(f"{path} is not a model file: sparsecv cv --save writes one")
        if found.get("version") != HEAD["version"]:
            raise InputError(
                f"{path}: version {found.get('version')!r} of the model format; this program "
                f"reads version {HEAD['version']}"
            )
        if missing := [name for name in _ENTRIES if name not in found]:
            raise InputError(f"{path}: damaged model file: {missing[0]!r} is missing")
        found = _LATER | found
        wrong, folds, reading = _wrong(found), None, AS_SHOWN
        try:
            reading = _as_reading(**found["reading"])
        except (TypeError, ValueError):
            wrong = wrong or "reading"
        try:
            if found["intervals"] is not None and wrong is None:
                folds = FoldModels.of_document(found["intervals"], found["features"])
        except (ValueError, KeyError, TypeError, OverflowError):
            wrong = "intervals"
        if wrong is not None:
            raise InputError(f"{path}: damaged model file: {wrong!r} does not hold what it should")
        same = (
            "features",
            "named",
            "target",
            "levels",
            "fills",
            "note",
            "unknown",
            "offset",
            "counts",
        )
        kept = {name: found[name] for name in same}
        return cls(_model_of(found), intervals=folds, reading=reading, **kept)


def named_fills(features: Sequence[str], fills: NDArray[np.float64] | None) -> dict[str, float]:
    """What missing values are filled with, by the names of the features; empty where none are.

    fills, shape (p,): The values, or None where missing values are errors.
    """
    return {} if fills is None else dict(zip(features, fills.tolist(), strict=True))


def _model_of(found: dict[str, Any]) -> Model:
    """The model that the entries of a sound file describe."""
    features = found["features"]
    support = np.array([features.index(name) for name in found["support"]], dtype=np.intp)
    coef = np.zeros(len(features))
    coef[support] = found["coef"]
    known = {}
    for name in ("gamma", "objective", "lower_bound"):
        known[name] = math.nan if found[name] is None else float(found[name])
    tau = support.size if found["tau"] is None else found["tau"]
    return Model(support, coef, found["intercept"], tau, proved=found["proved"], **known)


def _wrong(found: dict[str, Any]) -> str | None:
    """The name of the first entry whose value a model cannot have, or None.

    found: Every entry of ``_ENTRIES`` and of ``_LATER``. The entries "reading" and "intervals" are
        checked elsewhere.
    """

    def names(value: Any) -> bool:
        known = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return known and len(set(value)) == len(value)

    features, tau, gamma = found["features"], found["tau"], found["gamma"]
    if not names(features) or not features:
        return "features"
    fewest = 0 if found["support"] == [] else 1  # A criterion may have chosen no column.
    checks = {
        "named": isinstance(found["named"], bool),
        "support": names(found["support"]) and (fewest == 1 or tau == 0),
        "coef": isinstance(found["coef"], list) and all(map(is_number, found["coef"])),
        "intercept": is_number(found["intercept"]),
        "target": isinstance(found["target"], str),
        "tau": tau is None or (type(tau) is int and fewest <= tau <= len(features)),
        "gamma": gamma is None or (is_number(gamma) and gamma >= 0),
        "objective": found["objective"] is None or is_number(found["objective"]),
        "lower_bound": found["lower_bound"] is None or is_number(found["lower_bound"]),
        "proved": isinstance(found["proved"], bool),
        "levels": isinstance(found["levels"], dict) and all(map(names, found["levels"].values())),
        "fills": isinstance(found["fills"], dict) and all(map(is_number, found["fills"].values())),
        "note": isinstance(found["note"], str),
        "offset": found["offset"] is None or isinstance(found["offset"], str),
        "unknown": found["unknown"] in ("error", "zero"),
        "counts": found["counts"] in ("coefficients", "features"),
    }
    if wrong := next((name for name, right in checks.items() if not right), None):
        return wrong
    if not set(found["support"]) <= set(features):
        return "support"
    if found["fills"] and set(found["fills"]) != set(features):
        return "fills"
    return None if len(found["coef"]) == len(found["support"]) else "coef"


def _as_reading(**kept: Any) -> Reading:
    """How a file says that the table of its model was read.

    Raises ValueError or TypeError: The file says something else.
    """
    found = Reading(**kept)
    checked_encoding(found.encoding)
    possible_marks(found)
    for texts in (found.na, found.names):
        if not isinstance(texts, (list, tuple)) or not all(isinstance(one, str) for one in texts):
            raise TypeError
    if found.usual not in (None, ".", ",") or found.header not in (None, True, False):
        raise TypeError
    return found._replace(na=tuple(found.na), names=tuple(found.names))
