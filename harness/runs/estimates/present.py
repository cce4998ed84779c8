"""Determines the running and waiting work in a cluster from its manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.base.errors import OptionError
from harness.cluster.dates import created_of_pods, latest_of
from harness.cluster.kinds.pods import Pod
from harness.cluster.kinds.workloads import Workload
from harness.cluster.model import Cluster
from harness.cluster.standing import Standing, standing_of
from harness.plugins.registries import PolicySpec
from harness.policy import ENDLESS, Job
from harness.runs.estimates.traits import Traits, limit_of, traits_of
from harness.runs.questions import running_jobs


class Present(NamedTuple):
    """Work that currently exists.

    Attributes:
        waits: whether the job still lacks something that it requests, or must release what it has.
        leaving: whether the job must release its resources.
        elapsed: how long the job has held everything that it requests, in microseconds, or 0 if it waits.
        waited: how long the job has waited, in microseconds, or None if its creation time is unknown.
        limit: the maximum run time in microseconds, or None.
        lasting: whether the job never ends on its own, such as a DaemonSet's pod, or is a terminating pod.
        gone_in: how long a terminating pod still holds its resources, in microseconds, or None.
    """

    job: Job
    traits: Traits
    waits: bool
    leaving: bool
    elapsed: int
    waited: int | None
    limit: int | None
    lasting: bool = False
    gone_in: int | None = None

    @property
    def queue(self) -> str:
        """The name of the queue in which the job waits or holds quota."""
        return self.traits.queue


class Said(NamedTuple):
    """A job's user and requested run time, which are in a trace but not in manifests.

    `requested` is not a limit, because no component ends a job of a trace that runs longer.
    """

    user: str
    requested: int | None


@dataclass(frozen=True)
class Now:
    """A cluster at the current time.

    Attributes:
        at: the current time, in microseconds since 1970, or None if the manifests contain no dates.
        present: the existing work, in the order in which a policy takes it over.
    """

    at: int | None
    present: Sequence[Present]

    @property
    def waiting(self) -> list[Present]:
        """The work that is waiting."""
        return [each for each in self.present if each.waits]

    @property
    def running(self) -> list[Present]:
        """The work that holds everything that it requests and can keep it until it ends."""
        return [each for each in self.present if not (each.waits or each.lasting)]


def now_of(
    cluster: Cluster, policy: PolicySpec, at: int | None, said: Mapping[str, Said] | None = None
) -> Now:
    """Returns the current work as a policy takes it over.

    `at` is the current time, in microseconds since 1970, or None for the latest time in the work. `said` maps
    the `namespace/name` of a workload to facts that are not in manifests.

    Raises:
        OptionError: the policy can't take over the work in a cluster.
        ClusterError: the work holds resources that the cluster does not have.
    """
    if policy.running is None:
        raise OptionError(
            f"{policy.name} does not take over the running jobs of a cluster, so it cannot make a forecast",
            hint="name another plugin with -p; a policy takes over jobs if its PolicySpec has running=",
        )
    time = latest_of(cluster) if at is None else at
    arrivals = running_jobs(policy, replace(cluster, as_of=time), 0)
    present = present_of([job for job, *_ in arrivals], cluster, time, said)
    ends = [run_time for _, run_time, *_ in arrivals]
    return Now(
        time,
        [
            each if end == ENDLESS else each._replace(elapsed=0, lasting=True, gone_in=end)
            for each, end in zip(present, ends, strict=True)
        ],
    )


def present_of(
    jobs: Iterable[Job], cluster: Cluster, time: int | None, said: Mapping[str, Said] | None = None
) -> list[Present]:
    """Returns the present state of the jobs that a policy has taken over, according to the manifests.

    The jobs are named by the `namespace/name` of their Workloads or Pods. The time is in microseconds since
    1970, or None if unknown. For `said`, see `now_of`.
    """
    workloads = {each.key: each for each in cluster.workloads}
    pods = {each.key: each for each in cluster.pods}
    created: dict[str, int | None] = {**created_of_pods(cluster)}
    created |= {each.key: each.created for each in cluster.workloads}
    found = []
    for job in jobs:
        manifest: Workload | Pod = workloads[job.id] if job.id in workloads else pods[job.id]
        present = _present(job, traits_of(job, cluster), manifest, created.get(job.id), cluster, time)
        if said is not None and job.id in said:
            user, requested = said[job.id]
            present = present._replace(traits=present.traits._replace(user=user, limit=limit_of(requested)))
        found.append(present)
    return found


def _present(
    job: Job, traits: Traits, manifest: Workload | Pod, created: int | None, cluster: Cluster, now: int | None
) -> Present:
    since = standing_of(cluster, manifest).since
    leaving = is_leaving(manifest)
    waits = leaving or lacks_something(cluster, manifest)
    elapsed = 0 if waits or since is None or now is None else max(0, now - since)
    waited = None if created is None or now is None else max(0, now - created)
    limit, lasting = _limit(manifest, since), is_lasting(manifest, cluster)
    return Present(job, traits, waits, leaving, elapsed, waited if waits else None, limit, lasting)


def is_leaving(manifest: Workload | Pod) -> bool:
    """Returns True if a job must release its resources."""
    return isinstance(manifest, Workload) and manifest.holds_quota and manifest.is_true("Evicted")


def lacks_something(cluster: Cluster, manifest: Workload | Pod) -> bool:
    """Returns True if a job has no quota, or if some of its pods have no nodes."""
    if isinstance(manifest, Workload):
        return not manifest.holds_quota or _lacks_nodes(cluster, standing_of(cluster, manifest))
    return not manifest.node


def _lacks_nodes(cluster: Cluster, standing: Standing) -> bool:
    """Returns True if some pods of a Workload are waiting for a node.

    A Workload whose Pods are not in the dump counts as running.
    """
    bound = sum(bool(pod.node) for pod in standing.pods.values())
    return bool(cluster.nodes and standing.pods) and bound < standing.wanted


def _limit(manifest: Workload | Pod, since: int | None) -> int | None:
    """Returns the maximum run time in microseconds. Kueue counts a Workload's limit from its admission."""
    if not isinstance(manifest, Workload):
        return manifest.deadline
    limits = [] if manifest.deadline is None else [manifest.deadline]
    if manifest.time_left is not None:
        admitted = manifest.conditions["Admitted"].since if manifest.is_true("Admitted") else 0
        before = since - admitted if since is not None and admitted else 0
        limits.append(max(0, manifest.time_left - max(0, before)))
    return min(limits, default=None)


def is_lasting(manifest: Workload | Pod, cluster: Cluster) -> bool:
    """Returns True if the work never ends on its own."""
    pods = cluster.pods_of.get(manifest.key, ()) if isinstance(manifest, Workload) else [manifest]
    return any(pod.lasting for pod in pods)
