"""Makes garbage collection rare while code creates millions of objects with hardly any reference cycles.

With its defaults, the collector takes about a tenth of a long replay's time, and a tenth of the time for
importing modules. It finds no garbage.
"""

from __future__ import annotations

import atexit
import gc
from threading import Lock

_OBJECTS_BETWEEN_COLLECTIONS = 200_000  # about as many objects as the modules of a replay keep

_modules_come = False  # True in a process of our own before its first replay


def collect_seldom() -> None:
    """Make collection rare for the rest of a process of our own.

    This cannot be undone, because the collector would then examine all objects. It does not examine them at
    exit either, which would take a tenth of a short replay's time for memory that the system reclaims anyway.
    """
    global _modules_come
    _modules_come = True
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def leave_modules_alone() -> None:
    """Exclude all present objects from collection, before the first replay of a process of our own.

    This happens only once, because reference cycles that replays leave behind are garbage.
    """
    global _modules_come
    if _modules_come:
        _modules_come = False
        gc.freeze()


class _Seldom:
    """Makes collection rare while a block of any thread runs.

    With blocks in several threads, the first block makes the change, and the end of the last block reverses
    it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks = 0
        self._before = (0, 0, 0)

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._before = gc.get_threshold()
                gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *self._before[1:])
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                gc.set_threshold(*self._before)


seldom_collected = _Seldom()
