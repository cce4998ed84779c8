"""Prepares the jobs of a trace once for all replays of the trace on the same cluster."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.runs.cache import Lasting
from harness.trace.job_columns import GRACE_PERIOD, JobColumns

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

LONG = 1 << 17
"""The columns of longer traces are not cached, because making them is quick compared to the replay."""

_DEFAULTS = {"grace_period": GRACE_PERIOD, "startup": 0, "record": False, "scale_arrivals": Fraction(1)}

_known: Lasting[JobColumns] = Lasting()


def job_columns(trace: Trace, cluster: Cluster, **choices: Any) -> JobColumns:
    """Returns the columns of a trace's jobs. `choices` are keyword arguments of `JobColumns`."""
    find = partial(JobColumns, trace, cluster, **choices)
    if trace.frame.height > LONG:
        return find()
    return _known.answer(trace, cluster, find, _DEFAULTS | choices)
