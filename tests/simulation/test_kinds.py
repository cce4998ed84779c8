"""Each kind of job that Kueue admits by pod templates, as a file on the command line."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from cli_environment import called
from live_dumps import GPU, node, queue

import harness
from harness import InputError
from harness.base.errors import ClusterError
from harness.cluster.kinds.kueue_releases import release_named
from harness.cluster.kinds.workloads import read_pod_set
from harness.cluster.load import cluster_from
from harness.cluster.yaml.fields import Fields
from harness.plugins import load
from harness.studies.forecasting.job_kinds import KINDS, pod_sets_of
from harness.studies.forecasting.new_job import submitted
from harness.studies.simulation.answer import Answer
from harness.studies.simulation.asking import Question

LIBRARY = load(block=["metrics"])
Manifest = dict[str, Any]


def template(gpus: int = 1) -> Manifest:
    """A pod template of one container."""
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {GPU: str(gpus)}}}]}}


def replicas(field: str, **counts: int) -> Manifest:
    """A job of Kubeflow's: type of replica -> how many."""
    return {field: {name: {"replicas": count, "template": template()} for name, count in counts.items()}}


RAY = {
    "headGroupSpec": {"template": template()},
    "workerGroupSpecs": [{"groupName": "small", "replicas": 2, "template": template()}],
}
JOB = {"parallelism": 2, "completions": 2, "template": template()}
GROUP = {"size": 3, "workerTemplate": template()}
SPARK = {
    "driver": {"gpu": {"name": GPU, "quantity": 1}},
    "executor": {"instances": 2, "gpu": {"name": GPU, "quantity": 1}},
}
TRAINING = {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}}
RUNTIME: Manifest = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {
        "mlPolicy": {"numNodes": 2, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {"name": "node", "template": {**TRAINING, "spec": {"template": template()}}}
                ]
            }
        },
    },
}

JOBS: dict[str, tuple[str, Manifest, int]] = {
    "Job": ("batch/v1", {"spec": JOB}, 2),
    "Pod": ("v1", template(), 1),
    "Workload": (
        "kueue.x-k8s.io/v1beta1",
        {"spec": {"queueName": "q", "podSets": [{"name": "main", "count": 3, "template": template()}]}},
        3,
    ),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        {"spec": {"replicatedJobs": [{"name": "a", "replicas": 2, "template": {"spec": JOB}}]}},
        4,
    ),
    "RayJob": (
        "ray.io/v1",
        {"spec": {"rayClusterSpec": RAY, "submissionMode": "HTTPMode", "shutdownAfterJobFinishes": True}},
        3,
    ),
    "RayCluster": ("ray.io/v1", {"spec": RAY}, 3),
    "RayService": ("ray.io/v1", {"spec": {"rayClusterConfig": RAY}}, 3),
    "PyTorchJob": ("kubeflow.org/v1", {"spec": replicas("pytorchReplicaSpecs", Master=1, Worker=2)}, 3),
    "TFJob": ("kubeflow.org/v1", {"spec": replicas("tfReplicaSpecs", Chief=1, PS=1, Worker=2)}, 4),
    "XGBoostJob": ("kubeflow.org/v1", {"spec": replicas("xgbReplicaSpecs", Master=1, Worker=2)}, 3),
    "PaddleJob": ("kubeflow.org/v1", {"spec": replicas("paddleReplicaSpecs", Worker=2)}, 2),
    "JAXJob": ("kubeflow.org/v1", {"spec": replicas("jaxReplicaSpecs", Worker=2)}, 2),
    "MPIJob": ("kubeflow.org/v2beta1", {"spec": replicas("mpiReplicaSpecs", Launcher=1, Worker=2)}, 3),
    "Deployment": ("apps/v1", {"spec": {"replicas": 3, "template": template()}}, 3),
    "StatefulSet": ("apps/v1", {"spec": {"replicas": 3, "template": template()}}, 3),
    "LeaderWorkerSet": (
        "leaderworkerset.x-k8s.io/v1",
        {"spec": {"replicas": 2, "leaderWorkerTemplate": GROUP}},
        6,
    ),
    "AppWrapper": (
        "workload.codeflare.dev/v1beta2",
        {"spec": {"components": [{"template": {"kind": "Job", "spec": JOB}}]}},
        2,
    ),
    "SparkApplication": ("sparkoperator.k8s.io/v1beta2", {"spec": SPARK}, 3),
    "CronJob": (
        "batch/v1",
        {"spec": {"jobTemplate": {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}, "spec": JOB}}},
        2,
    ),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", {"spec": {"runtimeRef": {"name": "torch"}}}, 2),
}
"""Kind -> its version, its manifest without metadata, and how many pods it has."""


def manifest(kind: str, **spec: Any) -> Manifest:
    """A job of a kind in the queue `q`."""
    version, body, _ = JOBS[kind]
    metadata = {"name": "mine", "namespace": "d", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body, **spec}


def dump(gpus: int = 16) -> list[Manifest]:
    """Two nodes, a queue, and the runtime of a TrainJob."""
    quotas = [{"name": GPU, "nominalQuota": gpus}, {"name": "memory", "nominalQuota": "64Gi"}]
    flavors = [{"name": "f", "resources": quotas}]
    groups = [{"coveredResources": [GPU, "memory"], "flavors": flavors}]
    nodes = [node("n0"), node("n1")]
    for each in nodes:
        each["status"]["allocatable"]["memory"] = "64Gi"
    return [*nodes, *queue(resourceGroups=groups), RUNTIME]


def asked(job: Manifest, gpus: int = 16) -> Answer:
    """What is answered of a job."""
    return Question(LIBRARY, cluster_from(dump(gpus), "d"), "kueue-classic").answered([job]).answers[0]


def test_every_kind_is_tried() -> None:
    """All that can be submitted."""
    assert set(JOBS) == set(KINDS)


@pytest.mark.parametrize("kind", JOBS)
def test_a_file_of_a_job_is_asked_about(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It starts where there is room, and waits where its quota is too small; the exit code says which."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps(manifest(kind)))
    for gpus, code, verdict in ((16, 0, "starts"), (0, 4, "never")):
        there = tmp_path / f"dump-{gpus}.json"
        there.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump(gpus)}))
        assert called(["simulate", "--cluster", str(there), str(path), "--json", "--no-changes"]) == code
        (answer,) = json.loads(capsys.readouterr().out)["answers"]
        assert (answer["verdict"], answer["pods"]) == (verdict, JOBS[kind][2])
        if verdict == "starts":
            assert sum(answer["nodes"].values()) == JOBS[kind][2]


def test_each_replica_of_some_kinds_is_a_workload() -> None:
    """So some of them may start alone, and the job waits for the others."""
    found = asked(manifest("Deployment"), gpus=2)
    assert found.ids == ("d/mine-0", "d/mine-1", "d/mine-2")
    assert (found.verdict, found.waits_for, sum(found.nodes.values())) == ("waits", "quota", 2)
    assert [each.text for each in found.changes or ()] == [
        f"1 {GPU} more nominalQuota of flavor f in ClusterQueue q"
    ]
    groups = asked(manifest("LeaderWorkerSet"), gpus=5)
    assert (groups.name, groups.ids, groups.pods) == ("d/mine", ("d/mine-0", "d/mine-1"), 6)
    assert groups.verdict == "waits"
    assert asked(manifest("StatefulSet"), gpus=2).ids == ("d/mine",)


def test_a_job_without_a_queue_gets_the_default_queue_of_its_namespace() -> None:
    """As Kueue's webhooks set it. Without such a LocalQueue, Kueue leaves the job to kube-scheduler."""
    job = manifest("Job")
    del job["metadata"]["labels"]
    of = {"metadata": {"name": "default", "namespace": "d"}, "spec": {"clusterQueue": "q"}}
    default = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", **of}
    world = cluster_from([*dump(), default], "d")
    found = Question(LIBRARY, world, "kueue-classic").answered([job]).answers[0]
    assert (found.queue, found.verdict) == ("default", "starts")
    assert asked(job).ids == ("d/mine-0", "d/mine-1")  # its pods


def kueue(tag: str, **configuration: Any) -> list[Manifest]:
    """The Deployment of Kueue's controller, whose image names the release, and its Configuration."""
    image = {"template": {"spec": {"containers": [{"name": "m", "image": f"k8s.io/kueue/kueue:{tag}"}]}}}
    head = {"apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration"}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kueue"}, "spec": image},
        {**head, **configuration},
    ]


IGNORED = "Kueue suspends this job .* managedJobsNamespaceSelector does not select the namespace d"


@pytest.mark.parametrize(
    ("kind", "tag", "settings", "queue", "found"),
    [
        ("Job", "main", {}, "", ["d/mine-0", "d/mine-1"]),
        ("Job", "v0.18.5", {}, "", ["d/mine-0", "d/mine-1"]),
        ("Pod", "v0.19.0", {}, "", ["d/mine"]),
        ("Pod", "main", {}, "default", ["d/mine"]),
        ("Job", "v0.14.8", {}, "", ["d/mine"]),
        ("Job", "main", {"managedJobsNamespaceSelector": {"matchLabels": {"team": "d"}}}, "", ["d/mine"]),
        ("Job", "main", {"namespace": "kueue"}, "", ["d/mine"]),
        ("Job", "main", {"namespace": "d"}, "", ["d/mine-0", "d/mine-1"]),
        ("Job", "v0.19.0", {}, "", IGNORED),
        ("Job", "main", {}, "default", IGNORED),
    ],
)
def test_the_default_queue_is_only_for_namespaces_that_kueue_manages(
    kind: str, tag: str, settings: dict[str, Any], queue: str, found: list[str] | str
) -> None:
    """Since 0.18.5 and 0.19.1. Kueue never manages Pods of other namespaces, and ignores jobs since 0.15."""
    job = manifest(kind)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    others = {"managedJobsNamespaceSelector": {"matchLabels": {"team": "other"}}}
    of = {"metadata": {"name": "default", "namespace": "d"}, "spec": {"clusterQueue": "q"}}
    default = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", **of}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "d", "labels": {"team": "d"}}}
    world = cluster_from([*dump(), default, space, *kueue(tag, **(settings or others))], "d")
    if isinstance(found, str):
        with pytest.raises(ClusterError, match=found):
            submitted(world, job, "d")
        return
    made = submitted(world, job, "d")
    own = [each.key for each in made.workloads] + [f"{each.namespace}/{each.name}" for each in made.pods]
    assert own == found
    assert bool(made.pods) == (len(found) == 2 or kind == "Pod")


FRAMEWORKS = {"frameworks": ["batch/job", "ray.io/rayjob"]}
SUSPENDED = "metadata.labels: Kueue suspends this job, .* manageJobsWithoutQueueName is true"


@pytest.mark.parametrize(
    ("kind", "settings", "queue", "found"),
    [
        ("Job", {"manageJobsWithoutQueueName": True}, "", SUSPENDED),
        ("Job", {"manageJobsWithoutQueueName": False}, "", "pods"),
        ("Job", {"manageJobsWithoutQueueName": True}, "q", "workloads"),
        ("Pod", {"manageJobsWithoutQueueName": True}, "", "pods"),
        ("Pod", {"manageJobsWithoutQueueName": True, "integrations": {"frameworks": ["pod"]}}, "", SUSPENDED),
        ("Job", {"manageJobsWithoutQueueName": True, "namespace": "d"}, "", "pods"),
        ("RayJob", {"integrations": FRAMEWORKS}, "q", "workloads"),
        ("JobSet", {"integrations": FRAMEWORKS}, "q", "pods"),
        ("Deployment", {"integrations": {"frameworks": ["deployment"]}}, "q", "workloads"),
        ("AppWrapper", {"integrations": FRAMEWORKS}, "q", "pods"),
        (
            "AppWrapper",
            {"integrations": {**FRAMEWORKS, "externalFrameworks": ["AppWrapper.v1beta2.codeflare.dev"]}},
            "q",
            "workloads",
        ),
    ],
)
def test_kueue_manages_the_jobs_that_its_configuration_names(
    kind: str, settings: dict[str, Any], queue: str, found: str
) -> None:
    """By their kind, and with or without a queue. kube-scheduler places the pods of other jobs."""
    job = manifest(kind)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    world = cluster_from([*dump(), *kueue("main", **settings)], "d")
    if found == SUSPENDED:
        with pytest.raises(ClusterError, match=found):
            submitted(world, job, "d")
        return
    made = submitted(world, job, "d")
    assert ("pods" if made.pods else "workloads") == found
    assert bool(made.pods) != bool(made.workloads)


@pytest.mark.parametrize(
    ("kind", "label"),
    [("Pod", "kueue.x-k8s.io/pod-group-name"), ("Job", "kueue.x-k8s.io/prebuilt-workload-name")],
)
def test_a_job_that_shares_a_workload_is_refused(kind: str, label: str) -> None:
    """Kueue makes one Workload of the whole group, or takes the one that is named."""
    job = manifest(kind)
    job["metadata"]["labels"][label] = "g"
    with pytest.raises(ClusterError, match=f"{label}: Kueue makes no Workload of this object alone"):
        asked(job)


@pytest.mark.parametrize(
    ("tag", "gates", "label", "priority"),
    [
        ("main", {}, None, 1000),
        ("v0.19.2", {}, None, 0),
        ("v0.19.2", {"WorkloadPriorityClassDefaulting": True}, None, 1000),
        ("main", {"WorkloadPriorityClassDefaulting": False}, None, 0),
        ("main", {}, "low", -5),
    ],
)
def test_a_job_without_a_class_gets_the_workload_priority_class_default(
    tag: str, gates: dict[str, bool], label: str | None, priority: int
) -> None:
    """Since Kueue 0.20. The image of Kueue's controller names the release, its Configuration the gates."""
    job = manifest("Job")
    if label is not None:
        job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = label
    classes = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("default", 1000), ("low", -5))
    ]
    world = cluster_from([*dump(), *classes, *kueue(tag, featureGates=gates)], "d")
    assert submitted(world, job, "d").workloads[-1].priority == priority


def test_a_forecast_submits_one_workload(tmp_path: Path) -> None:
    """Of a job that is several it says so, and of a file with several jobs as well."""
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest("Job")] * 2}))
    with pytest.raises(ClusterError, match="2 jobs; a forecast accepts one, and harness simulate accepts"):
        harness.forecast(cluster_from(dump(), "d"), submit=file, plugins=LIBRARY)
    with pytest.raises(InputError, match="it becomes 3 Workloads or Pods, but a forecast submits only one"):
        harness.forecast(cluster_from(dump(), "d"), submit=manifest("Deployment"), plugins=LIBRARY)


def test_the_leader_of_a_group_can_have_a_template_of_its_own() -> None:
    """The others are as many as are left of the group's size."""
    body = {"leaderWorkerTemplate": {**GROUP, "leaderTemplate": template(4)}}
    found = asked(manifest("LeaderWorkerSet", spec=body))
    assert (found.pods, sorted(found.flavors)) == (3, ["leader", "worker"])


def test_pod_sets_of_an_app_wrapper_are_where_its_paths_say() -> None:
    """Of a component without paths they are those of its kind; one of another kind has none."""
    custom = {"kind": "Thing", "spec": {"groups": [{"pods": template()}, {"pods": template(2)}]}}
    paths = [
        {"path": "template.spec.groups[0].pods", "replicas": 2},
        {"path": "template.spec.groups[1].pods"},
    ]
    components = [{"template": custom, "podSets": paths}, {"template": {"kind": "Service", "spec": {}}}]
    found = asked(manifest("AppWrapper", spec={"components": components}))
    assert (found.pods, sorted(found.flavors)) == (3, ["mine-0", "mine-1"])


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (manifest("AppWrapper", spec={"components": [{"template": {}, "podSets": [{"path": "spec"}]}]}),
         "there is no pod template at 'spec'"),
        (manifest("AppWrapper", spec={"components": [{"template": {"kind": "Service"}}]}), "it has no pods"),
        (manifest("Deployment", spec={"replicas": 0, "template": template()}), "it has no pods"),
        (manifest("Deployment", spec={"replicas": 10**6, "template": template()}), "is out of range"),
        (manifest("LeaderWorkerSet", spec={"leaderWorkerTemplate": {}}), "there are none"),
        ({**manifest("Job"), "kind": "Workflow"}, "kind 'Workflow' is not one of"),
    ],
)  # fmt: skip
def test_a_faulty_job_is_refused(
    job: Manifest, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the field and what is wrong with it."""
    path, there = tmp_path / "job.json", tmp_path / "dump.json"
    path.write_text(json.dumps(job))
    there.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump()}))
    assert called(["simulate", "--cluster", str(there), str(path)]) == 2
    assert said in capsys.readouterr().err


def test_a_file_may_have_what_its_job_reads_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As people give it to kubectl apply. A file without a job is refused."""
    kinds, head = ("ConfigMap", "Secret"), {"apiVersion": "v1", "metadata": {"name": "c"}}
    beside = [{**head, "kind": kind} for kind in kinds]
    path, there = tmp_path / "job.json", tmp_path / "dump.json"
    there.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump()}))
    codes = []
    for items in ([*beside, manifest("Job")], beside):
        path.write_text("\n---\n".join(map(json.dumps, items)))
        codes.append(called(["simulate", "--cluster", str(there), str(path), "--no-changes"]))
    assert codes == [0, 2]
    assert "contains no job; a job is one of Job" in capsys.readouterr().err


def test_several_jobs_give_the_largest_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 starts now, 3 waits, 4 can never start."""
    there = tmp_path / "dump.json"
    there.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump()}))
    paths = []
    for number, gpus in enumerate((8, 8, 9)):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(manifest("Job", spec={**JOB, "template": template(gpus)})))
    args = ["simulate", "--cluster", str(there), "--no-changes"]
    codes = [called([*args, *map(str, paths[:count])]) for count in (1, 2, 3)]
    capsys.readouterr()
    assert codes == [0, 3, 4]


def test_a_local_queue_without_its_cluster_queue_is_named() -> None:
    """The LocalQueue exists, so the message says what is missing."""
    of = {"metadata": {"name": "default", "namespace": "d"}, "spec": {"clusterQueue": "gone"}}
    local = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", **of}
    job = manifest("Job")
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "default"}
    world = cluster_from([*dump(), local], "d")
    with pytest.raises(InputError, match="LocalQueue d/default names ClusterQueue 'gone', which the manif"):
        submitted(world, job, "d")


@pytest.mark.parametrize(
    ("release", "cpu", "memory"),
    [
        ("v0.16.9", 1000, 0),
        ("v0.17.6", 1000, 256),
        ("v0.17.7", 1500, 456),
        ("v0.18.2", 1000, 256),
        ("v0.18.3", 1500, 456),
        ("v0.19.0", 2000, 968),
        ("ff69552", 2000, 968),
    ],
)
def test_a_ray_head_has_what_kueue_adds_to_it(release: str, cpu: int, memory: int) -> None:
    """The submitter of `SidecarMode`, the autoscaler, and the Job that cleans up Redis after the cluster."""
    ray = {**RAY, "enableInTreeAutoscaling": True, "gcsFaultToleranceOptions": {"redisAddress": "r"}}
    head = template()
    head["spec"]["containers"] = [{"name": "head", "resources": {"requests": {"cpu": "1"}}}]
    ray["headGroupSpec"] = {"template": head}
    spec = {"rayClusterSpec": ray, "submissionMode": "SidecarMode", "shutdownAfterJobFinishes": True}
    job = manifest("RayJob", spec=spec)
    pod_sets = pod_sets_of(Fields(job, "", []), release_named(release))
    requests = read_pod_set(Fields(pod_sets[0], "", [])).requests
    assert (requests["cpu"], requests.get("memory", 0) // 2**20) == (cpu, memory)
    assert [each["name"] for each in pod_sets] == ["head", "small"]


@pytest.mark.parametrize(
    ("changes", "requests"),
    [
        ({"autoscalerOptions": {"resources": {"requests": {"cpu": "2"}}}}, {"cpu": 2000}),
        ({"autoscalerOptions": {"imagePullPolicy": "Always"}}, {"cpu": 500, "memory": 512 * 2**20}),
        ({"enableInTreeAutoscaling": False}, {}),
    ],
)
def test_the_autoscaler_of_a_ray_cluster_has_its_own_resources(
    changes: Manifest, requests: dict[str, int]
) -> None:
    """If its options give some, only these count."""
    job = manifest("RayCluster", spec={**RAY, "enableInTreeAutoscaling": True, **changes})
    bare, found = (
        read_pod_set(Fields(pod_sets_of(Fields(each, "", []))[0], "", [])).requests
        for each in (manifest("RayCluster"), job)
    )
    more = {name: amount - bare.get(name, 0) for name, amount in found.items()}
    assert {name: amount for name, amount in more.items() if amount} == requests


def test_a_ray_job_that_keeps_its_cluster_is_refused() -> None:
    """`validateCreate` in pkg/controller/jobs/rayjob/rayjob_webhook.go, in all releases."""
    job = manifest("RayJob", spec={"rayClusterSpec": RAY, "submissionMode": "HTTPMode"})
    with pytest.raises(ClusterError, match=r"spec\.shutdownAfterJobFinishes: must be true"):
        submitted(cluster_from(dump(), "d"), job, "d")


ELASTIC = {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}


@pytest.mark.parametrize(
    ("kind", "changes", "metadata", "fault"),
    [
        ("RayCluster", {"enableInTreeAutoscaling": True}, {}, r"spec\.enableInTreeAutoscaling: Kueue"),
        ("RayCluster", {"enableInTreeAutoscaling": True}, ELASTIC, ""),
        ("RayService", {"enableInTreeAutoscaling": True}, {}, r"spec\.rayClusterConfig\.enableInTree"),
        ("RayJob", {"enableInTreeAutoscaling": True}, {}, r"spec\.rayClusterSpec\.enableInTree"),
        ("RayCluster", {"groupName": "head"}, {}, r"workerGroupSpecs\[0\]\.groupName: Kueue's webhook"),
    ],
)
def test_ray_clusters_that_kueues_webhook_refuses(
    kind: str, changes: dict[str, Any], metadata: dict[str, Any], fault: str
) -> None:
    """Autoscaling needs an elastic job, whose gate is on by default since 0.18."""
    ray = {**RAY, **changes}
    if "groupName" in changes:
        ray["workerGroupSpecs"] = [{**RAY["workerGroupSpecs"][0], **changes}]
    spec = {
        "RayCluster": ray,
        "RayService": {"rayClusterConfig": ray},
        "RayJob": {"rayClusterSpec": ray, "shutdownAfterJobFinishes": True},
    }[kind]
    job = manifest(kind, spec=spec)
    job["metadata"] |= metadata
    with pytest.raises(ClusterError, match=fault) if fault else nullcontext():
        submitted(cluster_from(dump(), "d"), job, "d")
    if metadata:
        old = kueue("v0.17.8")[0]
        with pytest.raises(ClusterError, match="without the gate ElasticJobsViaWorkloadSlices"):
            submitted(cluster_from([*dump(), old], "d"), job, "d")


@pytest.mark.parametrize(
    ("pod_sets", "release", "refused"), [(18, "", False), (19, "", True), (9, "v0.17.8", True)]
)
def test_a_job_of_more_pod_sets_than_a_workload_has_is_refused(
    pod_sets: int, release: str, refused: bool
) -> None:
    """`MaxItems` of a Workload's `podSets`: Kueue cannot create the Workload, and the job stays suspended."""
    jobs = [{"name": f"j{n}", "replicas": 1, "template": {"spec": JOB}} for n in range(pod_sets)]
    items = [*dump(), *(kueue(release)[:1] if release else [])]
    with pytest.raises(ClusterError, match=f"spec: makes {pod_sets} pod sets") if refused else nullcontext():
        submitted(cluster_from(items, "d"), manifest("JobSet", spec={"replicatedJobs": jobs}), "d")


def test_the_job_of_a_cron_job_has_the_queue_of_its_template() -> None:
    """Kueue does not read the labels of the CronJob itself."""
    job = manifest("CronJob", spec={"schedule": "0 * * * *", "jobTemplate": {"spec": JOB}})
    assert [pod.name for pod in submitted(cluster_from(dump(), "d"), job, "d").pods] == ["mine-0", "mine-1"]
    found = submitted(cluster_from(dump(), "d"), manifest("CronJob"), "d")
    assert [each.key for each in found.workloads] == ["d/mine"]


def test_a_ray_job_of_an_existing_cluster_is_refused() -> None:
    """Kueue skips it, because the cluster has a Workload of its own."""
    job = manifest("RayJob", spec={"clusterSelector": {"ray.io/cluster": "c"}})
    with pytest.raises(
        ClusterError, match=r"spec\.clusterSelector: Kueue does not manage a RayJob that uses"
    ):
        submitted(cluster_from(dump(), "d"), job, "d")
