"""Checks a run against all rules, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.cluster.model import Cluster
from harness.runs.run import Run
from harness.testing.checks.capacity import Capacity
from harness.testing.checks.devices import Devices
from harness.testing.checks.elastic import Elastic
from harness.testing.checks.facts import Broken, Facts
from harness.testing.checks.history import History, Rule
from harness.testing.checks.kueue import Kueue
from harness.testing.checks.placement import ByPriority, Never, Placement
from harness.testing.checks.quotas import ClusterQuotas
from harness.testing.checks.tables import check_tables
from harness.trace.trace import Trace

RULES: Mapping[str, Callable[[Facts], Rule]] = MappingProxyType(
    {
        "placement": Placement,
        "never": Never,
        "priority": ByPriority,
        "quotas": ClusterQuotas,
        "kueue": Kueue,
        "elastic": Elastic,
    }
)
"""Name -> a rule that only some policies follow; see `check_run`."""


def rules_of(run: Run) -> tuple[str, ...]:
    """Returns the names of the `RULES` that the run's built-in policy follows; none for other policies."""
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
    """Check a run independently: compare only its tables with the trace and the manifests.

    Every policy must follow these rules:

    - *order*: every action is possible after the earlier ones; pods, preemptors and nodes exist; no job is
      invented or lost;
    - *time*: time never goes backwards. Within an instant, ends come first, then departures, starts and
      arrivals. Work ends exactly when it is done, by the loss model; grace periods are exact;
    - *capacity*: after every decision, pods fit the present capacity of each node, or of a cluster without
      nodes. No pod stays on a removed node, and no pod is bound to a node that holds more than its capacity;
    - *devices*: a pod has as many devices of its node as it requests, and shares of a device add up to at
      most one;
    - *jobs*, *stints*, *timeline*, *outcome*: the content of these tables follows from the decisions;
    - *identity*: allocated = useful + lost + idle_held + unfinished, to the microsecond, in the metrics too.

    Further rules apply to some policies, and are requested by name:

    - `placement`: node selectors, taints, labels of flavors;
    - `never`: no job is preempted;
    - `priority`: only less important jobs are preempted, by jobs that may preempt;
    - `quotas`: quotas of ClusterQueues and cohorts, at each admission, and the values of `quota.over`;
    - `kueue`: quotas, stop policies and preemption policies;
    - `elastic`: `max` of elastic quotas, and with ACK's semantics `min`.

    If the checker cannot follow the decisions to their end, it reports this and skips the other rules.

    Args:
        run: a run, with or without metrics.
        cluster: the cluster of the replay; rules use its state at the time of each decision.
        trace: the replayed trace.
        rules: names of `RULES`; by default the rules that the run's policy follows, if it is built in.

    Returns:
        The violations; empty if the run follows all rules.

    Raises:
        InputError: the run is not of this cluster and trace, or begins with pods or Workloads.
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
