"""Makes a forecast from files and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from harness.base.errors import InputError, OptionError, TraceError
from harness.base.options import resolve
from harness.base.text import counted
from harness.base.units import LONGEST, parse_duration
from harness.cluster.changes.remake import require_manifests
from harness.cluster.changes.timed import is_dated
from harness.cluster.dates import latest_of
from harness.cluster.load import load_cluster
from harness.cluster.model import Cluster, frozen
from harness.engine.losses import Losses
from harness.plugins import Plugins
from harness.policy import Never
from harness.runs.dump_changes import (
    already_there,
    named_waiting,
    not_as_it_was,
    workloads_left_out,
    workloads_missing,
)
from harness.runs.estimates.ended_jobs import ended_jobs
from harness.runs.estimates.history import History, history_of
from harness.runs.estimates.present import Now, now_of
from harness.runs.executors import InParallel
from harness.runs.inputs import read_trace
from harness.runs.live_cluster import require_queues, scheduler_of
from harness.runs.outcome import outcome_of
from harness.runs.questions import assumptions, cannot_start, ignored_fields
from harness.runs.run import Run
from harness.runs.settings import losses_of
from harness.studies.forecasting.backtest import Backtest, judged_at
from harness.studies.forecasting.forecast import Forecast, reasons_in
from harness.studies.forecasting.futures import Future, Settings, World, futures_of
from harness.studies.forecasting.inputs import world_of
from harness.studies.forecasting.new_job import NO_QUEUE, read_job, submitted
from harness.studies.forecasting.past import FUTURES, Past, moments_to_judge, past_of
from harness.studies.forecasting.record import Record, record_of_trace
from harness.studies.forecasting.record_of_run import record_of_run
from harness.studies.forecasting.scores import Coverage, coverage
from harness.trace.trace import Trace

CALIBRATE = 40
"""The default number of past moments at which forecasts are made to measure their errors."""


class _Side(NamedTuple):
    """The input of futures on one cluster.

    Attributes:
        worlds: the input of the futures, with the workloads that can never start. If requested, a
            second input has one more job.
        notes: sentences about assumptions and omissions.
    """

    worlds: Sequence[tuple[World, Mapping[int, Never]]]
    notes: tuple[str, ...]

    def forecast(self, played: Sequence[Sequence[Future]], past: Past) -> Forecast:
        made = None
        for (world, never), futures in reversed(list(zip(self.worlds, played, strict=True))):
            made = Forecast(
                world, futures, never, self.notes, made, reasons=frozen(reasons_in(world)), past=past
            )
        assert made is not None
        return made


@dataclass(frozen=True)
class Asked:
    """A request for a forecast. For the meaning of the fields, see `harness.forecast`."""

    cluster: str | Path | Cluster
    history: str | Path | Trace | None = None
    submit: str | Path | Mapping[str, Any] | None = None
    plugin: str | None = None
    options: Mapping[str, Any] | None = None
    on_preemption: str | Losses = "restart"
    futures: int = 200
    seed: int = 0
    horizon: str | int = "7d"
    now: int | None = None
    reader: str | None = None
    others: Mapping[str, str | Path | Cluster] = field(default_factory=frozen)
    workloads: Sequence[str] = ()
    calibrate: int = CALIBRATE

    def made(
        self,
        plugins: Plugins,
        *,
        watch_past: Callable[[int, int], None] | None = None,
        **how: Unpack[InParallel],
    ) -> Forecast:
        """Makes the forecast.

        For `how`, see `InParallel`. After the futures, forecasts are made at past moments. `watch_past` then
        receives their progress in the same form as `watch`.

        Raises:
            InputError: an input can't be read, no job waits, or the job to submit can never start.
            ReplayError: a future could not be simulated.
        """
        sides = [self._side(self.cluster, plugins, self.now)]
        first = sides[0].worlds[0][0]
        now = first.now.at
        sides += [self._side(each, plugins, now) for each in self.others.values()]
        worlds = tuple(world for side in sides for world, _ in side.worlds)
        played = futures_of(worlds, self.futures, **how)
        past = self._judged_past(first, plugins, {**how, "watch": watch_past})
        of_side = iter(played)
        made, *others = [side.forecast([next(of_side) for _ in side.worlds], past) for side in sides]
        return replace(made, others=frozen(dict(zip(self.others, others, strict=True))))

    def _judged_past(self, world: World, plugins: Plugins, how: InParallel) -> Past:
        if not self.calibrate:
            return Past(why="--calibrate 0 turns this off")
        try:
            cluster, settings = self._settings(self.cluster, plugins)
            require_manifests(cluster)
            backtest = self._backtest(cluster, settings, plugins, min(self.futures, FUTURES))
        except TraceError:
            return Past(
                why="the history does not say when its jobs started; use the folder of a run, or a trace "
                "with the columns recorded_start and recorded_end"
            )
        except InputError as error:
            return Past(why="; ".join(filter(None, (error.message, error.hint))))
        now = world.now.at if world.dated else None
        return past_of(backtest, self.calibrate, now, **how)

    def _side(self, given: str | Path | Cluster, plugins: Plugins, at: int | None) -> _Side:
        """Returns the input of futures on one cluster. Without `at`, the manifests give the time."""
        cluster, settings = self._settings(given, plugins)
        latest = latest_of(cluster)
        if at is not None and latest is not None and at < latest:
            raise OptionError("now: the manifests contain a later event")
        now = now_of(cluster, settings.policy, at)
        self._check_queues(cluster, now)
        history, notes, why = self._history(cluster, settings, plugins)
        taken = {each.job.id for each in now.present}
        policy, by_queues = settings.policy, settings.policy.admits_by_queues(cluster)
        there = replace(cluster, as_of=now.at)
        notes += not_as_it_was([there], taken, policy)
        notes += workloads_missing(there) if by_queues else ()
        if not now.waiting and self.submit is None:
            lost = list(workloads_left_out([cluster], taken, policy))
            raise InputError(
                f"{cluster.source or 'the cluster'}: no Workload or Pod waits to be scheduled by "
                f"{'; '.join([f'{policy.name}, so there is no start to forecast', *lost])}",
                hint="choose another scheduler with -p, or add a job with --submit JOB.yaml"
                if not lost or not by_queues
                else None,
            )
        waiting = {each.job.id for each in now.waiting}
        named = named_waiting(cluster, self.workloads, waiting, policy)
        worlds = [world_of(cluster, now, history, settings, why, named)]
        coming = worlds[0][0].coming
        if history is not None and coming is not None:
            notes += history.said_of_days(now.at, coming)
        if self.submit is not None:
            asked = self.submit
            source = str(asked) if isinstance(asked, (str, Path)) else "the job"
            job = read_job(Path(asked)) if isinstance(asked, (str, Path)) else asked
            notes += already_there(cluster, [job])
            more = submitted(cluster, job, source)
            notes += more.warnings[len(cluster.warnings) :]
            worlds.append(self._with_job(more, source, history, settings, worlds[0][0], why))
        return _Side(worlds, tuple(notes))

    def _check_queues(self, cluster: Cluster, now: Now) -> None:
        if self.plugin is None or not now.waiting:
            require_queues(cluster)

    def judged(self, moments: int, plugins: Plugins, **how: Unpack[InParallel]) -> Coverage:
        """Returns the accuracy of forecasts at moments of the history, which must be a record.

        The moments are drawn from the second half of the history. Each moment is judged in a single process.
        For `how`, see `InParallel`.

        Raises:
            InputError: an input can't be read, or there is nothing to judge.
            ReplayError: a forecast failed.
        """
        backtest = self.backtest(plugins)
        drawn, half = moments_to_judge(backtest, moments)
        found = judged_at(backtest, drawn, **how)
        return coverage(found, backtest.settings.horizon, half.begin)

    def backtest(self, plugins: Plugins) -> Backtest:
        """Returns the history as a record, so that forecasts can be compared with the actual starts.

        Raises:
            InputError: an input can't be read, or the history is not a record.
        """
        if self.history is None or self.submit is not None or self.others:
            raise OptionError(
                "a backtest judges forecasts of a history on one cluster",
                hint="give --history, and neither --submit nor --patch",
            )
        cluster, settings = self._settings(self.cluster, plugins)
        require_manifests(cluster)
        if not all(map(is_dated, cluster.timed)):
            raise OptionError(
                f"{cluster.source} has changes relative to now, but a backtest begins at many moments",
                hint="write dates as harness/from and harness/until, such as 2025-01-31T08:00:00Z",
            )
        return self._backtest(cluster, settings, plugins, self.futures)

    def _backtest(self, cluster: Cluster, settings: Settings, plugins: Plugins, futures: int) -> Backtest:
        run, trace = self._past(plugins) if self.history is not None else (None, ended_jobs(cluster, plugins))
        history = history_of(trace, cluster, settings.policy, settings.options, dated=True)
        if not history.jobs:
            raise InputError("no job of the history could ever start on this cluster")
        record: Record
        if run is None:
            record = record_of_trace(trace, cluster, history)
        else:
            queued = plugins.policy(run.info["policy"]["name"]).admits_by_queues(cluster)
            record = record_of_run(run, trace, cluster, queued=queued)
        return Backtest(cluster, history, record, settings, futures)

    def _past(self, plugins: Plugins) -> tuple[Run | None, Trace]:
        assert self.history is not None
        if isinstance(self.history, (str, Path)) and Path(self.history, "run.json").is_file():
            run = Run.open(self.history)
            return run, outcome_of(run, plugins)
        return None, read_trace(self.history, plugins, reader=self.reader)

    def _settings(self, given: str | Path | Cluster, plugins: Plugins) -> tuple[Cluster, Settings]:
        if self.futures < 1:
            raise OptionError(f"futures: {self.futures} is not a number of futures")
        if self.calibrate < 0:
            raise OptionError(f"calibrate: {self.calibrate} is not a number of moments")
        cluster = load_cluster(Path(given)) if isinstance(given, (str, Path)) else given
        policy = plugins.policy(self.plugin or scheduler_of(cluster))
        return cluster, Settings(
            plugins,
            policy.name,
            resolve(policy.options, self.options or {}, owner=f"policy {policy.name}"),
            losses_of(self.on_preemption),
            _horizon(self.horizon),
            self.seed,
        )

    def _with_job(
        self, more: Cluster, source: str, history: History | None, settings: Settings, before: World, why: str
    ) -> tuple[World, Mapping[int, Never]]:
        now = now_of(more, settings.policy, before.now.at)
        there = {each.job.id for each in before.now.present}
        own = [place for place, each in enumerate(now.present) if each.job.id not in there]
        if len(own) > 1:
            raise InputError(
                f"{source}: it becomes {len(own)} Workloads or Pods, but a forecast submits only one",
                hint="submit a single replica, or use harness simulate, which accepts all of them",
            )
        if not own:
            raise InputError(f"{source}: {settings.plugin} does not schedule it", hint=NO_QUEUE)
        asked = before.names and before.names | {now.present[own[0]].job.id}
        world, never = world_of(more, now, history, settings, why, asked)
        if own[0] in never:
            raise InputError(f"{source}: it {cannot_start(never[own[0]])}")
        return world, never

    def _history(
        self, cluster: Cluster, settings: Settings, plugins: Plugins
    ) -> tuple[History | None, list[str], str]:
        """Returns the given history, or else the ended jobs of the dump, or why there is no history."""
        notes = [f"scheduled by {settings.plugin}"] if self.plugin is None else []
        notes += assumptions(settings.policy, cluster, settings.options)
        notes += [*cluster.warnings, *ignored_fields(settings.policy, cluster, settings.options)]
        if self.history is None:
            try:
                trace = ended_jobs(cluster, plugins)
            except TraceError as error:
                why = _reason(error)
                none = f"there is no history ({why}): no job arrives later, and jobs run to their time limits"
                return None, [*notes, none], why
            ended = counted(trace.frame.height, "job")
            has = "has" if trace.frame.height == 1 else "have"
            notes.append(f"history: the {ended} of the manifests that {has} ended")
        else:
            _, trace = self._past(plugins)
        history = history_of(trace, cluster, settings.policy, settings.options)
        if not history.dated:
            notes.append("history: it has no dates, so future days are drawn from all of its days")
        return history, [*notes, *history.notes], ""


def _reason(error: TraceError) -> str:
    more = f"; and {counted(len(error.faults) - 1, 'more fault')}" if len(error.faults) > 1 else ""
    return f"{error.source}: {error.faults[0]}{more}"


def _horizon(value: str | int) -> int:
    try:
        time = parse_duration(value) if isinstance(value, str) else value
    except InputError as error:
        raise OptionError(f"horizon: {error}") from error
    if not 0 < time <= LONGEST:
        raise OptionError(f"horizon: {value} is not a duration above 0 and up to 100 years")
    return time
