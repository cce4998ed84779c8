"""Formats and parses the times of a run in the same form as the tables of the run.

In texts, times are timestamps in the time zone of the trace, or durations since the origin of the trace.
Within the program, times are relative to the run's origin. If the trace has durations, the run's origin is
0 or, for a run with `--window`, the first submission in the window.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import polars as pl

from harness.base.errors import InputError
from harness.base.units import SECOND, moment_at, parse_duration, since_1970
from harness.runs.run import Run


class Clock:
    """Formats and parses the times of a run."""

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
        """True if times are written in UTC or without a time zone."""
        return self._zone is UTC

    @property
    def width(self) -> int:
        """The usual width of a time in whole seconds, in characters."""
        return (19 if self._zone is UTC else 25) if self._timestamps else 11

    def text(self, time: int) -> str:
        """Formats a time exactly: `2017-10-05 14:52:04`, or `1d 02:03:04` if the trace has durations.

        In a time zone other than UTC, the text includes the UTC offset. The time is in microseconds since the
        run's origin.
        """
        time += self._origin
        fraction = f".{time % SECOND:06d}" if time % SECOND else ""
        if self._timestamps:
            moment = moment_at(time)
            if self._zone is not UTC:  # the offset is necessary, because one hour of the year occurs twice
                return moment.astimezone(self._zone).isoformat(" ")
            return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}"
        seconds = time // SECOND
        days, rest = divmod(seconds, 86400)
        return f"{days}d {rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}{fraction}"

    def parse(self, text: str) -> int:
        """Parses a time in the form that `text` returns, or a duration such as `30d12h`.

        A timestamp without a UTC offset is in the trace's time zone. If the run has timestamps, a duration
        counts from the run's origin. Otherwise, it counts from the trace's origin, like the times that `text`
        returns.

        Returns:
            Microseconds since the run's origin.

        Raises:
            InputError: the text is neither a time nor a duration.
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
