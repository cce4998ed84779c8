"""Reads what Slurm's tools print about a cluster, in tables with `|` or in `Key=Value` blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from harness.base.errors import ClusterError, Fault
from harness.base.text import counted
from harness.base.units import INT64_MAX, slurm_memory
from harness.base.values import Value, fixed
from harness.cluster.yaml.sources import text_of

_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][A-Za-z0-9_/:]*)=")
_COUNT = re.compile(r"([0-9]{1,18})(?:\.[0-9]{1,9})?[KMGTPE]?")
_MOST = 10**9


@fixed()
class Row(Value):
    """A row of a table, or a block.

    Attributes:
        place: the line of the row, for messages.
        cells: maps a column to the text of its cell. Leading blanks are kept, because they show the depth of
            an account in a tree.
    """

    place: str
    cells: Mapping[str, str]

    def text(self, name: str) -> str:
        """Returns the text of a cell without surrounding blanks, or "" if the cell is missing."""
        return self.cells.get(name, "").strip()

    def count(self, name: str, faults: list[Fault], default: int = 0) -> int:
        """Returns a cell as an integer.

        If the cell isn't an integer, adds a fault and returns the default.
        """
        text = self.text(name)
        if not text:
            return default
        if text.isascii() and text.isdecimal() and len(text) < 12 and int(text) <= _MOST:
            return int(text)
        faults.append(Fault(self.place, f"{name}: {text[:40]!r} is not a whole number from 0 to {_MOST:,}"))
        return default

    def tres(self, name: str, faults: list[Fault]) -> dict[str, int]:
        """Returns the quantities in a cell such as `cpu=4,mem=8G,gres/gpu:a100=2`. Memory is in bytes."""
        found: dict[str, int] = {}
        for part in filter(None, self.text(name).split(",")):
            resource, _, amount = part.partition("=")
            size = _size(resource, amount)
            if not 0 <= size <= INT64_MAX // 2**20:
                faults.append(Fault(self.place, f"{name}: {part[:40]!r} is not a resource with its amount"))
            else:
                found[resource] = size
        return found


def read_table(path: Path, needed: tuple[str, ...], command: str) -> list[Row]:
    """Returns the rows of a table that `sacctmgr -P` printed.

    Raises:
        ClusterError: the file contains no such table, or some rows don't match the header.
    """
    lines = list(_lines(path, command))
    names = [name.strip() for name in lines[0][1].split("|")]
    missing = [name for name in needed if name not in names]
    if missing:
        what = f"has no column {', '.join(missing)}; the columns are {', '.join(names)[:200]}"
        raise ClusterError(
            str(path), [Fault("line 1", what)], hint=f"give a file with the output of {command}"
        )
    faults: list[Fault] = []
    rows = []
    for number, line in lines[1:]:
        cells = line.split("|")
        if len(cells) != len(names):
            what = f"has {counted(len(cells), 'column')} instead of {len(names):,}"
            faults.append(Fault(f"line {number:,}", what))
        rows.append(Row(f"line {number:,}", dict(zip(names, cells, strict=False))))
    if faults or not rows:
        raise ClusterError(str(path), faults or [Fault("", "has no rows")])
    return rows


def read_blocks(path: Path, command: str) -> list[Row]:
    """Returns the nodes in the output of `scontrol show nodes`.

    Raises:
        ClusterError: the file can't be read, or has a different format.
    """
    rows: list[Row] = []
    cells: dict[str, str] = {}
    for number, line in _lines(path, command):
        keys = list(_KEY.finditer(line))
        if keys and keys[0][1] == "NodeName":
            cells = {}
            rows.append(Row(f"line {number:,}", cells))
        elif not rows:
            what = "does not begin with NodeName="
            raise ClusterError(
                str(path), [Fault(f"line {number:,}", what)], hint=f"give a file with the output of {command}"
            )
        for key, end in zip(keys, [key.start() for key in keys[1:]] + [len(line)], strict=False):
            cells.setdefault(key[1], line[key.end() : end].strip())
    return rows


def _lines(path: Path, command: str) -> Iterator[tuple[int, str]]:
    text = text_of(path, f"give a file with the output of {command}")
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise ClusterError(str(path), [Fault("", "has no lines")])
    yield from lines


def _size(resource: str, amount: str) -> int:
    """Returns a quantity, with memory in bytes, or -1 if the text is none."""
    if resource == "mem":
        with suppress(ValueError):
            return slurm_memory(amount)[0]
    elif resource and (found := _COUNT.fullmatch(amount)):
        return int(found[1])
    return -1


def gpus_of(amounts: Mapping[str, int]) -> tuple[int, tuple[str, ...]]:
    """Returns the number of GPUs in TRES quantities, and the types of these GPUs.

    The total and the quantities by type describe the same GPUs.
    """
    typed = {name[len("gres/gpu:") :]: size for name, size in amounts.items() if name.startswith("gres/gpu:")}
    count = amounts.get("gres/gpu", sum(typed.values()))
    return count, tuple(sorted(name for name, size in typed.items() if size))
