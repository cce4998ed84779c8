"""Which Workload a Pod of a dump belongs to, and since when a job runs."""

from __future__ import annotations

from typing import Any

import pytest
from live_dumps import GPU, NOON, Manifest, ago, job, node, owner, pod, queue, workload

from harness.cluster.kinds.workloads import Workload
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.cluster.standing import Standing, standing_of
from harness_plugins.kueue.manifests.beginning import running_jobs


def cluster(*objects: Manifest) -> Cluster:
    """A node, a queue, and these objects."""
    return cluster_from([node("n0", 99), *queue(gpus=99), *objects], "dump.json")


def of(dump: Cluster, name: str = "a") -> Workload:
    """The Workload that was made of a Job of that name."""
    (found,) = [each for each in dump.workloads if each.name == f"job-{name}-1a2b3"]
    return found


def standing(*objects: Manifest, name: str = "a") -> Standing:
    """How that job stands."""
    dump = cluster(*objects)
    return standing_of(dump, of(dump, name))


def belongs(*objects: Manifest) -> list[str]:
    """The names of the Pods that belong to the Workload `a`."""
    dump = cluster(*objects)
    return [each.name for each in dump.pods if each.workload == of(dump).key]


def owned(kind: str, name: str, owners: list[Manifest], version: str = "x/v1") -> Manifest:
    """An object of a kind that is not read."""
    metadata = {"name": name, "namespace": "d", "uid": f"{kind}-{name}", "ownerReferences": owners}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def held(name: str = "a", **fields: Any) -> Manifest:
    """A Workload that has held quota for 9 h."""
    return workload(name, 1, held=9, **fields)


@pytest.mark.parametrize(
    ("owners", "others"),
    [
        (owner("Job", "a"), [job("a", 9)]),
        (owner("Job", "a"), []),
        (owner("JobSet", "a"), [owned("JobSet", "a", []), job("a-w-0", 9, owner("JobSet", "a"))]),
        (owner("RayJob", "a"), [owned("RayCluster", "a-x", owner("RayJob", "a"))]),
        (owner("PyTorchJob", "a"), []),
    ],
)
def test_a_pod_leads_to_its_workload_through_its_owners(
    owners: list[Manifest], others: list[Manifest]
) -> None:
    """Directly, or through the objects of the dump in between, of whatever kind."""
    between = {"JobSet": owner("Job", "a-w-0"), "RayJob": owner("RayCluster", "a-x")}
    own = between.get(owners[0]["kind"], owners)
    assert belongs(held(owners=owners), *others, pod("p", "n0", 1, started=9, owners=own)) == ["p"]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ({"jobset.sigs.k8s.io/jobset-name": "a", "jobset.sigs.k8s.io/jobset-uid": "JobSet-a"}, "JobSet"),
        ({"batch.kubernetes.io/job-name": "a"}, "Job"),
        ({"training.kubeflow.org/job-name": "a"}, "PyTorchJob"),
        ({"jobset.sigs.k8s.io/jobset-name": "a"}, "TrainJob"),
        ({"sparkoperator.k8s.io/app-name": "a"}, "SparkApplication"),
        ({"workload.codeflare.dev/appwrapper": "a"}, "AppWrapper"),
    ],
)
def test_labels_tell_of_owners_that_are_not_in_the_dump(labels: dict[str, str], kind: str) -> None:
    """Those that a controller puts onto its pods."""
    there = pod("p", "n0", 1, started=9, owners=owner("Job", "gone"), labels=labels)
    assert belongs(held(owners=owner(kind, "a")), there) == ["p"]


def test_pods_are_of_the_workload_that_kueue_names() -> None:
    """By the annotation, by the pod group, and where the Workload was made for the Pod itself."""
    own = owner("Pod", "single", "p-single")
    kueue = {"kueue.x-k8s.io/workload": "job-a-1a2b3"}
    group = {"kueue.x-k8s.io/pod-group-name": "job-a-1a2b3"}
    assert belongs(
        held(owners=own),
        pod("single", "n0", 1, started=9, owners=[]),
        pod("annotated", "n0", 1, started=9, owners=[], annotations=kueue),
        pod("grouped", "n0", 1, started=9, owners=[], labels=group),
        pod("other", "n0", 1, started=9, owners=[]),
    ) == ["single", "annotated", "grouped"]


def test_a_workload_that_says_no_owner_is_known_by_its_name() -> None:
    """Kueue's name for the Workload of a Job, or the name of the Job."""
    nameless = held(owners=[])
    assert belongs(nameless, pod("p", "n0", 1, started=9, owners=owner("Job", "a"))) == ["p"]
    nameless["metadata"]["name"] = "a"
    dump = cluster(nameless, pod("p", "n0", 1, started=9, owners=owner("Job", "a")))
    assert [each.workload for each in dump.pods] == ["d/a"]


def test_an_object_of_the_same_name_that_is_gone_is_not_meant() -> None:
    """Its uid was another one; and of two Workloads of one Job, that with quota has the pods."""
    assert belongs(held(), pod("p", "n0", 1, started=9, owners=owner("Job", "a", "older"))) == []
    waits = workload("a", 1)
    waits["metadata"] = {**waits["metadata"], "name": "another", "uid": "another"}
    there = pod("p", "n0", 1, started=9, owners=owner("Job", "a"))
    assert belongs(waits, held(), there) == ["p"]


def test_pods_have_the_numbers_of_their_pod_sets() -> None:
    """By the pod set that a label names, by what they ask for, and by their index where it is free."""
    two = held(pods=1)
    pod_set = two["spec"]["podSets"][0]
    worker = {"containers": [{"name": "c", "resources": {"requests": {GPU: "4"}}}]}
    two["spec"]["podSets"] = [pod_set, {"name": "worker", "count": 3, "template": {"spec": worker}}]
    given = two["status"]["admission"]["podSetAssignments"]
    given.append({"name": "worker", "count": 3, "flavors": {GPU: "f"}, "resourceUsage": {GPU: "12"}})
    index = {"kueue.x-k8s.io/podset": "worker", "batch.kubernetes.io/job-completion-index": "2"}
    found = standing(
        two,
        pod("last", "n0", 4, started=9, owners=owner("Job", "a"), labels=index),
        pod("by-size", "n0", 4, started=9, owners=owner("Job", "a")),
        pod("main", "n0", 1, started=9, owners=owner("Job", "a")),
        pod(
            "too-many", "n0", 1, started=9, owners=owner("Job", "a"), labels={"kueue.x-k8s.io/podset": "main"}
        ),
    )
    assert {number: each.name for number, each in found.pods.items()} == {0: "main", 1: "by-size", 3: "last"}
    assert [each.name for each in found.more] == ["too-many"]
    assert found.wanted == 4


def since(*objects: Manifest) -> float | None:
    """For how many hours the job has run."""
    found = standing(*objects).since
    return None if found is None else (NOON.timestamp() - found / 1_000_000) / 3600


def test_a_job_runs_since_its_pods_are_ready_else_since_it_or_its_first_pod_started() -> None:
    """Then since its admission, where the dump has no pods of it; not while one of them has no node."""
    first = pod("p", "n0", 1, started=7, owners=owner("Job", "a"))
    second = pod("q", "n0", 1, started=6, owners=owner("Job", "a"))
    waits = pod("q", "", 1, owners=owner("Job", "a"))
    assert since(held(pods=2, ready=5), job("a", 8), first, second) == 5
    assert since(held(pods=2), job("a", 8), first, second) == 8
    assert since(held(pods=2), first, second) == 7
    assert since(held(pods=2)) == 9
    assert since(held(pods=2), job("a", 8), first, waits) is None
    assert since(held(pods=2), job("a", 8), first) is None
    assert since(workload("a", 1), job("a", 8), first) is None


def test_the_jobs_of_an_operators_object_say_since_when_it_runs() -> None:
    """Where its own status has no start; the first one counts."""
    own = owner("JobSet", "a")
    children = [job("a-0", 6, own), job("a-1", 7, own)]
    assert since(held(owners=own), owned("JobSet", "a", []), *children) == 7
    started = {**owned("JobSet", "a", []), "status": {"startTime": ago(5)}}
    assert since(held(owners=own), started, *children) == 5


def test_what_leads_pods_to_a_workload_is_part_of_what_a_cluster_is() -> None:
    """Its digest tells a Pod of a Workload from one of nobody, and one start of a Job from another."""
    there = [pod("p", "n0", 1, started=9, owners=owner("Job", each)) for each in ("a", "b")]
    digests = {cluster(held(), each).digest for each in there}
    digests |= {cluster(held(), job("a", hours), there[0]).digest for hours in (8, 9)}
    assert len(digests) == 4


def test_a_pod_that_only_has_the_name_of_a_workload_is_a_job_of_its_own() -> None:
    """It runs and the Workload waits, so it is not of it; both take part, each by a name of its own."""
    waits = workload("a", 1, owners=[])
    waits["metadata"]["name"] = "a"
    dump = cluster(waits, pod("a", "n0", 4, started=1, owners=[]), pod("b", "n0", 4, started=1, owners=[]))
    assert [(each.key, each.workload) for each in dump.pods] == [("pod d/a", ""), ("d/b", "")]
    assert [job.id for job, *_ in running_jobs(dump)] == ["d/a", "pod d/a", "d/b"]


@pytest.mark.parametrize(("succeeded", "reclaimable", "wanted"), [(0, 0, 4), (1, 0, 3), (9, 0, 2), (2, 1, 2)])
def test_pods_that_have_succeeded_are_not_wanted_unless_others_stand_in(
    succeeded: int, reclaimable: int, wanted: int
) -> None:
    """Of four pods at a time two run; `reclaimablePods` counts some of those that have succeeded already."""
    pods = [pod(f"a-{n}", "n0", 1, started=9, owners=owner("Job", "a")) for n in range(2 + succeeded)]
    for each in pods[2:]:
        each["status"]["phase"] = "Succeeded"
    admitted = workload("a", 1, pods=4, held=9)
    admitted["status"]["reclaimablePods"] = [{"name": "main", "count": reclaimable}]
    found = standing(admitted, *pods)
    assert (found.wanted, len(found.pods), found.more) == (wanted, 2, ())


@pytest.mark.parametrize("reclaimable", [0, 1])
def test_a_job_goes_on_if_all_of_its_pods_have_succeeded(reclaimable: int) -> None:
    """It holds its quota until it has ended itself, and new pods replace those that are not reclaimed."""
    pods = [pod(f"a-{n}", "n0", 1, started=9, owners=owner("Job", "a")) for n in range(4)]
    for each in pods:
        each["status"]["phase"] = "Succeeded"
    admitted = workload("a", 1, pods=4, held=9)
    admitted["status"]["reclaimablePods"] = [{"name": "main", "count": reclaimable}]
    dump = cluster(admitted, job("a", 9), *pods)
    assert standing_of(dump, of(dump)).wanted == 4 - reclaimable
    assert [each.pods for each, *_ in running_jobs(dump)] == [4 - reclaimable]


@pytest.mark.parametrize(
    ("kind", "status", "ended"),
    [
        ("Job", {"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ("Job", {"conditions": [{"type": "Complete", "status": "False"}]}, False),
        ("Job", {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}, False),
        ("JobSet", {"conditions": [{"type": "Completed", "status": "True"}]}, True),
        ("PyTorchJob", {"conditions": [{"type": "Failed", "status": "True"}]}, True),
        ("RayJob", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, True),
        ("AppWrapper", {"phase": "Succeeded"}, True),
        (
            "AppWrapper",
            {"phase": "Failed", "conditions": [{"type": "ResourcesDeployed", "status": "True"}]},
            False,
        ),
        ("Pod", {"phase": "Failed"}, True),
        ("Pod", {"phase": "Running"}, False),
        ("Job", None, False),
    ],
)
def test_a_workload_ends_with_its_job(kind: str, status: Manifest | None, ended: bool) -> None:
    """`kubectl` lists Workloads before Jobs, so a dump can show that only the job has ended."""
    own = {**owned(kind, "a", [], "v1"), "status": status}
    if kind == "Pod":
        own["spec"] = {"containers": [{"name": "main"}]}
    dump = cluster(held(owners=owner(kind, "a")), own)
    assert of(dump).finished == ended
    assert any("counts as finished, because its job has ended" in each for each in dump.warnings) == ended
    assert [each.id for each, *_ in running_jobs(dump)] == ([] if ended else ["d/job-a-1a2b3"])


def test_a_variant_of_a_workload_holds_no_quota_of_its_own() -> None:
    """With concurrent admission, the admission of a variant is also that of the Workload that owns it."""
    variant = workload("a", 1, held=9, owners=owner("Workload", "job-a-1a2b3", "w-a"))
    variant["metadata"].update(name="job-a-f-4c5d6", uid="w-a-f")
    dump = cluster(held(), variant, job("a", 9), pod("a", "n0", 1))
    assert [each.name for each in dump.workloads] == ["job-a-1a2b3"]
    assert [each.workload for each in dump.pods] == ["d/job-a-1a2b3"]
    assert [each for each in dump.warnings if "variant of another Workload" in each]
