"""Continues in a copy of the process, which the system creates without copying unchanged memory.

The executors of `harness.runs.executors` start new processes, which must read all inputs again. In contrast,
a copy has everything that this process has prepared, such as a replay up to some point in time. Therefore, it
can answer within milliseconds.
"""

from __future__ import annotations

import os
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def in_a_copy(work: Callable[[], _T]) -> tuple[_T] | None:
    """Runs a function in a copy of this process. The objects of this process stay unchanged.

    Returns:
        The result of the function, which must be picklable. It is None if the system can't copy processes,
        if other threads might hold a lock in the copy, or if the function failed in the copy.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return None
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # threads of libraries, which the work does not use
        child = os.fork()
    if not child:
        try:
            os.close(reads)
            with os.fdopen(writes, "wb") as out:
                pickle.dump((work(),), out, pickle.HIGHEST_PROTOCOL)
        finally:
            os._exit(0)  # skip exit handlers, which must not run twice
    os.close(writes)
    try:
        with os.fdopen(reads, "rb") as answer:
            found = answer.read()
    finally:
        os.waitpid(child, 0)
    try:
        told: tuple[_T] = pickle.loads(found)  # noqa: S301  a copy of this process wrote it
    except (EOFError, pickle.UnpicklingError):
        return None
    return told
