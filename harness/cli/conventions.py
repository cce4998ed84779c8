"""How a trace was read: all of it, or one line where its file says so, for `trace convert` told it once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.base.text import counted

if TYPE_CHECKING:
    from harness.trace.trace import Trace

_KEEPS = "parquet"
"""The reader of what `trace convert` writes."""


def conventions(trace: Trace) -> Iterator[str]:
    """What is left out now, the conventions that are applied now, or where those are of long ago."""
    for reason, count in trace.left_out.items():
        yield f"left out: {count:,} rows: {reason}"
    if trace.reader == _KEEPS and trace.notes:
        kept = counted(len(trace.notes), "convention")
        yield f"note: {kept} of how it was read: harness trace info {trace.path}"
    else:
        yield from (f"note: {note}" for note in trace.notes)
