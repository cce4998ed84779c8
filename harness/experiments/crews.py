"""The crew of a command that makes items again and again: its processes stay from one call to the next."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path

from harness.errors import OptionError
from harness.experiments.bench import Inputs
from harness.experiments.crew import Alone, Crew, Elsewhere
from harness.experiments.elsewhere import dask_executor
from harness.runs.children import heed_signals, signals_blocked
from harness.runs.workers import memory_for, workers_within


@contextmanager
def crew_for(
    inputs: Inputs, output: Path, most: int, *, workers: int | None, dask: str | None
) -> Iterator[Crew]:
    """Whoever makes items: this process, several of this machine, or the workers of a Dask scheduler.

    Args:
        inputs: what items are made of.
        output: where whole runs are kept.
        most: how many items there are to make at a time.
        workers: how many processes; by default as many as there are cores and memory for.
        dask: the address of a scheduler.

    Raises:
        OptionError: both are given.
        InputError: Dask is not installed, or no scheduler answers.
    """
    if dask is not None and workers is not None:
        raise OptionError("Dask has its own number of workers", hint="leave out --workers")
    with dask_executor(dask) as executor:
        if executor is not None:
            yield Elsewhere(inputs, output, executor)
            return
    memory = max(memory_for(trace) for trace in inputs.traces.values())
    count = min(most, workers or workers_within(memory, most=most))
    if count == 1:
        yield Alone(inputs, output)
        return
    before = set(active_children())
    with signals_blocked():
        pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    ended = False
    try:
        yield Elsewhere(inputs, output, pool, at_once=2 * count)
        ended = True
    finally:
        pool.shutdown(wait=ended, cancel_futures=True)
        for process in () if ended else set(active_children()) - before:
            process.terminate()


def _begin() -> None:
    heed_signals(lambda *_: os._exit(1))
