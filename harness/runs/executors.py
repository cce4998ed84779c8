"""A common interface of executors, which carry out tasks in one or more processes on one or more machines."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from harness.base.errors import HarnessError, OptionError, ReplayError, told
from harness.runs.worker_count import PROCESS, workers_within

if TYPE_CHECKING:
    from concurrent import futures

TaskT = TypeVar("TaskT")
DoneT = TypeVar("DoneT")
_TaskT = TypeVar("_TaskT", contravariant=True)
_DoneT = TypeVar("_DoneT", covariant=True)

Report: TypeAlias = Callable[..., None]
"""A function that receives the progress of a task, in a form that depends on the work."""


class ProcessDiedError(Exception):
    """The process that carried out a task has died.

    Attributes:
        code: its exit code, or the negative number of the signal that ended it.
    """

    def __init__(self, code: int, *, begun: bool) -> None:
        super().__init__(f"a process ended with exit code {code}")
        self.code, self.begun = code, begun


def why_failed(error: BaseException) -> str:
    """Returns a text that explains why no process could carry out a task.

    Raises:
        HarnessError: the error concerns all tasks.
    """
    if isinstance(error, HarnessError):
        raise error
    if isinstance(error, ProcessDiedError):
        return "its process was killed, perhaps because memory ran out\nHint: use fewer --workers"
    return f"the executor failed: {told(error)}"


class Work(Protocol[_TaskT, _DoneT]):
    """Defines how to carry out tasks. It can be pickled together with all of its inputs."""

    def begun(self, report: Report | None) -> Callable[[_TaskT], _DoneT]:
        """Prepares a process, and returns the function that carries out a task.

        The function reports the progress of the task if `report` is given.
        """
        ...

    def failed(self, task: _TaskT, error: BaseException) -> _DoneT:
        """Returns the result of a task that no process could carry out.

        The function first removes the files that a dead process has left behind.
        """
        ...


class Executor(Protocol[_TaskT, _DoneT]):
    """Carries out tasks."""

    def map(self, tasks: Iterable[_TaskT]) -> Generator[_DoneT, None, None]:
        """Yields each result as soon as it is ready. Closing the generator aborts the remaining tasks."""
        ...


class Here(Generic[TaskT, DoneT]):
    """Carries out tasks one after another in this process."""

    def __init__(self, work: Work[TaskT, DoneT], watch: Report | None = None) -> None:
        self._do = work.begun(watch)

    def map(self, tasks: Iterable[TaskT]) -> Generator[DoneT, None, None]:
        """Yields the result of each task in turn; see `Executor.map`."""
        yield from map(self._do, tasks)


@contextmanager
def executor_for(
    work: Work[TaskT, DoneT],
    most: int,
    *,
    memory: int = PROCESS,
    workers: int | None,
    executor: futures.Executor | None = None,
    watch: Report | None = None,
    again: bool = True,
) -> Iterator[tuple[Executor[TaskT, DoneT], int]]:
    """Provides an executor until the end of the block, and the number of tasks that it runs in parallel.

    Args:
        work: defines how to carry out a task.
        most: the maximum number of tasks at a time.
        memory: how many bytes a process needs.
        workers: the number of processes to use on this machine. The default depends on the available cores
            and memory. If it is 1, this process carries out the tasks.
        executor: an executor of `concurrent.futures` or Dask to use instead, on this machine or elsewhere.
        watch: a function that receives the progress of tasks on this machine.
        again: whether a task whose process died is carried out once more on its own.

    Raises:
        OptionError: both `workers` and `executor` are given, or the number of processes is not possible.
    """
    if executor is not None:
        if workers is not None:
            raise OptionError("workers must not be given with an executor", hint="leave out --workers")
        from harness.runs.elsewhere import MOST, Elsewhere

        yield Elsewhere(work, executor), MOST
        return
    if workers is not None and workers < 1:
        raise OptionError(f"workers: {workers} is not a number of processes")
    count = min(workers or workers_within(memory, most=most), max(1, most))
    if count == 1:
        yield Here(work, watch), 1
        return
    from harness.runs.processes import Processes

    processes = Processes(work, count, watch=watch, again=again)
    try:
        yield processes, count
    finally:
        processes.end()


class InParallel(TypedDict, total=False):
    """The choices for carrying out tasks. Each entry is optional.

    Attributes:
        workers: the number of processes on this machine. By default, cores and memory limit this number. With
            1, this process carries out all tasks.
        watch: a function that receives the number of finished tasks, which begins with 0, and their total
            number.
    """

    workers: int | None
    executor: futures.Executor | None
    watch: Callable[[int, int], None] | None


class _Failure(NamedTuple):
    why: str


@dataclass(frozen=True)
class _Calls(Generic[TaskT, DoneT]):
    """Work that calls a function for each task; see `Work`."""

    function: Callable[[TaskT], DoneT]

    def begun(self, _: Report | None) -> Callable[[TaskT], DoneT | _Failure]:
        return self._call

    def failed(self, _: TaskT, error: BaseException) -> _Failure:
        return _Failure(why_failed(error))

    def _call(self, task: TaskT) -> DoneT | _Failure:
        try:
            return self.function(task)
        except HarnessError as error:
            return _Failure(error.message)


def results_of(
    function: Callable[[TaskT], DoneT], tasks: Sequence[TaskT], failure: str, **how: Unpack[InParallel]
) -> Generator[DoneT, None, None]:
    """Yields the result of a function for each task as soon as it is ready.

    `function` can be pickled. `failure` is the beginning of the error's message if a call fails.

    Raises:
        OptionError: both workers and an executor are given, or the number of processes is invalid.
        ReplayError: a call failed, or the executor has stopped.
    """
    work: _Calls[TaskT, DoneT] = _Calls(function)
    watch = how.get("watch") or (lambda done, count: None)
    workers, executor = how.get("workers"), how.get("executor")
    with (
        executor_for(work, len(tasks), workers=workers, executor=executor) as (pool, _),
        closing(pool.map(tasks)) as news,
    ):
        watch(0, len(tasks))
        for done, result in enumerate(news, 1):
            if isinstance(result, _Failure):
                raise ReplayError(f"{failure}: {result.why}")
            yield result
            watch(done, len(tasks))
