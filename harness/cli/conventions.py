"""Explains how a trace was read, in one line if `trace convert` stored the explanation in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.base.text import counted

if TYPE_CHECKING:
    from harness.trace.trace import Trace

_KEEPS = "parquet"
"""The reader of the files that `trace convert` writes."""


def conventions(trace: Trace) -> Iterator[str]:
    """Yields the numbers of skipped rows, and the applied conventions or the command that shows them."""
    for reason, count in trace.left_out.items():
        yield f"left out: {counted(count, 'row')}: {reason}"
    if trace.reader == _KEEPS and trace.notes:
        kept = counted(len(trace.notes), "convention")
        yield f"note: the reader applied {kept}; see harness trace info {trace.path}"
    else:
        yield from (f"note: {note}" for note in trace.notes)
