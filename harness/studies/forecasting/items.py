"""Divides a forecast into futures, which processes simulate one by one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from harness.base.errors import HarnessError, ReplayError
from harness.runs.executors import Report, executor_for, why_failed
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


def futures_of(
    worlds: tuple[World, ...],
    count: int,
    *,
    workers: int | None,
    executor: Executor | None,
    watch: Callable[[int, int], None] | None = None,
) -> list[list[Future]]:
    """Simulates futures of each world, and returns them in the order of the worlds.

    Args:
        worlds: the inputs of the futures.
        count: the number of futures of each world.
        workers: the number of processes on this machine. By default, cores and memory limit this number. With
            1, this process does all the work.
        executor: an executor that simulates the futures instead.
        watch: a function that is called with the number of simulated futures, beginning with 0, and the
            number of all futures.

    Raises:
        OptionError: both `workers` and `executor` are given, or the number of processes is invalid.
        ReplayError: a future could not be simulated, or the executor has shut down.
    """
    items = [(world, number) for number in range(count) for world in range(len(worlds))]
    found: list[list[Future]] = [[] for _ in worlds]
    with (
        executor_for(Playing(worlds), len(items), workers=workers, executor=executor) as (pool, _),
        closing(pool.map(items)) as news,
    ):
        if watch is not None:
            watch(0, len(items))
        for done, played in enumerate(news, 1):
            if played.future is None:
                raise ReplayError(f"a future could not be simulated: {played.error}")
            found[played.world].append(played.future)
            if watch is not None:
                watch(done, len(items))
    return [sorted(each) for each in found]
