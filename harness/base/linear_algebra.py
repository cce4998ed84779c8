"""Runs numpy's linear algebra in one thread, in a process of our own.

OpenBLAS starts a thread per core when numpy is loaded, and each thread spins for a while before it sleeps. On
two cores this is half the cost of loading numpy. OpenBLAS computes matrix products, and a replay has none.
The few matrix products of a comparison are small. In one thread, their last digits do not depend on the
number of cores.
"""

from __future__ import annotations

import os

_ASKED_FOR = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""The environment variables that OpenBLAS reads when it is loaded; the first set variable counts."""


def in_one_thread() -> None:
    """Request one thread, for this process and its children, unless the user has set a number.

    Must be called before numpy is imported.
    """
    if not any(name in os.environ for name in _ASKED_FOR):
        os.environ[_ASKED_FOR[0]] = "1"
