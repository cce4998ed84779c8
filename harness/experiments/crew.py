"""Who makes the items: this process, several on this machine, or any executor that runs functions.

Only so many items are handed out at a time, so that what waits takes no memory here or at a scheduler. An
item whose process died is handed out again; one that ends its process even when it is alone has failed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

from harness.errors import HarnessError, OptionError, ReplayError
from harness.experiments.bench import Inputs
from harness.experiments.making import Item, Made, Maker, Packed, make_elsewhere, packed
from harness.runs.children import Pool, heed_signals
from harness.runs.workers import memory_for, workers_within

_AHEAD = 2
"""Items that are handed out for each process: one that it makes, one that waits."""

ELSEWHERE = 64
"""Items that are handed out to an executor, whose number of workers may change."""

_DIED = "its process was ended (the system does that where memory runs out)\nHint: use fewer --workers"

Makings: TypeAlias = Generator[Made, None, None]


class Crew(Protocol):
    """Makes items."""

    def make(self, items: Iterable[Item]) -> Makings:
        """What came of each, as soon as it is over; where the iterator is closed, the others are given up."""
        ...


class Alone:
    """Makes one item after the other in this process."""

    def __init__(self, inputs: Inputs, output: Path) -> None:
        self._maker = Maker(inputs, output)

    def make(self, items: Iterable[Item]) -> Makings:
        """See `Crew`."""
        yield from map(self._maker.make, items)


class Processes:
    """Makes items in processes of this machine, which are begun anew and keep what they have read.

    They stay from one call to the next, and are to be ended by `end`.

    Args:
        inputs: what items are made of.
        output: where whole runs are kept.
        workers: how many processes.
    """

    def __init__(self, inputs: Inputs, output: Path, workers: int) -> None:
        self._packed, self._output, self._workers = packed(inputs), output, workers
        self._pool: Pool | None = None

    def make(self, items: Iterable[Item]) -> Makings:
        """See `Crew`; after a process died what had been handed out is made one by one."""
        left: Iterator[Item] = iter(items)
        while True:
            suspects = yield from self._make(left, _AHEAD * self._workers)
            if not suspects:
                return
            for item in suspects:
                if (yield from self._make(iter([item]), 1)):
                    yield Made(item, None, _DIED, 0.0)

    def end(self, *, now: bool) -> None:
        """End the processes, see `Pool`; others are begun when there is more to make."""
        if self._pool is not None:
            self._pool.end(now=now)
            self._pool = None

    def _make(self, items: Iterator[Item], most: int) -> Generator[Made, None, list[Item]]:
        """Make items until all are made or a process dies; answers those that were handed out then."""
        if self._pool is None:
            self._pool = Pool(self._workers, _begin, self._packed, str(self._output))
        pool, over = self._pool, False
        try:
            lost = yield from _handed_out(items, most, lambda item: pool.submit(_make, item))
            over = not lost
        finally:
            if not over:  # one has died, or nobody wants what they are at
                self.end(now=True)
        return lost


class Elsewhere:
    """Makes items by an executor: of `dask.distributed`, or any that has `submit` and Python's futures.

    Inputs are sent to a process that says that it has not got them.

    Args:
        inputs: what items are made of.
        output: where whole runs are kept, there.
        executor: runs functions.
    """

    def __init__(self, inputs: Inputs, output: Path, executor: Executor) -> None:
        self._packed, self._output, self._executor = packed(inputs), str(output), executor

    def make(self, items: Iterable[Item]) -> Makings:
        """See `Crew`.

        Raises:
            ReplayError: the executor is gone.
        """
        lost = yield from _handed_out(iter(items), ELSEWHERE, self._submit, self._submit_with_inputs)
        if lost:
            raise ReplayError(
                f"the executor gave up with {len(lost):,} items under way",
                hint="start it again; the same command goes on where this one was",
            )

    def _submit(self, item: Item) -> Future[Made | None]:
        return self._executor.submit(make_elsewhere, self._packed.digest, None, self._output, item)

    def _submit_with_inputs(self, item: Item) -> Future[Made | None]:
        return self._executor.submit(make_elsewhere, *self._packed, self._output, item)


@contextmanager
def crew_for(
    inputs: Inputs, output: Path, most: int, *, workers: int | None, executor: Executor | None
) -> Iterator[tuple[Crew, int]]:
    """Whoever makes items, until the end of the block; and how many at once.

    Args:
        inputs: what items are made of.
        output: where whole runs are kept.
        most: how many items there are to make at a time.
        workers: how many processes of this machine make them; by default as many as there are cores and
            memory for. One is this process.
        executor: makes them instead, wherever it is.

    Raises:
        OptionError: both are given, or there is no such number of processes.
    """
    if executor is not None:
        if workers is not None:
            raise OptionError("an executor has its own number of workers", hint="leave out --workers")
        yield Elsewhere(inputs, output, executor), ELSEWHERE
        return
    if workers is not None and workers < 1:
        raise OptionError(f"workers: {workers} is not a number of processes")
    memory = max(memory_for(trace) for trace in inputs.traces.values())
    count = min(workers or workers_within(memory, most=most), max(1, most))
    if count == 1:
        yield Alone(inputs, output), 1
        return
    processes = Processes(inputs, output, count)
    try:
        yield processes, count
        processes.end(now=False)
    finally:
        processes.end(now=True)


def _handed_out(
    items: Iterator[Item],
    most: int,
    submit: Callable[[Item], Future[Made | None]],
    again: Callable[[Item], Future[Made | None]] | None = None,
) -> Generator[Made, None, list[Item]]:
    """Hand out items, so many at a time; answers those that were under way when the executor died.

    Args:
        items: what is to be made; what was not handed out is left in it.
        most: how many are handed out at a time.
        submit: hands one out.
        again: hands one out with all it needs, to whoever asks for that.
    """
    under_way: dict[Future[Made | None], Item] = {}
    waiting: deque[Item] = deque()
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
                except Exception as error:  # whatever an executor says of a task that it could not do
                    made = Made(item, None, f"the executor failed: {type(error).__name__}: {error}", 0.0)
                del under_way[future]
                if made is not None:
                    yield made
                elif again is not None:
                    under_way[again(item)] = item
    finally:
        for future in under_way:
            future.cancel()


# --- processes of this machine ----------------------------------------------------------------------------

_given: list[tuple[Packed, str]] = []


def _begin(inputs: Packed, output: str) -> None:
    """What a process is told when it begins."""
    heed_signals(lambda *_: os._exit(1))
    _given[:] = [(inputs, output)]


def _make(item: Item) -> Made | None:
    ((inputs, output),) = _given
    return make_elsewhere(inputs.digest, inputs.content, output, item)
