"""Checks that sums of requests and of durations over all jobs of a trace fit into 64 bits.

The used and pending quantities of queues are sums over jobs. If such a sum did not fit into 64 bits, it would
silently become negative. Products of a sum and a time use 128 bits, which are always sufficient.
"""

from __future__ import annotations

import polars as pl

from harness.base.errors import Fault
from harness.base.units import INT64_MAX, LONGEST, format_amount, format_duration
from harness.trace.job_rows import total_of
from harness.trace.rules import shown
from harness.trace.schema import REQUEST, resources_of

_PIECE = 1 << 20  # rows
_DURATION = "duration"
UNITS = {"cpu": "millicores", "memory": "bytes", "ephemeral-storage": "bytes"}
"""The units of requests in a trace. Other resources are counted in whole units."""


class Sums:
    """Adds up rows, piece by piece.

    Attributes:
        total: the sum of each column over all rows so far. Quantities are summed over all pods.
    """

    def __init__(self) -> None:
        self.total: dict[str, int] = {}
        self._rows = 0

    def add(self, frame: pl.DataFrame) -> list[Fault]:
        """Adds valid rows, which must be in the schema's types.

        For each column, the method returns a fault for the first row whose sum doesn't fit into 64 bits.
        """
        amounts = frame.select(
            total_of(frame, resource).alias(f"{REQUEST}{resource}")
            for resource in resources_of(frame.columns)
        ).to_dict()
        if _DURATION in frame.columns:
            amounts[_DURATION] = frame[_DURATION].cast(pl.Int64)
        faults = []
        for name, values in amounts.items():
            row = self._added(name, values, INT64_MAX - (LONGEST if name == _DURATION else 0))
            if row is not None:
                where = f"row {self._rows + row + 1:,} (job {shown(frame['job_id'][row])}), {name}"
                faults.append(Fault(where, _says(name, values[row])))
        self._rows += frame.height
        return faults

    def _added(self, name: str, values: pl.Series, most: int) -> int | None:
        """Adds values, and returns the index of the first value that makes the sum exceed `most`, or None."""
        before = self.total.get(name, 0)
        largest = int(values.max() or 0)  # type: ignore[arg-type]
        wide = largest * len(values) > INT64_MAX  # twice as many bits use twice the memory
        self.total[name] = before + int((values.cast(pl.Int128) if wide else values).sum())
        if before > most or self.total[name] <= most:
            return None
        return int((values.cast(pl.Int128).cum_sum() > most - before).arg_true()[0])


def exact_sum(values: pl.Series) -> int:
    """Returns the exact sum of integers, even if it doesn't fit into 64 bits.

    It is computed piece by piece, because 128-bit integers use twice the memory.
    """
    pieces = range(0, len(values), _PIECE)
    return sum(int(values.slice(at, _PIECE).cast(pl.Int128).sum()) for at in pieces)


def _says(name: str, value: int) -> str:
    resource = name.removeprefix(REQUEST)
    own = format_duration(value) if name == _DURATION else format_amount(resource, value)
    unit = "microseconds" if name == _DURATION else UNITS.get(resource, "whole units")
    return (
        f"{own} and the rows before it add up to more than 64 bits can count: is the unit right? the "
        f"unit is {unit}"
    )
