"""A published result: its figures, the files that it needs, and the figures of a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import InputError
from harness.readers.source import contents


class Row(NamedTuple):
    """One figure: the published value, and the value of a replay.

    Attributes:
        figure: the name of the figure, with its unit.
        theirs: the published value; "" if none was available.
        ours: the value of the replay.
        reason: the reason of a difference or of a missing value; "" if both are equal.
    """

    figure: str
    theirs: str
    ours: str
    reason: str = ""

    @property
    def difference(self) -> str:
        """`none`, the relative difference of numbers or means, `other`, or `-` without a published value."""
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


class Source(NamedTuple):
    """A file that does not come with harness.

    Attributes:
        name: its usual name, with the suffix `.gz` if it is packed by gzip.
        sum: the SHA-256 of its unpacked content.
        origin: the place that has it.
    """

    name: str
    sum: str
    origin: str

    def among(self, places: Iterable[Path]) -> Path:
        """Returns the file among some files and folders.

        Raises:
            InputError: the file is missing, cannot be read, or has different content.
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
            raise InputError(f"{found[0]} is not the file of the published result", hint=hint)
        raise InputError(f"{self.name} is needed, but harness does not include it", hint=hint)


@dataclass(frozen=True)
class Case:
    """A published result.

    Attributes:
        name: the name that `harness reproduce` takes.
        about: the result in a line.
        published: the place of the published figures.
        replay: makes the rows, from the files of `sources` by their names.
        sources: the files that it needs.
    """

    name: str
    about: str
    published: str
    replay: Callable[[Mapping[str, Path]], Sequence[Row]]
    sources: tuple[Source, ...] = ()

    def rows(self, places: Iterable[Path] = ()) -> list[Row]:
        """Replays the published result.

        Args:
            places: files, and folders with files.

        Raises:
            InputError: a file is missing, or has different content.
        """
        given = tuple(places)
        return list(self.replay({each.name: each.among(given) for each in self.sources}))
