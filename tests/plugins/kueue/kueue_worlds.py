"""Small worlds for tests of Kueue: a few queues, flavors and jobs, and what happens, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness import Cluster, PodSet, Policy, View
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import frozen
from harness.plugins import load
from harness.policy import Arrival
from harness.testing import Decisions, Row, Script, replayed

Manifest = dict[str, Any]
Quota = int | str | Mapping[str, int | str]
"""A nominal quota, or one with its limits by name."""

GI = 2**30


def manifest(kind: str, name: str, *, version: str = "v1beta2", **spec: Any) -> Manifest:
    """An object of Kueue's with this spec."""
    return {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def flavor(name: str = "f", **spec: Any) -> Manifest:
    """A ResourceFlavor."""
    return manifest("ResourceFlavor", name, **spec)


def quota(nominal: int | str, *, borrow: int | str | None = None, lend: int | str | None = None) -> Quota:
    """A nominal quota with limits."""
    limits = {"nominalQuota": nominal, "borrowingLimit": borrow, "lendingLimit": lend}
    return {name: amount for name, amount in limits.items() if amount is not None}


def queue(name: str, *, cohort: str = "all", **fields: Any) -> Manifest:
    """A ClusterQueue open to all namespaces.

    Args:
        name: its name.
        cohort: its cohort, in the spelling of its apiVersion; "" for none.
        fields: `cpu`, a quota of flavor `f`; or `flavors`, flavor -> resource -> quota, one group of all;
            or `groups`, several of those; `version`; anything else is a field of its spec.
    """
    groups = fields.pop("groups", None) or [fields.pop("flavors", None) or {"f": {"cpu": fields.pop("cpu")}}]
    version = fields.pop("version", "v1beta2")
    if cohort:
        fields["cohort" if version == "v1beta1" else "cohortName"] = cohort
    return manifest(
        "ClusterQueue",
        name,
        version=version,
        **{"namespaceSelector": {}, "resourceGroups": [resource_group(each) for each in groups], **fields},
    )


def local_queue(
    name: str,
    queue: str,
    *,
    namespace: str = "default",
    consumed: Mapping[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """A LocalQueue of a ClusterQueue; `consumed` is its usage so far, resource -> quantity."""
    found = manifest("LocalQueue", name, clusterQueue=queue, **spec)
    found["metadata"]["namespace"] = namespace
    if consumed is not None:
        found["status"] = {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": consumed}}}
    return found


def configuration(**sections: Any) -> Manifest:
    """Kueue's Configuration."""
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **sections}


def resource_group(flavors: Mapping[str, Mapping[str, Quota]]) -> Manifest:
    """A resource group: flavor -> resource -> quota."""
    entries = []
    for name, quotas in flavors.items():
        resources = [
            {"name": each, **(amount if isinstance(amount, Mapping) else {"nominalQuota": amount})}
            for each, amount in quotas.items()
        ]
        entries.append({"name": name, "resources": resources})
    return {"coveredResources": list(next(iter(flavors.values()))), "flavors": entries}


def node(name: str, cpu: int, **labels: str) -> Manifest:
    """A Node with so many cores."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": 110}},
    }


def pod_set(name: str, count: int, cpu: int, *, least: int | None = None, **fields: Any) -> PodSet:
    """So many pods of so many cores each; `least` allows partial admission."""
    return PodSet(name, count, count if least is None else least, frozen({"cpu": 1000 * cpu}), **fields)


class Jobs(Script):
    """Jobs of queues; amounts of cpu in cores."""

    def add(self, name: str, queue: str, cpu: int = 0, **fields: Any) -> Jobs:
        """Add a job that asks for so many cores a pod, see `Script.job`.

        `namespace` and `uid` may be given too.
        """
        told = {each: fields.pop(each) for each in ("namespace", "uid") if each in fields}
        amounts = {} if "pod_sets" in fields else {"cpu": 1000 * cpu}
        self.job(name, queue=queue, **{"seconds": 1000, **amounts, **fields})
        job, *rest = self._arrivals[-1]
        self._arrivals[-1] = (replace(job, **told), *rest)
        return self

    def of_one_uid(self) -> Jobs:
        """The same jobs, of which none has a UID of its own."""
        jobs = Jobs()
        jobs._arrivals = [(replace(job, uid="same"), *rest) for job, *rest in self._arrivals]
        return jobs

    def many(self, name: str, count: int, queue: str, cpu: int, **fields: Any) -> Jobs:
        """Add equal jobs, called `name0`, `name1` and so on."""
        for number in range(count):
            self.add(f"{name}{number}", queue, cpu, **fields)
        return self

    def after(self, running: Sequence[Arrival]) -> Jobs:
        """The same jobs behind those that a replay begins with."""
        jobs = Jobs()
        jobs._arrivals = [*running]
        for job, *rest in self._arrivals:
            jobs._arrivals.append((replace(job, index=len(jobs._arrivals)), *rest))
        return jobs


def cluster(*manifests: Manifest, flavors: bool = True) -> Cluster:
    """A cluster of some manifests, with the flavor `f` unless told otherwise."""
    return cluster_from([flavor(), *manifests] if flavors else list(manifests), "test")


class Happened:
    """A replay through Kueue.

    Attributes:
        decisions: everything that happened.
    """

    def __init__(
        self,
        where: Cluster,
        jobs: Jobs,
        *,
        plugin: str = "kueue-classic",
        until: float | None = 100,
        **options: Any,
    ) -> None:
        spec = load().policy(plugin)
        assert spec.running is not None

        def make(where: Cluster, view: View, given: Mapping[str, Any]) -> Policy:
            return spec.factory(where, view, resolve(spec.options, given, owner=plugin))

        every = jobs.after(spec.running(where, 0))
        self.decisions: Decisions = replayed(make, every, where, options=options, until=until)

    def lines(self, *actions: str) -> list[str]:
        """Rows of some actions, such as `10 preempt a by b: InClusterQueue`."""
        said = []
        for row in self.decisions.of(*actions):
            words = [f"{row.time / SECOND:g}", row.action, row.job]
            if row.by:
                words += ["by", row.by]
            text = " ".join(words)
            said.append(f"{text}: {row.reason}" if row.reason else text)
        return said

    @property
    def admitted(self) -> list[str]:
        """The jobs that were admitted, in order, as often as they were."""
        return [row.job for row in self.decisions.of("admit")]

    @property
    def preemptions(self) -> list[str]:
        """Victims with their preemptors and reasons, in order, such as `a by b: InClusterQueue`."""
        return [f"{row.job} by {row.by}: {row.reason}" for row in self.decisions.of("preempt")]

    @property
    def victims(self) -> list[str]:
        """The victims, in order."""
        return [row.job for row in self.decisions.of("preempt")]

    def flavors(self, job: str) -> list[str]:
        """The flavors of a job's latest admission, each once, in order of pod sets and resources."""
        chosen = self.row("admit", job).flavors or {}
        return list(dict.fromkeys(name for pod_set in chosen.values() for name in pod_set.values()))

    def row(self, action: str, job: str) -> Row:
        """The latest row of an action for a job."""
        return [row for row in self.decisions.of(action) if row.job == job][-1]
