"""Topologies in whole replays: what traces and manifests say, and the nodes on which pods run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from kueue_worlds import Happened, Jobs, cluster, flavor, manifest, node, queue, quota

from harness.base.pod_set import SliceLayer, TopologyRequest
from harness.cluster.kinds.topology import LAYERS, read_topology_request
from harness.cluster.model import Cluster
from harness.cluster.yaml.fields import Fields
from harness.policy import PodSet
from harness.studies.forecasting.job_kinds import pod_sets_of
from harness.trace.topology import topology_of, wrong_annotations

HOST = "kubernetes.io/hostname"
PREFIX = "kueue.x-k8s.io/podset-"


def racks(cpu: int, *levels: str, quota: int = 100) -> Cluster:
    """Two racks of two nodes, and a queue whose flavor knows them by these levels."""
    nodes = [node(f"n{number}", cpu, rack=f"r{number // 2}", **{HOST: f"n{number}"}) for number in range(4)]
    topology = manifest("Topology", "t", levels=[{"nodeLabel": level} for level in levels or ("rack", HOST)])
    return cluster(topology, flavor(topologyName="t"), *nodes, queue("q", cpu=quota), flavors=False)


def gang(count: int, cpu: int, **request: Any) -> tuple[PodSet, ...]:
    """Pods of so many cores each."""
    return (PodSet("main", count, count, {"cpu": cpu * 1000}, topology=TopologyRequest(**request)),)


def nodes_of(happened: Happened, job: str) -> list[str]:
    """Where the pods of a job were bound, in their order."""
    return [row.node for row in happened.decisions.of("bind") if row.pod.split("-")[0] == job]


@pytest.mark.parametrize("levels", [("rack", HOST), ("rack",)])
def test_pods_run_where_they_were_placed(levels: tuple[str, ...]) -> None:
    """The first job leaves 3 cores in each node of its rack; kube-scheduler alone would put b there, too."""
    jobs = Jobs().add("a", "q", pod_sets=gang(1, 1, required="rack"))
    jobs.add("b", "q", pod_sets=gang(4, 2, required="rack"), at=1)
    happened = Happened(racks(4, *levels), jobs)
    assert set(nodes_of(happened, "a")) == {"n0"}
    assert sorted(nodes_of(happened, "b")) == ["n2", "n2", "n3", "n3"]


def test_a_job_waits_for_a_rack_and_one_that_prefers_it_does_not() -> None:
    """Each rack has one core left: two pods that require one rack wait until the others are gone."""
    for request, start in (({"required": "rack"}, 10), ({"preferred": "rack"}, 1)):
        jobs = Jobs()
        for number in range(2):
            jobs.add(f"a{number}", "q", pod_sets=gang(3, 1, required="rack"), seconds=10)
        jobs.add("b", "q", pod_sets=gang(2, 1, **request), at=1)
        happened = Happened(racks(2), jobs)
        assert happened.decisions.starts()["b"] == start


def test_a_refusal_says_which_level_has_how_much_room_where() -> None:
    """Quota is free; each rack and each node of two cores has one core left, but for the second of a rack."""
    jobs = Jobs()
    for number in range(2):
        jobs.add(f"a{number}", "q", pod_sets=gang(3, 1, required="rack"))
    jobs.add("b", "q", pod_sets=gang(2, 1, required="rack"), at=1)
    jobs.add("c", "q", pod_sets=gang(1, 2, required="rack"), at=2)
    refusal, of_one = Happened(racks(2), jobs).decisions.of("refuse")
    assert of_one.detail["message"].startswith("pod set main requests 1 pod in one rack of flavor f; ")
    assert refusal.detail["short"] == {}
    assert refusal.detail["message"] == (
        "pod set main requests 2 pods in one rack of flavor f; "
        "most free: 1 in rack r0, 1 in kubernetes.io/hostname r0/n1"
    )


def test_a_job_that_no_empty_rack_can_take_never_starts() -> None:
    """A rack of two nodes has 4 cores. A job that prefers a rack, or may have fewer pods, can start."""
    wide = gang(5, 1, required="rack")
    jobs = Jobs().add("a", "q", pod_sets=wide).add("b", "q", pod_sets=gang(5, 1, preferred="rack"), seconds=5)
    jobs.add("c", "q", pod_sets=(replace(wide[0], min_count=4),), at=9)
    happened = Happened(racks(2), jobs)
    assert list(happened.decisions.starts()) == ["b", "c"]
    (line,) = happened.lines("reject")
    assert line.startswith("0 reject a: no flavor of ClusterQueue q can ever give it 5 of cpu: f has no ")
    assert line.endswith("most free: 4 in rack r0, 2 in kubernetes.io/hostname r0/n0")


def test_a_head_that_has_tried_the_flavors_with_quota_still_says_which_room_it_lacks() -> None:
    """It can preempt nobody, and goes on with the flavor after the topology's, which has none of this."""
    preemption = {"withinClusterQueue": "LowerPriority"}
    flavors = {"f": {"cpu": quota(100)}, "spare": {"cpu": quota(100)}}
    nodes = [node(f"n{number}", 2, pool="f", **{HOST: f"n{number}"}) for number in range(2)]
    topology = manifest("Topology", "t", levels=[{"nodeLabel": HOST}])
    several = [flavor(topologyName="t", nodeLabels={"pool": "f"}), flavor("spare")]
    where = cluster(
        topology, *several, *nodes, queue("q", flavors=flavors, preemption=preemption), flavors=False
    )
    jobs = Jobs().add("a", "q", pod_sets=gang(2, 1, required=HOST), seconds=10)
    jobs.add("b", "q", pod_sets=gang(2, 1, required=HOST), seconds=10)
    jobs.add("c", "q", pod_sets=gang(1, 1, required=HOST), at=1)
    first, second = Happened(where, jobs).decisions.of("refuse")
    assert (first.reason, second.reason) == ("PreemptionNoCandidates", "NoFit")
    said = f"pod set main requests 1 pod in one {HOST} of flavor f; most free: 0 in any {HOST}"
    for each in (first, second):
        assert (each.detail["message"], each.detail["lacks"]) == (said, "place")


def test_pods_without_a_place_run_anywhere_and_the_job_is_complete() -> None:
    """Of five pods in slices of two, one belongs to no slice."""
    slices = (SliceLayer(HOST, 2),)
    happened = Happened(racks(2), Jobs().add("a", "q", pod_sets=gang(5, 1, required="rack", slices=slices)))
    assert len(nodes_of(happened, "a")) == 5
    assert happened.decisions.starts()["a"] == 0


def test_columns_of_a_row_count_and_else_the_annotations_of_its_template() -> None:
    """A row that says anything itself is not asked for its template."""
    annotations = {f"{PREFIX}preferred-topology": "block", f"{PREFIX}group-name": "g"}
    annotations |= {f"{PREFIX}slice-required-topology": "rack", f"{PREFIX}slice-size": "4"}
    template = json.dumps({"metadata": {"annotations": annotations}, "spec": {}})
    row = {"topology_required": "rack", "topology_slice": "host", "topology_slice_size": 2}
    own = TopologyRequest(required="rack", slices=(SliceLayer("host", 2),))
    assert topology_of(row.get, template) == own
    told = TopologyRequest(preferred="block", slices=(SliceLayer("rack", 4),), group="g")
    assert topology_of({}.get, template) == told
    assert topology_of({"topology_unconstrained": True}.get, None) == TopologyRequest(unconstrained=True)
    assert topology_of({}.get, json.dumps({"spec": {}})) is None


def test_an_annotation_may_name_several_layers_of_slices() -> None:
    """From the outermost to the innermost, as a JSON list."""
    layers = [{"topology": "rack", "size": 4}, {"topology": "host", "size": 2}]
    annotations = {f"{PREFIX}required-topology": "block", LAYERS: json.dumps(layers)}
    template = json.dumps({"metadata": {"annotations": annotations}, "spec": {}})
    slices = (SliceLayer("rack", 4), SliceLayer("host", 2))
    assert not wrong_annotations(template)
    assert topology_of({}.get, template) == TopologyRequest(required="block", slices=slices)
    job = {"kind": "Pod", "metadata": {"name": "p", "annotations": annotations}, "spec": {"containers": []}}
    (pod_set,) = pod_sets_of(Fields(job, "", []))
    assert read_topology_request(Fields(pod_set["topologyRequest"], "", [])).slices == slices


@pytest.mark.parametrize(
    ("annotations", "says"),
    [
        ({"slice-required-topology-constraints": "[]"}, "must be a JSON list of 1 to 3 objects"),
        ({"slice-required-topology-constraints": "{"}, "must be a JSON list"),
        ({"slice-required-topology-constraints": '[{"topology": "rack", "size": "2"}]'}, "a size from 1"),
        (
            {
                "slice-required-topology-constraints": '[{"topology": "rack", "size": 2}]',
                "slice-size": "2",
                "slice-required-topology": "rack",
            },
            "a pod set can have only one of them",
        ),
        ({"required-topology": 1}, "must be text"),
        ({"required-topology": "a", "preferred-topology": "b"}, "a pod set can have only one"),
        ({"slice-size": "2"}, "must have both or neither"),
        ({"slice-size": "0", "slice-required-topology": "rack"}, "must be a number from 1"),
        ({"unconstrained-topology": "yes"}, "must be 'true' or 'false'"),
    ],
)
def test_a_wrong_annotation_is_named(annotations: dict[str, Any], says: str) -> None:
    """As a column would be."""
    named = {f"{PREFIX}{name}": value for name, value in annotations.items()}
    assert says in wrong_annotations(json.dumps({"metadata": {"annotations": named}}))


def test_columns_of_a_trace_reach_the_jobs() -> None:
    """By way of the schema's types."""
    from harness.trace.pod_sets import PodSetMaker

    rows = pl.DataFrame({"pods": [2, 1], "topology_required": ["rack", None], "request.cpu": [1, 1]})
    (first,), (second,) = PodSetMaker(rows, None).of(0, 2)
    assert (first.topology, second.topology) == (TopologyRequest(required="rack"), None)
