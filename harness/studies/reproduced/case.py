"""A published result: its figures, the files that it needs, and what a replay gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import InputError
from harness.readers.source import contents


class Row(NamedTuple):
    """One figure, as others published it and as a replay gives it.

    Attributes:
        figure: the name of the figure, with its unit.
        theirs: the published value; "" if none was at hand.
        ours: the value of the replay.
        reason: the reason of a difference, or of a value that is missing; "" if both are equal.
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
        name: its usual name; packed by gzip it ends with `.gz`.
        sum: the SHA-256 of its unpacked content.
        origin: the place that has it.
    """

    name: str
    sum: str
    origin: str

    def among(self, places: Iterable[Path]) -> Path:
        """The file among some files and folders.

        Raises:
            InputError: it is not there, cannot be read, or its content is another.
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
            raise InputError(f"{found[0]} is another file than the published result is of", hint=hint)
        raise InputError(f"{self.name} is needed, and does not come with harness", hint=hint)


@dataclass(frozen=True)
class Case:
    """A published result.

    Attributes:
        name: the name that `harness reproduce` takes.
        about: what it is, in a line.
        published: the place of the published figures.
        replay: gives the rows, from the files of `sources` by their names.
        sources: the files that it needs.
    """

    name: str
    about: str
    published: str
    replay: Callable[[Mapping[str, Path]], Sequence[Row]]
    sources: tuple[Source, ...] = ()

    def rows(self, places: Iterable[Path] = ()) -> list[Row]:
        """Replay it.

        Args:
            places: files, and folders that have them.

        Raises:
            InputError: a file is missing, or is another.
        """
        given = tuple(places)
        return list(self.replay({each.name: each.among(given) for each in self.sources}))
