"""A published result: its figures, the files that it needs, and what a replay gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import InputError


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
        """`none`, the relative difference of two numbers, `other`, or `-` if there is nothing to compare."""
        if not self.theirs:
            return "-"
        if self.theirs == self.ours:
            return "none"
        try:
            theirs, ours = (float(each.replace(",", "")) for each in (self.theirs, self.ours))
        except ValueError:
            return "other"
        return f"{(ours / theirs - 1) * 100:+.2f} %"


class Source(NamedTuple):
    """A file that does not come with harness.

    Attributes:
        name: its usual name.
        sum: the SHA-256 of its content.
        origin: the place that has it.
    """

    name: str
    sum: str
    origin: str

    def among(self, places: Iterable[Path]) -> Path:
        """The file among some files and folders.

        Raises:
            InputError: it is not there, or its content is another.
        """
        found = []
        for place in places:
            found += sorted(place.rglob(self.name)) if place.is_dir() else [place] * (place.name == self.name)
        for path in found:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise InputError(f"{path} cannot be read: {error.strerror}") from error
            if sha256(content).hexdigest() == self.sum:
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
