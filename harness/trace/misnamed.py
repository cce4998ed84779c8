"""Finds columns outside the schema that are probably misspelled, because their names resemble the schema's.

Such a column has no effect. harness reports it only if the trace lacks the column that was probably meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import polars as pl

from harness.trace.recorded import RUNS, STATE
from harness.trace.schema import COLUMNS, LIMIT, REQUEST, Kind, column_of

_OWN = ("recorded_hosts", RUNS, STATE)
"""The columns outside the schema that harness's own readers and commands write."""

_ONE_EDIT, _TWO_EDITS = 4, 9
"""The minimum length of names that may differ by one edit, and of names that may differ by two edits."""

_AMOUNT = re.compile(r"(?P<kind>[a-z]+)(?P<between>[^a-z0-9]+)(?P<resource>.+)", re.IGNORECASE)
_KINDS = {REQUEST: ("request", "requests", "requested", "req", "reqs"), LIMIT: ("limit", "limits", "lim")}
_RESOURCES = {
    "cpu": "cpu",
    "cpus": "cpu",
    "cores": "cpu",
    "mem": "memory",
    "memory": "memory",
    "ephemeral-storage": "ephemeral-storage",
    "ephemeral_storage": "ephemeral-storage",
    "storage": "ephemeral-storage",
}


def misnamed(columns: Mapping[str, pl.DataType]) -> dict[str, str]:
    """Maps columns outside the schema to the columns of the schema that were probably meant."""
    found = {}
    for name, dtype in columns.items():
        if column_of(name) is None and name not in _OWN:
            meant = _column(name, dtype, columns) or _amount(name, dtype)
            if meant is not None and meant not in columns:
                found[name] = meant
    return found


def sentences(columns: Mapping[str, pl.DataType]) -> Iterator[str]:
    """Yields a sentence for each probably misspelled column."""
    for name, meant in misnamed(columns).items():
        yield f"column {name!r} is not in the schema: did you mean {meant!r}?"


def _column(name: str, dtype: pl.DataType, columns: Mapping[str, pl.DataType]) -> str | None:
    """Returns the column of the schema with the most similar name, if the trace lacks it."""
    plain = _plain(name)
    near = [
        (edits, column.name)
        for column in COLUMNS
        if column.name not in (*columns, REQUEST, LIMIT) and _could_be(dtype, column.kind)
        if (edits := _edits(plain, _plain(column.name))) is not None
    ]
    return min(near, key=lambda each: each[0])[1] if near else None


def _amount(name: str, dtype: pl.DataType) -> str | None:
    """Returns the request or limit that a column's name resembles.

    Examples are `requests.memory` and `request_cpu`.
    """
    found = _AMOUNT.fullmatch(name)
    if found is None or not _could_be(dtype, Kind.INT64):
        return None
    kind, resource = found["kind"].lower(), found["resource"]
    known = _RESOURCES.get(resource.lower())
    of_kubernetes = known is not None or "/" in resource or resource.lower().endswith(("gpu", "gpus"))
    for prefix, (one, several, *others) in _KINDS.items():
        near = any(_edits(kind, each) is not None for each in (one, several))
        if (near and found["between"] == ".") or (of_kubernetes and (near or kind in others)):
            return f"{prefix}{known or resource}"
    return None


def _could_be(dtype: pl.DataType, kind: Kind) -> bool:
    if dtype in (pl.String, pl.Categorical, pl.Enum) or dtype.is_numeric():
        return kind is not Kind.MAP
    return kind.takes(dtype)


def _plain(name: str) -> str:
    """Removes the parts of a name that people spell differently: case, `_`, `-` and spaces."""
    return re.sub(r"[\W_]", "", name.casefold())


def _edits(name: str, known: str) -> int | None:
    """Returns the number of edits between two names, or None if the number is large for their length.

    An edit is an additional, missing or replaced character, or an exchange of two neighbours. In a name with
    four characters, a replaced character makes another word (`used`). Names with fewer than four characters
    never match.
    """
    if name == known:
        return 0
    if min(len(name), len(known)) < _ONE_EDIT:
        return None
    most = 1 if len(known) < _TWO_EDITS else 2
    found = _distance(name, known) if abs(len(name) - len(known)) <= most else most + 1
    if len(known) == _ONE_EDIT == len(name) and sorted(name) != sorted(known):
        return None
    return found if found <= most else None


def _distance(one: str, other: str) -> int:
    """Returns the minimum number of edits without overlaps (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, sign in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (sign != wanted))
            if i > 1 and j > 1 and sign == other[j - 2] and one[i - 2] == wanted:
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
    return row[-1]
