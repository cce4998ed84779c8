"""Lets polars keep memory that it has freed for some seconds, in a process of our own.

Tables are written chunk by chunk, and each chunk takes tens of megabytes. polars gives them back to the
system after half a second, before the next chunk comes. The system clears them anew for that one: a hundredth
of a replay.
"""

from __future__ import annotations

import os

_ASKED_FOR = "_RJEM_MALLOC_CONF"
"""What the allocator of polars, jemalloc, reads when it is loaded; where it has another one, nobody does."""


def keep_for_seconds() -> None:
    """Ask for ten seconds, as jemalloc has it by itself; what the user asked for stays.

    It must be called before polars is imported.
    """
    os.environ.setdefault(_ASKED_FOR, "dirty_decay_ms:10000")
