"""The interface of scheduling policies: what the engine calls, what policies decide, and what they can see.

A policy is a plain Python object. The engine notifies the policy of waiting pods (`submit`) and of resources
that became free (`release`), and then requests decisions (`cycle`). The engine applies each decision before
it resumes the generator. Therefore, a policy always sees the current state, and a wrong decision is refused
before the policy makes the next one.
"""

from harness.base.pod_set import PodSet
from harness.cluster.changes.edits import Change, Edit, Instant
from harness.policy.decisions import (
    CONTROLLER_CRASH,
    LOST_WITH_NODE,
    MARK,
    REPLACE,
    UNMARK,
    Admit,
    Bind,
    Decision,
    Nominate,
    Note,
    Preempt,
    QueueShare,
    Refuse,
    Reject,
    Unnominate,
    Wake,
)
from harness.policy.job import ENDLESS, Arrival, Job, Startup
from harness.policy.protocol import (
    Assumptions,
    ByElasticQuotas,
    ByQueues,
    Foresight,
    IgnoredFields,
    Never,
    Policy,
    PolicyFactory,
    Possible,
    RunningJobs,
    Standing,
    View,
    Why,
)

__all__ = [
    "CONTROLLER_CRASH", "ENDLESS", "LOST_WITH_NODE", "MARK", "REPLACE", "UNMARK", "Admit", "Arrival",
    "Assumptions", "Bind", "ByElasticQuotas", "ByQueues", "Change", "Decision", "Edit", "Foresight",
    "IgnoredFields", "Instant", "Job", "Never", "Nominate", "Note", "PodSet", "Policy", "PolicyFactory",
    "Possible", "Preempt", "QueueShare", "Refuse", "Reject", "RunningJobs", "Standing", "Startup",
    "Unnominate", "View", "Wake", "Why",
]  # fmt: skip
