"""Which rows are held out when: leave-one-out, K folds, folds of a size, splitters, index pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Folds:
    """The k sets of rows that are held out in turn, of n rows.

    Attributes
    ----------
    kind : str
        How the folds were asked for: "loo", "kfold", "size", "time" (each trains on the rows before
        those that it holds out), "custom" (a splitter, pairs or one group at a time), or "all" for
        one fold of all rows.
    n, k : int
        Number of rows and of folds.
    sizes : ndarray of int, shape (k,)
        Number of rows that every fold holds out.
    label : ndarray of int, shape (n,), or None
        Fold of every row, where the folds partition the rows and every fold trains on all rows that
        it does not hold out. It is also None where rows have no numbers, as they are known by their
        moments alone.
    pairs : list of tuple of ndarray
        Training and held-out row numbers of every fold, where the folds are no such partition; else
        empty.
    groups : ndarray of int, shape (n,), or None
        Group of every row, where folds keep the rows of a group together.
    leave_one_out : bool
        Whether every row is a fold of its own.
    is_partition : bool
        Whether every row is held out once, by folds that train on all other rows.
    """

    kind: str
    n: int
    sizes: Index
    label: Index | None
    pairs: list[tuple[Index, Index]] = field(default_factory=list, repr=False)
    groups: Index | None = field(default=None, repr=False)

    @classmethod
    def whole(cls, n: int) -> Folds:
        """One fold of all n rows, which leaves no row to train on."""
        return cls("all", n, np.array([n]), np.broadcast_to(np.intp(0), (n,)))

    @property
    def k(self) -> int:
        """Number of folds."""
        return int(self.sizes.size)

    @property
    def leave_one_out(self) -> bool:
        """Whether every row is a fold of its own."""
        return self.label is not None and self.k == self.n

    def check_weights(self, counted: NDArray[np.bool_], what: str = "folds") -> None:
        """Raise an InputError where a fold trains on no row that counts, or no fold holds one out.

        counted, shape (n,): Whether a row has a weight above 0.
        what: The folds in words.
        """
        if self.label is None:
            trained = [bool(counted[train].any()) for train, _ in self.pairs]
        else:
            held_out = np.bincount(self.label, counted, minlength=self.k)
            trained = (held_out < counted.sum()).tolist()
        if not all(trained):
            k = self.k
            fold = "a fold" if k == 1 else f"fold {trained.index(False) + 1} of {k}"
            raise InputError(
                f"all training rows of {fold} have weight 0: draw other folds, or leave out the "
                "rows of weight 0"
            )
        held = [test for _, test in self.pairs if test.size]
        if held and not any(counted[test].any() for test in held):
            raise InputError(
                f"all rows that the {what} hold out have weight 0, so that there is no error of "
                "them: draw other folds"
            )

    def covers(self, j: int) -> bool:
        """Whether fold j trains on every row that it does not hold out."""
        return self.is_partition or sum(rows.size for rows in self.pairs[j]) == self.n

    @cached_property
    def all_rows(self) -> bool:
        """Whether the training and held-out rows of every fold are all rows."""
        return self.is_partition or all(self.covers(j) for j in range(self.k))

    @property
    def is_partition(self) -> bool:
        """Whether every row is held out once, by folds that train on all other rows."""
        return not self.pairs

    @property
    def holds_out(self) -> bool:
        """Whether rows are held out; else all rows are one fold, which no model predicts."""
        return self.kind != "all"

    @property
    def redraws(self) -> bool:
        """Whether other random partitions of the rows into folds of the same kind can be drawn."""
        return self.kind in ("kfold", "size")

    @property
    def one_for_each(self) -> bool:
        """Whether every row, or every group where folds keep groups together, is a fold."""
        units = self.n if self.groups is None else np.unique(self.groups).size
        return self.label is not None and self.k == units

    def again(self, seed: Any, number: int) -> Folds:
        """Another random partition of the rows into as many folds of the same kind.

        Parameters
        ----------
        seed : int, RandomState or Generator of NumPy, or None
            What these folds were drawn with. From a whole number every ``number`` gives a partition
            of its own; a generator is used on; None gives any partition.
        number : int
            1 for the second partition, 2 for the third, and so on.

        Returns
        -------
        Folds

        Raises
        ------
        InputError
            The folds were not drawn at random, or every row or group is a fold: then there is no
            other partition.
        """
        if not self.redraws:
            raise InputError("only K folds and folds of a size can be drawn again")
        if isinstance(seed, (int, np.integer)):
            seed = int(np.random.SeedSequence([int(seed), number]).generate_state(1)[0])
        # Of n rows, folds of M rows are as many as folds of ⌊n/k⌋ rows, k = ⌊n/M⌋.
        text = str(self.k) if self.kind == "kfold" else f"size:{self.n // self.k}"
        return make_folds(text, self.n, seed=seed, groups=self.groups)

    def split(self, j: int) -> tuple[Index, Index]:
        """Numbers of the training and of the held-out rows of fold j, in increasing order."""
        if self.label is None:
            return self.pairs[j]
        held = self.label == j
        return np.flatnonzero(~held), np.flatnonzero(held)

    def splits(self) -> Iterator[tuple[Index, Index]]:
        """Yield the training and the held-out rows of every fold."""
        for j in range(self.k):
            yield self.split(j)


def _named_folds(cv: Any, n: int) -> tuple[str, int] | None:
    """What ``cv`` asks for of n rows: ("kfold", K), ("size", M), ("time", K), or ("loo", n).

    A text "size:" or "time:" without a whole number gives the number 0, which :func:`make_folds`
    refuses. Anything else that is neither a whole number nor the text of a whole number gives None.

    Raises InputError: The number has more digits than any number of rows.
    """
    if isinstance(cv, bool) or not isinstance(cv, (str, int, np.integer)):
        return None
    text = str(cv).strip().lower()
    if text == "loo":
        return "loo", n
    kind, colon, digits = (
        text.partition(":") if text[:5] in ("size:", "time:") else ("kfold", "", text)
    )
    digits = digits.strip()
    if not digits.isdecimal():
        return (kind, 0) if colon else None
    if len(digits) > len(str(np.iinfo(np.int64).max)):  # Python refuses to read thousands of them.
        raise InputError(f"folds: {digits[:18]}… is more than the {n} rows there are")
    return kind, int(digits)


def moment_folds(cv: Any, seed: Any) -> tuple[int, int]:
    """The number of folds and the whole number that stands for their seed, for a table of Dask.

    cv: What the user gave as folds. How many rows the table has is not known yet.
    seed: A whole number, a generator of NumPy that gives one, or None for a random one.
    Raises InputError: The folds are no number K of at least 2, or the seed is no such seed.
    """
    kind, k = _named_folds(cv, n=0) or ("", 0)
    if kind != "kfold":
        raise InputError(
            f"a table of Dask is reduced to the moments of folds that are a number K; got {cv!r}"
        )
    if k < 2:
        raise InputError(f"at least 2 folds are needed; got {k}")
    _check_seed(seed)
    draws = np.random.default_rng() if seed is None else seed
    if isinstance(draws, np.random.RandomState):
        draws = draws.randint(2**31)
    elif isinstance(draws, np.random.Generator):
        draws = draws.integers(2**31)
    return k, int(draws)


def chunk_folds(n: int, k: int, seed: int, partition: int, chunk: int) -> Index:
    """The folds, of k, of the n rows of a chunk: as even as can be, and in random order.

    seed, partition, chunk: Numbers. Every chunk of every partition has draws of its own.
    """
    draws = np.random.default_rng([seed, partition, chunk])
    # Counting begins at a random fold: where n is no multiple of k, the folds that get a row more
    # are then not the first ones in every chunk.
    return draws.permutation((np.arange(n, dtype=np.intp) + draws.integers(k)) % k)


def make_folds(
    cv: Any, n: int, *, seed: Any = 0, X: Any = None, y: Any = None, groups: Any = None
) -> Folds:
    """Turn what a user calls folds into :class:`Folds` of n rows.

    cv: K (shuffled with ``seed``), "loo", "size:M" (⌊n/M⌋ folds of M rows, some of M + 1),
        "time:K" (the folds of scikit-learn's TimeSeriesSplit(K), for rows in order of time), a
        scikit-learn splitter, pairs of training and held-out row indices, or one fold number for
        each row, as scikit-learn's PredefinedSplit takes them: rows of the number -1 are never held
        out. With ``groups``, K keeps groups together and "loo" leaves one group out.
    seed: Seed of the shuffle; a number, a RandomState or Generator of NumPy, or None.
    X, y: Rows for the method ``split`` of a splitter.
    groups, shape (n,), optional: Group of every row; the rows of a group are held out together.
    Raises InputError: The text is unknown, there are fewer than 2 or more than n folds, or indices
        are out of range.
    """
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**32))  # scikit-learn takes no generator.
    if groups is not None:
        check_groups(groups, n)
    kind, number = _named_folds(cv, n) or ("", 0)  # Of "loo" the number is n.
    if kind == "size":
        if groups is not None:
            raise InputError("folds of a size cannot keep groups together: use K or loo")
        if number < 1:
            raise InputError(f"folds 'size:M' needs a whole number M >= 1; got {cv!r}")
        if 2 * number > n:
            raise InputError(
                f"folds of size {number} need at least {2 * number} rows; there are {n}"
            )
        return _shuffled("size", n // number, n, seed)
    if kind == "time":
        if groups is not None:
            raise InputError("folds in order of time cannot keep groups together: use K or loo")
        return _in_time(number, n, cv)
    if kind and groups is not None:
        return _grouped(groups, None if kind == "loo" else number, n, seed)
    if kind:
        return _leave_one_out(n) if kind == "loo" else _shuffled("kfold", number, n, seed)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):  # It is below 0.
        raise InputError(f"at least 2 folds are needed; got {cv}")
    if isinstance(cv, str):
        raise InputError(f"folds must be 'loo', a number K, 'size:M' or 'time:K'; got {cv!r}")
    splitter = cv if hasattr(cv, "split") else _by_numbers(cv, n)
    if splitter is not None:
        cv = splitter.split(np.zeros((n, 1)) if X is None else X, y, groups)
    if isinstance(cv, Iterable) and getattr(cv, "ndim", 1) > 0:
        made = _from_pairs(cv, n)
        if groups is not None:
            made = replace(made, groups=_kept_groups(made, groups))
        return made
    raise InputError(
        "folds must be 'loo', a number K, 'size:M', 'time:K', a splitter, index pairs or a fold "
        f"number for each row; got {cv!r}"
    )


def _by_numbers(cv: Any, n: int) -> Any:
    """A splitter of one fold number for each of n rows; None where ``cv`` is something else.

    A list, a tuple or an array whose first entry is a number is taken for fold numbers.

    Raises InputError: Some entry is no whole number of 64 bits, or there are not n entries.
    """
    if not (hasattr(cv, "__array__") or isinstance(cv, (list, tuple))):
        return None
    if getattr(cv, "ndim", 1) == 0 or len(cv) == 0:
        return None
    if not isinstance(next(iter(cv)), (int, float, np.number)):
        return None
    from sklearn.model_selection import PredefinedSplit  # The import takes a second.

    try:
        with np.errstate(invalid="ignore"):  # No whole number stands for NaN or infinity.
            given = np.asarray(cv)
            numbers = given.astype(np.int64)
        whole = given.shape == (n,) and bool((numbers == given).all())
    except (TypeError, ValueError, OverflowError):  # Some entries are no numbers.
        whole = False
    if not whole:
        kind = f" of type {cv.dtype}" if hasattr(cv, "dtype") else ""
        raise InputError(
            f"folds as numbers need a whole number for each of the {n} rows, -1 for rows that "
            f"are never held out; got {len(cv)} entries{kind}"
        )
    return PredefinedSplit(numbers)


def check_groups(groups: Any, n: int) -> None:
    """Raise an InputError unless each of n rows has a group, and the groups can be sorted."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InputError(f"groups needs one entry per row ({n}); got shape {values.shape}")
    missing = [row for row, one in enumerate(values.tolist()) if _is_missing(one)]
    if missing:
        more = f" ({len(missing)} in all)" if len(missing) > 1 else ""
        raise InputError(
            f"groups: row {missing[0]} has no group{more}: give it one, or remove the row"
        )
    try:
        np.unique(values)
    except TypeError:
        raise InputError("groups: some are text and some are not: make all of them text") from None


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or ``pandas.NA``, which has no truth value."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _kept_groups(folds: Folds, groups: Any) -> Index | None:
    """The number of every row's group; None where a fold trains on a group and holds it out."""
    group = np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.intp)
    for train, test in folds.splits():
        trained = np.zeros(folds.n, dtype=bool)
        trained[group[train]] = True
        if trained[group[test]].any():
            return None
    return group


def _leave_one_out(n: int) -> Folds:
    """The folds that hold out one row each."""
    return Folds("loo", n, np.ones(n, dtype=np.intp), np.arange(n, dtype=np.intp))


def _grouped(groups: Any, k: int | None, n: int, seed: Any) -> Folds:
    """K folds of whole groups of the n rows; with k = None every group is a fold.

    As many folds as groups are one partition, and no other can be drawn.

    Raises InputError: There are fewer than 2 folds, or more than there are groups.
    """
    group = np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.intp)
    n_groups = int(group.max()) + 1
    wanted = n_groups if k is None else k
    if not 2 <= wanted <= n_groups:
        raise InputError(
            "folds of whole groups must be at least 2, and at most as many as there are groups "
            f"({n_groups}); got {wanted}"
        )
    label, drawn = group.copy(), wanted < n_groups
    if drawn:
        from sklearn.model_selection import GroupKFold  # The import takes a second.

        _check_seed(seed)
        splitter = GroupKFold(wanted, shuffle=True, random_state=seed)
        for j, (_, test) in enumerate(splitter.split(np.broadcast_to(0, (n, 1)), groups=group)):
            label[test] = j
    sizes = np.bincount(label, minlength=wanted).astype(np.intp)
    return Folds("kfold" if drawn else "custom", n, sizes, label, groups=group)


def _check_seed(seed: Any) -> None:
    """Raise an InputError unless a seed is None, a whole number from 0 to 2³² − 1 or a generator.

    A generator is a RandomState or a Generator of NumPy.
    """
    if seed is None or isinstance(seed, (np.random.RandomState, np.random.Generator)):
        return
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise InputError(
            "the seed of the folds (random_state) must be a whole number from 0 to 2**32 - 1, a "
            f"numpy RandomState or Generator, or None; got {seed!r}"
        )


def _shuffled(kind: str, k: int, n: int, seed: Any) -> Folds:
    """The folds of scikit-learn's KFold(k, shuffle=True, random_state=seed).

    The folds are drawn here because scikit-learn takes a second to import. As many folds as rows
    are leave-one-out, in the order of the rows.

    Raises InputError: There are fewer than 2 folds, or more than there are rows.
    """
    if k < 2:
        raise InputError(f"at least 2 folds are needed; got {k}")
    if k > n:
        raise InputError(f"{k} folds need at least {k} rows; there are {n}")
    if k == n:
        return _leave_one_out(n)
    _check_seed(seed)
    draws: Any = seed
    if not isinstance(seed, np.random.RandomState):
        draws = np.random if seed is None else np.random.RandomState(seed)
    sizes = (n // k + (np.arange(k) < n % k)).astype(np.intp)
    label = np.empty(n, dtype=np.intp)
    label[draws.permutation(n)] = np.repeat(np.arange(k), sizes)
    return Folds(kind, n, sizes, label)


def _in_time(k: int, n: int, cv: Any) -> Folds:
    """The folds of scikit-learn's TimeSeriesSplit(k).

    Each holds out the ⌊n/(k + 1)⌋ rows after those of the fold before it, the last one up to the
    last row, and trains on all rows before its own. The folds are made here because scikit-learn
    takes a second to import.

    cv: What the user gave, for the message.
    Raises InputError: There are fewer than 2 folds, or too few rows.
    """
    if k < 2:
        raise InputError(f"folds 'time:K' needs a whole number K >= 2; got {cv!r}")
    if k + 1 > n:
        raise InputError(f"{k} folds in order of time need at least {k + 1} rows; there are {n}")
    held, rows = n // (k + 1), np.arange(n, dtype=np.intp)
    pairs = [(rows[:start], rows[start : start + held]) for start in range(n - k * held, n, held)]
    return Folds("time", n, np.full(k, held, dtype=np.intp), None, pairs)


def _from_pairs(pairs: Iterable[Any], n: int) -> Folds:
    """Folds of pairs of training and held-out row numbers, or masks, which are checked.

    Where each row is held out once, and trained on by all other folds, the folds are a partition.

    Raises InputError: There is no pair, or a pair is no two disjoint sets of some of the n rows.
    """
    checked: list[tuple[Index, Index]] = []
    label = np.full(n, -1, dtype=np.intp)
    for j, pair in enumerate(pairs):
        try:
            train, test = (_row_numbers(part, n) for part in pair)
        except (TypeError, ValueError) as error:
            raise InputError(f"fold {j + 1}: {error}") from None
        if train.size == 0 or test.size == 0:
            raise InputError(f"fold {j + 1} has no training or no held-out rows")
        if np.intersect1d(train, test).size:
            raise InputError(f"fold {j + 1} holds out rows it also trains on")
        checked.append((train, test))
        label[test] = j
    if not checked:
        raise InputError("no folds: the splitter or iterable gave no index pairs")
    sizes = np.array([test.size for _, test in checked], dtype=np.intp)
    complete = sizes.sum() == n and all(train.size + test.size == n for train, test in checked)
    if not (complete and (label >= 0).all()):
        return Folds("custom", n, sizes, None, checked)
    return _leave_one_out(n) if len(checked) == n else Folds("custom", n, sizes, label)


def _row_numbers(part: Any, n: int) -> Index:
    """Distinct row numbers below n, in increasing order, from an array of them or a mask.

    Raises ValueError: The array holds no such numbers; the message says why.
    """
    rows = np.asarray(part)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(f"a mask needs one entry per row ({n}); got shape {rows.shape}")
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        raise ValueError("row indices must be a one-dimensional array of integers")
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        raise ValueError(f"row indices must lie in 0..{n - 1}")
    increasing = np.unique(rows)
    if increasing.size != rows.size:
        raise ValueError("a row is listed twice")
    return increasing.astype(np.intp)


def checked_partition(
    label: Any, n: int, nested: bool, weights: NDArray[np.float64] | None = None
) -> tuple[Index, int]:
    """Checked folds of n rows: the fold of every row, shape (n,), and the number of folds.

    label, shape (n,): The fold of every row, whole numbers from 0 to k − 1 that are all used
        (``Folds.label``). None, where the folds are no partition of the rows, is refused.
    nested: Whether pairs of folds are left out, which needs at least 3 folds.
    weights, shape (n,), optional: Weights of the rows.
    Raises InputError: The folds do not hold out every row exactly once, are too few, or a fold has
        no row of a weight above 0.
    """
    if label is None:
        raise InputError(
            "nested cross-validation and stability need folds that hold out every row exactly once "
            "and train on the rest"
        )
    given = np.asarray(label)
    found = given.astype(np.intp)
    k, whole = int(found.max(initial=-1)) + 1, bool((found == given).all())
    used = np.unique(found)
    if found.shape != (n,) or k < 2 or not (whole and np.array_equal(used, np.arange(k))):
        raise InputError(f"folds must label {n} rows 0..k-1 with k >= 2 and none empty")
    if nested and k < 3:
        raise InputError(f"nested cross-validation needs at least 3 folds; got {k}")
    if weights is not None and (empty := np.bincount(found, weights) == 0.0).any():
        raise InputError(
            f"fold {int(empty.argmax()) + 1} of {k} has no row with a weight above 0, so that its "
            "mean loss is not defined: use fewer folds"
        )
    return found, k
