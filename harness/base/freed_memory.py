"""Lets polars keep freed memory for some seconds in a process that belongs to harness.

harness writes tables in chunks of tens of megabytes. By default, polars returns this memory to the system
after half a second, before the next chunk. The system must then clear the memory again for the next chunk,
which takes 1 % of the time of a replay.
"""

from __future__ import annotations

import os

_ASKED_FOR = "_RJEM_MALLOC_CONF"
"""The variable that jemalloc, the allocator of polars, reads when it is loaded. Other allocators ignore it.
"""


def keep_for_seconds() -> None:
    """Let jemalloc keep memory for ten seconds, which is its own default, unless the user has set a time.

    This function must be called before polars is imported.
    """
    os.environ.setdefault(_ASKED_FOR, "dirty_decay_ms:10000")
