"""Represents columns of numbers as arrays, and groups rows by keys.

Every operation on a polars frame has a fixed cost, even for few rows, and metrics need hundreds of operations
per run. Arrays avoid this cost.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from math import ceil
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from harness.base.units import INT64_MAX

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

Numbers = TypeVar("Numbers", Ints, Floats)
Item = TypeVar("Item", bound=np.generic)

NEVER = -INT64_MAX
"""The value that stands for a missing time or number in arrays."""

_SHORT = 2  # bytes
_WIDE = 8  # the maximum size of a lookup table, relative to the number of values to look up


def numbers(frame: pl.DataFrame, *names: str) -> Iterator[Ints]:
    """Yields columns of integers or booleans as arrays, with `NEVER` instead of nulls."""
    missing = [name for name in names if frame[name].null_count()]
    if missing:
        frame = frame.with_columns(pl.col(missing).cast(pl.Int64).fill_null(NEVER))
    for name in names:
        yield frame[name].to_numpy().astype(np.int64, copy=False)


def short(values: Ints) -> npt.NDArray[Any]:
    """Returns integers in the smallest integer type that can represent them."""
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    return values.astype(np.min_scalar_type(min(least, -1 - most)), copy=False)


def codes(column: pl.Series) -> Ints:
    """Returns a column's physical values, such as the codes of an enumeration, with `NEVER` for nulls."""
    (found,) = numbers(column.to_physical().to_frame(), column.name)
    return found


def places(column: pl.Series, names: pl.Series) -> npt.NDArray[Any]:
    """Returns, for each text of a column, its index in `names`, in the smallest suitable integer type.

    The column has no nulls, and `names` contains each of its texts once.
    """
    if column.dtype != pl.Categorical:
        number = column.cast(pl.Enum(names)).to_physical().to_numpy()
        return number.astype(np.min_scalar_type(len(names)), copy=False)
    # Use the codes of categories: looking up their texts takes three times as long.
    number = names.cast(column.dtype).to_physical().to_numpy()
    place: npt.NDArray[Any] = np.zeros(int(number.max(initial=0)) + 1, np.min_scalar_type(len(number)))
    place[number] = np.arange(len(number))
    found: npt.NDArray[Any] = place[column.to_physical().to_numpy()]
    return found


def joint(*columns: Ints) -> Ints:
    """Returns a number for each row, so that equal rows have equal numbers.

    Each number is less than the number of rows.
    """
    found, *others = (ranked(column)[1] for column in columns)
    for column in others:
        _, found = ranked(found * (int(column.max(initial=0)) + 1) + column)
    return found


def ranked(values: Ints, among: Ints | None = None) -> tuple[Ints, Ints]:
    """Returns the distinct values of `among` in ascending order, and the index of each of `values` in them.

    By default, `among` is `values`. Otherwise, it must contain all of `values`.
    """
    every = values if among is None else among
    least = int(every.min(initial=0))
    width = int(every.max(initial=0)) - least + 1
    if width > _WIDE * len(every):
        found = distinct(every)
        return found, found.searchsorted(values)
    # Numbers of jobs and pods are dense: marking those that occur takes a third of the time of sorting.
    there = np.zeros(width, np.bool_)
    there[every - least] = True
    return np.flatnonzero(there) + least, (there.cumsum() - 1)[values - least]


def distinct(values: Ints) -> Ints:
    """Returns the distinct values in ascending order.

    The function in numpy would import masked arrays, which takes longer than measuring a short run.
    """
    ranked = np.sort(values)
    return ranked[firsts(ranked)]


def is_text(column: pl.Series, *texts: str) -> Bools:
    """Returns a mask of the values that equal one of the given texts. Nulls give False."""
    found: Bools = np.zeros(len(column), np.bool_)
    for text in texts:
        same = column == text
        found |= (same.fill_null(value=False) if same.null_count() else same).to_numpy()
    return found


def firsts(values: npt.NDArray[Any]) -> Bools:
    """Returns a mask of the values that differ from their predecessors. It includes the first value."""
    found = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def next_of(values: npt.NDArray[Item], end: Any) -> npt.NDArray[Item]:
    """Returns the successor of each value, which is `end` for the last value."""
    found = np.empty_like(values)
    found[:-1] = values[1:]
    found[-1:] = end
    return found


def between(count: int, part: float) -> tuple[int, int]:
    """Returns the indices of the two values that enclose a quantile, among `count` sorted values."""
    place = (count - 1) * part
    return int(place), ceil(place)


def quantile(values: Floats | Ints, part: float) -> float:
    """Returns the quantile of some values, with linear interpolation.

    `values` has one or more values. They can be sorted only in part, but the two values at the indices from
    `between` must be where a complete sort would put them. `part` is a number from 0 to 1, such as 0.5 for
    the median.
    """
    before, after = between(len(values), part)
    low, high = float(values[before]), float(values[after])
    return low if low == high else ((len(values) - 1) * part - before) * (high - low) + low


def quotients(values: Floats | Ints, by: Floats | Ints, *, otherwise: float = 0.0) -> Floats:
    """Returns `values` divided by `by` where `by` is above 0, and `otherwise` elsewhere."""
    found: Floats = np.full(np.shape(values), otherwise)
    np.divide(values, by, out=found, where=by > 0)
    return found


class Groups:
    """Rows that are grouped by keys, where the rows of each group keep their order.

    Attributes:
        order: the numbers of the rows, group by group.
        keys: the keys of the rows in this order.
        first: for each row in this order, whether it is the first row of its group.
        begins: the indices at which groups begin.
    """

    def __init__(self, keys: Ints) -> None:
        # Integers of one or two bytes are sorted byte by byte.
        most = np.min_scalar_type(int(keys.max(initial=0)))
        self.order = np.argsort(keys.astype(most) if most.itemsize <= _SHORT else keys, kind="stable")
        self.keys = keys[self.order]
        self.first = firsts(self.keys)
        (self.begins,) = self.first.nonzero()

    @property
    def last(self) -> Bools:
        """A mask of the last row of each group, in the order of groups."""
        return next_of(self.first, end=True)

    def running(self, values: Numbers) -> Numbers:
        """Returns cumulative sums that start again with each group. `values` are in the order of `order`."""
        sums = values.cumsum()
        before = sums[self.begins] - values[self.begins]
        return sums - np.repeat(before, next_of(self.begins, len(values)) - self.begins)

    def back(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rearranges values from the order of `order` to the original order of the rows."""
        found = np.empty_like(values)
        found[self.order] = values
        return found

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        """Yields the key of each group in ascending order, with the group's slice of `order`."""
        ends: Iterable[int] = [*self.begins[1:].tolist(), len(self.keys)]
        begins = self.begins.tolist()
        for key, begin, end in zip(self.keys[self.begins].tolist(), begins, ends, strict=False):
            yield key, slice(begin, end)


def as_series(column: array[int] | npt.NDArray[Any]) -> pl.Series:
    """Returns integers or floats as a column without copying them, so the caller must not change them later.

    If polars received a numpy array, it would import numpy's masked arrays to check for them.
    """
    values = np.ascontiguousarray(column)
    buffers = [None, pa.py_buffer(values)]
    return pl.Series(
        _Exported(pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers))
    )


class _Exported:
    """An Arrow array that polars reads through Arrow's C interface.

    If polars received a pyarrow array, it would first import all functions of pyarrow, which takes longer
    than a short replay.
    """

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._array.__arrow_c_array__(requested_schema)  # type: ignore[no-any-return]
