"""Gives jobs priorities that the trace implies but does not state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from harness.errors import OptionError
from harness.options import did_you_mean
from harness.trace.trace import Trace

_OTHERS = "*"
_FORM = "write COLUMN=VALUE:PRIORITY,VALUE:PRIORITY, such as queue=prod:100,*:0"
_INT32 = 2**31


@dataclass(frozen=True, slots=True)
class PriorityFrom:
    """Priorities by the value of a column.

    Attributes:
        column: any column of the trace, also one that the schema does not know.
        priorities: value, as text -> priority; `*` stands for all other values, which without it keep the
            priority that the trace states.
    """

    column: str
    priorities: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> PriorityFrom:
        """`COLUMN=VALUE:PRIORITY,...`.

        Raises:
            OptionError: not of that form, a value twice, or a priority that does not fit 32 bits.
        """
        column, equals, rest = text.partition("=")
        priorities: dict[str, int] = {}
        for part in rest.split(","):
            value, colon, number = part.rpartition(":")
            if not (column and equals and colon):
                raise OptionError(f"--priority-from {text!r} is not understood", hint=_FORM)
            if value in priorities:
                raise OptionError(f"--priority-from {text!r}: {value!r} is given twice")
            try:
                priorities[value] = int(number)
            except ValueError:
                raise OptionError(
                    f"--priority-from {text!r}: {number!r} is not a whole number", hint=_FORM
                ) from None
            if not -_INT32 <= priorities[value] < _INT32:
                raise OptionError(f"--priority-from {text!r}: {number} does not fit 32 bits")
        return cls(column, priorities)

    def __str__(self) -> str:
        return f"{self.column}=" + ",".join(f"{value}:{rank}" for value, rank in self.priorities.items())

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """The rows with these priorities.

        Raises:
            OptionError: there is no such column, or no job has one of the values.
        """
        frame = trace.frame
        if self.column not in frame.columns:
            raise OptionError(
                f"--priority-from {self}: {trace.path} has no column {self.column!r}",
                hint=did_you_mean(self.column, frame.columns),
            )
        key = pl.col(self.column).cast(pl.String)
        present = frame.select(key.unique()).to_series().drop_nulls()
        absent = [value for value in self.priorities if value != _OTHERS and value not in present]
        if absent:
            raise OptionError(
                f"--priority-from {self}: {self.column} is never {absent[0]!r}",
                hint=did_you_mean(absent[0], present),
            )
        listed = {value: rank for value, rank in self.priorities.items() if value != _OTHERS}
        stated = pl.col("priority") if "priority" in frame.columns else pl.lit(None, pl.Int32)
        others = pl.lit(self.priorities[_OTHERS], pl.Int32) if _OTHERS in self.priorities else stated
        found = key.replace_strict(list(listed), list(listed.values()), default=None, return_dtype=pl.Int32)
        changed = frame.with_columns(pl.coalesce(found, others).alias("priority"))
        return changed, f"priorities by {self.column}"
