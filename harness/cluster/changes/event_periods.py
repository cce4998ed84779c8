"""Determines when the rows of an event table apply, and rejects rows that contradict each other.

A row without an end applies until the next row about the same field, so a table can be a log of changes. A
row with an end is an exception. After its end, the earlier value applies again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from harness.base.errors import Fault
from harness.base.grouping import grouped
from harness.base.units import SECOND
from harness.cluster.changes.event_table import Row
from harness.cluster.changes.timed import Moment, moment_of

_LAST = 221_845_392_000 * SECOND
"""The start of the year 9000. Times can't be later, because dates can't go beyond the year 9999."""


class Period(NamedTuple):
    """The time during which a row applies.

    Attributes:
        ends: the end, or None if the row applies until the next row about the same field.
    """

    starts: Moment
    ends: Moment | None


def period_of(row: Row, first: Period | None, faults: list[Fault]) -> Period | None:
    """Returns the period in which a row applies, or None if the row's time is missing or invalid.

    If the `first` row of the table has a date, all rows must have dates. Otherwise, all times must count from
    the trace's origin.
    """
    starts, ends = (moment_of(row.cells[name] or None, row.where(name), faults) for name in ("time", "until"))
    if starts is None:
        return None
    dated = first.starts.dated if first is not None else starts.dated
    for name, moment in (("time", starts), ("until", ends)):
        if moment is not None and moment.dated and moment.time > _LAST:
            faults.append(Fault(row.where(name), "is later than the year 9000"))
            return None
        if moment is not None and moment.dated != dated:
            forms = ("counts from the trace's origin", "is a date")
            what = f"{forms[moment.dated]}, but the time of the first row {forms[dated]}"
            faults.append(Fault(row.where(name), f"{what}; write all times of a table in the same form"))
    if ends is not None and ends.dated == starts.dated and ends <= starts:
        faults.append(Fault(row.where("until"), "must be later than the row's time"))
    return Period(starts, ends)


def ends_of(
    said: Mapping[int, Iterable[Hashable]],
    when: Mapping[int, Period],
    rows: Mapping[int, Row],
    faults: list[Fault],
) -> dict[int, Moment | None]:
    """Returns the time at which each row ceases to apply, by the number of the row.

    A row without an end applies until the next such row for its fields. If its fields have different next
    rows, or no next row, its end is None. Overlapping rows are faults.

    `said` maps the number of a row to the fields that the row sets. `when` and `rows` have the time and the
    content of each row by its number. Faults are added to `faults`.
    """
    of_field = grouped((field, number) for number, fields in said.items() for field in fields)
    nexts: dict[int, set[Moment | None]] = {}
    clashes: dict[int, int] = {}
    for numbers in of_field.values():
        numbers.sort(key=lambda number: _order(when[number]))
        last: dict[bool, int] = {}  # the previous row, with and without an end
        for number in numbers:
            period = when[number]
            exception = last.get(True)
            ended = when[exception].ends if exception is not None else None
            if ended is not None and period.starts < ended:
                clashes.setdefault(number, exception or 0)
            step = last.get(False)
            if period.ends is None and step is not None:
                if when[step].starts == period.starts:
                    clashes.setdefault(number, step)
                nexts.setdefault(step, set()).add(period.starts)
            last[period.ends is not None] = number
        if False in last:
            nexts.setdefault(last[False], set()).add(None)
    for number, other in sorted(clashes.items()):
        what = f"row {other:,} sets the same field at this time"
        faults.append(
            Fault(rows[number].where("time"), f"{what}; one period must end before the other begins")
        )
    found = {}
    for number in said:
        following = nexts.get(number, set())
        found[number] = when[number].ends or (following.pop() if len(following) == 1 else None)
    return found


def _order(period: Period) -> tuple[Moment, bool]:
    """Returns a sort key that sorts an exception after the row that it overrides."""
    return period.starts, period.ends is not None


def in_order(when: Mapping[int, Period]) -> list[int]:
    """Returns the numbers of the rows, sorted so that each row comes before the rows that override it."""
    return sorted(when, key=lambda number: (_order(when[number]), number))
