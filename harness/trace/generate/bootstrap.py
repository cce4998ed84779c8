"""Creates synthetic traces from a recorded trace by resampling the weeks of every tenant (block bootstrap).

The patterns within a week are preserved, such as bursts of jobs, their durations and their sizes. The weeks
of each tenant are drawn independently of those of the other tenants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from harness.base.errors import Fault, SpecError
from harness.base.units import DAY, SECOND, format_duration
from harness.trace.generate.uniform import key_of, uniforms
from harness.trace.job_rows import has_pod_sets
from harness.trace.schema import SOURCE_KEY
from harness.trace.trace import Trace
from harness.trace.validate import LONGEST_NAME

WEEK = 7 * DAY

_MOST_BLOCKS = 100_000
"""The maximum number of blocks per tenant. A higher number would take too long, and probably means a wrong
length.
"""

_LONGEST = LONGEST_NAME - len(f".{_MOST_BLOCKS}")
_BLOCK = "harness.block"
_NOT_KEPT = ("uid", "recorded_start", "recorded_end")
"""The columns that are meaningful only for the recorded jobs."""


@dataclass(frozen=True)
class Bootstrap:
    """Draws synthetic traces from a recorded trace.

    Each drawn block lasts `block` microseconds.

    Attributes:
        blocks: the number of complete blocks in the record. Draws ignore the remainder.
        span: the length of the record, rounded up to complete blocks, in microseconds.

    Raises:
        SpecError: the record has fewer than two complete blocks.
    """

    trace: Trace
    block: int = WEEK

    def __post_init__(self) -> None:
        if self.blocks < 2:
            length, block = format_duration(self._length), format_duration(self.block)
            what = f"lasts {length}, less than two blocks of {block}"
            half = self._length // (2 * SECOND) * SECOND
            hint = f"give a shorter --block, of at most {format_duration(half)}" if half else None
            raise SpecError(str(self.trace.path), [Fault("", what)], hint=hint)

    @property
    def _since(self) -> pl.Series:
        submit = self.trace.frame["submit_time"].to_physical()
        return submit - submit.min()

    @property
    def _length(self) -> int:
        return int(self._since.max())  # type: ignore[arg-type]

    @property
    def _too_long(self) -> bool:
        """True if a name of the record would exceed the limit after the number of a block is appended."""
        return bool((self.trace.frame["job_id"].cast(pl.String).str.len_bytes() > _LONGEST).any())

    @property
    def blocks(self) -> int:
        """The number of complete blocks in the record."""
        return self._length // self.block

    @property
    def span(self) -> int:
        """The length of the record, rounded up to complete blocks."""
        return -(-self._length // self.block) * self.block

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the draws, which become notes of the trace."""
        rest = self._length - self.blocks * self.block
        drawn = f"every tenant's jobs are drawn in blocks of {format_duration(self.block)}, with replacement"
        left = (
            f"the last {format_duration(rest)} of the record are not used, because they are shorter than "
            "a block"
        )
        numbered = "jobs are named by numbers, because some names of the record are too long to be extended"
        return (
            f"{drawn}, from {self.blocks} blocks of {self.trace.path.name}",
            *((left,) if rest else ()),
            *((numbered,) if self._too_long else ()),
        )

    @property
    def metadata(self) -> dict[str, str]:
        """The record's metadata, with a source that says that the trace is resampled."""
        source = self.trace.metadata.get(SOURCE_KEY, self.trace.path.name)
        return {**self.trace.metadata, SOURCE_KEY: f"resampled from: {source}"}

    def pieces(self, span: int, seed: int, jobs: int | None = None) -> Iterator[pl.DataFrame]:
        """Yields the rows of a synthetic trace, one block at a time, sorted by submission.

        Submissions begin at 0 and end before `span`, in microseconds. Equal seeds draw equal blocks for each
        tenant. `jobs` is the maximum number of jobs, each with all its pod sets, or None for no limit.

        Raises:
            SpecError: there would be too many blocks.
        """
        count = -(-span // self.block)
        if count > _MOST_BLOCKS:
            what = (
                f"{format_duration(span)} consist of {count:,} blocks of {format_duration(self.block)}, but "
                f"at most {_MOST_BLOCKS:,} blocks can be drawn"
            )
            least = -(-span // (_MOST_BLOCKS * SECOND))
            raise SpecError(str(self.trace.path), [Fault("", what)], hint=f"give a longer --block: {least}s")
        recorded = self._recorded()
        tenants = sorted({queue for queue, _ in recorded})
        numbers = pl.int_range(count, eager=True)
        drawn = {queue: self._drawn(key_of(seed, queue, "block"), numbers) for queue in tenants}
        left = jobs
        for place in range(count):
            parts = [
                recorded[queue, drawn[queue][place]]
                for queue in tenants
                if (queue, drawn[queue][place]) in recorded
            ]
            if not parts:
                continue
            begin = pl.duration(microseconds=place * self.block)
            rows = pl.concat(parts).with_columns(
                pl.col("submit_time") + begin, pl.col("job_id") + f".{place + 1}"
            )
            rows = rows.filter(pl.col("submit_time") < pl.duration(microseconds=span))
            rows = rows.sort("submit_time", maintain_order=True)
            if left is not None:
                rows, taken = _first_jobs(rows, left)
                left -= taken
            if rows.height:
                yield rows
            if left == 0:
                return

    def _drawn(self, key: int, numbers: pl.Series) -> pl.Series:
        return (uniforms(key, numbers) * self.blocks).floor().cast(pl.Int64)

    def _recorded(self) -> dict[tuple[str, int], pl.DataFrame]:
        """Returns the rows of each tenant and block.

        Submission times are relative to the start of the block.
        """
        frame = self.trace.frame.drop(_NOT_KEPT, strict=False)
        if self._too_long:
            frame = frame.with_columns(pl.col("job_id").cast(pl.String).rank("dense").cast(pl.String))
        frame = frame.with_columns(
            (self._since % self.block).cast(pl.Duration("us")).alias("submit_time"),
            (self._since // self.block).alias(_BLOCK),
        )
        whole = frame.filter(pl.col(_BLOCK) < self.blocks)
        parts = whole.partition_by("queue", _BLOCK, as_dict=True, include_key=True)
        return {(str(queue), int(block)): rows.drop(_BLOCK) for (queue, block), rows in parts.items()}


def redrawn(trace: Trace, block: int, seed: int) -> Trace:
    """Returns a trace that is as long as the record, and consists of blocks drawn with replacement.

    Like the times of the record, its times are either timestamps or durations.

    Each drawn block lasts `block` microseconds. Equal seeds draw equal blocks for each tenant.

    Raises:
        SpecError: the record has fewer than two blocks, or far too many.
    """
    source = Bootstrap(trace, block)
    frame = pl.concat(list(source.pieces(source.span, seed)))
    if trace.kind == "timestamp":
        begin = pl.lit(trace.origin).cast(pl.Duration("us"))
        submit = (pl.col("submit_time") + begin).cast(pl.Int64).cast(trace.frame.schema["submit_time"])
        frame = frame.with_columns(submit)
    return replace(
        trace, frame=frame, metadata=source.metadata, notes=(*trace.notes, *source.notes, f"seed {seed}")
    )


def _first_jobs(rows: pl.DataFrame, most: int) -> tuple[pl.DataFrame, int]:
    if not has_pod_sets(rows):
        return rows.head(most), min(rows.height, most)
    names = rows["job_id"].unique(maintain_order=True).head(most)
    return rows.filter(pl.col("job_id").is_in(names.implode())), len(names)
