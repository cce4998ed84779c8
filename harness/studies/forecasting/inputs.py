"""Builds the input of futures from present jobs, run times and arriving jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.base.errors import InputError
from harness.base.text import first_of
from harness.cluster.changes.over_time import unrolled
from harness.cluster.model import Cluster
from harness.policy import Never
from harness.runs.estimates.distributions import Draws, Ended, RunTimes
from harness.runs.estimates.draws import draws_of
from harness.runs.estimates.history import History
from harness.runs.estimates.present import Now
from harness.runs.questions import foresight_in_dump
from harness.studies.forecasting.futures import Settings, World

_NAMED = 3


class UnknownRunTimeError(InputError):
    """No run time is known for some workloads, so no future can be simulated."""


def world_of(
    cluster: Cluster,
    now: Now,
    history: History | None,
    settings: Settings,
    why: str = "",
    names: frozenset[str] = frozenset(),
) -> tuple[World, Mapping[int, Never]]:
    """Returns the input of futures, and the reasons why present workloads can't start in them, by index.

    Futures include later changes of the cluster. If the time of a change is not a date, the time counts from
    now.

    `why` is the reason if there is no history. If `names` is empty, all waiting workloads are requested.

    Raises:
        UnknownRunTimeError: the run times of some present workloads are unknown.
        ClusterError: manifests are faulty at some time, or have dates although the present time is unknown.
    """
    known = None if history is None else history.by(now.at if history.dated else None)
    if known is not None and not known.run_times.count:
        why = "none of its jobs had ended by now"
    cluster = replace(unrolled(cluster, now.at), as_of=now.at)
    never: dict[int, Never] = {}
    possible = foresight_in_dump(settings.policy, cluster, settings.options)
    if possible is not None:
        for place, each in enumerate(now.present):
            reason = possible(each.job) if each.waits else None
            if reason is not None:
                never[place] = reason
    run_times = RunTimes(Ended(())) if known is None else known.run_times
    world = World(
        cluster,
        settings,
        now,
        _draws(now, run_times, why),
        frozenset(never),
        None if known is None else known.coming,
        names,
        history is not None and history.dated,
    )
    return world, never


def _draws(now: Now, run_times: RunTimes, why: str) -> list[Draws]:
    found = draws_of(now.present, run_times)
    unknown = [each.job.id for each, draws in zip(now.present, found, strict=True) if draws is None]
    if unknown:
        named = first_of(unknown, _NAMED)
        no_history = f"no history ({why})" if why else "no history"
        if run_times.count:  # Otherwise, a waiting job would draw from all of them.
            no_history = f"all {run_times.count:,} jobs of the history that had ended by now took no time"
        raise UnknownRunTimeError(
            f"the run time of {named} is unknown: there is no limit (maximumExecutionTimeSeconds), "
            f"and {no_history}",
            hint="--history TRACE provides past jobs, in any format that harness trace convert reads",
        )
    return [draws for draws in found if draws is not None]
