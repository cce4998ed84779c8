"""Checks a run against all rules in a single call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.cluster.model import Cluster
from harness.runs.run import Run
from harness.testing.checks.capacity import Capacity
from harness.testing.checks.elastic import Elastic
from harness.testing.checks.facts import Broken, Facts
from harness.testing.checks.history import History, Rule
from harness.testing.checks.kueue import Kueue
from harness.testing.checks.placement import ByPriority, Devices, Never, Placement
from harness.testing.checks.quotas import ClusterQuotas
from harness.testing.checks.tables import check_tables
from harness.trace.trace import Trace

RULES: Mapping[str, Callable[[Facts], Rule]] = MappingProxyType({
    "placement": Placement, "never": Never, "priority": ByPriority, "quotas": ClusterQuotas, "kueue": Kueue,
    "elastic": Elastic,
})  # fmt: skip
"""Maps names to rules that only some policies follow; see `check_run`."""


def rules_of(run: Run) -> tuple[str, ...]:
    """Returns the names of the `RULES` that the run's built-in policy follows, or none for other policies."""
    cluster = run.info["cluster"]
    on_nodes = bool(cluster["nodes"]) or any("allocatable" in each for each in cluster.get("events", ()))
    where = ("placement",) if on_nodes else ()
    return {
        "none": ("never", *(where or ("quotas",))),
        "default-preemption": ("priority", *where),
        "kueue-classic": ("kueue", *where),
        "fairsharing": ("kueue", *where),
        "elasticquota": ("elastic", *where),
        "auto": ("elastic", *where),
    }.get(run.info["policy"]["name"], ())


def check_run(
    run: Run, cluster: Cluster, trace: Trace, *, rules: Iterable[str] | None = None
) -> list[Broken]:
    """Check a run independently by comparing only its tables with the trace and the manifests.

    Every policy must follow these rules:

    - *order*: every action is possible after the earlier actions. Pods, preemptors and nodes exist, and no
      job is invented or lost.
    - *time*: time never goes backwards. If events have the same time, completions come first, followed by
      departures, starts and arrivals. Work ends exactly when it is done according to the loss model, and
      grace periods are exact.
    - *capacity*: after every decision, pods fit the current capacity of each node, or of a cluster without
      nodes. No pod stays on a removed node. While pods exceed the capacity of a node, no pod is bound to it.
    - *devices*: a pod has as many devices of its node as it requests, and the shares of a device add up to at
      most one.
    - *jobs*, *stints*, *timeline*, *outcome*: the contents of these tables agree with the decisions.
    - *identity*: allocated = useful + lost + idle_held + unfinished. This equation holds to the microsecond,
      also for the metrics.

    You can request further rules, which apply only to some policies, by name:

    - `placement`: node selectors, taints and the labels of flavors are respected.
    - `never`: no job is preempted.
    - `priority`: only jobs that may preempt do so, and only less important jobs are preempted.
    - `quotas`: each admission respects the quotas of ClusterQueues and cohorts, and `quota.over` is right.
    - `kueue`: quotas, stop policies and preemption policies are respected.
    - `elastic`: usage respects the `max` of elastic quotas and, with ACK's semantics, also the `min`.

    If the checker can't follow the decisions to the end, it reports this and skips the other rules.

    Args:
        run: a run, with or without metrics.
        cluster: the cluster of the replay. Rules use the state of the cluster at the time of each decision.
        trace: the replayed trace.
        rules: names of `RULES`. The default is the rules that the run's policy follows, if this policy is
            built in.

    Returns:
        The violations; empty if the run follows all rules.

    Raises:
        InputError: the run was not made from this cluster and trace, or it begins with Pods or Workloads.
        OptionError: a rule does not exist.
        RunError: a table is damaged.
    """
    names = rules_of(run) if rules is None else tuple(rules)
    for name in names:
        if name not in RULES:
            raise OptionError(f"there is no rule {name!r}", hint=did_you_mean(name, RULES))
    facts = Facts(run, cluster, trace)
    history = History(facts)
    followers = [Capacity(facts), Devices(facts), *(RULES[name](facts) for name in names)]
    found: list[Broken] = []
    for step in history.steps():
        for at in facts.changes_by(step.row["time"], step.row["action"]):
            for each in followers:
                each.change(at)
        for each in followers:
            found += each.turn(step)
    if history.broken:
        return history.broken
    for at in facts.changes_by(facts.end):
        for each in followers:
            each.change(at)
    for each in followers:
        found += each.close()
    return [*found, *check_tables(history)]
