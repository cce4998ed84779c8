"""Carries out requests in parallel processes, with the same runs and errors as in a single process.

The processes end when this process requests it or dies, and they don't leave incomplete files behind.
"""

from __future__ import annotations

import pickle
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

from harness.base.errors import INTERRUPTS, HarnessError, OptionError, PluginError, ReplayError, text_of
from harness.base.files.hold import clear
from harness.base.values import Fixed, fixed
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.runs.executors import ProcessDiedError, Report, executor_for
from harness.runs.plan import Plan
from harness.runs.request import Request
from harness.runs.run import Run
from harness.runs.worker_count import workers_for
from harness.trace.trace import Trace

Outcome: TypeAlias = Run | BaseException
Watch: TypeAlias = Callable[[int, int, int], None]
"""A function that receives the index of a request, the simulated time, and how many jobs have arrived."""


class SideBySide(TypedDict, total=False):
    """The choices for carrying out requests. Each entry is optional.

    Attributes:
        workers: how many requests to carry out in parallel, in separate processes if there is more than one.
            The default is the number that cores and memory allow (`workers_for`), or one if requests can't be
            sent to other processes.
        watch: a function that receives the progress at intervals.
        over: a function that receives the index of a request and its run or error when its replay is done.
        command: the command line that reproduces the runs, for their provenance.
    """

    workers: int | None
    watch: Watch | None
    over: Callable[[int, Outcome], None] | None
    command: str | None


def carry_out(
    requests: Sequence[Request],
    plugins: Plugins,
    *,
    plans: Sequence[Plan | None] = (),
    **how: Unpack[SideBySide],
) -> dict[int, Outcome]:
    """Carries out requests, and returns each request's run or error by the request's number.

    An error in one request does not stop the others. An error in `over` aborts running replays. `plans` are
    plans that already exist for the requests. Other processes make their own plans.

    Raises:
        OptionError: several processes are requested, but a request can't be sent to another process.
    """
    workers, watch, over = how.get("workers"), how.get("watch"), how.get("over")
    wanted = workers_for(requests) if workers is None else workers
    if wanted > 1 and len(requests) > 1 and (fault := _fault(requests, plugins)) is not None:
        if workers is not None:
            raise OptionError(fault, hint="define it in a module that can be imported, or use one worker")
        wanted = 1
    tasks = [_Task(*each) for each in zip(count(), requests, plans or [None] * len(requests), strict=False)]
    outcomes: dict[int, Outcome] = {}
    work = _Replaying(plugins, how.get("command"))
    with executor_for(work, len(tasks), workers=wanted, watch=watch, again=False) as (executor, at_once):
        if at_once > 1:
            # The longest replays should begin first, but the first request, often the baseline, is usually
            # short.
            tasks = [task._replace(plan=None) for task in reversed(tasks)]
        with closing(executor.map(tasks)) as news:
            for number, outcome in news:
                outcomes[number] = outcome
                if over is not None:
                    over(number, outcome)
    return outcomes


def runs_of(requests: Sequence[Request], outcomes: Mapping[int, Outcome]) -> list[Run]:
    """Returns the run of each request.

    Raises:
        ReplayError: there are several requests and some of them failed. The error names these requests, and
            contains the runs of the other requests.
        BaseException: the error of the only request, or a defect in any request, with a note that names the
            request.
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


class _Task(NamedTuple):
    number: int
    request: Request
    plan: Plan | None


@fixed()
class _Replaying(Fixed):
    """Carries out requests as the tasks of an executor. Errors count as results."""

    plugins: Plugins
    command: str | None

    def begun(self, report: Report | None) -> Callable[[_Task], tuple[int, Outcome]]:
        return partial(self._outcome, report)

    def failed(self, task: _Task, error: BaseException) -> tuple[int, Outcome]:
        if not isinstance(error, ProcessDiedError):
            return task.number, error
        with suppress(OSError):  # Delete files that the process could not clean up.
            for folder in task.request.output.iterdir():
                clear(folder)
        return task.number, _lost(error)

    def _outcome(self, report: Report | None, task: _Task) -> tuple[int, Outcome]:
        number, request, plan = task
        watch = None if report is None else partial(report, number)
        try:
            return number, request.run(plugins=self.plugins, plan=plan, watch=watch, command=self.command)
        except INTERRUPTS:
            raise
        except SystemExit as error:
            told = PluginError(f"a plugin called sys.exit({error.code!r})", hint="--debug shows where")
            told.__cause__ = error
            return number, told
        except BaseException as error:  # A panic of polars is not an Exception.
            return number, error


def _lost(died: ProcessDiedError) -> ReplayError:
    if died.code < 0:
        name = signal.Signals(-died.code).name
        why = " (the system does that if memory runs out)" if name == "SIGKILL" else ""
        return ReplayError(
            f"its process was ended by {name}{why}",
            hint="run fewer replays at the same time, for example with --workers 1",
        )
    if not died.begun:
        return ReplayError("its process ended before the replay had begun", hint=_why_not_begun())
    return ReplayError(f"its process ended with exit code {died.code}")


def _why_not_begun() -> str:
    """Returns a hint for the case that a new process couldn't load the program from its file."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is None and file is not None and not Path(file).exists():
        return f"the program is not in a file ({file}) that another process can read, so use workers=1"
    return "a script that replays in parallel must do so under: if __name__ == '__main__'"


# --- what goes to other processes -------------------------------------------------------------------------


class _Trial(pickle.Pickler):
    """Tests whether a value can be pickled.

    The traces and clusters in the value are skipped, because they can always be pickled.
    """

    def persistent_id(self, obj: Any) -> str | None:
        main = sys.modules["__main__"]
        if isinstance(obj, type) and obj.__module__ == "__main__" and getattr(main, "__file__", None) is None:
            raise pickle.PicklingError(f"{obj.__qualname__} is not in a module that can be imported")
        return type(obj).__name__ if isinstance(obj, (Trace, Cluster)) else None


def _fault(requests: Sequence[Request], plugins: Plugins) -> str | None:
    for what, value in (("plugins", plugins), *((f"request {each.called}", each) for each in requests)):
        try:
            _Trial(BytesIO()).dump(value)
        except Exception as error:  # Pickling a value of any class may raise any error.
            return f"{what} cannot be sent to another process: {text_of(error)}"
    return None
