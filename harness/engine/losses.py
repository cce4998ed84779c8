"""Defines what a preemption costs, that is, how much of a job's progress remains when the job runs again."""

from __future__ import annotations

from harness.base.errors import InputError, OptionError
from harness.base.units import SECOND, parse_duration
from harness.base.values import Value, fixed


@fixed()
class Losses(Value):
    """The loss model of a replay.

    Attributes:
        mode: `restart` (all progress is lost), `resume` (no progress is lost) or `checkpoint` (progress after
            the last checkpoint is lost).
        interval: the progress between two checkpoints, in microseconds. A job can have its own interval.
        restore: how long it takes to load a checkpoint, in microseconds. Resources are held idle during that
            time.
    """

    mode: str = "restart"
    interval: int = 0
    restore: int = 0

    def kept(self, progress: int, interval: int | None) -> int:
        """Returns how much of `progress` survives an eviction.

        Args:
            progress: the whole progress of the job when it was evicted, in microseconds.
            interval: the job's own checkpoint interval. A job that has one makes checkpoints in every mode.
        """
        if interval is not None:
            return progress // interval * interval if interval else progress
        if self.mode == "restart":
            return 0
        if self.mode == "resume":
            return progress
        return progress // self.interval * self.interval

    def __str__(self) -> str:
        if self.mode != "checkpoint":
            return self.mode
        restore = f",restore={_seconds(self.restore)}" if self.restore else ""
        return f"checkpoint={_seconds(self.interval)}{restore}"


def parse_losses(text: str) -> Losses:
    """Parse a loss model from the command line: `restart`, `resume` or `checkpoint=30m[,restore=1m]`.

    Raises:
        OptionError: the text doesn't have one of these forms.
    """
    if text in ("restart", "resume"):
        return Losses(text)
    given: dict[str, int] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in ("checkpoint", "restore") or key in given:
            raise OptionError(
                f"loss model {text!r} is not understood",
                hint="use restart, resume, or checkpoint=<interval>[,restore=<cost>] such as checkpoint=30m",
            )
        try:
            given[key] = parse_duration(value)
        except InputError as error:
            raise OptionError(f"loss model {text!r}: {error}") from error
    if not given.get("checkpoint"):
        raise OptionError(
            f"loss model {text!r} needs an interval above 0", hint="for example checkpoint=30m,restore=1m"
        )
    return Losses("checkpoint", given["checkpoint"], given.get("restore", 0))


def _seconds(microseconds: int) -> str:
    if microseconds % SECOND == 0:
        return f"{microseconds // SECOND}s"
    return f"{microseconds}us"
