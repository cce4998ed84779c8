"""Limits the files that tools may read to those below given folders, after following links."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.base.errors import InputError
from harness.cluster.derive import find_cluster
from harness.cluster.yaml.fields import shown

_MOST_FILES = 100_000


class Folders:
    """The folders below which files may be read.

    Relative paths start from the first of the `roots`.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [root.resolve(strict=True) for root in roots]

    def cluster(self, text: str) -> str:
        """Check the paths of a cluster's manifests, which are separated by commas, and resolve them.

        Raises:
            InputError: a path is not below the folders.
        """
        return ",".join(str(self.path(part)) for part in text.split(","))

    def trace(self, text: str) -> Path:
        """Returns the path of a trace, after checking the trace and any cluster file next to it.

        Raises:
            InputError: the trace is not below the folders, or a link points elsewhere.
        """
        found = self.path(text)
        beside = find_cluster(found)
        if beside is not None:
            self._require(beside, text)
        return found

    def path(self, text: str) -> Path:
        """Returns a file or folder, after checking all of its content.

        Raises:
            InputError: the path is not below the folders, or a link in it points elsewhere.
        """
        found = self.place(text)
        for inner in _inside(found):
            self._require(inner, text)
        return found

    def place(self, text: str) -> Path:
        """Returns a file or folder, without checking its content.

        Raises:
            InputError: the path is not below the folders.
        """
        return self._require(self._roots[0] / text, text)

    def holds(self, path: Path) -> bool:
        """Returns True if a path may be read."""
        try:
            real = path.resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            return False
        return any(real.is_relative_to(root) for root in self._roots)

    def _require(self, path: Path, text: str) -> Path:
        """Returns the real path if it may be read. The error does not reveal whether other files exist."""
        if not self.holds(path):
            raise InputError(f"{shown(text)} is not a file or folder below the allowed folders")
        return path.resolve()


def _inside(folder: Path) -> Iterator[Path]:
    count = 0
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            count += 1
            if count > _MOST_FILES:
                raise InputError(f"{folder.name} contains more than {_MOST_FILES:,} files")
            yield Path(place, name)
