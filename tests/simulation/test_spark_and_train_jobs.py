"""The pod sets that Kueue makes of SparkApplications, and of TrainJobs with their runtimes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_environment import called
from live_dumps import GPU, node, queue

from harness import ClusterError
from harness.cluster.load import cluster_from
from harness.studies.forecasting.new_job import submitted, with_runtimes

Manifest = dict[str, Any]
Made = dict[str, tuple[int, dict[str, int]]]

GI, MI = 2**30, 2**20
TRAINER = "trainer.kubeflow.org/v1alpha1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def job(kind: str, version: str, **spec: Any) -> Manifest:
    """A job in the queue `q`."""
    metadata = {"name": "mine", "namespace": "d", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def spark(driver: Manifest | None = None, executor: Manifest | None = None, **spec: Any) -> Manifest:
    """A SparkApplication."""
    version = "sparkoperator.k8s.io/v1beta2"
    return job("SparkApplication", version, driver=driver or {}, executor=executor or {}, **spec)


def train(**spec: Any) -> Manifest:
    """A TrainJob of the runtime `r`."""
    return job("TrainJob", TRAINER, **{"runtimeRef": {"name": "r"}, **spec})


def step(name: str, step: str = "", *, container: str = "node", **spec: Any) -> Manifest:
    """A replicated job of a runtime: pods of one GPU and one core."""
    resources = {"requests": {GPU: "1", "cpu": "1"}, "limits": {GPU: "1"}}
    template = {"spec": {"containers": [{"name": container, "resources": resources}]}}
    labels = {"metadata": {"labels": {STEP: step}}} if step else {}
    return {"name": name, "template": {**labels, "spec": {"template": template, **spec}}}


def runtime(*jobs: Manifest, kind: str = "ClusterTrainingRuntime", **spec: Any) -> Manifest:
    """The runtime `r`."""
    found = {"mlPolicy": {"numNodes": 3}, "template": {"spec": {"replicatedJobs": list(jobs)}}, **spec}
    metadata = {"name": "r", **({"namespace": "d"} if kind == "TrainingRuntime" else {})}
    return {"apiVersion": TRAINER, "kind": kind, "metadata": metadata, "spec": found}


def made(job: Manifest, *beside: Manifest) -> Made:
    """Pod set -> how many pods, and what each of them asks for."""
    cluster = cluster_from([node("n0"), *queue(), *beside], "dump")
    (found,) = submitted(cluster, job, "job").workloads
    return {each.name: (each.count, dict(each.requests)) for each in found.pod_sets}


def faults(job: Manifest, *beside: Manifest) -> str:
    """What is said against a job."""
    with pytest.raises(ClusterError) as caught:
        made(job, *beside)
    return str(caught.value)


def test_a_spark_application_asks_for_what_kueue_reads() -> None:
    """That is `coreRequest`, memory, limits without requests, and sidecars; not cores and overhead."""
    driver = {"cores": 4, "coreRequest": "500m", "memory": "512m", "memoryOverhead": "1g"}
    executor = {
        "instances": 5,
        "coreLimit": "2",
        "memory": "2Gi",
        "gpu": {"name": GPU, "quantity": 2},
        "sidecars": [{"name": "log", "resources": {"requests": {"memory": "1Gi"}}}],
    }
    assert made(spark(driver, executor)) == {
        "driver": (1, {"cpu": 500, "memory": 512 * MI}),
        "executor": (5, {"cpu": 2000, "memory": 3 * GI, GPU: 2}),
    }


def test_a_spark_application_has_the_operators_defaults() -> None:
    """1 GiB each, one executor, and no CPU request."""
    assert made(spark()) == {"driver": (1, {"memory": GI}), "executor": (1, {"memory": GI})}


@pytest.mark.parametrize(
    ("text", "amount"),
    [("512m", 512 * MI), ("512MB", 512 * MI), (" 1g ", GI), ("1Gi", GI), ("4k", 4096), ("4096", 4096)],
)
def test_memory_of_spark_is_as_java_writes_it(text: str, amount: int) -> None:
    """Small letters are powers of 1024, with `b` or without; Kubernetes' form stays."""
    assert made(spark({"memory": text}))["driver"] == (1, {"memory": amount})


def test_pods_of_spark_carry_the_fields_of_driver_and_executor() -> None:
    """Annotations of topology, node selectors and tolerations."""
    toleration = {"key": "t", "operator": "Exists"}
    topology = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    executor = {"nodeSelector": {"a": "b"}, "tolerations": [toleration], "annotations": topology}
    cluster = cluster_from([node("n0"), *queue()], "dump")
    (found,) = submitted(cluster, spark(executor=executor), "job").workloads
    driver, workers = found.pod_sets
    assert (driver.topology, workers.topology is not None) == (None, True)
    assert dict(workers.node_selector) == {"a": "b"}
    assert (driver.tolerations, json.loads(workers.tolerations or "")) == (None, [toleration])


@pytest.mark.parametrize(
    ("application", "said"),
    [
        (spark(mode="client"), "spec.mode: Kueue admits applications in cluster mode only"),
        (spark(dynamicAllocation={"enabled": True}), "give executor.instances"),
        (spark(sparkConf={"spark.dynamicAllocation.enabled": "true"}), "give executor.instances"),
        (spark(sparkConf={"spark.executor.instances": "4"}), "give executor.instances"),
        (spark(sparkConf={"spark.driver.memory": "4g"}), "give driver.memory"),
        (spark(nodeSelector={"a": "b"}), "give driver.nodeSelector and executor.nodeSelector"),
        (spark(batchScheduler="volcano"), "spec.batchScheduler: the pods of another scheduler"),
        (spark({"template": {"spec": {"nodeSelector": {"a": "b"}}}}), "give driver.nodeSelector"),
        (spark({"template": {"spec": {"containers": [{"resources": {}}]}}}), "containers[0].resources: K"),
        (spark({"memory": "much"}), "spec.driver.memory: 'much' is not a quantity"),
        (spark({"coreRequest": 1}), "spec.driver.coreRequest: must be text, not 1"),
        (spark(executor={"instances": 0}), "spec.executor.instances: 0 is out of range"),
        ({**spark(), "metadata": {"name": "mine"}}, "name a queue (kueue.x-k8s.io/queue-name)"),
    ],
)  # fmt: skip
def test_what_kueue_does_not_read_of_spark_is_named(application: Manifest, said: str) -> None:
    """With the field that Kueue reads, if there is one."""
    assert said in faults(application)


def test_fields_outweigh_the_configuration_of_spark() -> None:
    """Then its keys are no fault."""
    configuration = {"spark.executor.instances": "4", "spark.driver.memory": "4g"}
    found = made(spark({"memory": "2g"}, {"instances": 2}, sparkConf=configuration))
    assert (found["driver"][1], found["executor"][0]) == ({"memory": 2 * GI}, 2)


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
@pytest.mark.parametrize("beside", [True, False])
def test_the_runtime_of_a_train_job_is_in_the_dump_or_beside_it(kind: str, beside: bool) -> None:
    """A TrainingRuntime is one of the job's namespace; the one beside it comes first."""
    own, other = runtime(step("node", "trainer"), kind=kind), runtime(kind=kind)
    job = train(runtimeRef={"name": "r", "kind": kind})
    ((found, _),) = with_runtimes([(each, "jobs") for each in (job, own)] if beside else [(job, "jobs")])
    assert made(found, other if beside else own) == {"node": (3, {GPU: 1, "cpu": 1000})}
    elsewhere = {**own, "metadata": {"name": "r", "namespace": "e"}}
    if kind == "TrainingRuntime":
        assert "there is no TrainingRuntime 'r'" in faults(job, elsewhere)


def test_a_runtime_may_be_in_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all files on the command line; a runtime alone is no job."""
    jobs, runtimes, dump = (tmp_path / f"{name}.json" for name in ("jobs", "runtimes", "dump"))
    jobs.write_text(json.dumps(train()))
    runtimes.write_text(json.dumps(runtime(step("node", "trainer", container="c"))))
    items = [node("n0"), *queue(gpus=2)]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    args = ["simulate", "--cluster", str(dump), "--json", "--no-changes"]
    assert called([*args, str(jobs), str(runtimes)]) == 4
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    assert (answer["name"], answer["pods"]) == ("d/mine", 3)
    assert called([*args, str(runtimes)]) == 2
    assert "contains no job; a job is one of Job, Pod, JobSet" in capsys.readouterr().err


def test_nodes_and_their_resources_are_those_of_the_trainer() -> None:
    """Its amounts are laid over those of the container `node`; the other steps keep theirs."""
    steps = (
        step("dataset-initializer", "dataset-initializer", replicas=9),
        step("node", "trainer"),
        step("rest", parallelism=2),
    )
    resources = {"requests": {GPU: "4"}, "limits": {GPU: "4"}}
    found = made(train(trainer={"numNodes": 5, "resourcesPerNode": resources}), runtime(*steps))
    rest = {GPU: 1, "cpu": 1000}
    assert found == {"dataset-initializer": (1, rest), "node": (5, {GPU: 4, "cpu": 1000}), "rest": (2, rest)}


def test_replicas_count_only_of_steps_that_have_no_name() -> None:
    """Those of the trainer and the initializers have one."""
    steps = [
        {**step(name, kind), "replicas": 2}
        for name, kind in (("node", "trainer"), ("model", "model-initializer"), ("own", ""))
    ]
    assert {name: count for name, (count, _) in made(train(), runtime(*steps)).items()} == {
        "node": 3,
        "model": 1,
        "own": 2,
    }


def test_another_container_keeps_its_resources() -> None:
    """`resourcesPerNode` is that of the container `node`, in a runtime with a policy."""
    trainer = {"resourcesPerNode": {"requests": {GPU: "4"}, "limits": {GPU: "4"}}}
    job, other = train(trainer=trainer), step("node", "trainer", container="other")
    assert made(job, runtime(other))["node"][1][GPU] == 1
    assert made(job, runtime(step("node", "trainer"), mlPolicy=None))["node"] == (1, {GPU: 1, "cpu": 1000})


@pytest.mark.parametrize(("launcher", "pods"), [(True, (1, 4)), (False, (1, 5))])
def test_with_mpi_the_nodes_are_those_of_the_job_node(launcher: bool, pods: tuple[int, int]) -> None:
    """The launcher is one of them if the policy says so."""
    policy = {"numNodes": 1, "mpi": {"runLauncherAsNode": launcher}}
    steps = step("launcher", "trainer"), step("node")
    trainer = {"numNodes": 5, "resourcesPerNode": {"requests": {GPU: "2"}, "limits": {GPU: "2"}}}
    found = made(train(trainer=trainer), runtime(*steps, mlPolicy=policy))
    assert (found["launcher"][0], found["node"][0]) == pods
    assert (found["launcher"][1][GPU], found["node"][1][GPU]) == (2, 2 if launcher else 1)


def patch(manager: str = "me/x", job: str = "node", **pods: Any) -> Manifest:
    """A patch of the pods of a step."""
    jobs = [{"name": job, "template": {"spec": {"template": {"spec": pods}}}}]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    return {"manager": manager, "trainingRuntimeSpec": spec}


def test_patches_of_the_runtime_are_merged_in_order() -> None:
    """Those that Kueue wrote at an earlier start are left out: it takes them back."""
    job = train(
        runtimePatches=[
            patch(nodeSelector={"a": "1", "b": "1"}, containers=[{"name": "node", "env": []}]),
            patch(manager="me/y", nodeSelector={"b": "2"}),
            patch(manager="kueue.x-k8s.io/manager", nodeSelector={"c": "3"}),
        ]
    )
    cluster = cluster_from([node("n0"), *queue(), runtime(step("node", "trainer"))], "dump")
    (found,) = submitted(cluster, job, "job").workloads
    assert dict(found.pod_sets[0].node_selector) == {"a": "1", "b": "2"}
    assert dict(found.pod_sets[0].requests) == {GPU: 1, "cpu": 1000}


@pytest.mark.parametrize(
    ("job", "change", "said"),
    [
        (train(runtimeRef={"name": "other"}), {}, "there is no ClusterTrainingRuntime 'other', neither"),
        (train(runtimeRef={}), {}, "spec.runtimeRef.name: is missing"),
        (train(runtimeRef={"name": "r", "kind": "Other"}), {}, "spec.runtimeRef.kind: 'Other' is not one of"),
        (train(runtimePatches=[patch(job="other")]), {}, "the runtime has no 'other' to patch"),
        (train(runtimePatches=[patch(containers=[{"name": "x"}])]), {}, "the runtime has no 'x' to patch"),
        (train(runtimePatches=[patch(hostNetwork=True)]), {}, "template.spec.hostNetwork: cannot be patched"),
        (train(runtimePatches=[patch(containers=[{"name": "node", "resources": {}}])]), {},
         "containers[0].resources: cannot be patched"),
        (train(podTemplateOverrides=[]), {}, "spec.podTemplateOverrides: is a field of older Trainers"),
        (train(), {"podGroupPolicy": {"volcano": {}}}, "Runtime r: spec.podGroupPolicy: harness does"),
        (train(trainer={"numNodes": "2"}), {}, "spec.trainer.numNodes: must be a whole number"),
        (train(trainer={"numNodes": 0}), {}, "it has no pods"),
    ],
)  # fmt: skip
def test_a_train_job_that_cannot_be_read_is_refused(job: Manifest, change: Manifest, said: str) -> None:
    """With the field, of the job or its runtime."""
    assert said in faults(job, runtime(step("node", "trainer"), **change))
