"""What all jobs of a trace ask for together, which must fit 64 bits.

What queues hold and what waits are sums over jobs; beyond 64 bits they would turn negative in silence. A
product of such a sum and a time is computed with 128 bits, which hold any.
"""

from __future__ import annotations

import polars as pl

from harness.errors import Fault
from harness.trace.job_rows import total_of
from harness.trace.rules import shown
from harness.trace.schema import REQUEST, resources_of
from harness.units import INT64_MAX, format_amount

_PIECE = 1 << 20  # rows
_UNITS = {"cpu": "millicores", "memory": "bytes", "ephemeral-storage": "bytes"}


class Sums:
    """Adds up the requests of rows, piece by piece.

    Attributes:
        total: resource -> what all rows so far ask for together.
    """

    def __init__(self) -> None:
        self.total: dict[str, int] = {}
        self._rows = 0

    def add(self, frame: pl.DataFrame) -> list[Fault]:
        """Add valid rows, in the schema's types; answers the row at which each sum stops to fit."""
        faults = []
        for resource in resources_of(frame.columns):
            row = self._added(resource, frame.select(total_of(frame, resource)).to_series())
            if row is not None:
                faults.append(self._fault(frame, resource, row))
        self._rows += frame.height
        return faults

    def _added(self, resource: str, amounts: pl.Series) -> int | None:
        """Add amounts; the place of the first that is too much, None if there is none."""
        before = self.total.get(resource, 0)
        largest = int(amounts.max() or 0)  # type: ignore[arg-type]
        wide = largest * len(amounts) > INT64_MAX  # twice as many bits take twice the memory
        self.total[resource] = before + int((amounts.cast(pl.Int128) if wide else amounts).sum())
        if before > INT64_MAX or self.total[resource] <= INT64_MAX:
            return None
        return int((amounts.cast(pl.Int128).cum_sum() > INT64_MAX - before).arg_true()[0])

    def _fault(self, frame: pl.DataFrame, resource: str, row: int) -> Fault:
        name = f"{REQUEST}{resource}"
        own = frame.slice(row, 1).select(total_of(frame, resource)).item()
        where = f"row {self._rows + row + 1:,} (job {shown(frame['job_id'][row])}), {name}"
        unit = _UNITS.get(resource, "whole units")
        return Fault(
            where,
            f"{format_amount(resource, own)} and what the rows before it ask for are together more than 64 "
            f"bits can count: is the unit right? amounts are in {unit}",
        )


def exact_sum(values: pl.Series) -> int:
    """The sum of integers, whatever it is; piece by piece, since 128 bits take twice the memory."""
    pieces = range(0, len(values), _PIECE)
    return sum(int(values.slice(at, _PIECE).cast(pl.Int128).sum()) for at in pieces)
