"""Divides a forecast into futures, which processes simulate one by one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, Unpack

from harness.base.errors import HarnessError, ReplayError
from harness.runs.executors import InParallel, Report, results_of, why_failed
from harness.studies.forecasting.futures import Future, World


class Played(NamedTuple):
    """The result of one future of one world, or a message that says why the future failed."""

    world: int
    future: Future | None
    error: str


@dataclass(frozen=True)
class Playing:
    """The work of a forecast, whose items are futures of worlds; see `harness.runs.executors.Work`."""

    worlds: tuple[World, ...]

    def begun(self, _: Report | None) -> Callable[[tuple[int, int]], Played]:
        """Returns a function that simulates a future of a world in this process."""
        return self._play

    def failed(self, item: tuple[int, int], error: BaseException) -> Played:
        """Returns the result for a future that no process could simulate."""
        return Played(item[0], None, why_failed(error))

    def _play(self, item: tuple[int, int]) -> Played:
        world, number = item
        try:
            return Played(world, self.worlds[world].future(number), "")
        except HarnessError as error:
            return Played(world, None, error.message)


def futures_of(worlds: tuple[World, ...], count: int, **how: Unpack[InParallel]) -> list[list[Future]]:
    """Simulates futures of each world, and returns them in the order of the worlds.

    Args:
        worlds: the inputs of the futures.
        count: the number of futures of each world.
        how: how to simulate the futures, see `InParallel`.

    Raises:
        OptionError: both `workers` and `executor` are given, or the number of processes is invalid.
        ReplayError: a future could not be simulated, or the executor has shut down.
    """
    items = [(world, number) for number in range(count) for world in range(len(worlds))]
    found: list[list[Future]] = [[] for _ in worlds]
    with closing(results_of(Playing(worlds), items, **how)) as news:
        for played in news:
            if played.future is None:
                raise ReplayError(f"a future could not be simulated: {played.error}")
            found[played.world].append(played.future)
    return [sorted(each) for each in found]
