"""What a cluster holds and has waiting now, by its manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from harness.base.errors import OptionError
from harness.cluster.dates import created_of_pods, latest_of
from harness.cluster.kinds.workloads import Workload
from harness.cluster.standing import Standing, standing_of
from harness.policy import Job
from harness.runs.estimates.traits import Traits, limit_of, traits_of
from harness.runs.questions import running_jobs

if TYPE_CHECKING:
    from harness.cluster.kinds.pods import Pod
    from harness.cluster.model import Cluster
    from harness.plugins.registries import PolicySpec


class Present(NamedTuple):
    """A workload that is there now.

    Attributes:
        job: as the policy takes it over.
        traits: what is known of it.
        waits: whether it has not got what it asks for, or was told to give it back.
        leaving: whether it was told to give back what it holds.
        elapsed: how long it has held what it asks for, microseconds; 0 where it waits.
        waited: how long it has waited, microseconds; None where nobody says since when.
        limit: the longest that it may run, microseconds; None for no limit.
        lasting: whether it never ends by itself, as the pods of a DaemonSet.
    """

    job: Job
    traits: Traits
    waits: bool
    leaving: bool
    elapsed: int
    waited: int | None
    limit: int | None
    lasting: bool = False

    @property
    def queue(self) -> str:
        """Where it waits or holds quota, as people see it."""
        return self.traits.queue


class Said(NamedTuple):
    """What a trace says of a job that no manifest does: whose it is, and how long it asked to run.

    Nothing ends a job of a trace that runs longer, so that this is no limit.
    """

    user: str
    requested: int | None


@dataclass(frozen=True)
class Now:
    """A cluster as it stands.

    Attributes:
        at: what time it is, microseconds since 1970; None where the manifests have no dates.
        present: what is there, in the order in which a policy takes it over.
    """

    at: int | None
    present: Sequence[Present]

    @property
    def waiting(self) -> list[Present]:
        """Those that wait."""
        return [each for each in self.present if each.waits]

    @property
    def running(self) -> list[Present]:
        """Those that hold what they ask for and may keep it, until they end."""
        return [each for each in self.present if not (each.waits or each.lasting)]


def now_of(
    cluster: Cluster, policy: PolicySpec, at: int | None, said: Mapping[str, Said] | None = None
) -> Now:
    """What is there now, as a policy takes it over.

    Args:
        cluster: the manifests.
        policy: who schedules.
        at: what time it is, microseconds since 1970; None for the last time that the work knows of.
        said: what is known of workloads that manifests do not say, by namespace and name.

    Raises:
        OptionError: the policy cannot begin with what a cluster holds.
        ClusterError: the work holds what the cluster does not have.
    """
    if policy.running is None:
        raise OptionError(
            f"{policy.name} does not take over the jobs that a cluster holds, so it cannot make a forecast",
            hint="name another plugin with -p",
        )
    time = latest_of(cluster) if at is None else at
    return Now(time, present_of([job for job, *_ in running_jobs(policy, cluster, 0)], cluster, time, said))


def present_of(
    jobs: Iterable[Job], cluster: Cluster, time: int | None, said: Mapping[str, Said] | None = None
) -> list[Present]:
    """What is known by its manifests of jobs that a policy took over.

    Args:
        jobs: by namespace and name of their Workloads or Pods.
        cluster: the manifests.
        time: what time it is, microseconds since 1970; None where nobody knows.
        said: as for `now_of`.
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
    job: Job,
    traits: Traits,
    manifest: Workload | Pod,
    created: int | None,
    cluster: Cluster,
    now: int | None,
) -> Present:
    standing = standing_of(cluster, manifest)
    since = standing.since
    leaving = is_leaving(manifest)
    waits = leaving or lacks_something(cluster, manifest)
    elapsed = 0 if waits or since is None or now is None else max(0, now - since)
    waited = None if created is None or now is None else max(0, now - created)
    limit, lasting = _limit(manifest, since), is_lasting(manifest, cluster)
    return Present(job, traits, waits, leaving, elapsed, waited if waits else None, limit, lasting)


def is_leaving(manifest: Workload | Pod) -> bool:
    """Whether a job was told to give back what it holds."""
    return isinstance(manifest, Workload) and manifest.holds_quota and manifest.is_true("Evicted")


def lacks_something(cluster: Cluster, manifest: Workload | Pod) -> bool:
    """Whether a job has not got what it asks for: quota, or nodes for all of its pods."""
    if isinstance(manifest, Workload):
        return not manifest.holds_quota or _lacks_nodes(cluster, standing_of(cluster, manifest))
    return not manifest.node


def _lacks_nodes(cluster: Cluster, standing: Standing) -> bool:
    """Whether some pods of a Workload wait for a node; one whose Pods are not in the dump is taken to run."""
    bound = sum(bool(pod.node) for pod in standing.pods.values())
    return bool(cluster.nodes and standing.pods) and bound < standing.wanted


def _limit(manifest: Workload | Pod, since: int | None) -> int | None:
    """How long work may run at most, microseconds; a Workload's time begins with its admission."""
    if not isinstance(manifest, Workload):
        return manifest.deadline
    limits = [] if manifest.deadline is None else [manifest.deadline]
    if manifest.time_left is not None:
        admitted = manifest.conditions["Admitted"].since if manifest.is_true("Admitted") else 0
        before = since - admitted if since is not None and admitted else 0
        limits.append(max(0, manifest.time_left - max(0, before)))
    return min(limits, default=None)


def is_lasting(manifest: Workload | Pod, cluster: Cluster) -> bool:
    """Whether work does not end by itself."""
    pods = cluster.pods_of.get(manifest.key, ()) if isinstance(manifest, Workload) else [manifest]
    return any(pod.lasting for pod in pods)
