"""Shows the progress of an experiment: one line on a terminal, and nothing anywhere else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from harness.base.text import printable
from harness.base.units import SECOND, format_duration
from harness.cli.screen import can_redraw, steer, tell

if TYPE_CHECKING:
    from harness.studies.experiments.evaluation import Made
    from harness.studies.experiments.sweep import State

_PAUSE = 0.1
_ERASE = "\r\033[K"


class SweepBar:
    """The numbers of finished, running and failed items, and the estimated end.

    The number of stored items, the result and the failures appear even without a terminal.

    Args:
        shown: whether to show the bar at all.
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
