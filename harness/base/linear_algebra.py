"""Runs numpy's linear algebra in one thread, in a process of our own.

OpenBLAS starts a thread per core when numpy is loaded, and each spins for a while before it sleeps. On two
cores that is half the cost of loading numpy. OpenBLAS computes products of matrices, and a replay has none.
The few of a comparison are small, and in one thread their last digits do not depend on the number of cores.
"""

from __future__ import annotations

import os

_ASKED_FOR = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""The variables that OpenBLAS reads when it is loaded; the first one that is set counts."""


def in_one_thread() -> None:
    """Request one thread, for this process and those that it starts; a setting by the user stays.

    Must be called before numpy is imported.
    """
    if not any(name in os.environ for name in _ASKED_FOR):
        os.environ[_ASKED_FOR[0]] = "1"
