"""Computes the used resources and the waiting jobs in each of many time spans of equal length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from harness.base.units import HOUR, MINUTE, SECOND
from harness.plugins.measurement import Window

Amounts: TypeAlias = tuple[int, ...]
"""The amounts that a job requests or holds, with one number per resource."""

Tag: TypeAlias = tuple[str, tuple[int, ...]]
"""A ClusterQueue, and the indices of the objects that a job uses."""

_MOST = 10_000
_FEWEST = 60
_WIDTHS = tuple(MINUTE * each for each in (10, 20, 30)) + tuple(
    HOUR * each for each in (1, 2, 3, 6, 12, 24, 168)
)


class Held(NamedTuple):
    """A span during which a job held something, in microseconds since the origin."""

    start: int
    end: int
    amounts: Amounts


class Waited(NamedTuple):
    """A span during which a whole job waited for its first start."""

    start: int
    end: int
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Bins:
    """Spans of equal length, in microseconds, that cover a window."""

    start: int
    width: int
    count: int

    @classmethod
    def of(cls, window: Window) -> Bins:
        """Returns spans over a window: ten minutes each, more for long windows, and less for short ones."""
        span = max(1, window.end - window.start)
        if span < _FEWEST * _WIDTHS[0]:
            return cls(window.start, -(-span // (_FEWEST * SECOND)) * SECOND, _FEWEST)
        width = next((each for each in _WIDTHS if span // each < _MOST), _WIDTHS[-1])
        return cls(window.start, width, -(-span // width))

    def begin(self, number: int) -> int:
        """Returns the time at which a span begins."""
        return self.start + number * self.width


class Level(NamedTuple):
    """The highest and mean amounts held in one span, by resource."""

    most: Amounts
    mean: tuple[float, ...]


def levels(bins: Bins, held: Iterable[Held], width: int) -> list[Level]:
    """Returns the highest and the mean amount held in each span."""
    moves: dict[int, list[int]] = {}
    for start, end, amounts in held:
        for time, sign in ((start, 1), (end, -1)):
            at = moves.setdefault(time, [0] * width)
            for place, amount in enumerate(amounts):
                at[place] += sign * amount
    times = sorted(moves)
    now = [0] * width
    found: list[Level] = []
    place = 0
    for number in range(bins.count):
        begin, end = bins.begin(number), bins.begin(number + 1)
        while place < len(times) and times[place] <= begin:
            now = [level + move for level, move in zip(now, moves[times[place]], strict=True)]
            place += 1
        most, area, since = list(now), [0] * width, begin
        while place < len(times) and times[place] < end:
            time = times[place]
            area = [total + level * (time - since) for total, level in zip(area, now, strict=True)]
            now = [level + move for level, move in zip(now, moves[time], strict=True)]
            most = [max(pair) for pair in zip(most, now, strict=True)]
            since = time
            place += 1
        area = [total + level * (end - since) for total, level in zip(area, now, strict=True)]
        found.append(Level(tuple(most), tuple(total / bins.width for total in area)))
    return found


def above(held: Iterable[Held], resource: int, limit: int) -> list[tuple[int, int]]:
    """Returns the times during which more than `limit` of a resource was held, earliest first.

    `resource` is the index of the resource among the held quantities.
    """
    moves: Counter[int] = Counter()
    for start, end, amounts in held:
        moves[start] += amounts[resource]
        moves[end] -= amounts[resource]
    found: list[tuple[int, int]] = []
    level, begun = 0, None
    for time in sorted(moves):
        level += moves[time]
        if level > limit and begun is None:
            begun = time
        elif level <= limit and begun is not None:
            found.append((begun, time))
            begun = None
    return found


def waiting(
    bins: Bins, waited: Iterable[tuple[Waited, Tag]], slack: int
) -> Iterator[Sequence[tuple[Amounts, Tag]]]:
    """Yields, for each span, the requests of the jobs that waited during the whole span.

    A job must also have waited for `slack` microseconds before the span.

    If several waits have the same requests and the same tag, the result contains them only once. `slack` is
    the length of a wait that needs no explanation, in microseconds.
    """
    begins: dict[int, list[tuple[Amounts, Tag]]] = {}
    ends: dict[int, list[tuple[Amounts, Tag]]] = {}
    for (start, end, amounts), tag in waited:
        first = max(0, -((bins.start - start - slack) // bins.width))
        last = (end - bins.start) // bins.width  # the first span in which the job does not wait all the time
        if first < min(last, bins.count):
            begins.setdefault(first, []).append((amounts, tag))
            ends.setdefault(last, []).append((amounts, tag))
    present: Counter[tuple[Amounts, Tag]] = Counter()
    for number in range(bins.count):
        present.update(begins.get(number, ()))
        if gone := ends.get(number):
            present.subtract(gone)
            present = +present
        yield sorted(present)


_GAP = 24


def together(numbers: list[int]) -> Iterator[list[int]]:
    """Yields groups of spans that are at most a day apart, given the numbers of the spans."""
    period: list[int] = []
    for number in numbers:
        if period and number - period[-1] > _GAP:
            yield period
            period = []
        period.append(number)
    if period:
        yield period
