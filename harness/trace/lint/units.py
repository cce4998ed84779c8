"""Checks whether quantities and times are in the units of the schema, and whether quantities are per pod."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.base.units import DAY, MINUTE, SECOND, format_amount, format_duration
from harness.trace.job_rows import pods_of
from harness.trace.lint.finding import Finding, Material
from harness.trace.schema import REQUEST

_MIB, _GIB, _TIB = 2**20, 2**30, 2**40
_BYTES = ("memory", "ephemeral-storage")

_LEAST = 20  # the minimum number of jobs with several pods that makes a proportion meaningful
_SIZES = 3  # the minimum number of different pod counts that makes a proportion meaningful
_SURE = 2.0  # the fitted slope, which is 1 in exact proportion, must exceed 0.5 by this many standard errors


def check(material: Material) -> Iterator[Finding]:
    """Finds pod requests and durations that are probably a thousand times too small or too large."""
    frame = material.trace.frame
    for resource in material.resources:
        amounts = frame[f"{REQUEST}{resource}"].drop_nulls()
        amounts = amounts.filter(amounts > 0)
        if not len(amounts):
            continue
        typical, most = _quantile(amounts, 0.5), _quantile(amounts, 1.0)
        shown = f"half of the pods that request {resource} request at most {format_amount(resource, typical)}"
        if resource == "cpu":
            if most <= 256:
                yield _finding(f"no pod requests more than {most} millicores of cpu", "cores", "1000")
            elif typical > 1_000_000 and (amounts % 1_000_000 == 0).all():
                yield _finding(f"{shown} cores", "microcores or nanocores", "1/1000")
        elif resource in _BYTES:
            if most < _MIB:
                yield _finding(
                    f"no pod requests more than {most:,} bytes of {resource}", "MiB or KiB", "2^20"
                )
            elif typical > 64 * _TIB:
                yield _finding(shown, "a multiple of bytes", "1/1024 or 1/2^20")
        elif resource.endswith("gpu") and typical >= 100:
            yield _finding(shown, "thousandths or per cent of a device", "1/1000 or 1/100")
    duration = material.jobs["duration"]
    typical, most = _quantile(duration, 0.5), _quantile(duration, 1.0)
    if 0 < most < SECOND:
        yield _finding(f"no job runs longer than {format_duration(most)}", "seconds or milliseconds", "1000")
    elif typical > 30 * DAY:
        yield _finding(
            f"half of the jobs run for {format_duration(typical)} or more", "milliseconds", "1/1000"
        )
    elif most >= 100 * MINUTE and bool((duration % MINUTE == 0).all()):
        yield Finding(
            "coarse",
            "all durations are whole minutes",
            "waits and slowdowns of short jobs are precise only to the minute",
        )


def _quantile(values: pl.Series, share: float) -> int:
    found = values.quantile(share, "nearest")
    return int(found or 0)


def _finding(says: str, unit: str, factor: str) -> Finding:
    return Finding(
        "unit",
        says,
        f"if the values are {unit}, multiply them by {factor} before the conversion: the schema has "
        "millicores, bytes, whole devices and microseconds",
    )


def check_totals(material: Material) -> Iterator[Finding]:
    """Finds quantities that grow in proportion to the number of pods.

    If a job's total is read as a quantity per pod, the total counts once for each pod.
    """
    frame = material.trace.frame
    rows = frame.select(pods_of(frame).alias("pods"), *(f"{REQUEST}{name}" for name in material.resources))
    for resource in material.resources:
        several = rows.filter((pl.col("pods") > 1) & (pl.col(f"{REQUEST}{resource}") > 0))
        pods, amounts = several["pods"], several[f"{REQUEST}{resource}"]
        if len(pods) >= _LEAST and pods.n_unique() >= _SIZES and _grows(pods, amounts):
            yield Finding(
                "total-as-pod",
                f"{resource} of a pod grows in proportion to the number of pods "
                f"({len(pods):,} rows with several pods)",
                "a job's total was read as the request of each pod; divide the total by the number of pods, "
                f"or map the column as total.{resource} (docs/tables.md)",
            )


def _grows(pods: pl.Series, amounts: pl.Series) -> bool:
    """Returns True if jobs with twice as many pods have about twice the quantity per pod.

    The function fits a line to the logarithms, whose slope is 1 if both are in exact proportion.
    """
    x, y = pods.cast(pl.Float64).log(2), amounts.cast(pl.Float64).log(2)
    x, y = x - x.mean(), y - y.mean()
    spread = float((x * x).sum())
    slope = float((x * y).sum()) / spread
    left = y - slope * x
    error = (float((left * left).sum()) / (len(x) - 2) / spread) ** 0.5
    return 0.75 <= slope <= 1.25 and slope - _SURE * error > 0.5
