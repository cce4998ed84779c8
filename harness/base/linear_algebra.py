"""Lets numpy's linear algebra run in one thread, in a process of our own.

OpenBLAS starts a thread for each core when numpy is loaded, and each of them turns for a while before it
sleeps. On two cores that is half the cost of loading numpy. It serves products of matrices, and a replay has
none. The few of a comparison are small, and in one thread their last digits do not depend on the cores.
"""

from __future__ import annotations

import os

_ASKED_FOR = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""What OpenBLAS reads when it is loaded, the first one that is set."""


def in_one_thread() -> None:
    """Ask for one thread, here and in processes that this one starts; what the user asked for stays.

    It must be called before numpy is imported.
    """
    if not any(name in os.environ for name in _ASKED_FOR):
        os.environ[_ASKED_FOR[0]] = "1"
