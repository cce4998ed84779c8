"""Creates the engine of a plan."""

from __future__ import annotations

from collections.abc import Iterable

from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.events import Recorder
from harness.policy import Arrival
from harness.runs.plan import Plan

_UNLIMITED = Cluster()
"""The cluster in the replay of a record, which has no limits."""


def played_on(plan: Plan) -> Cluster:
    """Returns the cluster that limits a replay."""
    return _UNLIMITED if plan.policy.record else plan.cluster


def engine_of(plan: Plan, chunks: Iterable[list[Arrival]], recorder: Recorder) -> Engine:
    """Returns the engine of a plan, still without a policy."""
    losses, until = plan.settings.on_preemption, plan.settings.until
    return Engine(chunks, played_on(plan), recorder, losses=losses, until=until)
