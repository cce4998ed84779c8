"""Determines the requests of pods from their pod sets, or else from their job's request.

If a run does not record the pod sets of a job, all of the job's pods have equal requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics.arrivals import request_columns
from harness.base.arrays import Ints, numbers
from harness.base.tables.pod_set_texts import parts_of
from harness.base.tables.schemas import POD_SETS
from harness.runs.known import once
from harness.runs.run import Run

_PODS = 1 << 32  # A number larger than the number of pods in any job.


class PodSet(NamedTuple):
    """Pods of a job that have equal requests.

    Attributes:
        size: the index of the pods' size in `PodSizes.each`.
    """

    size: int
    name: str
    pods: int


class PodSizes(NamedTuple):
    """The requests of a run's pods. Pods of the same *size* have equal requests.

    Sizes are numbered. The first sizes belong to the jobs, in the order of `jobs.parquet`. They are followed
    by one size for each pod set of the jobs in `unequal`, in the order of `firsts`.

    Attributes:
        each: for each resource, an array with the request of a single pod of each size. Empty in runs of
            schema 2.
        pods: the number of pods of each job.
        unequal: the jobs whose pods have different requests, each with its pod sets in the order of the pods'
            numbers.
        firsts: the first pod of each pod set of `unequal` jobs, as `job * _PODS + pod`, in ascending order.
    """

    each: Sequence[Ints]
    pods: Ints
    unequal: Mapping[int, Sequence[PodSet]]
    firsts: Ints

    def of(self, job: Ints, pod: Ints) -> Ints:
        """Returns the index of each pod's size, given the pod's job and its number within the job."""
        if not self.unequal:
            return job
        place = self.firsts.searchsorted(job * _PODS + pod, side="right") - 1
        same = self.firsts[place.clip(0)] // _PODS == job
        return np.where((place >= 0) & same, len(self.pods) + place, job)


@once
def pod_sizes(run: Run) -> PodSizes:
    """Reads the requests of a run's pods."""
    columns = request_columns(run)
    pods, *totals = numbers(run.columns("jobs", "pods", *columns), "pods", *columns)
    unequal: dict[int, list[PodSet]] = {}
    firsts: list[int] = []
    requests: list[Mapping[str, int]] = []
    for job, text in _texts(run):
        first = job * _PODS
        for part in parts_of(text):
            unequal.setdefault(job, []).append(PodSet(len(pods) + len(firsts), part.name, part.pods))
            firsts.append(first)
            requests.append(part.requests)
            first += part.pods
    each = [
        np.append(total // pods, np.array([asked.get(resource, 0) for asked in requests], np.int64))
        for resource, total in zip(run.resources, totals, strict=False)  # Schema 2 has no totals.
    ]
    return PodSizes(each, pods, unequal, np.array(firsts, np.int64))


def _texts(run: Run) -> list[tuple[int, str]]:
    jobs = run.scan("jobs")
    if POD_SETS not in jobs.collect_schema():
        return []
    return jobs.select(POD_SETS).with_row_index("job").drop_nulls().collect().rows()
