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
"""Rules that only some policies keep, by name; see `check_run`."""


def rules_of(run: Run) -> tuple[str, ...]:
    """Returns the names of `RULES` that a built-in policy keeps; none for any other."""
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
    """Check a run independently: only its tables, against the trace and the manifests.

    For every policy these must hold:

    - *order*: every action is possible after the earlier ones; names of pods, preemptors and nodes exist;
      nothing is invented, and no job is lost;
    - *time*: it never goes backwards. Within an instant ends come first, then what is gone, starts and
      arrivals. Work ends exactly when it is done, by the loss model; grace periods are kept exactly;
    - *capacity*: after every decision, of every node as it is then, or without nodes of the cluster. Nobody
      stays on a node that is gone, and nobody comes to one that has less than it holds;
    - *devices*: a pod has as many devices of its node as it asks for, and none is given beyond one whole;
    - *jobs*, *stints*, *timeline*, *outcome*: what these tables say is what follows from the decisions;
    - *identity*: allocated = useful + lost + idle_held + unfinished, to the microsecond, also in the metrics.

    Further rules hold for some policies, and are requested by name:

    - `placement`: node selectors, taints, labels of flavors;
    - `never`: nothing is preempted;
    - `priority`: only less important jobs are preempted, by jobs that may preempt;
    - `quotas`: those of ClusterQueues and cohorts, at each admission, and the values of `quota.over`;
    - `kueue`: the same, with stop policies and preemption policies;
    - `elastic`: `max` of elastic quotas, and with ACK's semantics `min`.

    If the history cannot be followed to its end, that is reported first, and the other rules are not checked.

    Args:
        run: a run, with or without metrics.
        cluster: the cluster of the replay; rules use it as it was at the time of each decision.
        trace: the replayed trace.
        rules: names of `RULES`; by default those that the run's policy keeps, if it is a built-in one.

    Returns:
        The broken rules; empty if all hold.

    Raises:
        InputError: the run is not of this cluster and trace, or begins with pods or Workloads.
        OptionError: there is no such rule.
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
