"""Compares quotas with the nodes of their flavors, for `harness cluster check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.base.text import aligned, counted, printable
from harness.base.units import format_amount
from harness.cli.screen import terminal_width
from harness.cluster.model import UNLIMITED


def room_lines(rooms: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields lines about quotas that exceed the capacity of their nodes, or one line if no quota does.

    Yields nothing if there are no quotas.
    """
    if not rooms:
        return
    yield ""
    over = [room for room in rooms if room["over"]]
    if over:
        head = ("quota exceeds nodes", "of nodes", "resource", "quota", "nodes have", "exceeds by")
        yield from aligned([head, *map(_row, over)], left=(0, 2), width=terminal_width()).split("\n")
    else:
        yield "no quota exceeds the capacity of its flavors' nodes"
    nodes = {tuple(room["flavors"]): (room["nodes"], room["idle"]) for room in rooms}
    for flavors, (count, idle) in nodes.items():
        if len(flavors) > 1:
            yield printable(
                f"flavors {', '.join(flavors)} share nodes, so the sum of their quotas is compared with "
                f"{counted(count, 'node')}, each counted once"
            )
        elif idle:
            verb = "is" if idle == 1 else "are"
            yield printable(
                f"{idle:,} of {counted(count, 'node')} of flavor {flavors[0]} {verb} cordoned or not ready; "
                "their capacity still counts"
            )


def _row(room: Mapping[str, Any]) -> tuple[str, ...]:
    resource = room["resource"]
    unlimited = room["nominal"] >= UNLIMITED
    return (
        ", ".join(room["flavors"]),
        f"{room['nodes']:,}",
        resource,
        "unlimited" if unlimited else format_amount(resource, room["nominal"]),
        format_amount(resource, room["allocatable"]),
        "" if unlimited else format_amount(resource, room["over"]),
    )
