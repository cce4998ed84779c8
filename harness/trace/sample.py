"""Keeps a seeded share of the jobs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import polars as pl

from harness.errors import OptionError
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Sample:
    """Each job stays with probability `share`, with all its pods and pod sets.

    Attributes:
        share: above 0, below 1.
        seed: equal seeds keep equal jobs, and a larger share keeps all that a smaller one does.
    """

    share: float
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> Sample:
        """`SHARE` or `SHARE@SEED`, such as `0.1@7`.

        Raises:
            OptionError: not of that form, or a share that is not between 0 and 1.
        """
        share, _, seed = text.partition("@")
        try:
            sample = cls(float(share), int(seed or 0))
        except ValueError:
            sample = cls(0.0)
        if not 0 < sample.share < 1 or sample.seed < 0:
            raise OptionError(
                f"--sample {text!r} is no share of the jobs", hint="write SHARE or SHARE@SEED, such as 0.1@7"
            )
        return sample

    def __str__(self) -> str:
        return f"{self.share}@{self.seed}"

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """The rows of the jobs that stay."""
        draw = Random(self.seed).random  # noqa: S311 - Python promises this sequence on every version
        if "pod_set" not in trace.frame.columns:
            kept = pl.Series([draw() < self.share for _ in range(trace.frame.height)], dtype=pl.Boolean)
            return trace.frame.filter(kept), "each job stays with that probability"
        names = trace.frame["job_id"].unique(maintain_order=True)
        staying = names.filter(pl.Series([draw() < self.share for _ in range(len(names))], dtype=pl.Boolean))
        frame = trace.frame.filter(pl.col("job_id").is_in(staying.implode()))
        return frame, "each job stays with that probability, with all its pod sets"
