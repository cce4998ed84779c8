"""Reproduces the examples of fair sharing in Kueue's documentation.

All documents are at Kueue ff69552e79. The user stories come from KEP-1714 (keps/1714-fair-sharing). The
weights come from the page about cohorts, and the two strategies from the page about preemption
(site/content/en/docs/concepts). For admission fair sharing, the scenarios within a ClusterQueue come from
KEP-4136, and the weight comes from the feature's page. The documents give only proportions and orders, so
harness chooses the numbers of jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.options import resolve
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.studies.reproduced.case import Row
from harness.testing.scripts import Decisions, Script, replayed

_LONG = 100_000.0
_CORE = 1000
_CONFIGURATION = "config.kueue.x-k8s.io/v1beta2"
_BOTH = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
Manifest = dict[str, Any]


def rows(_files: Mapping[str, Path] | None = None) -> list[Row]:
    """Returns the rows of every example."""
    final, initial = (strategy_targets(each) for each in _BOTH)
    return [
        Row(
            "story 1: two teams share the pool beyond their quotas",
            "4 and 4",
            _beyond(story_1(), {"E": 1, "W": 3}),
        ),
        Row(
            "story 2: a department's free quota goes to its own teams", "1B 6, 1C 6", _says(story_2(own=True))
        ),
        Row(
            "story 2: if the first department has no jobs, the teams of the other share its quota equally",
            "2A 8, 2B 8, 2C 8",
            _says(story_2(own=False)),
        ),
        Row("story 3: 300 GPUs by weight", "1A 30, 1B 30, 1C 90, 2A 150", _says(story_3(), 10)),
        Row(
            "two cohorts with weights 0.75 and 0.25 share 12 cores",
            "important 9, regular 3",
            _says(weighted()),
        ),
        Row(f"{_BOTH[0]} preempts", "the smaller workload", final),
        Row(f"{_BOTH[1]} preempts", "the workload with the lowest priority", initial),
        Row(
            "admission scenario 1, StrictFIFO: the LocalQueue with the least usage goes first, others wait",
            "10, 20, 30",
            by_usage("StrictFIFO"),
        ),
        Row(
            "admission scenario 2, BestEffortFIFO: a workload that fits may go first",
            "20, 30, 10",
            by_usage("BestEffortFIFO"),
        ),
        Row("weight 2 halves the usage of a LocalQueue", "30, 20", weighted_usage()),
    ]


def story_1() -> Counter[str]:
    """Returns the cores that two teams hold. They own 1 and 3 cores, and share a pool of 8 cores.

    At first, only the first team has jobs.
    """
    made = [_cohort("all", cpu=8), _queue("E", "all", 1), _queue("W", "all", 3)]
    return _held(_backlogs({"E": (12, 0), "W": (12, 10)}), made)


def story_2(*, own: bool) -> Counter[str]:
    """Returns the cores that teams hold. Two departments have three teams with 4 cores each.

    Team 1A requests nothing.

    If `own` is true, 1B and 1C have jobs, which arrive when department 2 holds all capacity. The result then
    covers only the teams of department 1. Otherwise, it covers only those of department 2.
    """
    made = [_cohort("top"), _cohort("D1", "top"), _cohort("D2", "top")]
    made += [_queue(f"{place}{team}", f"D{place}", 4) for place in (1, 2) for team in "ABC"]
    backlogs = {"2A": (24, 0), "2B": (24, 0), "2C": (24, 0)}
    held = _held(_backlogs({**backlogs, **({"1B": (24, 10), "1C": (24, 10)} if own else {})}), made)
    return Counter({name: count for name, count in held.items() if name.startswith("1" if own else "2")})


def story_3() -> Counter[str]:
    """Returns the number of units that each queue holds. A unit is ten GPUs.

    The queues share 30 units. Queue 1C has weight 3.
    """
    made = [_cohort("top"), _cohort("CS", "top"), _cohort("C1", "top"), _cohort("C2", "top")]
    made += [_queue("S", "CS", 30), _queue("1A", "C1"), _queue("1B", "C1"), _queue("1C", "C1", weight="3")]
    made += [_queue("2A", "C2")]
    return _held(_backlogs({"2A": (30, 0), "1A": (30, 10), "1B": (30, 20), "1C": (30, 30)}), made)


def weighted() -> Counter[str]:
    """Returns the cores that the queues of two cohorts hold. The cohorts share their parent's 12 cores.

    The cohort with the lower weight gets jobs first.
    """
    made = [
        _cohort("root", cpu=12),
        _cohort("important-org", "root", weight="0.75"),
        _cohort("regular-org", "root", weight="0.25"),
        _queue("important", "important-org"),
        _queue("regular", "regular-org"),
    ]
    return _held(_backlogs({"regular": (12, 0), "important": (12, 10)}), made)


def strategy_targets(strategy: str) -> str:
    """Returns a description of the job that a new job of 3 cores preempts, in a cohort with 10 cores.

    The candidates are a job of 7 cores at priority 0 and a job of 2 cores at a high priority.
    """
    jobs = Script()
    jobs.job("big", queue="y", cpu=7 * _CORE, seconds=_LONG)
    jobs.job("small", queue="y", cpu=2 * _CORE, seconds=_LONG, priority=100)
    jobs.job("new", queue="x", cpu=3 * _CORE, seconds=_LONG, at=10)
    made = [_cohort("all", cpu=10), _queue("x", "all"), _queue("y", "all")]
    said = {"big": "the workload with the lowest priority", "small": "the smaller workload"}
    preempted = _decided(jobs, made, [strategy], until=11).of("preempt")
    targets = [row.job for row in preempted if row.by == "new"]  # Later decisions about "small" are ignored.
    return ", ".join(said[name] for name in targets)


def by_usage(strategy: str) -> str:
    """Returns the order in which LocalQueues that used 30, 10 and 20 cores are admitted.

    Only the second LocalQueue requests many cores.
    """
    jobs = Script().job("running", queue="20", cpu=2 * _CORE, seconds=100)
    jobs.job("a", queue="30", cpu=_CORE, seconds=200, at=10, priority=100)
    jobs.job("b", queue="10", cpu=4 * _CORE, seconds=300, at=10)
    jobs.job("c", queue="20", cpu=_CORE, seconds=200, at=10)
    return _admitted(jobs, strategy, {"30": "1", "10": "1", "20": "1"})


def weighted_usage() -> str:
    """Returns the order of admission of two LocalQueues.

    The first one used 20 cores. The second one used 30 cores, but has weight 2.
    """
    jobs = Script().job("running", queue="20", cpu=4 * _CORE, seconds=100)
    for name in ("20", "30"):
        jobs.job(name, queue=name, cpu=4 * _CORE, seconds=100, at=10)
    return _admitted(jobs, "BestEffortFIFO", {"20": "1", "30": "2"})


def _admitted(jobs: Script, strategy: str, weights: Mapping[str, str]) -> str:
    """Returns the LocalQueues of all admitted jobs except the first, in order. The names are usages."""
    usage = {"usageHalfLifeTime": "168h", "usageSamplingInterval": "5m"}
    shared = _queue("shared", "", 4)
    shared["spec"] |= {
        "queueingStrategy": strategy,
        "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
    }
    made: list[Manifest] = [
        {"apiVersion": _CONFIGURATION, "kind": "Configuration", "admissionFairSharing": usage}
    ]
    for name, weight in weights.items():
        door = _manifest("LocalQueue", name, {"clusterQueue": "shared", "fairSharing": {"weight": weight}})
        used = {"admissionFairSharingStatus": {"consumedResources": {"cpu": name}}}
        made.append({**door, "status": {"fairSharing": used}})
    admitted = _decided(jobs, [shared, *made], _BOTH, until=1_000).of("admit")[1:]
    return ", ".join(jobs[row.job].queue for row in admitted)


def _backlogs(of: Mapping[str, tuple[int, float]]) -> Script:
    """Returns one-core jobs for each queue, where `of` contains the number and the arrival of the jobs."""
    jobs = Script()
    for number in range(max(count for count, _ in of.values())):
        for queue, (count, at) in of.items():
            if at == 0 and number < count:
                jobs.job(f"{queue}-{number:02}", queue=queue, cpu=_CORE, seconds=_LONG)
    for queue, (count, at) in sorted(of.items(), key=lambda each: each[1][1]):
        if at:
            for number in range(count):
                jobs.job(f"{queue}-{number:02}", queue=queue, cpu=_CORE, seconds=_LONG, at=at)
    return jobs


def _held(jobs: Script, manifests: Sequence[Manifest]) -> Counter[str]:
    held: Counter[str] = Counter()
    for row in _decided(jobs, manifests, _BOTH, until=3_000).rows:
        held[jobs[row.job].queue] += row.holding
    return held


def _decided(
    jobs: Script, manifests: Sequence[Manifest], strategies: Sequence[str], until: float
) -> Decisions:
    policy = load().policy("fairsharing")
    options = resolve(policy.options, {"preemptionStrategies": ",".join(strategies)}, owner=policy.name)
    cluster = cluster_from([_manifest("ResourceFlavor", "f", {}), *manifests], "documented examples")
    return replayed(policy.factory, jobs, cluster, options=options, until=until)


def _beyond(held: Counter[str], nominal: Mapping[str, int]) -> str:
    return " and ".join(str(held[queue] - quota) for queue, quota in nominal.items())


def _says(held: Counter[str], unit: int = 1) -> str:
    return ", ".join(f"{queue} {count * unit}" for queue, count in sorted(held.items()) if count)


def _queue(name: str, cohort: str, cpu: int = 0, *, weight: str = "1") -> Manifest:
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    own = {"cohortName": cohort, "namespaceSelector": {}, "preemption": preemption}
    return _manifest("ClusterQueue", name, {**own, **_quota(cpu), "fairSharing": {"weight": weight}})


def _cohort(name: str, parent: str = "", cpu: int = 0, *, weight: str = "1") -> Manifest:
    above = {"parentName": parent} if parent else {}
    return _manifest("Cohort", name, {**above, **_quota(cpu), "fairSharing": {"weight": weight}})


def _quota(cpu: int) -> Manifest:
    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec
    }  # fmt: skip
