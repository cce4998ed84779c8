"""Creates events from Slurm's accounting of nodes, which `sacctmgr show event` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from pathlib import Path

from harness.base.errors import ClusterError, Fault
from harness.base.text import counted
from harness.base.units import SECOND
from harness.cluster.slurm.tables import Row, read_table
from harness.readers.events.watched import Field, Object, Watched

COMMAND = "sacctmgr -P show event"
"""The command that prints the table."""

HEAD = ("Cluster", "NodeName", "TimeStart", "TimeEnd", "State")
"""The columns that this module reads."""

_LOST = frozenset({"DOWN", "FAIL", "ERROR", "REBOOT", "UNKNOWN"})
"""The states in which Slurm runs no jobs on a node. Slurm requeues or ends the node's jobs (`NODE_FAIL`).

A node that power saving has powered down is not among them: Slurm starts jobs on it by powering it up.
"""

_CLOSED = frozenset({"DRAIN", "DRAINED", "DRAINING", "FAILING", "MAINT", "INVAL", "FUTURE"})
"""The states in which jobs continue, but no more jobs start."""

_REMOVE, _CORDON = Field("remove"), Field("cordon")
_NEVER = ("Unknown", "None", "")
_Span = tuple[int, int | None]


def is_table(path: Path) -> bool:
    """Returns True if the first line of a file has the columns of an event table."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            head = file.readline(4096).strip().split("|")
    except (OSError, ValueError):
        return False
    return set(HEAD) <= {name.strip() for name in head}


def of_table(path: Path, zone: tzinfo) -> Watched:
    """Returns the outages and drains of nodes in an event table.

    Args:
        path: a file with the output of `sacctmgr -P show event`.
        zone: the time zone of the times in the table, which have no offset. Times in seconds since 1970
            (`SLURM_TIME_FORMAT=%s`) need no zone.

    Raises:
        ClusterError: the file cannot be read, or has an invalid time or several clusters.
    """
    rows = read_table(path, HEAD, COMMAND)
    clusters = sorted({row.text("Cluster") for row in rows})
    if len(clusters) > 1:
        raise ClusterError(
            str(path),
            [Fault("column Cluster", f"has several clusters: {', '.join(clusters)[:200]}")],
            hint=f"request a single cluster: {COMMAND} cluster={clusters[0]}",
        )
    watched, faults = Watched(), list[Fault]()
    spans: dict[tuple[str, Field], list[_Span]] = {}
    others: dict[str, int] = {}
    whole = short = brief = 0
    for row in rows:
        node, field = row.text("NodeName"), _field(row.text("State"))
        if not node:
            whole += 1
            continue
        if field is None:
            others[row.text("State")] = others.get(row.text("State"), 0) + 1
            continue
        start = _time(row, "TimeStart", zone, faults)
        end = _time(row, "TimeEnd", zone, faults, start)
        if start is None or (end is not None and end < start):
            faults.append(Fault(row.place, "ends before it begins, or does not say when it begins"))
            continue
        if end == start and field is _REMOVE:
            short += 1
            end = start + SECOND
        elif end == start:
            brief += 1
        spans.setdefault((node, field), []).append((start, end))
    if faults:
        raise ClusterError(str(path), faults, hint=f"give a file with the output of {COMMAND}")
    for (node, field), found in spans.items():
        for start, end in _joined(found):
            watched.span(Object("Node", node), field, "", start, end)
    _say(watched, whole, short, brief, others)
    return watched


def _field(state: str) -> Field | None:
    """Returns the field of a row for a state such as `DOWN*+DRAIN`.

    Returns None if jobs run and start in this state.
    """
    parts = {part.rstrip("*~#!%$@^-").upper() for part in state.split("+")}
    if state.endswith("*") or parts & _LOST:
        return _REMOVE
    return _CORDON if parts & _CLOSED else None


def _time(row: Row, name: str, zone: tzinfo, faults: list[Fault], since: int | None = None) -> int | None:
    """Returns a time in microseconds since 1970, or None if the time is not known yet.

    In an hour that the zone repeats, the result is the earlier time, unless that is before `since`.
    """
    text = row.text(name)
    if text in _NEVER:
        return None
    try:
        if text.isascii() and text.isdecimal() and len(text) < 12:
            return int(text) * SECOND
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
            early = since is not None and int(moment.timestamp()) * SECOND < since
            moment = moment.replace(fold=int(early))
        return int(moment.timestamp()) * SECOND
    except (ValueError, OverflowError):
        faults.append(Fault(row.place, f"{name}: {text[:40]!r} is not a time"))
        return None


def _joined(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Yields the spans in order, after joining those that touch or overlap."""
    begin: int | None = None
    until: int | None = 0
    for start, end in sorted(spans, key=lambda span: span[0]):
        if begin is None:
            begin, until = start, end
        elif until is None or start <= until:
            until = None if until is None or end is None else max(until, end)
        else:
            yield begin, until
            begin, until = start, end
    if begin is not None:
        yield begin, until


def _say(watched: Watched, whole: int, short: int, brief: int, others: dict[str, int]) -> None:
    """Add notes about facts in the table that rows do not, or cannot, express."""
    if whole:
        watched.lacks(
            f"no row can express what happened to the cluster as a whole ({counted(whole, 'event')})"
        )
    if short:
        watched.lacks(
            f"outages that ended immediately get a length of one second ({counted(short, 'event')})"
        )
    if brief:
        watched.lacks(f"cordons that ended immediately have no row ({counted(brief, 'event')})")
    for state, count in sorted(others.items()):
        watched.lacks(
            f"events with state {state!r} have no row, because the node runs jobs ({counted(count, 'event')})"
        )
    watched.lacks("an outage begins when Slurm notices it, but the node's jobs were lost before that")
