"""Explains how a trace was read. If the file stores the explanation, one line refers to it.

`harness trace convert` writes such files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.base.text import counted

if TYPE_CHECKING:
    from harness.trace.trace import Trace

_KEEPS = "parquet"
"""The reader of the files that `trace convert` writes."""


def conventions(trace: Trace) -> Iterator[str]:
    """Yields lines about the skipped rows, followed by lines about the conventions that the reader applied.

    If the file stores the conventions, one line names the command that shows them.
    """
    for reason, count in trace.left_out.items():
        yield f"left out: {counted(count, 'row')}: {reason}"
    if trace.reader == _KEEPS and trace.notes:
        kept = counted(len(trace.notes), "convention")
        yield f"note: the reader applied {kept}; see harness trace info {trace.path}"
    else:
        yield from (f"note: {note}" for note in trace.notes)
