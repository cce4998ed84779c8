"""Resamples the weeks of every tenant in a trace. The result depends only on the trace and the seed."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from harness.trace.generate.bootstrap import Bootstrap
from harness.trace.trace import Trace


def redrawn(trace: Trace, block: int, seed: int) -> Trace:
    """Returns a trace that is as long as the record, and consists of blocks drawn with replacement.

    The times are of the same kind as in the record.

    Args:
        trace: the calibrated record.
        block: the length of each drawn block, in microseconds.
        seed: the seed of the draws. Equal seeds draw equal blocks for each tenant.

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
        trace,
        frame=frame,
        metadata=source.metadata,
        notes=(*trace.notes, *source.notes, f"seed {seed}"),
    )
