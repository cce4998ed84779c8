"""Determines how many replays to run in parallel, based on the available cores and memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.runs.request import Request
    from harness.trace.trace import Trace

FEW_JOBS = 10_000
"""The replay of a trace with fewer jobs takes about as long as starting another process."""

FEW_BYTES = 64 << 10
"""A smaller file has fewer than `FEW_JOBS` jobs, because bundled traces have at least 13 bytes per job."""

PROCESS = 400 << 20
"""How many bytes a process needs for the interpreter, its libraries, and the fixed part of a replay."""

_OF_TRACE = 4  # The factor by which memory exceeds the size of the trace's columns.
_OF_FILE = 20  # The factor by which memory exceeds the size of the trace's compressed file.
_OF_GROUP = (
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ("memory.max", "memory.current"),
)


def workers_for(requests: Sequence[Request]) -> int:
    """Returns the number of processes for some replays, at most the number of cores of this process.

    Each process is assumed to need 400 MB plus four times the size of the trace in memory. If the file has
    not been read yet, twenty times the size of the file is used instead. All processes must fit into free
    memory. Traces with fewer than 10,000 jobs, or in files smaller than 64 KiB, are replayed in this process.
    """
    if len(requests) < 2 or all(_is_short(request) for request in requests):
        return 1
    return workers_within(max(_memory(request) for request in requests), most=len(requests))


def workers_within(memory: int, *, most: int) -> int:
    """Returns the number of processes that the cores and the free memory allow, at least 1."""
    most, free = min(most, _cores()), _free_memory()
    return max(1, most if free is None else min(most, free // memory))


def memory_for(trace: Trace) -> int:
    """Estimates the bytes that a process needs to replay a trace."""
    return PROCESS + _OF_TRACE * int(trace.frame.estimated_size())


def _is_short(request: Request) -> bool:
    trace = request.trace
    if not isinstance(trace, Path):
        return trace.frame.height < FEW_JOBS
    try:
        return trace.is_file() and trace.stat().st_size < FEW_BYTES
    except OSError:
        return False


def _memory(request: Request) -> int:
    trace = request.trace
    if not isinstance(trace, Path):
        return memory_for(trace)
    try:
        return PROCESS + _OF_FILE * trace.stat().st_size
    except OSError:
        return PROCESS


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _free_memory(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Returns the free bytes of the machine or its control group, whichever are fewer, or None if unknown."""
    found = []
    for line in _text(proc / "meminfo").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            found.append(int(amount.split()[0]) * 1024)
    for most, used in _OF_GROUP:
        amounts = [_text(groups / name).strip() for name in (most, used)]
        if all(amount.isdigit() for amount in amounts):
            found.append(max(0, int(amounts[0]) - int(amounts[1])))
    return min(found, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
