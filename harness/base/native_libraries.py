"""Settings of native libraries in a process that belongs to harness, from before they are loaded."""

from __future__ import annotations

import os

_JEMALLOC = "_RJEM_MALLOC_CONF"
"""The variable that jemalloc, the allocator of polars, reads when it is loaded. Other allocators ignore it.
"""

_OPENBLAS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""The environment variables that OpenBLAS reads when it is loaded. It uses the first variable that is set."""


def keep_freed_memory() -> None:
    """Let polars keep freed memory for ten seconds, unless the user has set a time.

    harness writes tables in chunks of tens of megabytes. By default, polars returns this memory to the system
    after half a second, before the next chunk. The system must then clear the memory again for the next
    chunk, which takes 1 % of the time of a replay. Ten seconds are jemalloc's own default.
    """
    os.environ.setdefault(_JEMALLOC, "dirty_decay_ms:10000")


def compute_in_one_thread() -> None:
    """Let numpy use one thread for linear algebra, here and in children, unless the user has set a number.

    When numpy is loaded, OpenBLAS starts one thread for each core, and each thread spins for a while before
    it sleeps. On two cores, this is half of the cost of loading numpy. OpenBLAS is only used for matrix
    products. A replay computes none, and a comparison computes only a few small products. In one thread,
    their last digits don't depend on the number of cores.
    """
    if not any(name in os.environ for name in _OPENBLAS):
        os.environ[_OPENBLAS[0]] = "1"
