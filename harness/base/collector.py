"""Makes garbage collection rare while code creates millions of objects with hardly any reference cycles.

With its default settings, the garbage collector takes about a tenth of the time of a long replay and of
importing modules, although it finds no garbage.
"""

from __future__ import annotations

import atexit
import gc
from threading import Lock

_OBJECTS_BETWEEN_COLLECTIONS = 200_000  # about as many objects as the modules of a replay keep

_modules_come = False  # True in a process of our own before its first replay


def collect_seldom() -> None:
    """Make garbage collection rare until the end of a process that belongs to harness.

    The change can't be undone, because the collector would then examine all objects. At exit, the collector
    is bypassed as well. Otherwise, a short replay would take a tenth longer, only to free memory that the
    system reclaims anyway.
    """
    global _modules_come
    _modules_come = True
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def leave_modules_alone() -> None:
    """Exclude all existing objects from collection, before a process of harness begins its first replay.

    This happens only once, because later objects include garbage, namely the reference cycles of earlier
    replays.
    """
    global _modules_come
    if _modules_come:
        _modules_come = False
        gc.freeze()


class _Seldom:
    """Makes garbage collection rare while a block runs in any thread.

    If several threads have such blocks, the change begins with the first block and ends with the last.
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
