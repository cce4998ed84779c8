"""Finds the part of a run between two times, such as `--from` and `--to`."""

from __future__ import annotations

from harness.analysis.explanation.clock import Clock
from harness.base.errors import OptionError
from harness.plugins.measurement import Window
from harness.runs.run import Run


def part_of(
    run: Run,
    since: str | None,
    until: str | None,
    *,
    whole: Window | None = None,
    asked: str = "between --from and --to",
) -> Window:
    """Parses two times and returns the part of the measured span between them.

    Args:
        run: the run.
        since: a time in the form that the run uses, or a duration in the form that `Clock` parses. None means
            the beginning of the run.
        until: the end, in the same form. None means the end of the run.
        whole: the measured span; by default, the run's own window.
        asked: how error messages refer to the part.

    Raises:
        InputError: one of the times is not a time of the run.
        OptionError: no part of the run is between the two times.
    """
    clock, whole = Clock(run), whole or run.window
    start = whole.start if since is None else max(whole.start, clock.parse(since))
    end = whole.end if until is None else min(whole.end, clock.parse(until))
    if start > end or (start == end and whole.start < whole.end):
        raise OptionError(
            f"no part of the run is {asked}",
            hint=f"the run lasts from {clock.text(whole.start)} to {clock.text(whole.end)}",
        )
    return Window(start, end)
