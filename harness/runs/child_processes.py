"""Child processes that leave ctrl-C to their parent, and end at its request or when it dies."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from typing import Any, TypeVar

from harness.base.collector import collect_seldom

A = TypeVar("A")

_TO_END = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))


def packed(begin: Callable[..., None], *given: Any) -> bytes:
    """Returns, as bytes, the function that `first` must call in a child process, with its arguments."""
    return pickle.dumps((begin, given))


def first(call: bytes, *before: Any) -> None:
    """Run as the first function of a child process.

    It makes garbage collection rare before other modules are imported.

    Args:
        call: the bytes that `packed` returned.
        before: further arguments, passed before the packed ones.
    """
    collect_seldom()
    begin, given = pickle.loads(call)  # noqa: S301 - from the process that started this one
    begin(*before, *given)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block signals that end a process until the block ends; processes started in the block inherit this."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process starts it, which unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _TO_END)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def heed_signals(end: Callable[[int, Any], Any]) -> None:
    """Set up the signals of a child process, which leaves ctrl-C to its parent.

    The child ends at its parent's request, or when the parent dies.

    Args:
        end: the signal handler that ends this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
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


class Pool:
    """A pool of new processes that run functions and leave ctrl-C to this process.

    Args:
        workers: the number of processes.
        begin: the first function that each process calls; it calls `heed_signals`.
        given: the arguments of `begin`.
    """

    def __init__(self, workers: int, begin: Callable[..., None], *given: Any) -> None:
        self._before = set(active_children())
        self._executor = ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=first, initargs=(packed(begin, *given),)
        )

    def submit(self, function: Callable[..., A], *arguments: Any) -> Future[A]:
        """Run a function in one of the processes.

        Raises:
            BrokenProcessPool: a process has died. The pool then accepts no more functions.
        """
        with signals_blocked():  # ctrl-C would otherwise end a new process before it ignores the signal
            return self._executor.submit(function, *arguments)

    def end(self, *, now: bool) -> None:
        """End the processes: now, even if they are busy, or when they have finished."""
        self._executor.shutdown(wait=not now, cancel_futures=True)
        for process in set(active_children()) - self._before if now else ():
            process.terminate()
