"""Priorities of QOS, as `sacctmgr -P show qos` prints them."""

from __future__ import annotations

from pathlib import Path

from harness_plugins.readers.cells import text, whole
from harness_plugins.readers.delimited import open_table

_MOST = 2**31 - 1


def priorities_of(path: Path) -> dict[str, int]:
    """QOS -> its priority.

    Raises:
        TraceError: not such a list, or malformed lines, all of them named.
    """
    fields = [text("Name"), whole("Priority", 0, _MOST)]
    rows = open_table(path, delimiter="|").typed(fields)
    return dict(zip(rows["Name"].to_list(), rows["Priority"].to_list(), strict=True))
