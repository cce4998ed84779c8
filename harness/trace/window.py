"""Keeps the jobs that were submitted in a span of time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl

from harness.base.errors import InputError, OptionError
from harness.base.units import SECOND, parse_duration, since_1970
from harness.base.values import Value, fixed
from harness.trace.trace import Trace

_EXAMPLES = "examples: 10d..17d, 9400000s.., 2017-10-01..2017-11-01"


@fixed()
class Window(Value):
    """The jobs that were submitted from `start` (inclusive) to `end` (exclusive).

    Attributes:
        start, end: the bounds in microseconds. They are durations since the trace's origin, or dates in the
            trace's own time zone. None means that the window is open on that side.
        dates: whether the bounds are dates, which count from 1970.
    """

    text: str
    start: int | None
    end: int | None
    dates: bool

    @classmethod
    def parse(cls, text: str) -> Window:
        """Parse `START..END`. Either bound may be absent.

        Raises:
            OptionError: the text has another form, or the window is empty.
        """
        start, dots, end = text.partition("..")
        if not dots or not (start.strip() or end.strip()):
            raise OptionError(f"--window {text!r} is not understood", hint=f"write START..END; {_EXAMPLES}")
        bounds = [_bound(part.strip(), text) for part in (start, end)]
        kinds = {dated for _, dated in filter(None, bounds)}
        if len(kinds) > 1:
            raise OptionError(f"--window {text!r} mixes a date and a duration", hint=_EXAMPLES)
        first, last = (None if bound is None else bound[0] for bound in bounds)
        if first is not None and last is not None and first >= last:
            raise OptionError(f"--window {text!r} ends before it starts")
        return cls(text, first, last, kinds == {True})

    def __str__(self) -> str:
        return self.text

    def within(self, other: Window) -> bool:
        """Returns True if this window is within another window that has the same kind of bounds."""
        begins = other.start is None or (self.start is not None and self.start >= other.start)
        ends = other.end is None or (self.end is not None and self.end <= other.end)
        return self.dates == other.dates and begins and ends

    def overlaps(self, other: Window) -> bool:
        """Returns True if two windows with the same kind of bounds overlap."""
        return not (_before(self, other) or _before(other, self))

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """Returns the rows within the window. Simulated time begins at the first of these rows.

        Raises:
            OptionError: the window has dates, but the trace's times are durations.
        """
        if self.dates and trace.kind == "duration":
            raise OptionError(
                f"--window {self.text}: the times of {trace.path} are durations and have no date",
                hint="write durations since the trace's origin, such as 10d..17d",
            )
        submit = pl.col("submit_time")
        if self.dates:  # the local time in the trace's time zone
            submit = submit.dt.replace_time_zone(None)
        since = submit.to_physical() - (0 if self.dates else trace.origin)
        inside = pl.lit(value=True)
        if self.start is not None:
            inside &= since >= self.start
        if self.end is not None:
            inside &= since < self.end
        frame = trace.frame.filter(inside)
        return frame, "only jobs submitted in this window; simulated time begins with the first of them"


def _before(one: Window, other: Window) -> bool:
    return one.end is not None and other.start is not None and one.end <= other.start


def window_bound(trace: Trace, time: int) -> str:
    """Returns a time as text that `--window` accepts: a duration since the file's origin, or a date.

    The trace may begin later than its file, for example because a window was already applied. The text refers
    to the file nevertheless.

    `time` is in microseconds since the trace's origin. It is rounded down to whole seconds.
    """
    if trace.kind == "duration":
        return f"{(trace.origin + time) // SECOND}s"
    if not trace.calibration:
        return f"{time // SECOND}s"
    zone = UTC if trace.time_zone is None else ZoneInfo(trace.time_zone)
    date = datetime.fromtimestamp((trace.origin + time) // SECOND, zone)
    return date.replace(tzinfo=None).isoformat()


def _bound(part: str, text: str) -> tuple[int, bool] | None:
    """Returns the microseconds of one bound, and whether it is a date, or None for an open end."""
    if not part:
        return None
    try:
        return parse_duration(part), False
    except InputError:
        pass
    try:
        date = datetime.fromisoformat(part)
    except ValueError:
        date = None
    if date is None or date.tzinfo is not None:
        what = "is neither a duration nor a date"
        if date is not None:
            what = "has a UTC offset, but dates of a window are in the trace's time zone: omit the offset"
        raise OptionError(f"--window {text!r}: {part!r} {what}", hint=_EXAMPLES) from None
    return since_1970(date) // SECOND * SECOND, True
