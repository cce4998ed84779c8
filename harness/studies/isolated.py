"""Replays the jobs of each quota of a run alone, and adds the results to the metrics of the run.

An ordinary request (`Request.alone`) replays a single quota. harness stores the resulting run, so that it
need not be replayed again. If a metric can't be measured, a sentence in `run.json` explains why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from harness.analysis.metrics.finish_time import (
    FINISH_TIME,
    FINISH_TIMES,
    VIOLATIONS,
    Sharing,
    measurements,
    sharing,
)
from harness.analysis.metrics.levels import holders, holders_then
from harness.base.errors import InputError, PluginError, RunError
from harness.base.units import format_amount
from harness.cluster.model import UNLIMITED
from harness.plugins import Plugins
from harness.plugins.measurement import Measurement
from harness.plugins.registries import Registry
from harness.runs.further import FurtherRequest, How
from harness.runs.request import Request
from harness.runs.request_of_run import request_of
from harness.runs.run import ISOLATED, Run
from harness.runs.side_by_side import SideBySide, Watch, carry_out, runs_of
from harness.runs.store import added, aside
from harness.studies.idle_causes import Judging

_BUSY = ("progress", "waiting", "starting", "restoring")


class Isolated:
    """Replays the jobs of each quota of some runs alone.

    Args:
        runs: complete runs with all their tables.
        plugins: the plugins for replaying missing runs.
        aside: a temporary folder for the runs with a single quota. By default, these runs are kept next to
            the original runs.

    Attributes:
        requests: the requests for runs with a single quota, in the order of the original runs.

    Raises:
        RunError: a run cannot be replayed from its own record. The message says why.
    """

    def __init__(self, runs: Sequence[Run], plugins: Plugins, *, aside: Path | None = None) -> None:
        self._runs, self._aside = runs, aside
        # Nobody sees the metrics of runs in a temporary folder.
        self._plugins = plugins if aside is None else replace(plugins, metrics=Registry("metric"))
        self._refused: dict[int, str] = {}
        self._asked: list[tuple[int, str]] = []
        self.requests: list[Request] = []
        for place, run in enumerate(runs):
            quotas = [name for name, nominal in _most_nominal(run).items() if nominal]
            if not quotas:
                self._refused[place] = "no job counts against a quota, so no quota can be replayed alone"
                continue
            request = replace(request_of(run, plugins), output=aside or run.path.parent.parent)
            requests = [replace(request, alone=name) for name in quotas]
            try:
                requests[0].plan(plugins)
            except InputError as error:
                self._refused[place] = error.message
                continue
            self._asked += [(place, name) for name in quotas]
            self.requests += requests

    def measured(self, **how: Unpack[SideBySide]) -> list[Run]:
        """Compares the runs with the replays of each quota alone, stores the results, and returns the runs.

        Raises:
            ReplayError: some replays failed. The results of the other replays are kept.
            RunError: the results can't be written.
        """
        outcomes = carry_out(self.requests, self._plugins, **how)
        made = self._without_refused(outcomes)
        several = runs_of([self.requests[at] for at in made], dict(enumerate(outcomes[at] for at in made)))
        alone: dict[int, dict[str, Run]] = {place: {} for place in range(len(self._runs))}
        for at, run in zip(made, several, strict=True):
            place, quota = self._asked[at]
            alone[place][quota] = run
        return [self._measured(place, alone[place]) for place in range(len(self._runs))]

    def _without_refused(self, outcomes: Mapping[int, Run | BaseException]) -> list[int]:
        """Returns the indexes of the requests, without those of runs whose policy can't use a single quota.

        For example, a policy may need an ElasticQuota that is missing when a ClusterQueue is replayed alone.
        """
        for at, (place, quota) in enumerate(self._asked):
            error = outcomes[at]
            if isinstance(error, InputError) and not isinstance(error, (RunError, PluginError)):
                self._refused.setdefault(place, f"{quota!r} alone: {error.message}")
        return [at for at, (place, _) in enumerate(self._asked) if place not in self._refused]

    def _measured(self, place: int, alone: Mapping[str, Run]) -> Run:
        run = self._runs[place]
        refused = self._refused.get(place) or next(_beyond_quotas(run, alone), None)
        found = {} if refused is not None else sharing(run, alone)
        rows = list(measurements(found, holders(run)))
        said = [f"{FINISH_TIME}: not measured: {refused}"] if refused is not None else list(_left_out(found))
        spent = {} if self._aside is None else _with_those_aside(run, alone.values())
        return added(run, rows, {ISOLATED: said, **spent})


def _with_those_aside(run: Run, alone: Iterable[Run]) -> dict[str, Any]:
    provenance = run.info["provenance"]
    several = [each.info["provenance"] for each in (run, *alone)]
    costs = {name: round(sum(each[name] for each in several), 3) for name in ("wall_seconds", "cpu_seconds")}
    return {"provenance": {**provenance, **costs}}


def _beyond_quotas(run: Run, alone: Mapping[str, Run]) -> Iterator[str]:
    """Yields a sentence if the policy ignores quotas, so that a single quota can use the whole cluster.

    Terminating pods do not count, because other jobs may use their quota before the pods are gone.
    """
    behind = _most_nominal(run)
    for quota, other in alone.items():
        nominal = behind[quota]
        for resource, most in _most_at_once(other).items():
            limit = nominal.get(resource, UNLIMITED)
            if most > limit:
                used, own = (format_amount(resource, amount) for amount in (most, limit))
                yield (
                    f"replayed alone, jobs of {quota!r} used {used} {resource}, above their nominal quota of "
                    f"{own}: {run.info['policy']['name']} ignores quotas on this cluster"
                )
                return


def _most_nominal(run: Run) -> dict[str, dict[str, int]]:
    """Returns the largest nominal quota over time, by the quota or queue that jobs count against."""
    found: dict[str, dict[str, int]] = {}
    for then in holders_then(run):
        for holder in then:
            most = found.setdefault(holder.name, {})
            for resource, amount in (holder.nominal or {}).items():
                most[resource] = max(amount, most.get(resource, 0))
    return found


def _most_at_once(run: Run) -> dict[str, int]:
    """Returns the largest amount of each resource that pods held at any time, without terminating pods."""
    stints = run.micros("stints").filter(pl.col("state").is_in(_BUSY) & (pl.col("end") > pl.col("start")))
    amounts = [f"request.{resource}" for resource in run.resources]
    begins = stints.select("start", *amounts).rename({"start": "time"})
    ends = stints.select(pl.col("end").alias("time"), *(-pl.col(name) for name in amounts))
    moves = pl.concat([begins, ends]).group_by("time").agg(pl.col(amounts).sum()).sort("time")
    most = moves.select(pl.col(amounts).cum_sum().max().fill_null(0)).collect().row(0)
    return dict(zip(run.resources, most, strict=True))


def _left_out(found: Mapping[str, Sharing]) -> Iterator[str]:
    several = {quota: each.left_out for quota, each in found.items() if each.left_out}
    if several:
        each = ", ".join(f"{count:,} of {quota}" for quota, count in several.items())
        yield (
            f"{FINISH_TIME}: some finished jobs are left out, because they did not finish, or took no time, "
            f"in the replay of their quota alone: {each}"
        )


class IsolatedTwin(FurtherRequest):
    """A request that also replays each quota of its run alone, to compare the run with these replays."""

    def measured(self, run: Run, how: How) -> Run:
        """Replays each quota alone, and adds the results to the run."""
        if ISOLATED in run.info:
            return run
        told = None if how.watch is None else _after(run.info["outcome"]["jobs"], how.watch)
        with aside() as folder:
            isolated = Isolated([run], how.plugins, aside=folder)
            (found,) = isolated.measured(workers=1, watch=told, command=how.command)
        return found


class JudgedTwin(IsolatedTwin):
    """A request that also replays each quota of its run alone, and records why the jobs of the run waited."""

    whole = Judging


def is_measured(run: Run) -> bool:
    """Returns True if a run has results from a comparison with replays of each of its quotas alone."""
    return bool(run.metrics.filter(metric=VIOLATIONS)["value"].is_not_null().any())


def measured_as(run: Run, before: Run) -> Run:
    """Adds earlier results to a run that was replayed again, and returns the run.

    The results are those from replays of each quota alone, which need not be repeated.
    """
    if ISOLATED in run.info or ISOLATED not in before.info:
        return run
    rows = before.metrics.filter(pl.col("metric").is_in(FINISH_TIMES)).iter_rows(named=True)
    return added(run, [Measurement(**row) for row in rows], {ISOLATED: before.info[ISOLATED]})


def _after(jobs: int, watch: Callable[[int, int], None]) -> Watch:
    arrived: dict[int, int] = {}

    def told(number: int, now: int, count: int) -> None:
        arrived[number] = count
        watch(now, jobs + sum(arrived.values()))

    return told
