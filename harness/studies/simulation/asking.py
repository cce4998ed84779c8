"""Builds a simulation from files and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import OptionError
from harness.base.options import resolve
from harness.base.units import date_text, exact_duration
from harness.cluster.load import load_cluster
from harness.engine.losses import Losses
from harness.plugins import Plugins
from harness.runs.at_start import as_it_stands
from harness.runs.dump_changes import already_there, named_waiting, not_as_it_was, workloads_missing
from harness.runs.inputs import cluster_for, default_plugin, read_trace
from harness.runs.live_cluster import require_queues, scheduler_of
from harness.runs.questions import assumptions, ignored_fields
from harness.runs.settings import losses_of
from harness.studies.forecasting.new_job import read_jobs, with_runtimes
from harness.studies.simulation.answer import STARTS, Answer, Simulation
from harness.studies.simulation.changes import with_changes
from harness.studies.simulation.instant import Instant, Scheduler
from harness.studies.simulation.judging import Judge
from harness.studies.simulation.largest import Fitting, fitting, shape_of
from harness.studies.simulation.moment import Asked, Dump, Moment
from harness.studies.simulation.replayed import Replayed, instant_of
from harness.studies.simulation.trials import Plays

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

Submitted = str | Path | Mapping[str, Any]
"""The path of a file with manifests of jobs, or the manifest of one job."""


@dataclass(frozen=True)
class Question:
    """The input of a simulation. For the meaning of the fields, see `harness.simulate`."""

    plugins: Plugins
    cluster: str | Path | Cluster | None = None
    plugin: str | None = None
    options: Mapping[str, Any] | None = None
    on_preemption: str | Losses = "restart"
    trace: str | Path | Trace | None = None
    at: str | None = None

    def answered(
        self,
        jobs: Sequence[Submitted] = (),
        *,
        workloads: Sequence[str] = (),
        each: bool = False,
        changes: bool | None = None,
    ) -> Simulation:
        """Returns the answers for submitted jobs, or for waiting workloads if no job is submitted.

        By default, the answers cover all waiting workloads.

        Raises:
            InputError: an input can't be read, no workload with one of the names waits, or the scheduler does
                not schedule a job.
            OptionError: both submitted jobs and names of workloads are given.
            PolicyError: the scheduler's plugin failed.
        """
        moment = self.moment
        asked = asked_of(jobs)
        named = _named(workloads, moment)
        if asked and named:
            raise OptionError(
                "a question is either about jobs to submit or about workloads that wait",
                hint="leave out the files, or --for (workloads in Python)",
            )
        looks = bool(asked or named) and self.trace is None if changes is None else changes
        answers: list[Answer] = []
        notes: list[str] = []
        moments = moment.with_each(asked) if each and asked else [moment.with_jobs(asked)]
        again = looks or len(moments) > 1
        for ready in moments:
            # What all answers share is computed here, so that copies of the process need not compute it.
            told = partial(self._told, ready, ready.waiting, named, noted=bool(notes))
            found, said = ready.asked(told) if again else told(ready.played())
            plays = Plays(ready, [one.ids for one in found])
            answers += [with_changes(plays, one) if looks and one.verdict != STARTS else one for one in found]
            notes = notes or said
            notes += [each for each in ready.cluster.warnings if each not in notes]
        if self.trace is None:
            notes += already_there(moment.cluster, [one.manifest for one in asked])
        scheduler = moment.scheduler
        return Simulation(
            self._now,
            scheduler.policy.name,
            scheduler.options,
            str(scheduler.losses),
            bool(asked or named),
            bool(asked),
            answers,
            notes,
        )

    def _told(
        self, moment: Moment, waiting: Sequence[str], named: Sequence[str], instant: Instant, *, noted: bool
    ) -> tuple[list[Answer], list[str]]:
        """Returns the answers for a moment, with notes unless there are notes already."""
        notes = [] if noted else list(self._notes(moment, instant))
        return Judge(moment, instant, waiting, named).answers(), notes

    def largest(self, largest: str, shape: str, queue: str | None = None) -> Fitting:
        """Returns the sizes of the largest gangs that would start now.

        Args:
            largest: the resource and the sizes to try, such as `nvidia.com/gpu=1..512`.
            shape: the requests of a pod, such as `nvidia.com/gpu=8,cpu=32,memory=200Gi`.
            queue: the queue to try; None for all queues.

        Raises:
            InputError: an input can't be read or parsed.
            PolicyError: the scheduler's plugin failed.
        """
        return fitting(self.moment, shape_of(largest, shape), queue)

    @cached_property
    def moment(self) -> Moment:
        """The moment of the question, without submitted jobs."""
        if self.trace is not None:
            return self._replayed
        if self.cluster is None:
            raise OptionError(
                "the question names neither a cluster nor a trace",
                hint="give a dump with --cluster, or a trace with --trace and the time with --at",
            )
        if self.at is not None:
            raise OptionError(
                "--at names a time in a replay, but there is no trace",
                hint="name the trace with --trace, or leave out --at, because a dump shows a single moment",
            )
        cluster = self._loaded
        if cluster.timed:
            raise OptionError(
                "a dump shows a single moment, but a patch or manifest has a time (harness/from, "
                "harness/until)",
                hint="leave the time out, or ask about a replay with --trace and --at",
            )
        if self.plugin is None:
            require_queues(cluster)
        policy = self.plugins.policy(self.plugin or scheduler_of(cluster))
        if policy.running is None:
            raise OptionError(
                f"{policy.name} cannot take over a cluster's running jobs, so it cannot answer",
                hint="name another plugin with -p; a policy takes over jobs if its PolicySpec has running=",
            )
        scheduler = Scheduler(
            policy,
            resolve(policy.options, self.options or {}, owner=f"policy {policy.name}"),
            losses_of(self.on_preemption),
        )
        return Dump(as_it_stands(cluster), scheduler)

    @cached_property
    def _loaded(self) -> Cluster:
        given = self.cluster
        assert given is not None
        return load_cluster(Path(given)) if isinstance(given, (str, Path)) else given

    @cached_property
    def _replayed(self) -> Replayed:
        from harness.runs.request import Request  # loads polars, which a question about a dump does not need

        if self.at is None:
            raise OptionError("--trace needs a time in the replay", hint="give the time with --at TIME")
        assert self.trace is not None
        trace = read_trace(self.trace, self.plugins)
        cluster = cluster_for(self.cluster, trace)
        plan = Request(
            trace,
            plugin=self.plugin or default_plugin(cluster),
            cluster=cluster,
            options=self.options,
            on_preemption=self.on_preemption,
        ).plan(self.plugins)
        scheduler = Scheduler(plan.policy, plan.options, plan.settings.on_preemption)
        return Replayed(plan.cluster, scheduler, plan=plan, at=instant_of(self.at, trace))

    @property
    def _now(self) -> str | None:
        if self.trace is not None:
            return self._replayed.told(self._replayed.at)
        at_now = self.moment.cluster.as_of
        return None if at_now is None else date_text(at_now)

    def _notes(self, moment: Moment, instant: Instant) -> Iterator[str]:
        policy, cluster = moment.scheduler.policy, moment.cluster
        if self.plugin is None:
            yield f"scheduled by {policy.name}"
        yield from assumptions(policy, cluster, moment.scheduler.options)
        yield from cluster.warnings
        yield from ignored_fields(policy, cluster, moment.scheduler.options)
        if isinstance(moment, Replayed):
            since = moment.over_since(instant)
            if since is not None and since < moment.at:
                at = exact_duration(moment.at - since)
                yield f"the replay ended {at} before that time, so no job of the trace runs or waits then"
        else:
            yield from not_as_it_was([cluster], instant.lives, policy)
            if policy.admits_by_queues(cluster):
                yield from workloads_missing(cluster)


def asked_of(given: Sequence[Submitted]) -> list[Asked]:
    """Reads submitted jobs from files and manifests.

    Raises:
        InputError: the jobs can't be read.
    """
    objects: list[tuple[Mapping[str, Any], str]] = []
    for each in given:
        if isinstance(each, Mapping):
            objects.append((each, "the job"))
        else:
            objects += ((job, str(each)) for job in read_jobs(Path(each)))
    return [Asked(job, source) for job, source in with_runtimes(objects)]


def _named(workloads: Sequence[str], moment: Moment) -> list[str]:
    """Returns the ids of the named workloads, in the order in which they wait.

    Raises:
        InputError: no workload with one of the names waits.
    """
    waiting = moment.waiting if workloads else ()
    found = named_waiting(moment.cluster, workloads, waiting, moment.scheduler.policy)
    return [each for each in waiting if each in found]
