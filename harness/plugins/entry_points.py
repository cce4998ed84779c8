"""Finds the installed plugins, and caches them until a distribution is installed or removed.

The cache is useful because reading the metadata of all distributions takes half of the time for loading
plugins.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Installed: TypeAlias = "list[tuple[EntryPoint, str, str]]"
"""Entry points with their distributions and versions."""

_SETTLED = 10**10  # ns; a distribution that is just being installed may be incomplete

_found: dict[tuple[object, ...], Installed] = {}
"""Maps the import folders, and their state when they were last read, to the entry points in them."""


def installed(group: str) -> Installed:
    """Returns all entry points of a group."""
    places = [_stands(place) for place in sys.path]
    key = (group, *places)
    if key in _found:
        return _found[key]
    found = _look(group)
    if time.time_ns() - max((changed for _, changed, _ in places), default=0) > _SETTLED:
        _found.clear()
        _found[key] = found
    return found


def _stands(place: str) -> tuple[str, int, int]:
    """Returns the state of a folder or archive, which changes when a distribution is added or removed."""
    try:
        about = os.stat(place or os.curdir)  # noqa: PTH116 - texts, as in sys.path
    except OSError:
        return place, 0, 0
    return place, about.st_mtime_ns, about.st_ino


def _look(group: str) -> Installed:
    from importlib.metadata import entry_points  # takes longer to import than all of help

    entries = {(entry.name, entry.value): entry for entry in entry_points(group=group)}
    about: dict[int, tuple[str, str]] = {}  # each access to a distribution reads all of its metadata
    found = []
    for entry in entries.values():
        if entry.dist is not None:
            if id(entry.dist) not in about:
                metadata = entry.dist.metadata
                about[id(entry.dist)] = metadata["Name"], metadata["Version"]
            found.append((entry, *about[id(entry.dist)]))
    return found
