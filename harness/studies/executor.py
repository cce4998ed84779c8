"""Makes items of work in this process, in several processes of this machine, or with an executor.

Only a limited number of items is handed out at a time, so that waiting items take no memory. An item whose
process died is handed out again. An item that ends its process even when made alone has failed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from harness.base.errors import INTERRUPTS, HarnessError, OptionError, ReplayError, told
from harness.runs.child_processes import Pool, heed_signals
from harness.runs.worker_count import workers_within
from harness.studies.items import Packed, Work, make_elsewhere, packed

_AHEAD = 2
"""Items handed out for each process: one in progress, one waiting."""

ELSEWHERE = 64
"""Items handed out to an executor, whose number of workers may change."""

_DIED = "its process was ended (the system does that if memory runs out)\nHint: use fewer --workers"

ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")
_ItemT = TypeVar("_ItemT", contravariant=True)
_MadeT = TypeVar("_MadeT", covariant=True)


class Crew(Protocol[_ItemT, _MadeT]):
    """Makes items."""

    def make(self, items: Iterable[_ItemT]) -> Generator[_MadeT, None, None]:
        """Yields each result as soon as it is ready; drops the remaining items if the generator is closed."""
        ...


class Alone(Generic[ItemT, MadeT]):
    """Makes one item after the other in this process."""

    def __init__(self, work: Work[ItemT, MadeT]) -> None:
        self._make = work.begun()

    def make(self, items: Iterable[ItemT]) -> Generator[MadeT, None, None]:
        """See `Crew`."""
        yield from map(self._make, items)


class Processes(Generic[ItemT, MadeT]):
    """Makes items in processes of this machine, which start fresh and keep what they have read.

    They stay from one call to the next; `end` ends them.

    Args:
        work: the work, which makes items.
        workers: the number of processes.
    """

    def __init__(self, work: Work[ItemT, MadeT], workers: int) -> None:
        self._work, self._packed, self._workers = work, packed(work), workers
        self._pool: Pool | None = None

    def make(self, items: Iterable[ItemT]) -> Generator[MadeT, None, None]:
        """See `Crew`; after a process has died, the items that were handed out are made one by one."""
        left: Iterator[ItemT] = iter(items)
        while True:
            suspects = yield from self._make(left, _AHEAD * self._workers)
            if not suspects:
                return
            for item in suspects:
                if (yield from self._make(iter([item]), 1)):
                    yield self._work.failed(item, _DIED)

    def end(self, *, now: bool) -> None:
        """Ends the processes, see `Pool`; new ones start if there are more items."""
        if self._pool is not None:
            self._pool.end(now=now)
            self._pool = None

    def _make(self, items: Iterator[ItemT], most: int) -> Generator[MadeT, None, list[ItemT]]:
        """Makes items until all are made or a process dies; returns the items that were then handed out."""
        if self._pool is None:
            self._pool = Pool(self._workers, _begin, self._packed)
        pool, over = self._pool, False
        try:
            lost = yield from _handed_out(self._work, items, most, lambda item: pool.submit(_make, item))
            over = not lost
        finally:
            if not over:  # a process has died, or the results are no longer wanted
                self.end(now=True)
        return lost


class Elsewhere(Generic[ItemT, MadeT]):
    """Makes items with an executor: of `dask.distributed`, or any that has `submit` and Python's futures.

    A process receives the inputs only after it has reported that it lacks them.

    Args:
        work: the work, which makes items.
        executor: the executor, which runs functions.
    """

    def __init__(self, work: Work[ItemT, MadeT], executor: Executor) -> None:
        self._work, self._packed, self._executor = work, packed(work), executor

    def make(self, items: Iterable[ItemT]) -> Generator[MadeT, None, None]:
        """See `Crew`.

        Raises:
            ReplayError: the executor has stopped.
        """
        lost = yield from _handed_out(
            self._work, iter(items), ELSEWHERE, self._submit, self._submit_with_work
        )
        if lost:
            raise ReplayError(
                f"the executor stopped with {len(lost):,} items in progress",
                hint="start it again; the same command continues where this one stopped",
            )

    def _submit(self, item: ItemT) -> Future[MadeT | None]:
        return self._executor.submit(make_elsewhere, self._packed.digest, None, item)

    def _submit_with_work(self, item: ItemT) -> Future[MadeT | None]:
        return self._executor.submit(make_elsewhere, *self._packed, item)


@contextmanager
def crew_for(
    work: Work[ItemT, MadeT], most: int, *, workers: int | None, executor: Executor | None
) -> Iterator[tuple[Crew[ItemT, MadeT], int]]:
    """The maker of items, until the end of the block, and the number of items that it makes simultaneously.

    Args:
        work: the work, which makes items.
        most: the largest number of items at a time.
        workers: how many processes of this machine make them; by default as many as there are cores and
            memory for. One is this process.
        executor: an executor that makes them instead, here or elsewhere.

    Raises:
        OptionError: both are given, or the number of processes is not possible.
    """
    if executor is not None:
        if workers is not None:
            raise OptionError("an executor has its own number of workers", hint="leave out --workers")
        yield Elsewhere(work, executor), ELSEWHERE
        return
    if workers is not None and workers < 1:
        raise OptionError(f"workers: {workers} is not a number of processes")
    count = min(workers or workers_within(work.memory, most=most), max(1, most))
    if count == 1:
        yield Alone(work), 1
        return
    processes = Processes(work, count)
    try:
        yield processes, count
        processes.end(now=False)
    finally:
        processes.end(now=True)


def _handed_out(
    work: Work[ItemT, MadeT],
    items: Iterator[ItemT],
    most: int,
    submit: Callable[[ItemT], Future[MadeT | None]],
    again: Callable[[ItemT], Future[MadeT | None]] | None = None,
) -> Generator[MadeT, None, list[ItemT]]:
    """Hands out items, this many at a time; returns the items in progress when the executor died.

    Args:
        work: the work, which makes items.
        items: the items to make; items that were not handed out remain in it.
        most: the number of items handed out at a time.
        submit: hands out an item.
        again: hands out an item with all its inputs, to a process that lacks them.
    """
    under_way: dict[Future[MadeT | None], ItemT] = {}
    waiting: deque[ItemT] = deque()
    try:
        while True:
            while len(under_way) < most:
                item = waiting.popleft() if waiting else next(items, None)
                if item is None:
                    break
                try:
                    under_way[submit(item)] = item
                except (BrokenProcessPool, CancelledError):
                    return [*under_way.values(), item]
            if not under_way:
                return []
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                item = under_way[future]
                try:
                    made = future.result()
                except (BrokenProcessPool, CancelledError):
                    return list(under_way.values())
                except HarnessError:
                    raise
                except INTERRUPTS:
                    raise
                except BaseException as error:  # executors raise anything for a task that they could not do
                    made = work.failed(item, f"the executor failed: {told(error)}")
                del under_way[future]
                if made is not None:
                    yield made
                elif again is not None:
                    under_way[again(item)] = item
    finally:
        for future in under_way:
            future.cancel()


# --- processes of this machine ----------------------------------------------------------------------------

_given: list[Packed] = []


def _begin(work: Packed) -> None:
    """Initializes a process: stores the work, and makes signals end the process."""
    heed_signals(lambda *_: os._exit(1))
    _given[:] = [work]


def _make(item: Any) -> Any:
    (work,) = _given
    return make_elsewhere(*work, item)
