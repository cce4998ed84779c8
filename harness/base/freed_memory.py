"""Lets polars keep freed memory for some seconds, in a process of our own.

harness writes tables chunk by chunk, and each chunk takes tens of megabytes. polars returns this memory to
the system after half a second, before the next chunk. The system then zeroes it again for that chunk, which
takes a hundredth of a replay.
"""

from __future__ import annotations

import os

_ASKED_FOR = "_RJEM_MALLOC_CONF"
"""The variable that jemalloc, polars' allocator, reads when it is loaded; other allocators ignore it."""


def keep_for_seconds() -> None:
    """Let jemalloc keep memory for ten seconds, its own default, unless the user has set a time.

    Must be called before polars is imported.
    """
    os.environ.setdefault(_ASKED_FOR, "dirty_decay_ms:10000")
