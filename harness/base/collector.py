"""Lets the garbage collector run less often while millions of objects are made and hardly any circles.

With its defaults it takes about a tenth of a long replay's time, and as much of the time in which modules are
imported, and finds nothing.
"""

from __future__ import annotations

import atexit
import gc
from threading import Lock

_OBJECTS_BETWEEN_COLLECTIONS = 200_000  # about what the modules of a replay are made of, which all stay

_modules_come = False  # in a process of our own, and nothing has been replayed


def collect_seldom() -> None:
    """From now on, in a process of our own: to change it back would look at all objects at once.

    Nor are they looked at when the process ends, which takes a tenth of a short replay's time, for memory
    that the system takes back anyway.
    """
    global _modules_come
    _modules_come = True
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def leave_modules_alone() -> None:
    """Before the first replay of a process of our own: what is there by now is never looked at again.

    Once only: what replays leave behind in circles is garbage.
    """
    global _modules_come
    if _modules_come:
        _modules_come = False
        gc.freeze()


class _Seldom:
    """While any block runs, the collector runs seldom.

    Of blocks in several threads the first one changes that, and the last one to end changes it back.
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
