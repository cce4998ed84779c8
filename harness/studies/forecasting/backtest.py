"""Tests how well forecasts of the past match the actual starts.

A forecast uses only facts that were known at its moment. For this purpose, the backtest writes the objects
that an API server would have shown at that moment, and reads them like a dump. The forecast's history
contains only the jobs that had been submitted and had ended by then. The backtest compares the forecast with
the next starts of waiting jobs in the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, Unpack

from harness.base.errors import InputError
from harness.base.units import format_duration
from harness.cluster.changes.remake import remade
from harness.cluster.manifests import local_queue_manifest
from harness.cluster.model import Cluster
from harness.cluster.yaml.documents import Document
from harness.runs.estimates.history import History
from harness.runs.estimates.present import Said, now_of
from harness.runs.executors import InParallel, results_of
from harness.studies.forecasting.api_objects import WORK, objects_of
from harness.studies.forecasting.baselines import Baselines
from harness.studies.forecasting.futures import Settings, World
from harness.studies.forecasting.inputs import UnknownRunTimeError, world_of
from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.record import Record, There
from harness.trace.generate.uniform import uniform

_MOST_DRAWN = 20
"""The maximum number of moments to try for each requested moment, in search of waiting jobs."""


@dataclass(frozen=True)
class Backtest:
    """Makes forecasts at moments of a record.

    Attributes:
        cluster: the cluster without its jobs.
    """

    cluster: Cluster
    history: History
    record: Record
    settings: Settings
    futures: int

    def waits(self, moment: int) -> bool:
        """Returns True if any job waited at a moment."""
        return any(each.waits for each in self.record.there(moment))

    def world(self, moment: int) -> tuple[World, dict[int, int | None]] | None:
        """Returns the input of a forecast at a moment, and the recorded starts of the waiting workloads.

        The input contains only facts that were known at the moment. The starts are listed by the index of the
        workload among the present workloads. The result is None if no workload waited, or if no job
        with a usable run time had ended.
        """
        there = list(self.record.there(moment))
        starts = {name: start for each in there for name, start in each.starts.items()}
        said = {name: Said(each.job.user, each.job.requested) for each in there for name in each.starts}
        objects = objects_of(each.shown for each in there)
        shown = [*self._without_work, *self._local_queues(there), *objects]
        cluster = remade(self.cluster, [Document("", each) for each in shown], self.cluster.source)
        now = now_of(cluster, self.settings.policy, moment, said)
        try:
            world, never = world_of(cluster, now, self.history, self.settings)
        except UnknownRunTimeError:
            return None
        waiting = [place for place, each in enumerate(now.present) if each.waits and place not in never]
        return (world, {place: starts[now.present[place].job.id] for place in waiting}) if waiting else None

    @cached_property
    def _without_work(self) -> list[Mapping[str, Any]]:
        return [each for each in self.cluster.manifests if each.get("kind") not in WORK]

    def _local_queues(self, there: Iterable[There]) -> Iterator[Mapping[str, Any]]:
        """Yields LocalQueues for jobs that name a ClusterQueue, because Workloads name only LocalQueues."""
        cluster = self.cluster
        doors = {(each.shown.job.namespace, each.shown.job.queue) for each in there if each.shown.queued}
        for namespace, name in sorted(doors - cluster.local_queues.keys()):
            if cluster.local_queues and name in cluster.cluster_queues:
                yield local_queue_manifest(namespace, name)

    def judged(self, moment: int) -> list[Judged]:
        """Returns the forecast and the true start of each workload that waited at a moment."""
        found = self.world(moment)
        if found is None:
            return []
        world, truth = found
        futures = [world.future(number) for number in range(self.futures)]
        baseline = self.baselines.at(moment)
        judged = []
        for number, place in enumerate(world.asked):
            if place in truth:
                each = world.now.present[place]
                waited = each.waited or 0
                judged.append(
                    Judged(
                        moment,
                        each.job.id,
                        tuple(future.starts[number] for future in futures),
                        truth[place],
                        each.queue,
                        baseline.week(each.queue, waited),
                        baseline.regression(each.traits, each.job.priority, waited),
                    )
                )
        return judged

    @cached_property
    def baselines(self) -> Baselines:
        """The simple forecasts, which use the starts in the history."""
        return Baselines(self.history.jobs)


def judged_at(backtest: Backtest, moments: Sequence[int], **how: Unpack[InParallel]) -> list[Judged]:
    """Makes forecasts at moments of a record.

    Raises:
        ReplayError: a forecast failed.
    """
    with closing(results_of(backtest.judged, moments, "a forecast could not be made", **how)) as news:
        return sorted(judged for several in news for judged in several)


class Span(NamedTuple):
    """The time span from which moments are drawn, in microseconds on the history's clock."""

    begin: int
    end: int


def second_half(backtest: Backtest) -> Span:
    """Returns the second half of a record, in which the forecasts are made.

    If some jobs had not started when the record ended, the result ends one horizon before the end of the
    record. A forecast at a later moment could not be judged, because its horizon ends after the record.

    Raises:
        InputError: no time is left.
    """
    first, last = backtest.history.jobs[0].submit, backtest.history.jobs[-1].submit
    until, horizon = backtest.record.until, backtest.settings.horizon
    begin = (first + last) // 2
    if until is not None and (last := min(last, until - horizon)) <= begin:
        raise InputError(
            f"a horizon of {format_duration(horizon)} is too long for this record. The record ended "
            f"{format_duration(until - begin)} after its middle, before some jobs had started. "
            "So harness does not know whether they started within the horizon",
            hint="give a smaller --horizon, or a longer record",
        )
    return Span(begin, last)


def moments_in(backtest: Backtest, span: Span, count: int, purpose: str = "moment") -> list[int]:
    """Returns moments at which jobs waited, drawn uniformly; fewer moments if such moments are rare.

    `purpose` says what the moments are used for. Each purpose has its own draws.
    """
    drawn = (
        span.begin + int(uniform(backtest.settings.seed, number, purpose) * (span.end - span.begin))
        for number in range(_MOST_DRAWN * count)
    )
    return list(islice((moment for moment in drawn if backtest.waits(moment)), count))
