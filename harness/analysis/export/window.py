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

    Both times are in the form that the run uses, or durations in the form that `Clock` parses. By default,
    they are the ends of the run, and `whole` is the run's own window. `asked` is what error messages call the
    part.

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
