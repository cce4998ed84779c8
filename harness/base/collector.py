"""Makes garbage collection rare while millions of objects are made, with hardly any reference cycles.

With its defaults, the collector takes about a tenth of a long replay's time, and as much of the time for
importing modules. It finds nothing.
"""

from __future__ import annotations

import atexit
import gc
from threading import Lock

_OBJECTS_BETWEEN_COLLECTIONS = 200_000  # about what the modules of a replay are made of, which all stay

_modules_come = False  # in a process of our own, and nothing has been replayed


def collect_seldom() -> None:
    """Make collection rare from now on, in a process of our own.

    There is no way back, because that would examine all objects at once. They are not examined at exit
    either. That would take a tenth of a short replay's time, for memory that the system reclaims anyway.
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
    """Makes collection rare while any block runs.

    With blocks in several threads, the first one makes the change, and the last one to end reverses it.
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
