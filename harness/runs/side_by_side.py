"""Carries out requests in parallel processes, with the same runs and errors as in one process.

Each process carries out one request after the other. Processes are new (`spawn`) and share no state with this
one. They end at its request or when it dies, and leave no file half-written.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from harness.base.errors import INTERRUPTS, HarnessError, OptionError, PluginError, ReplayError, text_of, told
from harness.base.files.hold import clear
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.runs.plan import Plan
from harness.runs.request import Request
from harness.runs.run import Run
from harness.runs.worker_count import workers_for
from harness.trace.trace import Trace

if TYPE_CHECKING:  # a replay in this process does not need the imports for other processes
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

_PAUSE = 0.1  # seconds between two reports of progress
_PATIENCE = 10.0  # seconds for a process to clean up

Outcome: TypeAlias = Run | BaseException
Outcomes: TypeAlias = Generator[tuple[int, Outcome], None, None]
Watch: TypeAlias = Callable[[int, int, int], None]
"""Receives the number of a request, the simulated time, and how many jobs have arrived."""


def carry_out(
    requests: Sequence[Request],
    plugins: Plugins,
    *,
    plans: Sequence[Plan | None] = (),
    workers: int | None = None,
    watch: Watch | None = None,
    command: str | None = None,
) -> Outcomes:
    """Carries out requests; yields the number of a request and its run or error as soon as it is done.

    An error in one request does not stop other requests. Closing the iterator aborts running replays.

    Args:
        requests: the requests.
        plugins: the plugins that all requests use.
        plans: existing plans of requests; other processes make their own plans.
        workers: how many requests to carry out in parallel, each in its own process if more than one. The
            default is as many as cores and memory allow (`workers_for`), and one if requests cannot go to
            other processes.
        watch: receives the progress at intervals.
        command: the command line that reproduces the runs, for their provenance.

    Raises:
        OptionError: several processes are requested, but a request cannot go to another process.
    """
    if workers is not None and workers < 1:
        raise OptionError(f"workers: {workers} is not a number of processes")
    wanted = workers or workers_for(requests)
    wanted = min(wanted, len(requests))
    if wanted > 1 and (fault := _fault(requests, plugins)) is not None:
        if workers is not None:
            raise OptionError(fault, hint="define it in a module that can be imported, or use one worker")
        wanted = 1
    if wanted <= 1:
        return _here(requests, plans or [None] * len(requests), plugins, watch, command)
    return _Processes(requests, plugins, wanted, watch, command).outcomes()


def runs_of(requests: Sequence[Request], outcomes: Mapping[int, Outcome]) -> list[Run]:
    """Returns the run of each request.

    Args:
        requests: the requests.
        outcomes: (number, outcome) of each request.

    Raises:
        ReplayError: some of several requests failed; names them, and has the runs of the successful ones.
        BaseException: the error of the only request, or a defect in any request, with a note that names it.
    """
    numbers = range(len(requests))
    errors = {at: error for at in numbers if isinstance(error := outcomes[at], BaseException)}
    runs = [None if isinstance(run := outcomes[at], BaseException) else run for at in numbers]
    for at, error in errors.items():
        told = isinstance(error, (HarnessError, MemoryError))
        if not told:
            error.add_note(f"in the replay {requests[at].called}")
        if len(requests) == 1 or not told:
            raise error
    if errors:
        hints = [getattr(error, "hint", None) for error in errors.values()]
        raise ReplayError(
            "\n".join(f"{requests[at].called}: {_about(error)}" for at, error in errors.items()),
            hint=next(filter(None, hints), None),
            runs=runs,
            errors=errors,
        )
    for request, made in zip(requests, runs, strict=True):
        if made is not None:
            made.request = request
    return [run for run in runs if run is not None]


def _about(error: BaseException) -> str:
    return error.message if isinstance(error, HarnessError) else "there is not enough memory"


def _here(
    requests: Sequence[Request],
    plans: Sequence[Plan | None],
    plugins: Plugins,
    watch: Watch | None,
    command: str | None,
) -> Outcomes:
    """Carry out the requests one after the other in this process."""
    for number, (request, plan) in enumerate(zip(requests, plans, strict=True)):
        told = None if watch is None else _of(number, watch)
        try:
            outcome: Outcome = request.run(plugins=plugins, plan=plan, watch=told, command=command)
        except INTERRUPTS:
            raise
        except BaseException as error:  # a panic of polars is not an Exception
            outcome = _told(error)
        yield number, outcome


def _told(error: BaseException) -> BaseException:
    """Returns the error of a replay; a PluginError if a plugin tried to end the process."""
    if not isinstance(error, SystemExit):
        return error
    told = PluginError(f"a plugin called sys.exit({error.code!r})", hint="--debug shows where")
    told.__cause__ = error
    return told


def _of(number: int, watch: Watch) -> Callable[[int, int], None]:
    return lambda now, jobs: watch(number, now, jobs)


# --- what goes to other processes -------------------------------------------------------------------------


class _Trial(pickle.Pickler):
    """Tests whether a value can be pickled, without the traces and clusters in it, which always can be."""

    def persistent_id(self, obj: Any) -> str | None:
        """Returns a substitute for large objects."""
        if isinstance(obj, type) and obj.__module__ == "__main__" and not _has_file("__main__"):
            raise pickle.PicklingError(f"{obj.__qualname__} is in no module that can be imported")
        return type(obj).__name__ if isinstance(obj, (Trace, Cluster)) else None


def _has_file(module: str) -> bool:
    return getattr(sys.modules[module], "__file__", None) is not None


def _fault(requests: Sequence[Request], plugins: Plugins) -> str | None:
    """Returns why requests cannot go to other processes; None if they can."""
    for what, value in (("plugins", plugins), *((f"request {each.called}", each) for each in requests)):
        try:
            _Trial(BytesIO()).dump(value)
        except Exception as error:  # a value's own pickling may raise any error
            return f"{what} cannot go to another process: {text_of(error)}"
    return None


# --- this process -----------------------------------------------------------------------------------------


class _Worker:
    """A process, and its task: the number of a request, or None."""

    def __init__(self, plugins: Plugins) -> None:
        from multiprocessing import get_context

        from harness.runs.child_processes import first, packed, signals_blocked

        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=first, args=(packed(_work, plugins), theirs), daemon=True
        )
        self.number: int | None = None
        self.ready = False
        with signals_blocked():  # a signal would otherwise end a new process before it can clean up
            self.process.start()
        theirs.close()

    def begin(self, number: int, request: Request, command: str | None, *, watched: bool) -> None:
        """Make the process carry out a request."""
        self.number = number
        with suppress(OSError):  # the process has died, which its end reports too
            self.pipe.send_bytes(pickle.dumps((request, command, watched)))


class _Processes:
    """The processes of one call, and the remaining requests."""

    def __init__(
        self,
        requests: Sequence[Request],
        plugins: Plugins,
        most: int,
        watch: Watch | None,
        command: str | None,
    ) -> None:
        self._requests, self._watch, self._command = requests, watch, command
        self._plugins = plugins
        # The longest replays should begin first; the first request, often the baseline, is usually short.
        self._left = deque(reversed(range(len(requests))))
        self._most = most
        self._workers: list[_Worker] = []

    def outcomes(self) -> Outcomes:
        """Yields the number of a request and its run or error, as soon as it is done."""
        from multiprocessing.connection import wait

        try:
            while True:
                while self._left and len(self._workers) < self._most:
                    self._workers.append(_Worker(self._plugins))
                    self._next(self._workers[-1])
                busy = {worker.pipe: worker for worker in self._workers if worker.number is not None}
                if not busy:
                    return
                for pipe in wait(list(busy)):
                    yield from self._heard(busy[cast("Connection", pipe)])
        finally:
            self._end()

    def _next(self, worker: _Worker) -> None:
        """Give a process its next request, or end the process if none remains."""
        worker.number = None
        if self._left:
            number = self._left.popleft()
            watched = self._watch is not None
            worker.begin(number, self._requests[number], self._command, watched=watched)
        else:
            worker.pipe.close()

    def _heard(self, worker: _Worker) -> Outcomes:
        """Yields outcomes from a process's message, or from its death."""
        number = worker.number
        assert number is not None
        try:
            news, *about = worker.pipe.recv()
        except (EOFError, OSError):
            lost = self._lost(worker)
            yield number, lost
            while not worker.ready and self._left:  # the next process would not begin either
                yield self._left.popleft(), lost
            return
        if news == "ready":
            worker.ready = True
        elif news == "progress" and self._watch is not None:
            self._watch(number, *about)
        elif news == "over":
            self._next(worker)
            yield number, _unpacked(about[0])

    def _lost(self, worker: _Worker) -> ReplayError:
        """Returns an error that says why a busy process died."""
        assert worker.number is not None
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        _tidy(self._requests[worker.number])
        code = worker.process.exitcode or 0
        if code < 0:
            name = signal.Signals(-code).name
            why = " (the system does that if memory runs out)" if name == "SIGKILL" else ""
            return ReplayError(
                f"its process was ended by {name}{why}", hint="replay fewer at once: --workers 1"
            )
        if not worker.ready:
            return ReplayError(
                "its process ended before it had begun",
                hint=_why_not_begun(),
            )
        return ReplayError(f"its process ended with exit code {code}")

    def _end(self) -> None:
        """End all remaining processes, and wait until they have cleaned up."""
        for worker in self._workers:
            if worker.number is not None:
                worker.process.terminate()
        end = time.monotonic() + _PATIENCE
        for worker in self._workers:
            worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()
            if worker.number is not None:
                _tidy(self._requests[worker.number])
        self._workers.clear()


def _tidy(request: Request) -> None:
    """Remove files that a process left because it could not clean up."""
    with suppress(OSError):
        for folder in request.output.iterdir():
            clear(folder)


def _unpacked(packed: bytes) -> Outcome:
    outcome: Outcome = pickle.loads(packed)  # noqa: S301 - from a process of ours
    return outcome


# --- the other processes ----------------------------------------------------------------------------------


class _Ended(KeyboardInterrupt):
    """A signal asks this process to end."""


def _end(_: int, __: object) -> NoReturn:
    raise _Ended


def _work(pipe: Connection, plugins: Plugins) -> None:
    """Carry out requests that arrive through a pipe, until it is closed."""
    from harness.runs.child_processes import heed_signals

    try:
        heed_signals(_end)
        pipe.send(("ready",))
        while True:
            packed = pipe.recv_bytes()
            pipe.send(("over", _packed(_outcome(packed, plugins, pipe))))
    except EOFError:
        return
    except (_Ended, BrokenPipeError):
        os._exit(1)  # immediately: data in memory is no longer needed


def _outcome(packed: bytes, plugins: Plugins, pipe: Connection) -> Outcome:
    try:
        request, command, watched = pickle.loads(packed)  # noqa: S301 - from the process that started this one
    except Exception as error:  # an object that this process cannot find by its name
        why = f"it cannot be read in another process: {told(error)}"
        return OptionError(why, hint="define it in a module that can be imported, or use one worker")
    try:
        return cast(Request, request).run(
            plugins=plugins, watch=_reports(pipe) if watched else None, command=command
        )
    except INTERRUPTS:
        raise
    except BaseException as error:
        return _told(error)


def _reports(pipe: Connection) -> Callable[[int, int], None]:
    last = 0.0

    def watch(now: int, jobs: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _PAUSE:
            last = time.monotonic()
            pipe.send(("progress", now, jobs))

    return watch


def _packed(outcome: Outcome) -> bytes:
    """Returns a run or an error as bytes; for an error that cannot be pickled, only its text."""
    if isinstance(outcome, BaseException):
        outcome.add_note("".join(traceback.format_exception(outcome)))
    try:
        packed = pickle.dumps(outcome)
        pickle.loads(packed)  # noqa: S301 - written a line before
    except Exception:
        text = told(outcome) if isinstance(outcome, BaseException) else repr(outcome)
        return pickle.dumps(RuntimeError(text))
    return packed


def _why_not_begun() -> str:
    """Returns a hint for the case that a new process could not load the program from its file."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is None and file is not None and not Path(file).exists():
        return f"the program is not in a file ({file}) that another process could read: give workers=1"
    return "a script that replays in parallel must do so under: if __name__ == '__main__'"
