"""Processes that work for another one: they leave ctrl-C to it, and end when it asks or is gone."""

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
    """What `first` is to call in such a process."""
    return pickle.dumps((begin, given))


def first(call: bytes, *before: Any) -> None:
    """What such a process does first: nothing else is imported before garbage is collected seldom.

    Args:
        call: what `packed` gave.
        before: what else is handed over, before what was packed.
    """
    collect_seldom()
    begin, given = pickle.loads(call)  # noqa: S301 - from the process that began this one
    begin(*before, *given)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Signals that end a process wait for the end of the block, in processes that begin in it too."""
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
    """In such a process: leave ctrl-C to the one that began it; end when that asks for it, or is gone.

    Args:
        end: the handler that ends this process.
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
    """Processes that are begun anew and run functions; ctrl-C is left to this one.

    Args:
        workers: how many.
        begin: what each does first; it calls `heed_signals`.
        given: what `begin` is given.
    """

    def __init__(self, workers: int, begin: Callable[..., None], *given: Any) -> None:
        self._before = set(active_children())
        self._executor = ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=first, initargs=(packed(begin, *given),)
        )

    def submit(self, function: Callable[..., A], *arguments: Any) -> Future[A]:
        """Let one of them run a function.

        Raises:
            BrokenProcessPool: one of them has died, so that none takes anything any more.
        """
        with signals_blocked():  # a new process would be ended before it leaves ctrl-C to this one
            return self._executor.submit(function, *arguments)

    def end(self, *, now: bool) -> None:
        """End them: now, whatever they are doing, or when they are done."""
        self._executor.shutdown(wait=not now, cancel_futures=True)
        for process in set(active_children()) - self._before if now else ():
            process.terminate()
