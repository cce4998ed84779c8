"""The policy: what becomes of jobs, options and configurations, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from kube_worlds import HOSTNAME, World, budget, job, node

from harness.api import replay
from harness.base.errors import ClusterError, InputError
from harness.cluster.load import cluster_from
from harness.plugins import loading as plugins
from harness.policy import Job, PodSet
from harness_plugins.kube.policy import default_preemption


def configuration(**fields: Any) -> dict[str, Any]:
    """A KubeSchedulerConfiguration."""
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields}


def test_it_is_registered_with_its_options() -> None:
    """By name, through the plugin's entry point."""
    spec = plugins.load().policy("default-preemption")
    assert [option.name for option in spec.options] == [
        "percentageOfNodesToScore",
        "devices",
        "deviceSeed",
        "disablePreemption",
        "evictionLatency",
        "gang",
        "gangScheduling",
    ]
    assert spec.owner == "kube"


def test_a_cluster_without_nodes_is_an_error_that_says_what_to_give() -> None:
    """Pods are scheduled onto nodes."""
    with pytest.raises(InputError, match="the cluster has none") as error:
        default_preemption(cluster_from([], "test"), None, {})  # type: ignore[arg-type]
    assert error.value.hint is not None
    assert "--cluster" in error.value.hint


def test_a_job_that_fits_no_empty_node_is_rejected_with_the_reasons() -> None:
    """In kube-scheduler's words, counted over nodes; the others are scheduled."""
    tainted = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    world = World(
        [node("n1"), node("n2", cpu=4), node("n3", cpu=64, spec=tainted)],
        job("large", {"cpu": 11}),
        job("strange", {"example.com/fpga": 1}),
        job("small", {"cpu": 1}),
    )
    start, tail = "0/3 nodes could run the pod even when empty", "1 node(s) had untolerated taint(s)"
    assert world.about("reject", "bind") == [
        f"0 reject large: {start}: 2 Insufficient cpu, {tail}",
        f"0 reject strange: {start}: 2 Insufficient example.com/fpga, {tail}",
        "0 bind small on n1",
    ]
    assert world.states["large"] == "rejected"


@pytest.mark.parametrize("by", ["option", "configuration"])
def test_preemption_is_disabled_by_option_or_configuration(by: str) -> None:
    """Both mean the same scheduler, which only waits."""
    objects = [node("n1")] + ([configuration(disablePreemption=True)] if by == "configuration" else [])
    options = {"disablePreemption": True} if by == "option" else {}
    world = World(objects, job("a", {"cpu": 10}, runs=20), job("p", {"cpu": 10}, priority=9, at=1), **options)
    assert world.about("preempt", "bind") == ["0 bind a on n1", "20 bind p on n1"]


def many_nodes() -> list[dict[str, Any]]:
    """200 small nodes, but for n050, which is larger, and n150, which is the largest."""
    sizes = {50: 4, 150: 100}
    return [node(f"n{number:03}", cpu=sizes.get(number, 2)) for number in range(200)]


@pytest.mark.parametrize(("percentage", "best"), [(100, "n150"), (50, "n050"), (0, "n050")])
def test_large_clusters_are_searched_until_enough_nodes_fit(percentage: int, best: str) -> None:
    """The largest node has the best score; a search that stops at 100 nodes that fit does not get to it."""
    world = World(many_nodes(), job("a", {"cpu": 1}), percentageOfNodesToScore=percentage)
    assert world.about("bind") == [f"0 bind a on {best}"]


def test_a_search_begins_where_the_last_one_ended() -> None:
    """So that all nodes of a large cluster get their turn."""
    world = World(many_nodes(), job("a", {"cpu": 1}), job("b", {"cpu": 1}), percentageOfNodesToScore=50)
    assert world.about("bind") == ["0 bind a on n050", "0 bind b on n150"]


def pinned(*names: str) -> dict[str, Any]:
    """An affinity to nodes by their names."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": required}


def test_of_a_pod_whose_affinity_names_nodes_only_these_are_looked_at() -> None:
    """The next search begins one node further, not where it would have begun without that pod."""
    nodes = [node(f"n{number:03}", cpu=4) for number in range(200)]
    jobs = (job("a", {"cpu": 1}), job("pin", {"cpu": 1}, affinity=pinned("n050", "gone")))
    for number, first in enumerate(("n100", "n101")):
        world = World(nodes, *jobs[: number + 1], job("b", {"cpu": 1}), percentageOfNodesToScore=50)
        assert world.about("bind")[-1] == f"0 bind b on {first}"


@pytest.mark.parametrize("preempts", [False, True])
def test_every_attempt_of_such_a_pod_counts_also_where_an_equal_one_has_failed(preempts: bool) -> None:
    """Three pods wait for a node that is full; each looks at it when it comes and after each of six ends."""
    nodes = [node(f"n{number:03}", cpu=4) for number in range(200)]
    full, other = pinned("n050"), pinned("n051")
    jobs = [job("full", {"cpu": 4}, affinity=full)]
    jobs += [job(f"short-{number}", {"cpu": 0}, affinity=other, runs=number) for number in range(2, 8)]
    jobs += [job(f"waits-{number}", {"cpu": 1}, affinity=full, at=1) for number in range(3)]
    jobs.append(job("b", {"cpu": 1}, at=9))
    world = World(nodes, *jobs, until=10, percentageOfNodesToScore=50, disablePreemption=not preempts)
    looked_at = 1 + 6 + 3 * (1 + 6)
    assert world.about("bind")[-1] == f"9 bind b on n{looked_at:03}"
    assert world.policy.scheduler.attempts == looked_at + 1


def test_a_percentage_beyond_100_is_refused() -> None:
    """The message names the option."""
    with pytest.raises(InputError, match="option percentageOfNodesToScore: 101 is not a percentage"):
        World([node("n1")], percentageOfNodesToScore=101)


def test_rules_of_a_trace_are_obeyed() -> None:
    """Node selectors, tolerations and affinity of a job's pods decide where they run."""
    world = World(
        [node("n1", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]}), node("n2"), node("n3")],
        job("tolerant", tolerations=[{"key": "gpu", "operator": "Exists"}], nodeSelector={HOSTNAME: "n1"}),
        job("selective", nodeSelector={HOSTNAME: "n3"}),
    )
    assert world.about("bind") == ["0 bind tolerant on n1", "0 bind selective on n3"]


def test_a_template_that_contradicts_the_trace_is_an_error() -> None:
    """The job and the field are named."""
    template = '{"containers": [{"resources": {"requests": {"cpu": 2}}}]}'
    pod_set = PodSet("main", 1, 1, {"cpu": 1000}, pod_template=template)
    one = Job(0, "j", 0, "q", "default", "", 0, "", True, False, 0, "", (pod_set,), 1)
    policy = default_preemption(cluster_from([node("n1")], "test"), None, {})  # type: ignore[arg-type]
    said = "job j, pod set main: pod_template: its containers' requests differ"
    with pytest.raises(ClusterError, match=said):
        policy.submit(one, range(1), 0)


def test_pods_that_wait_for_their_gang_count_as_healthy() -> None:
    """A budget looks at bound pods, whatever they do; an unbound one is expected and not healthy."""
    world = World(
        [node("n1"), budget("gang", {"app": "gang"}, maxUnavailable=1)],
        job("gang", {"cpu": 6}, pods=2, gang=True, labels={"app": "gang"}, grace=30),
        job("p", {"cpu": 10}, priority=1, at=1),
        until=10,
    )
    assert world.about("preempt") == ["1 preempt gang-0 by p on n1"]
    assert world.details[0]["pdb_violations"] == 1, "one of two pods is missing already"


def test_a_whole_replay_keeps_the_reasons_of_preemptions(write_trace: Any, tmp_path: Any) -> None:
    """From a trace file to the run folder, with the cluster given as manifests."""
    trace = write_trace(
        {"job_id": "low", "request.cpu": 10_000, "duration": 100},
        {"job_id": "high", "request.cpu": 10_000, "submit_time": 5, "duration": 10, "priority": 7},
    )
    cluster = cluster_from([node("n1")], "test")
    run = replay(trace, plugin="default-preemption", cluster=cluster, grace_period="10s", output=tmp_path)
    rows = run.decisions.select("action", "pod", "by", "reason", "node").rows()
    assert ("preempt", "low", "high", "PreemptionByScheduler", "n1") in rows
    assert ("bind", "low-r1", None, None, "n1") in rows
