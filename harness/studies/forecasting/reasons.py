"""Finds out why each workload waits now, as `harness simulate` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.studies.forecasting.futures import World
from harness.studies.simulation.instant import Scheduler
from harness.studies.simulation.judging import Judge
from harness.studies.simulation.moment import Dump


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
