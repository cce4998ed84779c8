"""Runs numpy's linear algebra in one thread in a process that belongs to harness.

When numpy is loaded, OpenBLAS starts one thread for each core, and each thread spins for a while before it
sleeps. On two cores, this is half of the cost of loading numpy. OpenBLAS is only used for matrix products. A
replay computes none, and a comparison computes only a few small products. In one thread, their last digits
don't depend on the number of cores.
"""

from __future__ import annotations

import os

_ASKED_FOR = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""The environment variables that OpenBLAS reads when it is loaded. It uses the first variable that is set."""


def in_one_thread() -> None:
    """Request one thread for this process and its children, unless the user has set a number.

    This function must be called before numpy is imported.
    """
    if not any(name in os.environ for name in _ASKED_FOR):
        os.environ[_ASKED_FOR[0]] = "1"
