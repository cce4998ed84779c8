"""Pods: what is read of a manifest, and of the pod set of a trace."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError, Fault
from harness.cluster.kinds.pod_reading import asking_for, manifest_of, pod_spec_of, read_pod
from harness.cluster.kinds.pods import HostPort, Pod, PodSpec
from harness.cluster.kinds.selectors import LabelSelector
from harness.cluster.load import cluster_from
from harness.cluster.yaml.fields import Fields
from harness.policy import PodSet

MIB = 2**20
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def container(limits: Any = None, **requests: Any) -> dict[str, Any]:
    """A container."""
    return {"name": "c", "resources": {"requests": requests, "limits": limits or {}}}


def pod(*containers: dict[str, Any], labels: Any = None, status: Any = None, **spec: Any) -> Pod:
    """A pod that is read without faults."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels or {}},
        "spec": {"containers": list(containers) or [container()], **spec},
        "status": status or {},
    }
    faults: list[Fault] = []
    found = read_pod(Fields(manifest, "Pod p", faults))
    assert faults == []
    return found


def faults_of(**spec: Any) -> list[str]:
    """What is wrong with a pod's spec."""
    faults: list[Fault] = []
    read_pod(Fields({"metadata": {"name": "p"}, "spec": spec}, "Pod p", faults))
    return [str(fault) for fault in faults]


@pytest.mark.parametrize("text", ["500m", "1.5", 0.5])
def test_a_pod_holds_whole_devices(text: Any) -> None:
    """`validateResourceQuantityValue` in pkg/apis/core. A device may be written as `2000m` or as `1e1`."""
    asked = {"nvidia.com/gpu": text}
    for name, faulty in (("requests", container(**asked)), ("limits", container(asked))):
        (found, *_) = faults_of(containers=[faulty])
        assert f"resources.{name}.nvidia.com/gpu: {text} must be a whole number" in found
    assert faults_of(containers=[container(**{"nvidia.com/gpu": "2000m", "example.com/a": "1e1"})]) == []
    assert faults_of(containers=[container(**{"cpu": "500m", "hugepages-2Mi": "2Mi"})]) == []


def test_requests_are_those_of_all_containers_together() -> None:
    """Containers run side by side."""
    assert dict(pod(container(cpu=1), container(cpu="500m", memory="1Mi")).spec.requests) == {
        "cpu": 1500,
        "memory": MIB,
    }


def test_a_larger_init_container_counts_instead() -> None:
    """Init containers run before all others, one by one; overhead comes on top."""
    found = pod(
        container(cpu=1),
        initContainers=[container(cpu=3), container(cpu=2, memory="1Mi")],
        overhead={"cpu": "100m"},
    )
    assert dict(found.spec.requests) == {"cpu": 3100, "memory": MIB}


def test_a_sidecar_runs_beside_what_comes_after_it() -> None:
    """An init container that restarts always adds to later ones and to the containers."""
    sidecar = {**container(cpu=1), "restartPolicy": "Always"}
    assert pod(container(cpu=2), initContainers=[sidecar, container(cpu=4)]).spec.requests["cpu"] == 5000
    assert pod(container(cpu=2), initContainers=[container(cpu=2), sidecar]).spec.requests["cpu"] == 3000


@pytest.mark.parametrize(
    ("allocated", "actual", "reason", "cpu"),
    [
        ("2", "2", None, 2000),
        ("7", "7", "Deferred", 7000),
        ("1", "1", "Deferred", 2000),
        ("1", "1500m", "Infeasible", 1500),
        (None, "3", None, 3000),
        (None, None, "Infeasible", 2000),
    ],
)
def test_a_resize_that_is_not_over_counts_by_the_largest_request(
    allocated: str | None, actual: str | None, reason: str | None, cpu: int
) -> None:
    """Of what the spec says, what the node allocated and what it gave; an infeasible spec does not count."""
    told: dict[str, Any] = {"name": "c"}
    if allocated is not None:
        told["allocatedResources"] = {"cpu": allocated}
    if actual is not None:
        told["resources"] = {"requests": {"cpu": actual}, "limits": {"cpu": "9"}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    status = {"phase": "Running", "containerStatuses": [told], "conditions": conditions}
    found = pod(container(cpu="2"), status=status).spec
    assert found.requests == {"cpu": cpu}
    assert (found.scored_cpu, found.qos) == (cpu, "Burstable")


def test_what_is_limited_is_requested() -> None:
    """The API server writes a request where only a limit is given."""
    assert pod(container({"cpu": 2}, memory="1Mi")).spec.requests["cpu"] == 2000


def test_scores_assume_something_for_each_container_that_requests_nothing() -> None:
    """100 millicores and 200 MiB, for each of them; explicit zeros are taken at their word."""
    spec = pod(container(cpu=1), container(memory="10Mi")).spec
    assert (spec.scored_cpu, spec.scored_memory) == (1100, 210 * MIB)
    assert pod(container(cpu=0)).spec.scored_cpu == 0


@pytest.mark.parametrize(
    ("containers", "qos"),
    [
        ([container()], "BestEffort"),
        ([container(**{"nvidia.com/gpu": 1})], "BestEffort"),
        ([container(cpu=1)], "Burstable"),
        ([container({"cpu": 1, "memory": "1Gi"})], "Guaranteed"),
        ([container({"cpu": 1, "memory": "1Gi"}, cpu=1, memory="1Gi")], "Guaranteed"),
        ([container({"cpu": 2, "memory": "1Gi"}, cpu=1)], "Burstable"),
        ([container({"cpu": 1, "memory": "1Gi"}), container()], "Burstable"),
    ],
)
def test_qos_follows_from_requests_and_limits(containers: list[dict[str, Any]], qos: str) -> None:
    """Guaranteed needs equal limits of cpu and memory in every container."""
    assert pod(*containers).spec.qos == qos


def test_host_ports_conflict_by_protocol_port_and_address() -> None:
    """0.0.0.0 stands for every address of the node."""
    ports = [{"containerPort": 80, "hostPort": 80}, {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]
    found = pod({**container(), "ports": ports}).spec.host_ports
    assert found == (HostPort("TCP", "0.0.0.0", 80), HostPort("UDP", "0.0.0.0", 53))
    assert found[0].conflicts(HostPort("TCP", "10.0.0.1", 80))
    assert not found[1].conflicts(HostPort("TCP", "0.0.0.0", 53))
    assert not HostPort("TCP", "10.0.0.1", 80).conflicts(HostPort("TCP", "10.0.0.2", 80))


def test_ports_without_a_host_port_are_the_pods_own() -> None:
    """Unless the pod uses the host's network."""
    ports = {**container(), "ports": [{"containerPort": 80}]}
    assert pod(ports).spec.host_ports == ()
    assert pod(ports, hostNetwork=True).spec.host_ports == (HostPort("TCP", "0.0.0.0", 80),)


def test_of_init_containers_only_sidecars_occupy_host_ports() -> None:
    """`GetHostPorts` leaves out init containers that end before the others start."""
    ports = {**container(), "ports": [{"containerPort": 80, "hostPort": 80}]}
    assert pod(container(), initContainers=[ports]).spec.host_ports == ()
    assert pod(container(), initContainers=[ports], hostNetwork=True).spec.host_ports == ()
    sidecar = {**ports, "restartPolicy": "Always"}
    assert pod(container(), initContainers=[sidecar]).spec.host_ports == (HostPort("TCP", "0.0.0.0", 80),)


def test_a_term_means_the_namespace_of_its_pod_unless_it_says_more() -> None:
    """An empty namespace selector means every namespace."""

    def matches(term: dict[str, Any], namespace: str) -> bool:
        spec = pod(affinity={"podAffinity": {AFFINITY: [{"topologyKey": "zone", **term}]}}).spec
        labels = {"team-a": {"team": "a"}}
        return spec.affinity[0].matches(namespace, {"app": "x"}, lambda name: labels.get(name, {}))

    selector = {"labelSelector": {"matchLabels": {"app": "x"}}}
    assert matches(selector, "default")
    assert not matches(selector, "team-a")
    assert matches({**selector, "namespaces": ["team-a"]}, "team-a")
    assert matches({**selector, "namespaceSelector": {"matchLabels": {"team": "a"}}}, "team-a")
    assert matches({**selector, "namespaceSelector": {}}, "anywhere")
    assert not matches({}, "default"), "a term without a selector matches nothing"


def test_match_label_keys_narrow_a_selector_to_the_pods_own_values() -> None:
    """So that each revision of an application is spread by itself."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["revision", "absent"],
    }
    selector = pod(labels={"revision": "2"}, topologySpreadConstraints=[constraint]).spec.spread[0].selector
    assert isinstance(selector, LabelSelector)
    assert selector.matches({"app": "x", "revision": "2"})
    assert not selector.matches({"app": "x", "revision": "1"})


def test_node_affinity_terms_are_alternatives() -> None:
    """Expressions of one term must all hold; a term without any matches no node."""
    terms = [
        {
            "matchExpressions": [
                {"key": "gpu", "operator": "Exists"},
                {"key": "mem", "operator": "Gt", "values": ["8"]},
            ]
        },
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]},
        {},
    ]
    spec = pod(affinity={"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": terms}}}).spec
    assert spec.allows("n1", {"gpu": "t4", "mem": "16"})
    assert not spec.allows("n1", {"gpu": "t4", "mem": "8"})
    assert spec.allows("n7", {})
    assert not spec.allows("n1", {})


def test_the_status_says_since_when_and_whether_it_was_preempted() -> None:
    """Only the scheduler's own condition counts as preempted."""
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    found = pod(
        status={"startTime": "1970-01-01T00:00:02Z", "nominatedNodeName": "n1", "conditions": conditions}
    )
    assert (found.start, found.nominated_node, found.preempted) == (2_000_000, "n1", True)
    assert found.gone_at is None
    conditions[0]["reason"] = "EvictionByEvictionAPI"
    assert not pod(status={"conditions": conditions}).preempted


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"preemptionPolicy": "Nevr"},
            "spec.preemptionPolicy: 'Nevr' is not one of PreemptLowerPriority, Never",
        ),
        ({"containers": [container(cpu="1 core")]}, "spec.containers[0].resources.requests.cpu"),
        ({"containers": 3}, "spec.containers: must be a list, not 3"),
        ({"containers": [3]}, "spec.containers[0]: must be a mapping of names to values, not 3"),
        ({"tolerations": [{"key": "a", "effect": "NoScedule"}]}, "spec.tolerations[0].effect: 'NoScedule'"),
        (
            {
                "topologySpreadConstraints": [
                    {"topologyKey": "z", "maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "spec.topologySpreadConstraints[0].maxSkew: 0 is out of range",
        ),
        ({"affinity": {"nodeAffinity": {AFFINITY: {}}}}, "nodeSelectorTerms: must not be empty"),
        ({"affinity": {"podAffinity": {AFFINITY: [{}]}}}, "topologyKey: is missing"),
    ],
)
def test_a_fault_names_object_and_field(spec: dict[str, Any], message: str) -> None:
    """One fault for one mistake, at the field where it is."""
    faults = faults_of(**spec)
    assert len(faults) == 1
    assert message in faults[0]
    assert faults[0].startswith("Pod p: spec.")


@pytest.mark.parametrize("kind", [3, {"a": "b"}, ["Job"]])
def test_an_owner_of_a_wrong_type_is_a_fault(kind: Any) -> None:
    """As in every other field."""
    metadata = {"name": "p", "ownerReferences": [{"kind": kind, "name": "o", "uid": "u"}]}
    with pytest.raises(ClusterError, match=r"Pod p: metadata.ownerReferences\[0\].kind: must be text"):
        cluster_from([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}], "test")


def test_what_is_not_modelled_is_warned_of() -> None:
    """A claim for a volume may bind a pod to a zone, and devices decide where it fits."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "n1",
            "containers": [container(cpu=1)],
            "volumes": [
                {"name": "t", "projected": {}},
                {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
            ],
            "resourceClaims": [{"name": "gpu"}],
        },
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": 4}},
    }
    assert cluster_from([node, manifest], "test").warnings == (
        (
            "Pod p: spec.volumes[].persistentVolumeClaim is not modelled: "
            "the volume does not bind its pod to a node, and a node can attach any number of volumes"
        ),
        "Pod p: spec.resourceClaims is not modelled: harness allocates no devices to resource claims",
    )


# --- pod sets of a trace ----------------------------------------------------------------------------------


def spec_of(**fields: Any) -> PodSpec:
    """The spec of a pod set's pods, read without faults."""
    faults: list[Fault] = []
    found = pod_spec_of(PodSet("main", 1, 1, **fields), "default", faults, "job j")
    assert faults == []
    return found


def test_a_pod_set_asks_for_what_the_trace_says() -> None:
    """An amount of 0 is as good as none, for which scores assume something."""
    spec = spec_of(requests={"cpu": 500, "memory": 0}, limits={"cpu": 500})
    assert dict(spec.requests) == {"cpu": 500, "memory": 0}
    assert (spec.scored_cpu, spec.scored_memory, spec.qos) == (500, 200 * MIB, "Burstable")


@pytest.mark.parametrize("requests", [{}, {"cpu": 500, "memory": 0}, {"cpu": 1, "memory": 2, "gpu": 1}])
@pytest.mark.parametrize("limits", [{}, {"cpu": 500}, {"cpu": 1, "memory": 2}])
def test_a_spec_that_asks_for_other_amounts_is_as_if_it_was_read(
    requests: dict[str, int], limits: dict[str, int]
) -> None:
    """Every field is as in the spec of a pod set with the same rules and these amounts."""
    rules: Any = {"node_selector": {"disk": "ssd"}, "tolerations": json.dumps([{"operator": "Exists"}])}
    other = asking_for(spec_of(requests={"cpu": 7, "memory": 8}, **rules), requests, limits)
    whole = spec_of(requests=requests, limits=limits, **rules)
    for each in fields(PodSpec):
        assert getattr(other, each.name) == getattr(whole, each.name), each.name


def test_the_columns_of_a_pod_set_stand_for_the_fields_of_a_pod() -> None:
    """Tolerations, affinity and node selector come from their own columns, the rest from the template."""
    spec = spec_of(
        requests={"cpu": 1},
        node_selector={"disk": "ssd"},
        tolerations=json.dumps([{"key": "gpu", "operator": "Exists"}]),
        affinity=json.dumps({"podAntiAffinity": {AFFINITY: [{"topologyKey": "zone"}]}}),
        pod_template=json.dumps({"nodeSelector": {"zone": "a"}, "overhead": {"cpu": "1m"}}),
    )
    assert dict(spec.node_selector) == {"disk": "ssd", "zone": "a"}
    assert spec.tolerations[0].key == "gpu"
    assert spec.anti_affinity[0].namespaces == ("default",)
    assert spec.requests["cpu"] == 2


def test_a_template_may_be_a_whole_pod() -> None:
    """Then its node and start say that it runs already."""
    manifest = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "containers": [container(cpu=1)]},
        "status": {"startTime": "1970-01-01T00:00:01Z"},
    }
    pod_set = PodSet("main", 1, 1, {"cpu": 1000}, pod_template=json.dumps(manifest))
    pod = manifest_of(pod_set)
    assert pod is not None
    assert (pod.node, pod.start) == ("n1", 1_000_000)
    assert dict(pod_spec_of(pod_set, "default", [], "job j").requests) == {"cpu": 1000}
    assert manifest_of(PodSet("main", 1, 1, {"cpu": 1000})) is None


@pytest.mark.parametrize("column", ["tolerations", "affinity", "pod_template"])
def test_text_that_is_not_json_is_a_fault_of_its_column(column: str) -> None:
    """The message names the job."""
    faults: list[Fault] = []
    pod_spec_of(PodSet("main", 1, 1, {}, **{column: "{"}), "default", faults, "job j")  # type: ignore[arg-type]
    assert str(faults[0]).startswith(f"job j: {column}: is not JSON")


@pytest.mark.parametrize("wrong", [[1], 3, [], 0, "x"])
def test_a_template_whose_node_selector_is_no_mapping_is_a_fault_beside_the_columns(wrong: Any) -> None:
    """What the column `node_selector` says does not hide it."""
    faults: list[Fault] = []
    template = json.dumps({"nodeSelector": wrong})
    pod_set = PodSet("main", 1, 1, {}, pod_template=template, node_selector={"zone": "a"})
    pod_spec_of(pod_set, "default", faults, "job j")
    assert str(faults[0]).startswith("job j: nodeSelector: must be a mapping")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "spec",
                        "status",
                        "containers",
                        "affinity",
                        "tolerations",
                        "resources",
                        "requests",
                        "cpu",
                        "conditions",
                        "metadata",
                        "ports",
                        "hostPort",
                        "labels",
                        "startTime",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_manifest_gives_a_traceback(content: Any) -> None:
    """Whatever stands in a file, reading it ends in a cluster or in a list of faults."""
    manifest = content if isinstance(content, dict) else {"spec": content}
    with suppress(ClusterError):
        cluster_from([{**manifest, "apiVersion": "v1", "kind": "Pod"}], "test")
