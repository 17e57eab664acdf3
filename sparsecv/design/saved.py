"""A fitted model as a file: plain JSON, checked on reading."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..errors import InputError, file_faults, is_number, read_json
from ..tables.coding import Coding
from ..tables.marks import AS_SHOWN, Marks, Reading, possible_marks
from .fold_models import FoldModels
from .model import Model

# A model file begins with these entries; a file with another format or version is refused.
HEAD = {"format": "sparsecv model", "version": 1}


@dataclass(frozen=True)
class SavedModel:
    """A model as its file holds it: what predictions need, and what is known of the model.

    features: Names of all columns that the model was fitted to.
    unknown: With "zero" a text that is none of its column's levels has no level.
    named: Whether the data had these names; otherwise the names count the columns.
    support: Names of the features that the model uses.
    coef: Coefficients of the features in ``support``, in the same order.
    objective, lower_bound: Those of :class:`~sparsecv.design.model.Model`, None for NaN.
    proved: Whether the support is proved best for its τ and γ.
    levels: Levels of the text columns that 0/1 columns ``column=level`` stand for.
    fills: What a missing value of a feature is filled with, by the feature's name; empty where
        missing values are errors.
    note: What a user should know of the model, such as that its search was interrupted.
    intervals: The models of the folds with their residuals (:class:`FoldModels`), which prediction
        intervals are made from; None where they were not asked for.
    reading: How the text of the table's file was read, as files of new rows are. Its codes of
        missing values are missing in data frames, too.
    """

    features: list[str]
    named: bool
    support: list[str]
    coef: list[float]
    intercept: float
    target: str = "y"
    tau: int | None = None
    gamma: float | None = None
    objective: float | None = None
    lower_bound: float | None = None
    proved: bool = False
    levels: dict[str, list[str]] = field(default_factory=dict)
    fills: dict[str, float] = field(default_factory=dict)
    note: str = ""
    intervals: dict[str, Any] | None = None
    unknown: str = "error"
    reading: Reading = AS_SHOWN

    @classmethod
    def of(
        cls,
        model: Model,
        features: Sequence[str],
        *,
        fills: NDArray[np.float64] | None = None,
        intervals: FoldModels | None = None,
        **facts: Any,
    ) -> SavedModel:
        """The saved form of a fitted model.

        fills, shape (p,): What missing values of the features are filled with.
        intervals: The models of the folds, from which prediction intervals are made.
        facts: The other fields, by their names; ``named`` is True unless it is given.
        """

        def none_if_nan(value: float) -> float | None:
            return None if math.isnan(value) else float(value)

        return cls(
            features=list(features),
            support=[features[column] for column in model.support],
            coef=model.coef[model.support].tolist(),
            intercept=float(model.intercept),
            tau=int(model.tau),
            gamma=none_if_nan(model.gamma),
            objective=none_if_nan(model.objective),
            lower_bound=none_if_nan(model.lower_bound),
            proved=bool(model.proved),
            fills={} if fills is None else dict(zip(features, fills.tolist(), strict=True)),
            intervals=None if intervals is None else intervals.document(list(features)),
            **{"named": True} | facts,
        )

    def fitted(self) -> Model:
        """The fitted model that the file describes, with coefficients of all features."""
        support = np.array([self.features.index(name) for name in self.support], dtype=np.intp)
        coef = np.zeros(len(self.features))
        coef[support] = self.coef
        objective = math.nan if self.objective is None else self.objective
        bound = math.nan if self.lower_bound is None else self.lower_bound
        tau = support.size if self.tau is None else self.tau
        gamma = math.nan if self.gamma is None else self.gamma
        own = support, coef, self.intercept, tau, gamma
        return Model(*own, objective, bound, self.proved)

    @property
    def fold_models(self) -> FoldModels | None:
        """The models of the folds; None where the file has none."""
        if self.intervals is None:
            return None
        return FoldModels.of_document(self.intervals, self.features)

    @property
    def codes(self) -> list[float]:
        """The numbers that stand for missing values."""
        values = [Marks().number(code) for code in self.reading.na]
        return [value for value in values if value is not None]

    def needed(self, intervals: bool = False) -> list[str]:
        """Names of the features that predictions need, or predictions with their intervals."""
        more = self.intervals["features"] if intervals and self.intervals is not None else []
        return list(dict.fromkeys([*self.support, *more]))

    def coding(self, intervals: bool = False, known: Collection[str] = ()) -> Coding:
        """The table's columns that predictions need, and which features they become.

        known: Features that are columns of the table themselves.
        """
        every = Coding([*self.levels], self.levels)
        table = {feature: name for name, own in every.columns.items() for feature in own}
        names = [one if one in known else table.get(one, one) for one in self.needed(intervals)]
        return every._replace(names=list(dict.fromkeys(names)))

    def features_of(self, frame: Any, unknown: str = "error") -> NDArray[np.float64]:
        """The features of the rows of a data frame, shape (n, p); 0 where predictions need none.

        The frame may hold the text columns that 0/1 columns stand for, or the 0/1 columns
        themselves. Missing values are filled where the model says with what.

        unknown: With "zero" a text that is no level has no level.
        Raises InputError: A column is missing, or holds an unknown level, text or no value.
        """
        from ..tables.frames import as_frame, features_of

        needed, names = self.needed(intervals=True), [str(name) for name in as_frame(frame).columns]
        coding = self.coding(intervals=True, known=names)
        how: dict[str, Any] = {"fills": self.fills, "unknown": unknown, "reading": self.reading}
        values = features_of(frame, coding, needed, bool(self.fills), **how)
        X = np.zeros((len(values), len(self.features)))
        X[:, [self.features.index(feature) for feature in needed]] = values
        return X

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) for rows X (m, len(support)) of the support's columns, in its order."""
        return np.asarray(X @ np.array(self.coef) + self.intercept)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the file.

        Raises InputError: The file cannot be written.
        """
        head = HEAD | {"sparsecv": __version__}
        document = head | asdict(self) | {"reading": self.reading._asdict()}
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
        names = [one.name for one in fields(cls)]
        # Files of earlier versions lack these fields; their defaults then hold.
        later = ("fills", "note", "intervals", "unknown", "reading")
        if missing := [name for name in names if name not in found and name not in later]:
            raise InputError(f"{path}: damaged model file: {missing[0]!r} is missing")
        kept = {name: found[name] for name in names if name in found}
        try:
            kept["reading"] = _as_reading(**kept.get("reading", {}))
        except (TypeError, LookupError, InputError):
            raise InputError(
                f"{path}: damaged model file: 'reading' does not hold what it should"
            ) from None
        model = cls(**kept)
        if wrong := model._wrong():
            raise InputError(f"{path}: damaged model file: {wrong!r} does not hold what it should")
        return model

    def _wrong(self) -> str | None:
        """The name of the first field whose value a model cannot have, or None."""

        def names(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(one, str) for one in value)

        def distinct(value: Any) -> bool:
            return names(value) and 0 < len(set(value)) == len(value)

        checks = {
            "features": distinct(self.features),
            "named": isinstance(self.named, bool),
            "support": distinct(self.support),
            "coef": isinstance(self.coef, list) and all(map(is_number, self.coef)),
            "intercept": is_number(self.intercept),
            "target": isinstance(self.target, str),
            "tau": self.tau is None
            or (type(self.tau) is int and 0 < self.tau <= len(self.features)),
            "gamma": self.gamma is None or (is_number(self.gamma) and self.gamma >= 0),
            "objective": self.objective is None or is_number(self.objective),
            "lower_bound": self.lower_bound is None or is_number(self.lower_bound),
            "proved": isinstance(self.proved, bool),
            "levels": isinstance(self.levels, dict) and all(map(names, self.levels.values())),
            "fills": isinstance(self.fills, dict) and all(map(is_number, self.fills.values())),
            "note": isinstance(self.note, str),
            "unknown": self.unknown in ("error", "zero"),
        }
        if wrong := next((name for name, right in checks.items() if not right), None):
            return wrong
        if not set(self.support) <= set(self.features):
            return "support"
        if self.fills and set(self.fills) != set(self.features):
            return "fills"
        try:
            _ = self.fold_models
        except (ValueError, KeyError, TypeError):
            return "intervals"
        return None if len(self.coef) == len(self.support) else "coef"


def _as_reading(**kept: Any) -> Reading:
    """How a file says that the table of its model was read.

    Raises InputError, LookupError or TypeError: The file says something else.
    """
    found = Reading(**kept)
    codecs.lookup(found.encoding)
    possible_marks(found)
    if found.usual not in (None, ".", ",") or not all(isinstance(code, str) for code in found.na):
        raise TypeError
    return found._replace(na=tuple(found.na))
