"""The base of all entries of the scheduling queue, so that compiled code reads their attributes directly."""

from __future__ import annotations


class Queued:
    """An entry of the queue, which is a pod or a block. The attributes are as described in `PodInfo`."""

    __slots__ = ("backoff", "since", "stamp")

    stamp: int
    since: int
    backoff: int
