"""A forecast of the starts of waiting jobs, of preemptions, and of the effect of one more job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from harness.base.units import SECOND, date_text
from harness.cluster.model import frozen
from harness.policy import Never
from harness.runs.estimates.distributions import EVER
from harness.runs.estimates.present import Present
from harness.runs.questions import AWAY
from harness.studies.forecasting.calibration import Interval
from harness.studies.forecasting.futures import Future, World
from harness.studies.forecasting.paired import By, Displaced, Shift, displaced, preemptors, shifts
from harness.studies.forecasting.past import Past
from harness.studies.forecasting.quantiles import SHARES, Times, quantile, quantiles
from harness.studies.simulation.instant import Scheduler
from harness.studies.simulation.judging import Judge
from harness.studies.simulation.moment import Dump

SCHEMA = 2
"""The version of the JSON document. It increases with each change, and existing fields never change."""


class Start(NamedTuple):
    """The forecast of a waiting workload's start.

    Attributes:
        place: the index of the workload among the present workloads.
        name: the namespace and name of the workload.
        waited: how long the workload has waited, in microseconds; None if unknown.
        times: the quantiles of `SHARES` in the futures, in microseconds from now; None for times after the
            horizon.
        unstarted: the share of futures in which the workload has not started by the horizon.
        drawn_from: the source from which the workload's run time is drawn.
        never: why the workload can never start, or not before nodes return; None if it can start.
        reason: why the workload waits now; None if the reason was not determined.
        interval: the interval that contains the start in 80 of 100 cases, from the errors of past forecasts
            on this history; None if too few errors are known.
    """

    place: int
    name: str
    queue: str
    priority: int
    waited: int | None
    times: Times
    unstarted: float
    drawn_from: str
    never: Never | None
    reason: Reason | None = None
    interval: Interval | None = None

    @property
    def middle(self) -> float | None:
        """The median of the start, from the interval if there is one, or else from the futures."""
        return self.times[1] if self.interval is None else self.interval.middle


class Risk(NamedTuple):
    """The probability that a workload is preempted before all requested workloads have started.

    Attributes:
        place: the index of the workload among the present workloads.
        name: the namespace and name of the workload.
        queue: the queue in which the workload holds quota or waits.
        running: whether the workload runs now.
        share: the share of futures in which the workload is preempted.
        median: the median time of the first preemption in these futures, in microseconds from now.
        by: the preemptors, with the most likely one first.
    """

    place: int
    name: str
    queue: str
    running: bool
    share: float
    median: float
    by: tuple[By, ...]


@dataclass(frozen=True)
class Forecast:
    """The forecast for a cluster.

    Attributes:
        never: the reasons why workloads can't start in the futures, by the index of the workload.
        notes: sentences about assumptions and omissions.
        with_job: the forecast with one more job; None if there is no such job.
        others: the forecasts for other clusters, by cluster name.
        reasons: the reasons why workloads wait now, by namespace and name.
    """

    world: World
    futures: Sequence[Future]
    never: Mapping[int, Never]
    notes: tuple[str, ...] = ()
    with_job: Forecast | None = None
    others: Mapping[str, Forecast] = field(default_factory=frozen)
    reasons: Mapping[str, Reason] = field(default_factory=frozen)
    past: Past = field(default_factory=Past)

    @cached_property
    def starts(self) -> list[Start]:
        """The starts of the requested waiting workloads, in queue order."""
        return [self._start(place, number) for number, place in enumerate(self.world.asked)]

    @cached_property
    def risks(self) -> list[Risk]:
        """The risks of workloads that are preempted in any future, with the largest risk first."""
        firsts: dict[int, dict[int, int]] = {}
        for number, future in enumerate(self.futures):
            for taken in future.preemptions:
                firsts.setdefault(taken.victim, {}).setdefault(number, taken.at)
        found = []
        for place, times in firsts.items():
            each = self.world.now.present[place]
            median = quantile(list(times.values()), 0.5)
            assert median is not None
            share, by = len(times) / len(self.futures), preemptors(self, place, list(times))
            found.append(Risk(place, each.job.id, each.queue, not each.waits, share, median, by))
        return sorted(found, key=lambda risk: (-risk.share, risk.place))

    @property
    def unstarted(self) -> float:
        """The mean probability that a workload does not start by the horizon.

        Only waiting workloads that can start in the futures count.
        """
        could = [each for each in self.starts if not each.never]
        return sum(each.unstarted for each in could) / len(could) if could else 0.0

    @property
    def ended_early(self) -> list[Future]:
        """The futures that were stopped for lack of progress before all waiting workloads had started."""
        return [future for future in self.futures if future.stopped]

    @property
    def submitted(self) -> Start | None:
        """The start of the additional job; None if there is no such job."""
        if self.with_job is None:
            return None
        there = {each.job.id for each in self.world.now.present}
        return next(each for each in self.with_job.starts if each.name not in there)

    @cached_property
    def displaced(self) -> list[Displaced]:
        """The workloads that the additional job displaces, with the most affected one first."""
        job = self.submitted
        return [] if self.with_job is None or job is None else displaced(self, self.with_job, job)

    @cached_property
    def shifts(self) -> Mapping[str, list[Shift]]:
        """Maps the name of each cluster in `others` to its effects on workloads, in the same futures."""
        return {name: shifts(self, other) for name, other in self.others.items()}

    @property
    def drawn_from(self) -> dict[str, int]:
        """The sources of run times, with the number of present workloads that use each source."""
        sources = Counter(draws.source for draws in self.world.draws if draws.source != EVER)
        return dict(sources.most_common())

    def time(self, since: float) -> str | None:
        """Converts a time from now to a date in UTC, or to None if the present time is unknown."""
        at = self.world.now.at
        return None if at is None else date_text(at + round(since))

    def to_json(self) -> dict[str, Any]:
        """Returns the forecast as plain values, with times in seconds from now."""
        settings, now = self.world.settings, self.world.now
        found: dict[str, Any] = {
            "schema": SCHEMA,
            "now": self.time(0),
            "plugin": settings.plugin,
            "options": dict(settings.options),
            "on_preemption": str(settings.losses),
            "futures": len(self.futures),
            "seed": settings.seed,
            "horizon_seconds": settings.horizon / SECOND,
            "running": len(now.running),
            "past": self._plain_past(),
            "waiting": [self._plain(each) for each in self.starts],
            "unstarted": self.unstarted,
            "preempted": [
                {
                    **_named(risk),
                    "probability": risk.share,
                    "p50_seconds": risk.median / SECOND,
                    "by": _shares(risk.by),
                }
                for risk in self.risks
            ],
            "run_times_drawn_from": self.drawn_from,
            "notes": list(self.notes),
        }
        if self.ended_early:
            found["ended_early"] = {"futures": len(self.ended_early), "why": self.ended_early[0].stopped}
        if self.submitted is not None:
            found["submitted"] = self._plain(self.submitted)
            found["displaced"] = [
                {
                    **_named(row),
                    "preempted_by_it": row.preempted,
                    "preempted_more": row.preempted_more,
                    "later": row.later,
                    "delay_p50_seconds": _seconds(row.delay),
                    "by": _shares(row.by),
                }
                for row in self.displaced
            ]
        if self.others:
            found["clusters"] = {
                name: {**other.to_json(), "differences": list(map(_plain_shift, self.shifts[name]))}
                for name, other in self.others.items()
            }
        return found

    def _plain(self, start: Start) -> dict[str, Any]:
        return {
            "name": start.name,
            "queue": start.queue,
            "priority": start.priority,
            "waited_seconds": _seconds(start.waited),
            **self._plain_times(start.times),
            "interval": self._plain_interval(start.interval),
            "unstarted": start.unstarted,
            "run_time_drawn_from": start.drawn_from,
            **({} if start.reason is None else start.reason._asdict()),
            **({} if start.never is None or start.never.where == AWAY else {"never": start.never.why}),
        }

    def _start(self, place: int, number: int) -> Start:
        each: Present = self.world.now.present[place]
        starts = [None if future.starts[number] < 0 else future.starts[number] for future in self.futures]
        times = quantiles(starts)
        return Start(
            place,
            each.job.id,
            each.queue,
            each.job.priority,
            each.waited,
            times,
            starts.count(None) / len(starts),
            self.world.draws[place].source,
            self.never.get(place),
            self.reasons.get(each.job.id),
            None if place in self.never else self.past.interval(each.queue, times, each.waited or 0),
        )

    def _plain_interval(self, interval: Interval | None) -> dict[str, Any] | None:
        if interval is None:
            return None
        return {**self._plain_times(interval.times), "moments": interval.moments}

    def _plain_times(self, times: Times) -> dict[str, Any]:
        named = {f"p{round(100 * share)}": time for share, time in zip(SHARES, times, strict=True)}
        seconds = {f"{name}_seconds": _seconds(time) for name, time in named.items()}
        return seconds | {name: None if time is None else self.time(time) for name, time in named.items()}

    def _plain_past(self) -> dict[str, Any]:
        held = self.past.held
        return {
            "moments": len({each.moment for each in self.past.judged}),
            "held": None if held is None else held.to_json(),
            "lacks": self.past.lacks,
        }


def _named(row: Risk | Displaced | Shift) -> dict[str, Any]:
    return {"name": row.name, "queue": row.queue, "state": "running" if row.running else "waiting"}


def _shares(by: Sequence[By]) -> list[dict[str, Any]]:
    return [{"name": each.name, "probability": each.share} for each in by]


def _plain_shift(row: Shift) -> dict[str, Any]:
    """Returns what another cluster changes for a workload. If the workload is running, it has no starts."""
    of_start: dict[str, Any] = {}
    if not row.running:
        of_start = {
            "p50_before_seconds": _seconds(row.before[1]),
            "p50_after_seconds": _seconds(row.after[1]),
            "earlier": row.earlier,
            "later": row.later,
            "shift_p50_seconds": _seconds(row.shift),
        }
    return {
        **_named(row),
        **of_start,
        "preempted_before": row.preempted_before,
        "preempted_after": row.preempted_after,
    }


def _seconds(time: float | None) -> float | None:
    return None if time is None else time / SECOND


class Reason(NamedTuple):
    """The reason why a workload waits now.

    Attributes:
        waits_for: one of `quota`, `nodes`, `victims`, `checks` and `turn`, which
            `harness.studies.simulation.answer.Answer` explains. Or `starts` if the workload starts now, or
            `never` if it can never start.
        why: the deciding facts, in the words of `harness explain`.
    """

    waits_for: str
    why: str


def reasons_in(world: World) -> Mapping[str, Reason]:
    """Maps each waiting workload, by namespace and name, to why it waits when the scheduler first runs.

    Raises:
        PolicyError: the policy failed.
    """
    settings = world.settings
    moment = Dump(world.cluster, Scheduler(settings.policy, settings.options, settings.losses))
    answers = Judge(moment, moment.played(), moment.waiting).answers()
    return {
        name: Reason(answer.waits_for or answer.verdict, answer.why)
        for answer in answers
        for name in answer.ids
    }
