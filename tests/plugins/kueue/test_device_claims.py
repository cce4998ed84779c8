"""Devices that pods claim: what they count as, and which claims keep a workload out, release by release."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from kueue_worlds import Happened, Jobs, cluster, configuration, manifest, pod_set, queue

from harness import Cluster, PodSet
from harness.base.errors import ClusterError, HarnessError
from harness.cluster.kinds.kueue_differences import counting_sentences
from harness.cluster.kinds.kueue_releases import release_named
from harness.cluster.model import frozen

GPUS = "example.com/gpus"
MAPPINGS = [{"name": GPUS, "deviceClassNames": ["mig-1g.5gb", "mig-2g.10gb"]}]


def template(*requests: dict[str, Any], name: str = "t", version: str = "v1", **devices: Any) -> Any:
    """A ResourceClaimTemplate with these requests."""
    spec = {"spec": {"devices": {"requests": list(requests), **devices}}}
    metadata = {"name": name, "namespace": "default"}
    kind = "ResourceClaimTemplate"
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def exactly(count: int = 1, device_class: str = "mig-1g.5gb", **more: Any) -> dict[str, Any]:
    """A request for devices of a class."""
    return {"name": "r", "exactly": {"deviceClassName": device_class, "count": count, **more}}


def claiming(*names: str, count: int = 1, key: str = "resourceClaimTemplateName") -> PodSet:
    """Pods of one core that claim what these templates say."""
    claims = [{"name": f"c{number}", key: name} for number, name in enumerate(names)]
    return replace(pod_set("main", count, 1), pod_template=json.dumps({"resourceClaims": claims}))


def world(*templates: Any, quota: int = 4, gates: dict[str, bool] | None = None) -> Cluster:
    """A queue with so many devices, and a Configuration that maps two classes to them."""
    return cluster(
        queue("a", cohort="", flavors={"f": {"cpu": 9, GPUS: quota}}),
        configuration(resources={"deviceClassMappings": MAPPINGS}, featureGates=gates or {}),
        *templates,
    )


def happened(where: Cluster, pods: PodSet, release: str = "ff69552", **options: Any) -> Happened:
    """A job of such pods in the queue."""
    return Happened(where, Jobs().add("j", "a", pod_sets=(pods,)), kueueVersion=release, **options)


def admitted(where: Cluster, pods: PodSet, release: str = "ff69552", **options: Any) -> bool:
    """Whether a job of such pods gets quota."""
    return happened(where, pods, release, **options).admitted == ["j"]


@pytest.mark.parametrize(("quota", "fits"), [(10, True), (9, False)])
def test_devices_of_all_mapped_classes_count_for_each_pod(quota: int, fits: bool) -> None:
    """Two pods with a claim of 2 + 1 devices, and one of 2 more: 10 in all."""
    templates = (template(exactly(2), exactly(1, "mig-2g.10gb")), template(exactly(2), name="u"))
    assert admitted(world(*templates, quota=quota), claiming("t", "u", count=2)) is fits


def test_what_devices_count_as_is_added_to_what_pods_request() -> None:
    """After transformations, and whether or not the name is requested as well."""
    pods = claiming("t")
    pods = replace(pods, requests=frozen({**pods.requests, GPUS: 3}))
    assert not admitted(world(template(exactly(2))), pods)
    assert admitted(world(template(exactly(1))), pods)


def test_a_template_is_looked_for_in_the_namespace_of_the_job() -> None:
    """The same pods in another namespace claim what the template there says."""
    other = template(exactly(9))
    other["metadata"]["namespace"] = "other"
    where = world(template(exactly(1)), other)
    jobs = Jobs().add("here", "a", pod_sets=(claiming("t"),))
    jobs.add("there", "a", namespace="other", pod_sets=(claiming("t"),))
    assert Happened(where, jobs).admitted == ["here"]


def test_before_v1beta2_a_request_has_the_fields_of_exactly_itself() -> None:
    """The API server converts them."""
    flat = {"name": "r", "deviceClassName": "mig-1g.5gb", "count": 5}
    assert not admitted(world(template(flat, version="v1beta1")), claiming("t"))
    assert admitted(world(template({**flat, "count": 4}, version="v1beta1")), claiming("t"))


@pytest.mark.parametrize(
    ("asked", "more", "why", "since", "until"),
    [
        (exactly(allocationMode="All"), {}, "AllocationMode 'All' is not supported", "v0.15", "ff69552"),
        ({"firstAvailable": [{}]}, {}, "FirstAvailable device selection", "v0.15", "ff69552"),
        (exactly(adminAccess=True), {}, "AdminAccess is not supported", "v0.15", "v0.19"),
        (exactly(selectors=[{}]), {}, "CEL selectors are not supported", "v0.15", "v0.17"),
        (exactly(), {"constraints": [{}]}, "device constraints (MatchAttribute)", "v0.15", "v0.18.1"),
        (exactly(), {"config": [{}]}, "device config is not supported", "v0.15", "v0.18.1"),
    ],
)
def test_claims_that_kueue_cannot_count_keep_a_workload_out(
    asked: Any, more: Any, why: str, since: str, until: str
) -> None:
    """With a reason; before 0.15 they counted nothing, and newer releases take some of them."""
    where = world(template(asked, **more))
    for release in ("v0.14", "v0.15", "v0.17", "v0.18.1", "v0.18.2", "v0.19", "ff69552"):
        named = release_named(release)
        gates = "DynamicResourceAllocation=true" if named.minor < 18 else ""
        found = happened(where, claiming("t"), release, featureGates=gates)
        refused = release_named(since) <= named <= release_named(until)
        told = [str(row.reason) for row in found.decisions.of("reject")]
        assert bool(found.admitted) is not refused, (release, told)
        assert not refused or why in told[0], (release, told)


@pytest.mark.parametrize("release", ["v0.14", "v0.17", "v0.18", "ff69552"])
def test_classes_that_are_not_mapped_and_templates_that_are_not_there_keep_a_workload_out(
    release: str,
) -> None:
    """So do claims that are there already: each pod has to get its own."""
    gates = "DynamicResourceAllocation=true" if release in ("v0.14", "v0.17") else ""

    def told(where: Cluster, pods: PodSet) -> str:
        (row,) = happened(where, pods, release, featureGates=gates).decisions.of("reject")
        return str(row.reason)

    assert "DeviceClass tpu is not mapped" in told(world(template(exactly(1, "tpu"))), claiming("t"))
    assert "ResourceClaimTemplate default/t: the manifests have no such" in told(world(), claiming("t"))
    named = told(world(), claiming("t", key="resourceClaimName"))
    assert "does not support use of resource claims" in named


def test_a_workload_that_is_kept_out_blocks_nobody() -> None:
    """Kueue does not queue it, so that it holds nobody back in a StrictFIFO queue either."""
    where = cluster(
        queue("a", cohort="", cpu=9, queueingStrategy="StrictFIFO"),
        configuration(resources={"deviceClassMappings": MAPPINGS}),
    )
    jobs = Jobs().add("kept-out", "a", pod_sets=(claiming("t"),)).add("next", "a", 1, at=1)
    assert Happened(where, jobs).admitted == ["next"]


@pytest.mark.parametrize(
    ("release", "gates", "fits"),
    [
        ("v0.13", "", True),
        ("v0.17", "", True),
        ("v0.17", "DynamicResourceAllocation=true", False),
        ("v0.18", "", False),
        ("v0.18", "KueueDRAIntegration=false", False),
        ("v0.18", "KueueDRAIntegration=false,KueueDRARejectWorkloadsWhenDRADisabled=false", True),
        ("ff69552", "", False),
    ],
)
def test_devices_count_where_the_gate_of_the_release_is_on(release: str, gates: str, fits: bool) -> None:
    """Off, they need no quota up to 0.17; since 0.18 a workload with claims is then kept out."""
    assert admitted(world(template(exactly(5))), claiming("t"), release, featureGates=gates) is fits


def test_before_0_18_the_gate_had_another_name() -> None:
    """Each release refuses the name of the other."""
    where = world(template(exactly()))
    with pytest.raises(HarnessError, match="no feature gate KueueDRAIntegration"):
        admitted(where, claiming("t"), "v0.17", featureGates="KueueDRAIntegration=true")
    with pytest.raises(HarnessError, match="feature gate DynamicResourceAllocation is locked off"):
        admitted(where, claiming("t"), "v0.18", featureGates="DynamicResourceAllocation=true")


def test_a_waiting_workload_of_the_manifests_is_kept_out_as_well() -> None:
    """It is refused as inadmissible, with the reason."""
    spec = {
        "queueName": "l",
        "podSets": [
            {
                "name": "main",
                "count": 1,
                "template": {
                    "spec": {
                        "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}],
                        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
                    }
                },
            }
        ],
    }
    waiting = manifest("Workload", "w", **spec)
    local = manifest("LocalQueue", "l", clusterQueue="a")
    where = cluster(queue("a", cohort="", cpu=9), local, waiting)
    (row,) = Happened(where, Jobs()).decisions.of("refuse")
    assert "the manifests have no such template" in row.detail["message"]


def test_classes_with_sources_count_as_nothing_and_that_is_warned_of() -> None:
    """How much of a counter or capacity a device holds is not known."""
    mapping = [{**MAPPINGS[0], "sources": [{"counter": {"name": "memory", "driver": "d"}}]}]
    where = cluster(
        queue("a", cohort="", flavors={"f": {"cpu": 9, GPUS: 1}}),
        configuration(resources={"deviceClassMappings": mapping}),
        template(exactly(5)),
    )
    assert any("does not know the amounts of devices of these classes" in each for each in where.warnings)
    assert admitted(where, claiming("t"))


@pytest.mark.parametrize(
    ("tag", "gates", "last"),
    [
        ("", {}, []),
        ("v0.18.6", {}, []),
        ("v0.17.8", {}, ["no devices, since feature gate DynamicResourceAllocation is off"]),
        ("v0.17.8", {"DynamicResourceAllocation": True}, []),
        (
            "v0.18.6",
            {"KueueDRAIntegration": False},
            ["no devices, since feature gate KueueDRAIntegration is off"],
        ),
        ("v0.13.0", {}, ["no devices, since v0.13.0 has no gate for it"]),
    ],
)
def test_what_devices_count_as_is_told_in_sentences(
    tag: str, gates: dict[str, bool], last: list[str]
) -> None:
    """As `harness cluster check` prints it; also that they do not in the release that runs."""
    image = [{"name": "m", "image": f"registry.k8s.io/kueue/kueue:{tag}"}]
    controller = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": {"spec": {"containers": image}}},
    }
    assert list(counting_sentences(world(*([controller] if tag else []), gates=gates))) == [
        f"1 device of class mig-1g.5gb counts as 1 {GPUS}",
        f"1 device of class mig-2g.10gb counts as 1 {GPUS}",
        *last,
    ]


@pytest.mark.parametrize(
    ("mappings", "fault"),
    [
        ([{"deviceClassNames": ["a"]}], "deviceClassMappings[0].name: is missing"),
        ([{"name": "n"}], "deviceClassMappings[0].deviceClassNames: must name 1 to 8 classes"),
        ([{"name": "n", "deviceClassNames": ["a", "a"]}], "deviceClassNames[1]: a is mapped to n already"),
        (
            [{"name": "n", "deviceClassNames": ["a"]}, {"name": "m", "deviceClassNames": ["a"]}],
            "deviceClassMappings[1].deviceClassNames[0]: a is mapped to n already",
        ),
        ([MAPPINGS[0], MAPPINGS[0]], f"deviceClassMappings[1].name: {GPUS} is mapped twice"),
        (
            [{"name": f"n{each}", "deviceClassNames": [f"c{each}"]} for each in range(17)],
            "deviceClassMappings: has more than 16 mappings",
        ),
    ],
)
def test_mappings_with_which_kueue_does_not_start_are_faults(mappings: Any, fault: str) -> None:
    """Each with its place."""
    with pytest.raises(ClusterError) as refused:
        cluster(configuration(resources={"deviceClassMappings": mappings}))
    assert fault in str(refused.value)
