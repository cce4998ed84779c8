"""Finds the Workloads that own the Pods in a dump, by the owner references of Kueue and of operators.

A Pod names its Workload through an annotation of Kueue, through its pod group, or through its owners. These
owners are Jobs, or objects of operators. If the dump doesn't contain an owner, harness finds its name in the
labels that controllers set on pods.

https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/

https://kubernetes.io/docs/reference/labels-annotations-taints/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from harness.base.grouping import grouped
from harness.base.json_text import mapping_of
from harness.cluster.kinds.pods import Pod
from harness.cluster.kinds.workloads import Workload, read_time
from harness.cluster.standing import ended_pods
from harness.cluster.yaml.fields import Fields

WORKLOAD = "kueue.x-k8s.io/workload"
POD_GROUP = "kueue.x-k8s.io/pod-group-name"
JOB_UID = "kueue.x-k8s.io/job-uid"

_OWNER_LABELS = (
    ("Job", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"),
    ("Job", "job-name", "controller-uid"),
    ("JobSet", "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid"),
    ("TrainJob", "jobset.sigs.k8s.io/jobset-name", ""),
    ("AppWrapper", "workload.codeflare.dev/appwrapper", ""),
    ("SparkApplication", "sparkoperator.k8s.io/app-name", ""),
    ("", "training.kubeflow.org/job-name", ""),
    ("", "ray.io/originated-from-cr-name", ""),
)
"""The Pod labels that name the owner. Each entry has the owner's kind ("" for any), its name, and its uid."""

_MADE = re.compile(r"(.+)-[0-9a-z]{5}")
"""Matches the names that Kueue generates for Workloads from the kind and name of the owner, and a hash."""

_ENDS = frozenset(("Complete", "Completed", "Succeeded", "Failed"))
"""The conditions and phases of ended jobs, of all kinds.

Upstream: the methods `Finished` in pkg/controller/jobs.
"""

_Key = tuple[str, str]


class Owner(NamedTuple):
    """The owner of an object. Unknown parts are ""."""

    kind: str
    name: str
    uid: str


def matched(
    workloads: Sequence[Workload],
    pods: Iterable[Pod],
    succeeded: Iterable[Pod],
    manifests: Iterable[Mapping[str, Any]],
) -> tuple[tuple[Workload, ...], tuple[Pod, ...]]:
    """Returns copies of the Workloads and of the Pods, completed with data about each other.

    A Workload gets the start of its job, whether the job has ended, and the number of its ended pods. A Pod
    gets the key of its Workload, and records whether there is a Workload of the same name.

    Workloads that hold quota get the number of their Pods in `succeeded`. `manifests` has all objects in the
    dump, including those of kinds that harness does not read.
    """
    several = tuple(pods)
    if not workloads:
        return (), several
    owners = _Owners(_Objects(manifests), workloads)
    names = {each.key for each in workloads}
    found = tuple(
        replace(pod, named_as_workload=True) if pod.full_name in names else pod
        for pod in map(owners.with_workload, several)
    )
    began, ended = owners.began(), owners.ended()
    over = _by_workload(map(owners.with_workload, succeeded))
    present = _by_workload(found) if over else {}

    def known(each: Workload) -> Workload:
        if each.key in ended:
            each = replace(each, job_ended=True)
        if each.key in began:
            each = replace(each, began=began[each.key])
        if each.key in over and each.holds_quota:
            each = replace(each, ended=ended_pods(each, present.get(each.key, ()), over[each.key]))
        return each

    return tuple(map(known, workloads)), found


def _by_workload(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    return grouped((pod.workload, pod) for pod in pods if pod.workload)


def _texts(metadata: Mapping[str, Any], name: str) -> Mapping[str, str]:
    found = metadata.get(name)
    if not isinstance(found, Mapping):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, str)}


def _namespace(manifest: Mapping[str, Any]) -> str:
    return str(mapping_of(manifest, "metadata").get("namespace") or "default")


class _Objects:
    def __init__(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        self.others: list[Mapping[str, Any]] = []
        self.pods: dict[_Key, Mapping[str, Any]] = {}
        self.workloads: dict[_Key, Mapping[str, Any]] = {}
        self._by_uid: dict[str, Mapping[str, Any]] = {}
        self._by_name: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        for manifest in manifests:
            metadata, kind = mapping_of(manifest, "metadata"), str(manifest.get("kind") or "")
            name = str(metadata.get("name") or "")
            space = _namespace(manifest)
            if kind == "Pod":
                self.pods[space, name] = manifest
            elif kind == "Workload" and str(manifest.get("apiVersion")).startswith("kueue.x-k8s.io/"):
                self.workloads[space, name] = manifest
            else:
                self.others.append(manifest)
                if uid := str(metadata.get("uid") or ""):
                    self._by_uid[uid] = manifest
                self._by_name[space, kind, name] = manifest

    def line(self, manifest: Mapping[str, Any]) -> Iterator[Owner]:
        """Yields the direct and indirect owners of an object, starting with the nearest.

        Owners that the object's labels name come last.
        """
        space, seen, next_ones = _namespace(manifest), set[Owner](), [manifest]
        while next_ones:
            current, next_ones = next_ones, []
            for each in current:
                for owner in owners_of(mapping_of(each, "metadata")):
                    if owner in seen:
                        continue
                    seen.add(owner)
                    yield owner
                    above = self.named(space, owner)
                    if above is not None:
                        next_ones.append(above)
        labels = _texts(mapping_of(manifest, "metadata"), "labels")
        for kind, name, uid in _OWNER_LABELS:
            if labels.get(name):
                yield Owner(kind, labels[name], labels.get(uid, ""))

    def named(self, space: str, owner: Owner) -> Mapping[str, Any] | None:
        if owner.uid in self._by_uid:
            return self._by_uid[owner.uid]
        found = self._by_name.get((space, owner.kind, owner.name))
        if found is None or (
            owner.uid and str(mapping_of(found, "metadata").get("uid") or owner.uid) != owner.uid
        ):
            return None
        return found


def _has_ended(job: Mapping[str, Any]) -> bool:
    """Returns True if the status of a job says that it has ended. A job can also be a single Pod."""
    status = mapping_of(job, "status")
    conditions = status.get("conditions")
    true = {
        str(each.get("type"))
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, Mapping) and str(each.get("status")) == "True"
    }
    phases = {str(status.get(name)) for name in ("phase", "jobDeploymentStatus")}
    if "ResourcesDeployed" in true:  # a failed AppWrapper ends only when its resources are deleted
        phases.discard("Failed")
    return not _ENDS.isdisjoint(true | phases)


def owners_of(metadata: Mapping[str, Any]) -> Iterator[Owner]:
    """Yields the owners in the owner references of an object."""
    found = metadata.get("ownerReferences")
    for each in found if isinstance(found, list) else ():
        if isinstance(each, Mapping):
            yield Owner(*(str(each.get(name) or "") for name in Owner._fields))


class _Owners:
    """The Workloads in a dump, by their owners.

    If several Workloads have the same owner, the youngest Workload with reserved quota is used. Finished
    Workloads are left out, because they have no pods. A Workload without an owner is found by its name.
    """

    def __init__(self, objects: _Objects, workloads: Iterable[Workload]) -> None:
        self._objects = objects
        self._by_uid: dict[str, Workload] = {}
        self._by_owner: dict[tuple[str, str, str], tuple[Workload, str]] = {}
        self._by_name: dict[_Key, Workload] = {}
        self._of_nobody: dict[_Key, Workload] = {}
        self._made: dict[_Key, Workload] = {}
        working = [each for each in workloads if each.takes_part]
        self.working = sorted(working, key=lambda each: (each.holds_quota, each.created or 0))
        for each in self.working:
            metadata = mapping_of(objects.workloads.get((each.namespace, each.name)), "metadata")
            self._by_name[each.namespace, each.name] = each
            owners = list(owners_of(metadata))
            job = _texts(metadata, "labels").get(JOB_UID, "")
            for uid in (job, *(owner.uid for owner in owners)):
                if uid:
                    self._by_uid[uid] = each
            for owner in owners:
                for kind in (owner.kind, ""):
                    self._by_owner[each.namespace, kind, owner.name] = each, owner.uid
            if not owners and not job:
                self._of_nobody[each.namespace, each.name] = each
                if made := _MADE.fullmatch(each.name):
                    self._made[each.namespace, made[1]] = each

    def with_workload(self, pod: Pod) -> Pod:
        found = self._of_pod(pod)
        return pod if found is None else replace(pod, workload=found.key)

    def _of_pod(self, pod: Pod) -> Workload | None:
        manifest = self._objects.pods.get((pod.namespace, pod.name), {})
        metadata = mapping_of(manifest, "metadata")
        named = _texts(metadata, "annotations").get(WORKLOAD, "")
        found = self._by_name.get((pod.namespace, named)) or self._by_uid.get(str(metadata.get("uid") or ""))
        if found is None and pod.labels.get(POD_GROUP):
            found = self._by_name.get((pod.namespace, pod.labels[POD_GROUP]))
        if found is not None:
            return found
        own = Owner("Pod", pod.name, "")
        found, place = self._of((own, *self._objects.line(manifest)), pod.namespace)
        if found is None or place or not pod.node or found.holds_quota:
            return found
        # A Workload without quota has no running pods. If a running pod has the same name, this is a
        # coincidence.
        return None if found is self._of_nobody.get((pod.namespace, pod.name)) else found

    def _of(self, line: Sequence[Owner], space: str) -> tuple[Workload | None, int]:
        """Returns the Workload of the nearest owner that has one, and the position of that owner."""
        for place, owner in enumerate(line):
            found = self._by_uid.get(owner.uid) if owner.uid else None
            if found is None:
                found, uid = self._by_owner.get((space, owner.kind, owner.name), (None, ""))
                if uid and owner.uid:  # an earlier object with this name has been deleted
                    found = None
            if found is not None:
                return found, place
        for place, owner in enumerate(line):
            made = self._made.get((space, f"{owner.kind.lower()}-{owner.name}"))
            found = self._of_nobody.get((space, owner.name)) or made
            if found is not None:
                return found, place
        return None, 0

    def ended(self) -> frozenset[str]:
        """Returns the Workloads whose job has ended. Workloads of several objects are left out."""
        found = set()
        for each in self.working:
            metadata = mapping_of(self._objects.workloads.get((each.namespace, each.name)), "metadata")
            owners = list(owners_of(metadata))
            if len(owners) != 1:
                continue
            pod = self._objects.pods.get((each.namespace, owners[0].name))
            job = pod if owners[0].kind == "Pod" else self._objects.named(each.namespace, owners[0])
            if job is not None and _has_ended(job):
                found.add(each.key)
        return frozenset(found)

    def began(self) -> dict[str, int]:
        """Returns the start of each Workload's job, according to the status of the object that owns it.

        If that status contains no start, the start comes from the objects below, such as the Jobs of a
        JobSet.
        """
        found: dict[str, tuple[int, int]] = {}
        for manifest in self._objects.others:
            status = manifest.get("status")
            if not isinstance(status, Mapping) or "startTime" not in status:
                continue
            start = read_time(Fields(status, "", []), "startTime")
            metadata, space = mapping_of(manifest, "metadata"), _namespace(manifest)
            own = Owner(
                *(
                    str(each or "")
                    for each in (manifest.get("kind"), metadata.get("name"), metadata.get("uid"))
                )
            )
            workload, place = self._of((own, *self._objects.line(manifest)), space)
            if start is not None and workload is not None:
                before = found.get(workload.key)
                if before is None or (-place, -start) > (-before[0], -before[1]):
                    found[workload.key] = place, start
        return {key: start for key, (_, start) in found.items()}
