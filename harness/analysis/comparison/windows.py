"""The windows that compared runs are measured over; runs with equal arrivals share them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.comparison.pairs import Pairs
from harness.analysis.metrics.shared_window import Shared, shared_by
from harness.runs.run import Run


def shares_of(runs: Sequence[Run], pairs: Pairs) -> list[Shared]:
    """The window and jobs that each run is measured over; if arrivals differ, its own window.

    Args:
        runs: the runs.
        pairs: the jobs that they have in common.
    """
    ends = [run.window.end for run in runs]
    if len(runs) == 1:  # no file needs to be read
        return [Shared(end, end) for end in ends]
    shares = shared_by(runs, pairs.refused)
    if pairs.same_arrivals:
        return shares
    return [Shared(end, end, each.refused) for end, each in zip(ends, shares, strict=True)]
