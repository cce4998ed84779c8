"""Keeps a random share of the jobs."""

from __future__ import annotations

from random import Random

import polars as pl

from harness.base.errors import OptionError
from harness.base.values import Value, fixed
from harness.trace.trace import Trace


@fixed()
class Sample(Value):
    """A random sample of the jobs.

    It keeps each job, with all its pods and pod sets, with the probability `share`.

    Attributes:
        share: the probability, which is above 0 and below 1.
        seed: the seed of the draws. Equal seeds keep equal jobs, and a larger share keeps all jobs of a
            smaller share.
    """

    share: float
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> Sample:
        """Parse `SHARE` or `SHARE@SEED`, such as `0.1@7`.

        Raises:
            OptionError: the text has another form, or the share is not between 0 and 1.
        """
        share, _, seed = text.partition("@")
        try:
            sample = cls(float(share), int(seed or 0))
        except ValueError:
            sample = cls(0.0)
        if not 0 < sample.share < 1 or sample.seed < 0:
            raise OptionError(
                f"--sample {text!r} is not a share of the jobs",
                hint="write SHARE or SHARE@SEED, such as 0.1@7, with a share above 0 and below 1",
            )
        return sample

    def __str__(self) -> str:
        return f"{self.share}@{self.seed}"

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """Returns the rows of the kept jobs."""
        frame = trace.frame.filter(draws(trace.frame, self.seed) < self.share)
        whole = ", with all its pod sets" if "pod_set" in trace.frame.columns else ""
        return frame, f"each job is kept with the given probability{whole}"


def draws(frame: pl.DataFrame, seed: int) -> pl.Series:
    """Returns a random number in [0, 1) for each row. All rows of a job have the same number."""
    draw = Random(seed).random  # noqa: S311 - Python promises this sequence on every version
    if "pod_set" not in frame.columns:
        return pl.Series("draw", [draw() for _ in range(frame.height)], dtype=pl.Float64)
    names = frame["job_id"].unique(maintain_order=True)
    drawn = pl.Series("draw", [draw() for _ in names], dtype=pl.Float64)
    return frame["job_id"].replace_strict(names, drawn, return_dtype=pl.Float64).alias("draw")
