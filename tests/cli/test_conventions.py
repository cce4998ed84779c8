"""How a trace was read is told once, and afterwards where it is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

LOG = "; MaxNodes: 16\n1 0 -1 100 16 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1\n"


def test_conventions_are_told_once_and_then_where_they_are(harness: Callable, folder: Path) -> None:
    """A log that is replayed as it is tells them; a trace that was converted says what shows them."""
    (folder / "log.swf").write_text(LOG)
    converted = harness("trace", "convert", "log.swf", "log.parquet").out
    assert "  a job is one pod that requests all its processors\n" in converted
    told = [line for line in harness("replay", "log.swf").err.split("\n") if line.startswith("note: ")]
    assert "note: a job is one pod that requests all its processors" in told
    ended = harness("replay", "log.parquet")
    told = [line for line in ended.err.split("\n") if line.startswith("note: ")]
    assert told == ["note: the reader applied 5 conventions; see harness trace info log.parquet"]
    assert (
        "  a job is one pod that requests all its processors\n" in harness("trace", "info", "log.parquet").out
    )
