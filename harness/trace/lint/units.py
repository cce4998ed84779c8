"""Checks whether quantities and times are in the units of the schema."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.base.units import DAY, MINUTE, SECOND, format_amount, format_duration
from harness.trace.lint.finding import Finding, Material
from harness.trace.schema import REQUEST

_MIB, _GIB, _TIB = 2**20, 2**30, 2**40
_BYTES = ("memory", "ephemeral-storage")


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
