"""Carries out tasks on other machines, with Dask workers or any executor that returns Python's futures.

A `Work` object contains the inputs of all tasks. Tasks are sent with only the hash of this object. A process
that does not have the object yet reports this. It then receives the object, and keeps it for later tasks.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from itertools import islice
from typing import Any, Generic

from harness.base.errors import INTERRUPTS, InputError, ReplayError
from harness.base.memo import Memo
from harness.runs.executors import DoneT, TaskT, Work
from harness.runs.identity import code_of_harness, code_of_room

MOST = 64
"""The maximum number of tasks that an executor has at a time.

The number of workers may change, so it does not determine the limit. Tasks beyond the limit stay in this
process, where they don't use the executor's memory.
"""

_KEPT = 2
_INSTALL = "pip install 'harness-replay[dask]'"


class Elsewhere(Generic[TaskT, DoneT]):
    """Carries out tasks with an executor of Python's futures.

    The inputs are sent only to processes that have reported that they don't have them.
    """

    def __init__(self, work: Work[TaskT, DoneT], executor: Executor) -> None:
        self._work, self._executor = work, executor
        self._packed = zlib.compress(pickle.dumps((_code(), work)), 1)
        self._digest = sha256(self._packed).hexdigest()

    def map(self, tasks: Iterable[TaskT]) -> Generator[DoneT, None, None]:
        """Yields each result as soon as it is ready; see `harness.runs.executors.Executor.map`.

        Raises:
            ReplayError: the executor has stopped.
        """
        left, under_way = iter(tasks), dict[Future[DoneT | None], TaskT]()
        try:
            while True:
                for task in islice(left, MOST - len(under_way)):
                    under_way[self._submit(None, task, len(under_way))] = task
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    try:
                        done = future.result()
                    except (BrokenExecutor, CancelledError) as error:
                        raise _stopped(len(under_way)) from error
                    except INTERRUPTS:
                        raise
                    except BaseException as error:  # An executor can raise any error for a failed task.
                        done = self._work.failed(under_way[future], error)
                    task = under_way.pop(future)
                    if done is not None:
                        yield done
                    else:
                        under_way[self._submit(self._packed, task, len(under_way))] = task
        finally:
            for future in under_way:
                future.cancel()

    def _submit(self, packed: bytes | None, task: TaskT, others: int) -> Future[DoneT | None]:
        try:
            return self._executor.submit(_done_elsewhere, self._digest, packed, task)
        except (BrokenExecutor, CancelledError) as error:
            raise _stopped(others + 1) from error


def _code() -> tuple[str, str]:
    return code_of_harness().sha256, code_of_room("studies").sha256


def _stopped(count: int) -> ReplayError:
    return ReplayError(
        f"the executor stopped with {count:,} items in progress",
        hint="start it again; the same command continues where this one stopped",
    )


def _done_elsewhere(digest: str, packed: bytes | None, task: Any) -> Any:
    """Carries out a task in a process that may already have the work, or returns None to request the work."""
    do = _begun.get(digest)
    if do is None:
        if packed is None:
            return None
        code, work = pickle.loads(zlib.decompress(packed))  # noqa: S301 - packed by the one who asks
        if code != _code():
            raise ReplayError(
                "a worker has a different version of harness than the process that began the work",
                hint="install the same version everywhere and restart the workers",
            )
        do = _begun[digest] = work.begun(None)
    return do(task)


_begun: Memo[str, Callable[[Any], Any]] = Memo(_KEPT)


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """Provides the workers of a Dask scheduler as an executor. Provides None if `address` is None.

    Raises:
        InputError: Dask is not installed, or no scheduler responds.
    """
    if address is None:
        yield None
        return
    try:
        connect: Any = import_module("distributed").Client
    except ImportError as error:
        raise InputError("dask.distributed is not installed", hint=_INSTALL) from error
    try:
        client = connect(address)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r}: {error}",
            hint="the command 'dask scheduler' prints its address",
        ) from error
    with client:
        yield client.get_executor()
