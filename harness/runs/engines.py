"""Creates the engine and the policy of a plan.

The module also checks whether the policy supports changes of its cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.base.errors import PolicyError, blamed_on
from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.engine import deaf, to_be_heard
from harness.engine.events import NullRecorder, Recorder
from harness.policy import Arrival, Policy, View
from harness.runs.plan import Plan

_UNLIMITED = Cluster()  # the cluster in the replay of a record, which has no limits


def played_on(plan: Plan) -> Cluster:
    """Returns the cluster whose capacity limits a replay.

    A replay with the recorded times of the trace has no limits. For it, the function returns a cluster
    without nodes and queues.
    """
    return _UNLIMITED if plan.policy.record else plan.cluster


def engine_of(plan: Plan, chunks: Iterable[list[Arrival]], recorder: Recorder) -> Engine:
    """Returns a new engine for a plan. The engine has no policy yet."""
    losses, until = plan.settings.on_preemption, plan.settings.until
    return Engine(chunks, played_on(plan), recorder, losses=losses, until=until)


def made(plan: Plan, view: View) -> Policy:
    """Create the policy of a plan.

    Raises:
        InputError: the policy can't replay the cluster of the plan.
        PolicyError: the policy failed.
    """
    hint = "harness makes a policy with the cluster, the view and the options; --debug shows where"
    with blamed_on(f"policy {plan.label} cannot be made", kind=PolicyError, hint=hint):
        policy = plan.policy.factory(plan.cluster, view, plan.options)
        return policy if plan.observe is None else plan.observe(policy)


def _hears(plan: Plan) -> bool:
    return hasattr(made(plan, Engine((), plan.cluster, NullRecorder()).view), "changed")


def check_heard(plan: Plan) -> None:
    """Check, before a replay, that the policy of a plan supports the changes of its cluster.

    Raises:
        InputError: the policy rejects some of the changes.
        PolicyError: the policy can't be made. Or it has no `changed` method, and the user has not chosen to
            ignore such changes.
    """
    if to_be_heard(plan.cluster.changes) and not (_hears(plan) or plan.settings.ignore_events):
        raise deaf(plan.label, plan.cluster.changes)


def as_heard(plan: Plan) -> Plan:
    """Returns the plan, without the changes of its cluster if the policy has no `changed` method.

    The changes are left out only if the user has chosen to ignore changes that a policy does not support.
    """
    if not (plan.settings.ignore_events and plan.cluster.changes) or _hears(plan):
        return plan
    return replace(plan, cluster=replace(plan.cluster, changes=()))
