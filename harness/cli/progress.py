"""How far a replay has come: one line on a terminal, and nothing anywhere else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import click

from harness.text import columns, printable
from harness.units import format_duration

_PAUSE = 0.1  # ten times a second is smooth
_BAR = 20
_ERASE = "\r\033[K"


class Progress:
    """A bar with jobs, simulated time and rate.

    It is drawn on stderr where that is a terminal that can go back to the beginning of a line, and not under
    CI, whose terminals are logs. It has no colours, so that NO_COLOR has nothing to say about it.

    Args:
        label: what is replayed.
        jobs: how many jobs will arrive at most.
        shown: whether it is wanted at all.
    """

    def __init__(self, label: str, jobs: int, *, shown: bool) -> None:
        able = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
        self._shown = shown and able
        self._label, self._jobs = label, jobs
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Callable[[int, int], None] | None:
        return self._update if self._shown else None

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo(_ERASE, nl=False, err=True)

    def _update(self, simulated: int, arrived: int) -> None:
        now = time.monotonic()
        if now - self._last < _PAUSE:
            return
        self._last = now
        done = arrived / max(self._jobs, 1)
        before = f"{self._label} "
        after = (
            f" {100 * done:.0f} %  {arrived:,} of {self._jobs:,} jobs  {format_duration(simulated)} simulated"
            f"  {arrived / (now - self._began):,.0f} jobs/s"
        )
        most = _width() - 1
        bar = max(0, min(_BAR, most - columns(before + after)))
        filled = round(bar * done)
        line = f"{before}{'█' * filled}{'░' * (bar - filled)}{after}"
        click.echo(f"{_ERASE}{_cut(printable(line), most)}", nl=False, err=True)


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _cut(line: str, most: int) -> str:
    """As much of a line as fits; one that wraps could not be erased."""
    while columns(line) > most:
        line = line[:-1]
    return line
