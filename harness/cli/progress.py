"""Shows the progress of long commands, in changing lines on a terminal and in a few lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Self

from harness.base.text import columns, counted, printable
from harness.base.units import SECOND, format_duration
from harness.cli.screen import can_redraw, steer, tell, terminal_size

if TYPE_CHECKING:
    from harness.studies.experiments.evaluation import Made
    from harness.studies.experiments.sweep import State

_PAUSE = 0.1  # Ten updates per second look smooth.
_BAR = 20
_LOG_PAUSE = 30.0
"""The minimum number of seconds between lines where a line can't change, such as in a log."""
_ERASE = "\r\033[K"
_ERASE_ABOVE = "\033[A\033[K"


class ProgressBars:
    """Progress bars with jobs, simulated time, rate, and the estimated time until all jobs have arrived.

    The bars appear on stderr if it is a terminal that can return to the beginning of a line. They do not
    appear in CI, where the output becomes a log. They have no colours, so NO_COLOR does not affect them.

    At most `jobs` jobs will arrive.
    """

    def __init__(self, labels: Sequence[str], jobs: int, *, shown: bool) -> None:
        self._shown = shown and can_redraw()
        self._labels, self._jobs = labels, jobs
        self._last = time.monotonic()
        self._began: dict[int, tuple[float, int]] = {}
        self._lines: dict[int, tuple[int, int]] = {}
        self._drawn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()

    @property
    def watch(self) -> Callable[[int, int, int], None] | None:
        """Returns the function that is called with a replay's number, simulated time and arrived jobs."""
        return self._update if self._shown else None

    def over(self, number: int, _: object = None) -> None:
        """Remove the line of a finished replay."""
        if self._lines.pop(number, None) is not None:
            self._draw()

    def say(self, lines: Iterable[str]) -> None:
        """Print lines above the bars."""
        self._erase()
        for line in lines:
            tell(line)
        self._draw()

    def _update(self, number: int, simulated: int, arrived: int) -> None:
        now = time.monotonic()
        self._began.setdefault(number, (now, arrived))
        self._lines[number] = simulated, arrived
        if now - self._last >= _PAUSE:
            self._last = now
            self._draw()

    def _erase(self) -> None:
        if self._drawn:
            steer(_ERASE + _ERASE_ABOVE * (self._drawn - 1))
            self._drawn = 0

    def _draw(self) -> None:
        width, height = terminal_size()
        lines = [self._line(number, width - 1) for number in sorted(self._lines)[: max(1, height - 1)]]
        if lines:
            erased = _ERASE + _ERASE_ABOVE * max(0, self._drawn - 1)
            steer(erased + "\n".join(lines))
            self._drawn = len(lines)
        else:
            self._erase()

    def _line(self, number: int, most: int) -> str:
        simulated, arrived = self._lines[number]
        done = arrived / max(self._jobs, 1)
        began, before_it = self._began[number]
        rate = (arrived - before_it) / max(time.monotonic() - began, _PAUSE)
        before = f"{self._labels[number]} "
        after = (
            f" {100 * done:.0f} %  {arrived:,} of {self._jobs:,} jobs  {format_duration(simulated)} simulated"
            f"  {rate:,.0f} jobs/s{self._left(arrived, rate)}"
        )
        bar = max(0, min(_BAR, most - columns(before + after)))
        filled = round(bar * done)
        return _cut(printable(f"{before}{'█' * filled}{'░' * (bar - filled)}{after}"), most)

    def _left(self, arrived: int, rate: float) -> str:
        if rate <= 0 or arrived >= self._jobs:
            return ""
        return f"  {format_duration(ceil((self._jobs - arrived) / rate) * SECOND)} left"


class Count:
    """The number of finished items, such as futures of a forecast.

    On a terminal, a single line changes. A pipe or a log gets one line at the beginning, and then at most one
    line every 30 seconds.

    `doing` says what happens to the items, such as `simulating`.
    """

    def __init__(self, doing: str, item: str, *, shown: bool) -> None:
        self._doing, self._item, self._shown = doing, item, shown
        self._last = 0.0

    def update(self, done: int, total: int) -> None:
        """Show the number of finished items. The first call must be with 0."""
        if not self._shown:
            return
        every = counted(total, self._item)
        if can_redraw():
            steer(_ERASE if done == total else f"{_ERASE}{self._doing} {every}: {done:,} done")
            return
        now = time.monotonic()
        if not done or (done < total and now - self._last >= _LOG_PAUSE):
            self._last = now
            tell(f"{self._doing} {every}: {done:,} done" if done else f"{self._doing} {every}")


def _cut(line: str, most: int) -> str:
    """Returns as much of a line as fits, because a wrapped line could not be erased."""
    while columns(line) > most:
        line = line[:-1]
    return line


class SweepBar:
    """The numbers of finished, running and failed items, and the estimated end.

    Even without a terminal, the number of stored items, the result and the failures appear.
    """

    def __init__(self, *, shown: bool) -> None:
        self._said, self._live = shown, shown and can_redraw()
        self._began = self._last = time.monotonic()
        self._state: State | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()
        state = self._state
        if self._said and state is not None:
            wall = format_duration((time.monotonic() - self._began) * SECOND)
            tell(f"{_told(state)}; {state.seconds:.1f} CPU-s of replays in {wall}")

    def update(self, state: State, made: Made | None) -> None:
        """Update the line at the beginning, and after each item."""
        self._state = state
        if made is None:
            self._began = time.monotonic()
        if made is not None and made.error and self._said:
            self._erase()
            tell(f"item {made.item.number}: {made.error.split(chr(10))[0]}")
        now = time.monotonic()
        if self._live and (made is None or now - self._last >= _PAUSE):
            self._last = now
            steer(f"{_ERASE}{printable(self._line(state))}")

    def _line(self, state: State) -> str:
        over = state.made + state.failed
        eta = ""
        if over and state.left:
            left = (time.monotonic() - self._began) / over * state.left
            eta = f", {format_duration(left * SECOND)} left"
        return f"{_told(state)}, {min(state.workers, state.left)} running{eta}"

    def _erase(self) -> None:
        if self._live:
            steer(_ERASE)


def _told(state: State) -> str:
    done = state.stored + state.made
    there = f" ({state.stored:,} were there)" if state.stored else ""
    failed = f", {state.failed:,} failed" if state.failed else ""
    return f"{done:,} of {state.items:,} items{there}{failed}"
