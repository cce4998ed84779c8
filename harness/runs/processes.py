"""Processes on this machine. Each process carries out one task after another.

The processes are started by `spawn`, so they share no state with this process. They ignore ctrl-C, which this
process handles. They end when this process requests it, or when this process dies.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NoReturn, cast

from harness.base.collector import collect_seldom
from harness.base.errors import INTERRUPTS, OptionError, told
from harness.runs.executors import DoneT, ProcessDiedError, Report, TaskT, Work

_PAUSE = 0.1  # The number of seconds between two progress reports.
_PATIENCE = 10.0  # How many seconds a process has to clean up.
_TO_END = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))


class Processes(Generic[TaskT, DoneT]):
    """Carries out tasks in processes, which keep running with what they have read until `end` is called.

    `most` is the number of processes. With `again`, a task whose process died is carried out once more on its
    own.
    """

    def __init__(
        self, work: Work[TaskT, DoneT], most: int, *, watch: Report | None = None, again: bool = True
    ) -> None:
        self._work, self._packed = work, pickle.dumps(work)
        self._most, self._watch, self._again = most, watch, again
        self._workers: list[_Worker[TaskT]] = []

    def map(self, tasks: Iterable[TaskT]) -> Generator[DoneT, None, None]:
        """Yields each result as soon as it is ready.

        With `again`, a task whose process died is carried out once more on its own, unless the process died
        before it was ready. Any other task whose process dies fails.
        """
        over = False
        try:
            suspects = yield from self._map(iter(tasks), self._most, again=self._again)
            for task in suspects:
                yield from self._map(iter([task]), 1, again=False)
            over = True
        finally:
            if not over:
                self.end()

    def end(self) -> None:
        """End all processes, and wait until they have cleaned up. Further tasks start new processes."""
        for worker in self._workers:
            if worker.task is None:
                worker.pipe.close()
            else:
                worker.process.terminate()
        end = time.monotonic() + _PATIENCE
        for worker in self._workers:
            worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.exitcode is None:
                worker.process.kill()
            died = worker.over()
            if worker.task is not None:
                self._work.failed(worker.task, died)
        self._workers.clear()

    def _map(self, tasks: Iterator[TaskT], most: int, *, again: bool) -> Generator[DoneT, None, list[TaskT]]:
        """Yields results, and finally returns the tasks to carry out again because their processes died."""
        suspects: list[TaskT] = []
        while True:
            busy = self._with_tasks(tasks, most)
            if not busy:
                return suspects
            for pipe in wait(list(busy)):
                worker = busy[cast("Connection", pipe)]
                task = worker.task
                assert task is not None
                try:
                    news, *about = worker.pipe.recv()
                except (EOFError, OSError):
                    self._workers.remove(worker)
                    died = worker.over()
                    if again and died.begun:
                        suspects.append(task)
                        continue
                    yield self._work.failed(task, died)
                    if not died.begun:  # The next process would not begin either.
                        yield from (self._work.failed(each, died) for each in tasks)
                    continue
                if news == "begun":
                    worker.begun = True
                elif news == "progress" and self._watch is not None:
                    self._watch(*about)
                elif news in ("done", "raised"):
                    worker.task = None
                    self._with_tasks(tasks, most)
                    found = pickle.loads(about[0])  # noqa: S301 - from a process of ours
                    yield found if news == "done" else self._work.failed(task, found)

    def _with_tasks(self, tasks: Iterator[TaskT], most: int) -> dict[Connection, _Worker[TaskT]]:
        """Gives tasks to idle and new processes, and returns the processes that have a task."""
        idle = [worker for worker in self._workers if worker.task is None]
        count = len(self._workers) - len(idle)
        for task in islice(tasks, max(0, most - count)):
            worker = idle.pop() if idle else self._new()
            worker.begin(task)
        return {worker.pipe: worker for worker in self._workers if worker.task is not None}

    def _new(self) -> _Worker[TaskT]:
        self._workers.append(_Worker(self._packed, watched=self._watch is not None))
        return self._workers[-1]


class _Worker(Generic[TaskT]):
    def __init__(self, packed: bytes, *, watched: bool) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, packed, watched), daemon=True)
        self.task: TaskT | None = None
        self.begun = False
        with signals_blocked():  # Otherwise, a signal could end a new process before it can clean up.
            self.process.start()
        theirs.close()

    def begin(self, task: TaskT) -> None:
        self.task = task
        with suppress(OSError):  # The process has died, which is also reported when its end is noticed.
            self.pipe.send_bytes(pickle.dumps(task))

    def over(self) -> ProcessDiedError:
        self.pipe.close()
        self.process.join()
        return ProcessDiedError(self.process.exitcode or 0, begun=self.begun)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Hold back signals that would end a process, until the `with` block ends.

    New processes inherit the blocked signals.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # The first process would start the tracker, which unblocks signals.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _TO_END)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- the other processes ----------------------------------------------------------------------------------


class _Ended(KeyboardInterrupt):
    """A signal requests that this process ends."""


def _end(_: int, __: object) -> NoReturn:
    raise _Ended


def _serve(pipe: Connection, packed: bytes, watched: bool) -> None:
    collect_seldom()  # This must happen before other modules are imported.
    sys.stdout = sys.stderr  # The parent's stdout has only the results of its command.
    try:
        _heed_signals()
        pipe.send(("begun",))
        do: Callable[[Any], Any] | None = None
        while True:
            content = pipe.recv_bytes()
            try:
                if do is None:
                    do = _read(packed).begun(_reports(pipe) if watched else None)
                answer = "done", _packed(do(_read(content)))
            except INTERRUPTS:
                raise
            except BaseException as error:  # A panic of polars is not an Exception.
                answer = "raised", _packed(error)
            pipe.send(answer)
    except EOFError:
        return
    except (_Ended, BrokenPipeError):
        os._exit(1)  # Exit immediately, because data in memory is no longer needed.


def _heed_signals() -> None:
    """Let the parent handle ctrl-C, and end this process on request or when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        signal.signal(hang_up, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TO_END)
    above = parent_process()
    assert above is not None

    def outlive() -> None:
        wait([above.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=outlive, daemon=True).start()


def _read(packed: bytes) -> Any:
    """Returns what the parent has sent."""
    try:
        return pickle.loads(packed)  # noqa: S301 - from the process that started this one
    except Exception as error:
        why = f"it cannot be read in another process: {told(error)}"
        raise OptionError(
            why, hint="define it in a module that can be imported, or use one worker"
        ) from error


def _reports(pipe: Connection) -> Report:
    last = 0.0

    def report(*about: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= _PAUSE:
            last = time.monotonic()
            pipe.send(("progress", *about))

    return report


def _packed(found: Any) -> bytes:
    """Returns a pickled result or error. If it can't be pickled, returns an error with its text instead."""
    if isinstance(found, BaseException):
        found.add_note("".join(traceback.format_exception(found)))
    try:
        packed = pickle.dumps(found)
        pickle.loads(packed)  # noqa: S301 - written a line before
    except Exception:
        return pickle.dumps(RuntimeError(told(found) if isinstance(found, BaseException) else repr(found)))
    return packed
