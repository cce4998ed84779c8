"""Reads the file of `--tenants map:FILE`: the LocalQueue and namespace that a trace's queue means."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import OptionError

_QUEUE, _NAMESPACE, _LOCAL_QUEUE = "queue", "namespace", "local_queue"
_HINT = "write CSV with the head queue,namespace,local_queue and a line for each queue of the trace"


class Place(NamedTuple):
    """The replacement for a queue; "" keeps the original value."""

    namespace: str
    local_queue: str


def read_queue_map(path: str) -> dict[str, Place]:
    """Returns queue -> its replacement.

    Args:
        path: CSV with a header: `queue`, and `namespace` or `local_queue` or both; an empty cell keeps the
            trace's value.

    Raises:
        OptionError: the file cannot be read, or lines are invalid; lists all of them.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            head, *rows = [[cell.strip() for cell in row] for row in csv.reader(file)] or [[]]
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(f"--tenants map:{path}: cannot be read: {reason}", hint=_HINT) from error
    unknown = sorted({*head} - {_QUEUE, _NAMESPACE, _LOCAL_QUEUE})
    if unknown or _QUEUE not in head or len(head) < 2 or len({*head}) < len(head):
        raise OptionError(
            f"--tenants map:{path}, line 1: {','.join(head)!r} is not a valid header", hint=_HINT
        )
    found: dict[str, Place] = {}
    wrong = []
    for number, row in enumerate(rows, 2):
        if not any(row):
            continue
        cells = dict(zip(head, row, strict=False))
        place = Place(cells.get(_NAMESPACE, ""), cells.get(_LOCAL_QUEUE, ""))
        name = cells[_QUEUE]
        if len(row) != len(head) or not name or not any(place):
            wrong.append(f"line {number}: {','.join(row)!r} is not a queue with its replacement")
        elif name in found:
            wrong.append(f"line {number}: {name!r} occurs twice")
        else:
            found[name] = place
    if wrong:
        raise OptionError("\n".join(f"--tenants map:{path}, {each}" for each in wrong), hint=_HINT)
    return found
