"""Numbers in sentences."""

from __future__ import annotations

from harness.text import counted, times


def test_one_of_something_is_in_the_singular() -> None:
    """All other numbers are in the plural."""
    assert [counted(count, "node") for count in (0, 1, 1500)] == ["0 nodes", "1 node", "1,500 nodes"]
    assert [times(count) for count in (0, 1, 1500)] == ["0 times", "once", "1,500 times"]
