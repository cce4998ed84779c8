"""Times of a run as people read and write them, equal to those in its tables.

Texts show timestamps in the time zone of the trace, or durations that count like those of the trace. Within
the program, times count from the run's origin. In a trace of durations the origin is 0, or the first
submission of the chosen window.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import polars as pl

from harness.base.errors import InputError
from harness.base.units import SECOND, moment_at, parse_duration, since_1970
from harness.runs.run import Run


class Clock:
    """The clock of a run.

    Args:
        run: the run.
    """

    def __init__(self, run: Run) -> None:
        self._timestamps = run.info["trace"]["times"] == "timestamp"
        self._origin = int(run.info["trace"]["origin_us"])
        self._zone: tzinfo = UTC
        if self._timestamps and run.kept == "all":
            kind = run.scan("jobs").collect_schema()["submit_time"]
            assert isinstance(kind, pl.Datetime)
            if kind.time_zone not in (None, "UTC"):
                self._zone = ZoneInfo(kind.time_zone)

    @property
    def is_utc(self) -> bool:
        """Returns True if times are written in UTC or without a time zone."""
        return self._zone is UTC

    @property
    def width(self) -> int:
        """The usual width of a time in whole seconds, in columns."""
        return (19 if self._zone is UTC else 25) if self._timestamps else 11

    def text(self, time: int) -> str:
        """A time, exactly: `2017-10-05 14:52:04`, or `1d 02:03:04` as the trace counts.

        In a time zone other than UTC, the time has its offset.

        Args:
            time: microseconds since the run's origin.
        """
        time += self._origin
        fraction = f".{time % SECOND:06d}" if time % SECOND else ""
        if self._timestamps:
            moment = moment_at(time)
            if self._zone is not UTC:  # with its offset, since one hour of the year comes twice
                return moment.astimezone(self._zone).isoformat(" ")
            return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}"
        seconds = time // SECOND
        days, rest = divmod(seconds, 86400)
        return f"{days}d {rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}{fraction}"

    def parse(self, text: str) -> int:
        """Parses a time as `text` writes it, or a duration such as `30d12h`.

        Returns microseconds since the run's origin. A timestamp without an offset is in the trace's time
        zone. If the run has timestamps, a duration counts from the run's origin. Otherwise it is a time as in
        the trace, like what `text` writes.

        Raises:
            InputError: the text is neither.
        """
        if self._timestamps:
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                pass
            else:
                return since_1970(moment, self._zone) - self._origin
        days, _, rest = text.rpartition("d ")
        try:
            parts = rest.split(":")
            if len(parts) == 3 and not self._timestamps:
                hours, minutes, seconds = (part or "-" for part in parts)
                return parse_duration(f"{days or 0}d{hours}h{minutes}m{seconds}s") - self._origin
            return parse_duration(text) - (0 if self._timestamps else self._origin)
        except InputError as error:
            examples = "2017-10-05 14:52:04 or 30d12h" if self._timestamps else "1d 02:03:04 or 30d12h"
            raise InputError(f"{text!r} is not a time of this run", hint=f"write it as {examples}") from error
