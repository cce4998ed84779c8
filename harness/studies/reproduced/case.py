"""Defines published results, with their figures, the required files, and the figures of a replay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import InputError
from harness.base.markdown import pipe_table
from harness.base.text import aligned
from harness.readers.source import contents

_HEAD = ("result", "figure", "theirs", "ours", "difference", "reason")


class Row(NamedTuple):
    """One figure, with the published value and the value of a replay.

    Attributes:
        figure: the name of the figure, with its unit.
        theirs: the published value; "" if no value is available.
        reason: the reason for a difference or for a missing value; "" if both values are equal.
    """

    figure: str
    theirs: str
    ours: str
    reason: str = ""

    @property
    def difference(self) -> str:
        """The relative difference of numbers, or else `none`, `other`, or `-` if no value was published."""
        if not self.theirs:
            return "-"
        if self.theirs == self.ours:
            return "none"
        try:
            theirs, ours = (
                float(each.partition(" ± ")[0].replace(",", "")) for each in (self.theirs, self.ours)
            )
        except ValueError:
            return "other"
        return f"{(ours / theirs - 1) * 100:+.2f} %"


Results = Mapping[str, Sequence[Row]]


class Source(NamedTuple):
    """A file that is not included in harness.

    Attributes:
        name: the usual name of the file, with the suffix `.gz` if it is compressed.
        sum: the SHA-256 of the uncompressed content.
        origin: the place where the file is published.
    """

    name: str
    sum: str
    origin: str

    def among(self, places: Iterable[Path]) -> Path:
        """Returns the path of this file among some files and folders.

        Raises:
            InputError: the file is missing, can't be read, or has different content.
        """
        names = (self.name, f"{self.name}.gz")
        found = []
        for place in places:
            files = sorted(place.rglob("*")) if place.is_dir() else [place]
            found += [path for path in files if path.name in names]
        for path in found:
            if sha256(contents(path)).hexdigest() == self.sum:
                return path
        hint = f"get it from {self.origin}, and give its path with --data"
        if found:
            raise InputError(f"{found[0]} differs from the file that the published result used", hint=hint)
        raise InputError(f"{self.name} is needed, but harness does not include it", hint=hint)


@dataclass(frozen=True)
class Case:
    """A published result.

    Attributes:
        name: the name of the result for `harness reproduce`.
        about: a one-line description of the result.
        published: the place where the figures were published.
        replay: a function that computes the rows. Its argument maps the names of `sources` to files.
    """

    name: str
    about: str
    published: str
    replay: Callable[[Mapping[str, Path]], Sequence[Row]]
    sources: tuple[Source, ...] = ()

    def rows(self, places: Iterable[Path] = ()) -> list[Row]:
        """Replays the published result.

        `places` are the required files, or folders that contain them.

        Raises:
            InputError: a file is missing, or has different content.
        """
        given = tuple(places)
        return list(self.replay({each.name: each.among(given) for each in self.sources}))


def text(results: Results, width: int | None = None) -> str:
    """Returns one table per result, followed by the reasons, for a terminal of `width` columns."""
    parts = []
    for name, rows in results.items():
        lines = [[name, *_HEAD[2:5]], *([row.figure, *_values(row)] for row in rows)]
        reasons = dict.fromkeys(row.reason for row in rows if row.reason)
        parts.append("\n".join([aligned(lines, width=width), *(f"  {reason}" for reason in reasons)]))
    return "\n\n".join(parts)


def markdown(results: Results) -> str:
    """Returns the results as a single Markdown table."""
    rows = [
        (name if number == 0 else "", row.figure, *_values(row), row.reason or "-")
        for name, of in results.items()
        for number, row in enumerate(of)
    ]
    return "\n".join(pipe_table([_HEAD, *rows], left=(0, 1, 5)))


def to_json(results: Results) -> str:
    """Returns the results as JSON."""
    found = {
        name: [{**row._asdict(), "difference": row.difference} for row in rows]
        for name, rows in results.items()
    }
    return json.dumps({"schema": "1", "results": found}, indent=2)


def _values(row: Row) -> tuple[str, str, str]:
    return row.theirs or "-", row.ours, row.difference
