"""Determines the run-time distributions of all current work, given how long running jobs have run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.runs.estimates.distributions import Draws, RunTimes, ever
from harness.runs.estimates.present import Present
from harness.runs.estimates.traits import LEVELS, key_of_group


def draws_of(present: Sequence[Present], run_times: RunTimes) -> list[Draws | None]:
    """Returns the run-time distribution of each job, or None if there is no source for it."""
    running = _Running(each for each in present if not each.waits)
    found: list[Draws | None] = []
    for each in present:
        if each.lasting:
            found.append(ever(each.elapsed))
            continue
        draws = run_times.draws(each.traits, each.elapsed, each.limit)
        found.append(draws.beside(running.alike(draws)) if each.waits and draws is not None else draws)
    return found


class _Running:
    """How long running jobs have run so far, by group."""

    def __init__(self, running: Iterable[Present]) -> None:
        self._running = [each for each in running if not each.lasting]
        self._levels = dict(LEVELS)
        self._known: dict[int, dict[tuple[str, ...], list[int]]] = {}

    def alike(self, draws: Draws) -> list[int]:
        if not draws.values:
            return []
        level, key = int(draws.group[0]), draws.group[1:]
        groups = self._known.get(level)
        if groups is None:
            groups = self._known[level] = {}
            for each in self._running:
                own = key_of_group(each.traits, self._levels[level])
                if own is not None:
                    groups.setdefault(own, []).append(each.elapsed)
        return groups.get(key, [])
