"""Jobs that can never start: named before a replay, rejected alike by all plugins, left out on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness as package

Harness = Callable[..., Any]
Write = Callable[..., Path]
TAINT = {"key": "spot", "value": "1", "effect": "NoSchedule"}
QUOTA_PLUGINS = ("none", "kueue-classic", "fairsharing")


def flavor(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": spec,
    }


def queue(name: str, flavors: dict[str, int], **spec: Any) -> dict[str, Any]:
    offers = [
        {"name": each, "resources": [{"name": "cpu", "nominalQuota": amount}]}
        for each, amount in flavors.items()
    ]
    groups = [{"coveredResources": ["cpu"], "flavors": offers}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "resourceGroups": groups, **spec},
    }


def node(name: str, cpu: int, labels: dict[str, str] | None = None, *taints: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "pods": 110}},
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Callable[..., Path]:
    """Writes manifests."""

    def write(*objects: Any) -> Path:
        path = tmp_path / "cluster.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return path

    return write


def test_by_quota_and_flavor_all_plugins_reject_the_same(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path]
) -> None:
    """One line with ids, count and the limit of each flavor; and no difference between the plugins."""
    rows = [{"queue": "a", "request.cpu": 9000 if n % 2 else 1000} for n in range(10)]
    rows.append({"queue": "a", "request.cpu": 1000, "tolerations": json.dumps([{"operator": "Exists"}])})
    where = cluster(
        *(flavor("f", nodeLabels={"kind": "f"}), flavor("t", nodeTaints=[TAINT])),
        queue("a", {"f": 8, "t": 80}),
    )
    names = [part for name in QUOTA_PLUGINS for part in ("-p", name)]
    ended = harness("replay", write_trace(*rows), "--cluster", where, *names, "--json")
    (warning,) = [line for line in ended.err.split("\n") if line.startswith("warning")]
    assert warning == (
        "warning: 5 of 11 jobs can never start (j1, j3, j5 and 2 more): no flavor of ClusterQueue a can ever "
        "give it 9 of cpu: f gives at most 8 of cpu; t has the taint spot=1:NoSchedule, which the job "
        "does not tolerate"
    )
    table = {
        (row["metric"], row["resource"]): set(row["values"].values())
        for row in json.loads(ended.out)["metrics"]
    }
    assert table["jobs.rejected", ""] == {5}
    assert len(table["utilization.of_demand", "cpu"]) == 1


def test_a_topology_that_no_flavor_has_is_named(
    write_trace: Write, cluster: Callable[..., Path], tmp_path: Path
) -> None:
    """A level that the topology lacks, or any topology; and in both directions, as in Kueue."""
    topology = {**flavor("t"), "kind": "Topology", "spec": {"levels": [{"nodeLabel": "rack"}]}}
    where = cluster(
        *(topology, flavor("f"), flavor("g", topologyName="t", nodeLabels={"kind": "g"})),
        *(node("n", 8, {"kind": "g", "rack": "r"}), queue("a", {"g": 8}), queue("b", {"f": 8})),
        queue("c", {"f": 0, "g": 8}),
    )
    rows = [{"queue": name, "topology_required": "block"} for name in "ab"]
    trace = write_trace(*rows, {"queue": "c", "topology_required": None})
    run = package.replay(trace, plugin="kueue-classic", cluster=where, output=tmp_path / "results")
    told = run.decisions.filter(run.decisions["action"] == "reject")["reason"].to_list()
    assert [each.partition("of cpu: ")[2] for each in told] == [
        "g has no topology level block",
        "f has no topology, but the job requests one",
        "f gives at most 0 of cpu; g has a topology, but the job requests none",
    ]


def test_what_is_left_out_is_counted_and_the_rest_decides_as_before(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path], tmp_path: Path
) -> None:
    """Jobs that are too large for a queue, and those of queues that there are not."""
    rows = [{"queue": "a", "request.cpu": 1000 + 2000 * (n % 3), "submit_time": n} for n in range(9)]
    rows += [{"queue": "nobody"}]
    where = cluster(flavor("f"), queue("a", {"f": 4}))
    trace = write_trace(*rows)
    refused = harness("replay", trace, "--cluster", where, "-p", "kueue-classic")
    assert refused.code == 2
    assert "--drop-impossible" in refused.err
    ended = harness("replay", trace, "--cluster", where, "-p", "kueue-classic", "--drop-impossible")
    assert ended.code == 0, ended.err
    assert "left out: 4 rows: can never start, removed by --drop-impossible" in ended.err
    assert "can never start (" not in ended.err
    (folder,) = (tmp_path / "here" / "results" / "trace").iterdir()
    info = json.loads((folder / "run.json").read_text())
    assert info["trace"]["left_out"] == {"can never start, removed by --drop-impossible": 4}
    assert info["settings"]["calibration"] == {"drop_impossible": "4 jobs"}
    assert info["trace"]["jobs"] == 6


def test_who_rejects_is_said_where_plugins_differ(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path]
) -> None:
    """On nodes `none` knows no quota; to both a job is impossible that no node can run."""
    trace = write_trace(*({"queue": "a", "request.cpu": cpu} for cpu in (1000, 3000, 6000, 1000)))
    where = cluster(
        *(node(f"n{number}", 4, {"kind": "f"}) for number in range(2)),
        flavor("f", nodeLabels={"kind": "f"}),
        queue("a", {"f": 2}),
    )
    ended = harness("replay", trace, "--cluster", where, "-p", "none", "-p", "kueue-classic")
    assert "warning: none: 1 of 4 jobs can never start (j2): 0/2 nodes could run the pod even" in ended.err
    assert "warning: kueue-classic: 2 of 4 jobs can never start (j1, j2): no flavor of Cluster" in ended.err


def test_a_job_that_no_node_of_its_flavors_can_run_gets_no_quota(
    write_trace: Write, cluster: Callable[..., Path], tmp_path: Path
) -> None:
    """Kueue would admit it, and its pods would wait for ever: it is rejected, and others get the quota."""
    where = cluster(
        *(node("big", 16, {"kind": "g"}), node("small", 4, {"kind": "f"})),
        *(flavor("f", nodeLabels={"kind": "f"}), flavor("g", nodeLabels={"kind": "g"})),
        *(queue("a", {"f": 20}), queue("b", {"f": 0, "g": 20})),
    )
    trace = write_trace(
        {"queue": "a", "request.cpu": 6000}, {"queue": "b", "request.cpu": 6000}, {"queue": "a"}
    )
    run = package.replay(trace, plugin="kueue-classic", cluster=where, output=tmp_path / "results")
    assert run.jobs["state"].to_list() == ["rejected", "finished", "finished"]
    reasons = run.decisions.filter(run.decisions["action"] == "reject")["reason"].to_list()
    assert len(reasons) == 1
    assert reasons[0].startswith("0/2 nodes could run the pod even when empty: ")


def test_strict_fifo_is_held_back_as_in_reality(write_trace: Write, cluster: Callable[..., Path]) -> None:
    """A job that quota never lets in blocks the queue behind it, although it is rejected."""
    trace = write_trace({"queue": "a", "request.cpu": 9000}, {"queue": "a", "submit_time": 1})
    strict = queue("a", {"f": 8}, queueingStrategy="StrictFIFO")
    where = cluster(flavor("f"), strict, queue("b", {"f": 8}))
    run = package.replay(trace, plugin="kueue-classic", cluster=where, keep="all", output=trace.parent / "r")
    assert run.jobs["state"].to_list() == ["rejected", "pending"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"stopPolicy": "Hold"}, "ClusterQueue a is inactive: its stopPolicy is Hold"),
        ({"namespaceSelector": None}, "ClusterQueue a does not admit workloads from namespace default"),
    ],
)
def test_a_queue_that_takes_nobody_is_named(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path], spec: dict[str, Any], why: str
) -> None:
    """And a run in which nothing starts is no table of zeros: a last line says so, and how to ask."""
    where = cluster(flavor("f"), queue("a", {"f": 8}, **spec))
    ended = harness("replay", write_trace({"queue": "a"}), "--cluster", where, "-p", "kueue-classic")
    assert f"warning: 1 of 1 job can never start (j0): {why}\n" in ended.err
    said = "warning: kueue-classic: no job started: 1 job in all, 1 rejected and 0 left waiting; why: "
    last = ended.err.strip().split("\n")[-1]
    assert last.startswith(f"{said}harness explain results/trace/kueue-classic-")
    assert harness(*last.partition("why: harness ")[2].split()).out.startswith("job j0 of")


def test_quota_without_a_node_for_it_is_a_loud_line(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path]
) -> None:
    """The gang's pods fit one by one, but never together: it is admitted, and never runs."""
    where = cluster(node("n0", 4), flavor("f"), queue("a", {"f": 8}))
    trace = write_trace({"queue": "a", "request.cpu": 3000, "pods": 2})
    ended = harness("replay", trace, "--cluster", where, "-p", "kueue-classic")
    assert ended.code == 2  # larger than all nodes together
    where = cluster(node("n0", 4), node("n1", 4), flavor("f"), queue("a", {"f": 8}))
    trace = write_trace({"queue": "a", "request.cpu": 2500, "pods": 3})
    loud = "kueue-classic: 1 of 1 admitted jobs never ran: some or all of their pods found no node"
    ended = harness("replay", trace, "--cluster", where, "-p", "kueue-classic")
    assert ended.code == 1  # it times out and comes back for ever, which leads nowhere
    assert loud in ended.err
    off = ("--set", "featureGates=DisableWaitForPodsReady=true")
    ended = harness("replay", trace, "--cluster", where, "-p", "kueue-classic", *off)
    assert ended.code == 0, ended.err
    assert loud in ended.err


def test_a_taint_that_no_job_tolerates_is_named(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path]
) -> None:
    """Of nodes and of flavors; one that some job tolerates is not."""
    other = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
    tolerates = json.dumps([{"key": "gpu", "operator": "Exists"}])
    where = cluster(
        *(node("a", 4), node("b", 4, {}, TAINT), node("c", 4, {}, TAINT, other)),
        flavor("f", nodeTaints=[TAINT, other]),
    )
    ended = harness("replay", write_trace({"tolerations": tolerates}), "--cluster", where, "-p", "none")
    assert [line for line in ended.err.split("\n") if "tolerates" in line] == [
        "warning: taint spot=1:NoSchedule of 2 of 3 nodes: no job tolerates it, so no job runs there",
        "warning: ResourceFlavor f: no job tolerates its taint spot=1:NoSchedule, so no job uses this flavor",
    ]


def test_check_and_lint_name_them_too(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path]
) -> None:
    """A fault where all plugins agree, for which the cluster is made; else a line with their names."""
    trace = write_trace(*({"queue": "a", "request.cpu": cpu} for cpu in (1000, 3000)))
    quota = (flavor("f"), queue("a", {"f": 2}), queue("b", {"f": 2}))
    said = "1 of 2 jobs can never start (j1): no flavor of ClusterQueue a can ever give it 3 of cpu: f gives"
    ended = harness("trace", "check", trace, "--cluster", cluster(*quota))
    assert ended.code == 2
    assert f"{trace}: with backfill, fairsharing, kueue-classic, none: {said} at most 2 of cpu\n" in ended.err
    assert (
        "impossible: with backfill, fairsharing, kueue-classic, none: 1 of 2 jobs can never start (j1)"
        in harness("trace", "lint", trace, "--cluster", cluster(*quota)).out
    )
    on_nodes = cluster(node("n0", 4), *quota)
    ended = harness("trace", "check", trace, "--cluster", on_nodes)
    assert (ended.code, ended.out) == (0, f"{trace}: no faults; 2 jobs, 1 queue\n")
    assert ended.err == f"with fairsharing, kueue-classic: {said} at most 2 of cpu\n"
    ended = harness("trace", "check", trace, "--cluster", on_nodes, "--json")
    assert json.loads(ended.out)["impossible"] == [
        {
            "plugins": ["fairsharing", "kueue-classic"],
            "where": "ClusterQueue a",
            "why": said.partition("(j1): ")[2] + " at most 2 of cpu",
            "jobs": ["j1"],
        }
    ]
    faulty = json.loads(harness("trace", "check", write_trace({"queue": ""}), "--json").out)
    assert faulty["faults"] == [f"{trace}: row 1 (job 'j0'), queue: is empty"]


def test_elastic_quotas_and_nodes_count_for_their_plugins(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path]
) -> None:
    """A quota's max keeps a job out of `elasticquota`; on nodes alone it may run."""
    quota = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"min": {"cpu": 1}, "max": {"cpu": 2, "memory": "1Gi"}},
    }
    trace = write_trace({"request.cpu": 3000}, {"request.cpu": 1000})
    plugins = ("-p", "default-preemption", "-p", "elasticquota", "-p", "auto")
    ended = harness("replay", trace, "--cluster", cluster(node("n0", 4), quota), *plugins)
    said = [line for line in ended.err.split("\n") if "can never start" in line]
    assert len(said) == 1
    start = "warning: elasticquota, auto: 1 of 2 jobs can never start (j0): even without other pods, "
    assert said[0].startswith(start)


def test_check_names_jobs_that_can_never_start_beside_those_that_do_not_fit(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path]
) -> None:
    """A job larger than all nodes, one of no queue, and one that the quota of its queue keeps out."""
    where = cluster(node("n0", 4), flavor("f"), queue("a", {"f": 2}))
    trace = write_trace(
        *({"queue": "a", "request.cpu": cpu} for cpu in (9000, 1000, 3000)), {"queue": "nobody"}
    )
    ended = harness("trace", "check", trace, "--cluster", where, "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["jobs"], found["queues"]) == (2, 4, 2)
    assert [fault.partition("row ")[2][:13] for fault in found["faults"]] == [
        "4 (job 'j3'),",
        "1 (job 'j0'),",
    ]
    assert [each["jobs"] for each in found["impossible"]] == [["j2"]]
    ended = harness("trace", "check", trace, "--cluster", where)
    assert "with fairsharing, kueue-classic: 1 of 4 jobs can never start (j2): no flavor of" in ended.err
    trace = write_trace({"queue": "a", "request.cpu": 9000}, {"queue": "a", "priority_class": "strange"})
    assert harness("trace", "check", trace, "--cluster", where).code == 2


def test_what_one_cluster_cannot_run_is_left_out_of_all(
    harness: Harness, write_trace: Write, cluster: Callable[..., Path], tmp_path: Path
) -> None:
    """So that every run has the same jobs, and they compare."""
    trace = write_trace(*({"queue": "a", "request.cpu": cpu} for cpu in (1000, 3000)))
    small = cluster(flavor("f"), queue("a", {"f": 2}), queue("b", {"f": 2})).rename(tmp_path / "small.yaml")
    large = cluster(flavor("f"), queue("a", {"f": 4})).rename(tmp_path / "large.yaml")
    asked = ("replay", trace, "--cluster", large, "--cluster", small, "-p", "none", "-p", "kueue-classic")
    runs = json.loads(harness(*asked, "--drop-impossible", "--json").out)["runs"]
    assert [run["outcome"]["jobs"] for run in runs] == [1, 1, 1, 1]
