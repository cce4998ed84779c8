"""Creates the jobs of a specification piece by piece, sorted by submission."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.base.errors import Fault, SpecError
from harness.base.units import LONGEST
from harness.trace.generate.distributions import Draw, pick
from harness.trace.generate.spec import MOST_JOBS, JobKind, Spec, Stream
from harness.trace.generate.uniform import key_of, uniforms
from harness.trace.schema import DEFAULT_NAMESPACE, REQUEST, ordered

_PIECE = 1 << 20  # the number of jobs in each piece, over all streams

_LEAST = 1 << 10
_NUMBER = "harness.number"
_STREAM = "harness.stream"


def jobs_of(spec: Spec, seed: int) -> Iterator[pl.DataFrame]:
    """Yields the rows of a synthetic trace in the schema's types, sorted by submission.

    A job depends only on the seed, the name of its stream and its number in the stream. Other streams and the
    length of the trace do not change it. Jobs with the same submission time have the same order as the
    streams.

    Raises:
        SpecError: submissions would span more than a hundred years, or there would be too many jobs.
    """
    _check_number(spec)
    piece = max(_LEAST, min(_PIECE, spec.jobs or _PIECE) // len(spec.streams))
    sources = [_Source(stream, number, spec, seed, piece) for number, stream in enumerate(spec.streams)]
    left = spec.jobs
    while sources and left != 0:
        for source in sources:
            source.fill()
        # Further jobs of a source are not submitted before the last job that was created.
        horizon = min((source.last for source in sources if not source.ended), default=None)
        ready = pl.concat([source.taken(before=horizon) for source in sources])
        sources = [source for source in sources if source.rows.height or not source.ended]
        ready = ready.sort("submit_time", _STREAM, _NUMBER).drop(_STREAM, _NUMBER)
        ready = ready if left is None else ready.head(left)
        if left is not None:
            left -= ready.height
        if ready.height:
            yield ready


def _check_number(spec: Spec) -> None:
    """Raises an error if a trace without a limit would have more jobs than a trace can contain."""
    if spec.jobs is not None:
        return
    expected = 0.0
    for stream in spec.streams:
        of_span = float("inf") if spec.span is None else stream.arrivals.pace * spec.span
        expected += of_span if stream.most is None else min(stream.most, of_span)
    if expected > MOST_JOBS:
        what = f"about {expected:,.0f} jobs would be submitted, but there can be at most {MOST_JOBS:,}"
        raise SpecError(
            spec.source,
            [Fault("", what)],
            hint="are the rates right? the field 'jobs' or the option --jobs sets the number of jobs",
        )


class _Source:
    """A stream, with the jobs that were created but not yet taken."""

    def __init__(self, stream: Stream, place: int, spec: Spec, seed: int, piece: int) -> None:
        self._stream, self._place, self._spec, self._piece = stream, place, spec, piece
        self._key = (seed, stream.name)
        self._arrivals = stream.arrivals.begun(key_of(*self._key))
        self._made = 0
        self.ended = False
        self.last = -1
        self.rows = pl.DataFrame()

    def fill(self) -> None:
        """Creates enough jobs for a piece, or all remaining jobs."""
        while not self.ended and (self.rows.height < self._piece // 2 or self._first == self.last):
            most = self._stream.most
            count = self._piece if most is None else min(self._piece, most - self._made)
            rows = self._rows(count)
            self._made += count
            span = self._spec.span
            if span is not None:
                rows = rows.filter(pl.col("submit_time") < pl.duration(microseconds=span))
            self.ended = rows.height < count or (most is not None and self._made >= most)
            self.rows = pl.concat([self.rows, rows]) if self.rows.width else rows
            if self.rows.height:
                self.last = int(self.rows["submit_time"].to_physical()[-1])
            if self.last > LONGEST:
                what = (
                    "jobs would be submitted over more than 100 years: are rates and numbers of jobs right?"
                )
                raise SpecError(self._spec.source, [Fault("", what)])

    @property
    def _first(self) -> int:
        return int(self.rows["submit_time"].to_physical()[0])

    def taken(self, *, before: int | None) -> pl.DataFrame:
        """Takes the jobs that are submitted before a given time. None takes all jobs."""
        if before is None:
            there = self.rows.height
        else:
            there = int(self.rows["submit_time"].to_physical().search_sorted(before, side="left"))
        taken, self.rows = self.rows.head(there), self.rows.slice(there)
        return taken

    def _rows(self, count: int) -> pl.DataFrame:
        numbers = pl.int_range(self._made, self._made + count, eager=True)
        times = self._arrivals.times(count) if count else numbers
        kinds = self._stream.kinds
        if len(kinds) == 1:
            bodies = self._bodies(kinds[0], 0, numbers)
        else:
            kind = pick([each.weight for each in kinds], uniforms(key_of(*self._key, "kind"), numbers))
            parts = [self._bodies(each, at, numbers.filter(kind == at)) for at, each in enumerate(kinds)]
            bodies = pl.concat(parts).sort(_NUMBER)
        stream = self._stream
        constant = {"queue": stream.queue}
        if self._spec.namespaced:
            constant["namespace"] = stream.namespace or DEFAULT_NAMESPACE
        bodies = bodies.with_columns(
            (stream.name + pl.col(_NUMBER).cast(pl.String) + stream.suffix).alias("job_id"),
            times.cast(pl.Duration("us")).alias("submit_time"),
            *(pl.lit(value).alias(name) for name, value in constant.items()),
            pl.lit(self._place, pl.Int32).alias(_STREAM),
        )
        return bodies.select(ordered(bodies.columns))

    def _bodies(self, kind: JobKind, place: int, numbers: pl.Series) -> pl.DataFrame:

        def draw(attribute: str) -> Draw:
            return lambda purpose: uniforms(key_of(*self._key, place, attribute, purpose), numbers)

        spec = self._spec
        duration = kind.duration.values(draw("duration")).cast(pl.Duration("us"))
        columns = [numbers.alias(_NUMBER), duration.alias("duration")]
        for resource in spec.resources:
            asked = kind.requests.get(resource)
            values = (
                pl.zeros(len(numbers), pl.Int64, eager=True)
                if asked is None
                else asked.values(draw(resource))
            )
            columns.append(values.alias(f"{REQUEST}{resource}"))
        for name, wanted in spec.optional.items():
            value = getattr(kind, name)
            if name == "gang":
                column = pl.repeat(value, len(numbers), dtype=pl.Boolean, eager=True)
            elif value is None:
                column = pl.repeat(None, len(numbers), dtype=wanted, eager=True)
            else:
                column = value.values(draw(name)).cast(wanted)
            columns.append(column.alias(name))
        return pl.DataFrame(columns)
