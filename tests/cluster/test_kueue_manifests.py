"""Rules of reading Kueue's kinds: both spellings, defaults, and what its webhooks refuse."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from harness.base.errors import ClusterError
from harness.base.units import HOUR, MINUTE, SECOND
from harness.cluster.kinds.kueue_configuration import AdmissionFairSharing, KueueConfiguration
from harness.cluster.kinds.selectors import LabelSelector, Requirement, Taint, Toleration
from harness.cluster.kinds.wait_for_pods_ready import WaitForPodsReady
from harness.cluster.load import cluster_from
from harness.cluster.model import (
    UNLIMITED,
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    FlavorFungibility,
    FlavorQuotas,
    LocalQueue,
    Preemption,
    PriorityClass,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
)

API = "kueue.x-k8s.io"


def manifest(
    kind: str, name: str, spec: dict[str, Any] | None = None, version: str = "v1beta2"
) -> dict[str, Any]:
    """An object of Kueue's."""
    return {"apiVersion": f"{API}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec or {}}


FLAVOR = manifest("ResourceFlavor", "default")


def group(quotas: dict[str, dict[str, Any]], flavor: str = "default") -> dict[str, Any]:
    """A resource group of one flavor; `quotas` is resource -> fields of its quota."""
    resources = [{"name": name, "nominalQuota": 10} | fields for name, fields in quotas.items()]
    return {"coveredResources": list(quotas), "flavors": [{"name": flavor, "resources": resources}]}


def queue(name: str = "q", version: str = "v1beta2", **spec: Any) -> dict[str, Any]:
    """A ClusterQueue of 10 CPUs."""
    return manifest("ClusterQueue", name, {"resourceGroups": [group({"cpu": {}})]} | spec, version)


def faults(*manifests: dict[str, Any]) -> list[str]:
    """All faults of some manifests, the places without document and object."""
    with pytest.raises(ClusterError) as caught:
        cluster_from(manifests, "test")
    return [str(fault).split(": ", 1)[1] for fault in caught.value.faults]


def read_queue(**spec: Any) -> ClusterQueue:
    """The queue that a faultless manifest gives."""
    return cluster_from([FLAVOR, queue(**spec)], "test").cluster_queues["q"]


def test_absent_fields_have_kueues_defaults() -> None:
    """Nothing is preempted, everything may be lent and borrowed, no namespace is selected."""
    assert read_queue() == ClusterQueue(
        name="q",
        cohort="",
        resource_groups=(
            ResourceGroup(("cpu",), (FlavorQuotas("default", {"cpu": ResourceQuota(10_000)}),)),
        ),
        weight=Fraction(1),
        queueing_strategy="BestEffortFIFO",
        namespace_selector=None,
        preemption=Preemption("Never", "Never", "Never", None),
        fungibility=FlavorFungibility("MayStopSearch", "TryNextFlavor", ""),
        stop_policy="None",
    )


def test_every_field_is_read() -> None:
    """A queue with all that is modelled."""
    found = read_queue(
        cohortName="all",
        queueingStrategy="StrictFIFO",
        namespaceSelector={
            "matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "dep", "operator": "In", "values": ["eng"]}],
        },
        resourceGroups=[
            group({"cpu": {"borrowingLimit": "500m", "lendingLimit": 4}, "memory": {"nominalQuota": "1Gi"}})
        ],
        fairSharing={"weight": "250m"},
        preemption={
            "withinClusterQueue": "LowerOrNewerEqualPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -1},
        },
        flavorFungibility={
            "whenCanBorrow": "TryNextFlavor",
            "whenCanPreempt": "TryNextFlavor",
            "preference": "PreemptionOverBorrowing",
        },
        stopPolicy="HoldAndDrain",
    )
    quotas = {"cpu": ResourceQuota(10_000, 500, 4000), "memory": ResourceQuota(2**30)}
    assert found == ClusterQueue(
        name="q",
        cohort="all",
        resource_groups=(ResourceGroup(("cpu", "memory"), (FlavorQuotas("default", quotas),)),),
        weight=Fraction(1, 4),
        queueing_strategy="StrictFIFO",
        namespace_selector=LabelSelector({"a": "b"}, (Requirement("dep", "In", ("eng",)),)),
        preemption=Preemption("LowerOrNewerEqualPriority", "Any", "LowerPriority", -1),
        fungibility=FlavorFungibility("TryNextFlavor", "TryNextFlavor", "PreemptionOverBorrowing"),
        stop_policy="HoldAndDrain",
    )


@pytest.mark.parametrize(("policy", "now"), [("None", "Hold"), ("HoldAndDrain", "HoldAndDrain")])
def test_a_queue_whose_deletion_has_begun_is_held(policy: str, now: str) -> None:
    """Kueue calls it inactive, and a LocalQueue as well; null is no time."""
    both = [queue(stopPolicy=policy), local_queue("l", "default", "q", stopPolicy=policy)]
    for time, stops in ((None, policy), ("2026-01-01T00:00:00Z", now)):
        for each in both:
            each["metadata"]["deletionTimestamp"] = time
        cluster = cluster_from([FLAVOR, *both], "test")
        stopped = (*cluster.cluster_queues.values(), *cluster.local_queues.values())
        assert [each.stop_policy for each in stopped] == [stops, stops]
    assert sum("as if its stopPolicy was Hold" in each for each in cluster.warnings) == 2


def check(name: str, *active: str) -> dict[str, Any]:
    """An AdmissionCheck, with its condition `Active` if there is one."""
    conditions = [{"type": "Active", "status": status, "reason": "r"} for status in active]
    return {**manifest("AdmissionCheck", name), "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("objects", "inactive"),
    [
        ([], ""),
        ([check("prov", "True")], ""),
        ([check("prov")], ""),
        ([check("prov", "False")], "it references inactive AdmissionChecks: prov"),
        ([check("other", "True")], "it references missing AdmissionChecks: prov"),
    ],
)
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_queue_with_a_missing_or_inactive_check_is_inactive(
    objects: list[dict[str, Any]], inactive: str, version: str
) -> None:
    """As far as the manifests contain AdmissionChecks. A queue without checks does not need any."""
    spec: dict[str, Any] = {"admissionChecksStrategy": {"admissionChecks": [{"name": "prov"}]}}
    if version == "v1beta1":
        spec = {"admissionChecks": ["prov"]}
    found = cluster_from([FLAVOR, queue(version=version, **spec), *objects], "test").cluster_queues["q"]
    assert found.inactive == inactive
    assert not cluster_from([FLAVOR, queue(), *objects], "test").cluster_queues["q"].inactive


@pytest.mark.parametrize("reason", ["CheckNotFoundOrInactive", "AdmissionCheckInactive"])
def test_a_queues_status_says_that_its_checks_are_inactive(reason: str) -> None:
    """In the words of any release."""
    told = queue(admissionChecksStrategy={"admissionChecks": [{"name": "prov"}]})
    told["status"] = {"conditions": [{"type": "Active", "status": "False", "reason": reason}]}
    assert cluster_from([FLAVOR, told], "test").cluster_queues["q"].inactive == reason


def test_both_api_versions_of_a_queue_are_equal() -> None:
    """v1beta1 says `cohort`, `Borrow` and `Preempt`; the objects are the same."""
    old = queue(
        version="v1beta1",
        cohort="all",
        flavorFungibility={"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
        fairSharing={"weight": 2},
    )
    new = queue(
        cohortName="all",
        flavorFungibility={"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
        fairSharing={"weight": "2"},
    )
    first = cluster_from([FLAVOR | {"apiVersion": f"{API}/v1beta1"}, old], "test")
    second = cluster_from([FLAVOR, new], "test")
    assert first.cluster_queues == second.cluster_queues
    assert first.flavors == second.flavors
    assert first.cohorts == second.cohorts


def test_spelling_of_another_version_is_a_fault() -> None:
    """A cluster would drop the field, and the queue would share with nobody."""
    assert faults(FLAVOR, queue(cohort="all")) == ["spec.cohort: is called cohortName in this apiVersion"]
    assert faults(FLAVOR, queue(version="v1beta1", cohortName="all")) == [
        "spec.cohortName: is called cohort in this apiVersion"
    ]
    assert faults(manifest("Cohort", "c", {"parent": "d"})) == [
        "spec.parent: is called parentName in this apiVersion"
    ]
    assert (
        "whenCanBorrow: 'Borrow' is not one of"
        in faults(queue(flavorFungibility={"whenCanBorrow": "Borrow"}))[0]
    )


def test_empty_selector_matches_every_namespace_and_an_absent_one_none() -> None:
    """Kueue's two kinds of nothing."""
    assert read_queue(namespaceSelector={}).namespace_selector == LabelSelector()
    assert read_queue(namespaceSelector=None).namespace_selector is None


@pytest.mark.parametrize(
    ("weight", "exact"),
    [
        (1, Fraction(1)),
        ("500m", Fraction(1, 2)),
        (0, Fraction(0)),
        ("0", Fraction(0)),
        (0.1, Fraction(1, 10)),
        ("2n", Fraction(2, 10**9)),
        ("1Ki", Fraction(1024)),
        ("0.3333333333", Fraction(333333334, 10**9)),
    ],
)
def test_weight_is_exact(weight: object, exact: Fraction) -> None:
    """Whole billionths, rounded up as Kubernetes does."""
    assert read_queue(fairSharing={"weight": weight}).weight == exact


@pytest.mark.parametrize("weight", [-1, "-1n", "1n", "0.5n", "x", True])
def test_weight_that_kueue_refuses_is_a_fault(weight: object) -> None:
    """Below zero, or so small that it would vanish."""
    assert faults(queue(fairSharing={"weight": weight}))[0].startswith("spec.fairSharing.weight: ")
    assert faults(manifest("Cohort", "c", {"fairSharing": {"weight": weight}}))


@pytest.mark.parametrize(
    ("resource", "quota"), [("cpu", "9223372036854776"), ("memory", "8Ei"), ("cpu", "1e30")]
)
def test_quota_beyond_64_bits_has_no_end(resource: str, quota: str) -> None:
    """Kueue counts such a quota as unlimited; the resource then has no capacity to speak of."""
    cluster = cluster_from(
        [FLAVOR, queue(resourceGroups=[group({resource: {"nominalQuota": quota}})])], "test"
    )
    quotas = cluster.cluster_queues["q"].resource_groups[0].flavors[0].resources
    assert quotas[resource].nominal == UNLIMITED
    assert cluster.capacity == {}


FIRST = "spec.resourceGroups[0].flavors[0].resources[0]"


def limited(**limits: Any) -> list[dict[str, Any]]:
    """Resource groups with limits on CPUs."""
    return [group({"cpu": limits})]


TWO_FLAVORS = [{"coveredResources": ["cpu"], "flavors": [group({"cpu": {}})["flavors"][0]] * 2}]


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (
            {"resourceGroups": TWO_FLAVORS},
            "spec.resourceGroups[0].flavors[1].name: flavor default is listed twice",
        ),
        (
            {"resourceGroups": [group({"cpu": {}}), group({"memory": {}})]},
            "spec.resourceGroups[1].flavors[0].name: flavor default is listed twice",
        ),
        (
            {"resourceGroups": [group({"cpu": {}}), group({"cpu": {}}, "other")]},
            "spec.resourceGroups[1].coveredResources[0]: cpu is covered twice",
        ),
        (
            {"resourceGroups": [group({"cpu": {}}) | {"coveredResources": ["cpu", "memory"]}]},
            (
                "spec.resourceGroups[0].flavors[0].resources: must list the covered resources in their "
                "order: "
                "cpu, memory; not cpu"
            ),
        ),
        (
            {"resourceGroups": [group({"memory": {}, "cpu": {}}) | {"coveredResources": ["cpu", "memory"]}]},
            (
                "spec.resourceGroups[0].flavors[0].resources: must list the covered resources in their "
                "order: "
                "cpu, memory; not memory, cpu"
            ),
        ),
        (
            {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": []}]},
            "spec.resourceGroups[0].flavors: must name at least one flavor",
        ),
        (
            {"resourceGroups": limited(borrowingLimit=1)},
            f"{FIRST}.borrowingLimit: must be left out unless a cohort is set",
        ),
        (
            {"resourceGroups": limited(lendingLimit=1)},
            f"{FIRST}.lendingLimit: must be left out unless a cohort is set",
        ),
        (
            {"cohortName": "c", "resourceGroups": limited(lendingLimit=11)},
            f"{FIRST}.lendingLimit: must not be more than nominalQuota",
        ),
        ({"resourceGroups": limited(nominalQuota="-1")}, f"{FIRST}.nominalQuota: -1 must not be negative"),
        ({"resourceGroups": limited(nominalQuota=None)}, f"{FIRST}.nominalQuota: is missing"),
        (
            {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}},
            "spec.preemption.borrowWithinCohort.policy: requires that reclaimWithinCohort is not Never",
        ),
        (
            {"flavorFungibility": {"preference": "BorrowingOverPreemption"}},
            "spec.flavorFungibility.preference: needs whenCanBorrow and whenCanPreempt to be TryNextFlavor",
        ),
        ({"stopPolicy": "Never"}, "spec.stopPolicy: 'Never' is not one of None, Hold, HoldAndDrain"),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "spec.namespaceSelector.matchExpressions[0].values: must not be empty with operator In",
        ),
    ],
)
def test_queue_that_the_webhook_refuses_is_a_fault(spec: dict[str, Any], fault: str) -> None:
    """Each rule by itself."""
    assert faults(FLAVOR, queue(**spec)) == [fault]


def test_all_faults_come_at_once() -> None:
    """A queue may break several rules, and so may several queues."""
    bad = queue(
        resourceGroups=[group({"cpu": {"borrowingLimit": 1, "lendingLimit": 99, "nominalQuota": "x"}})],
        preemption={"withinClusterQueue": "Sometimes"},
        fairSharing={"weight": -1},
    )
    assert len(faults(bad, queue("r", stopPolicy="x"), queue("r"))) == 8


def test_cohort_keeps_its_own_quotas_and_parent() -> None:
    """Old and new spelling of the parent; a cohort may lend more than its own quota."""
    quotas = group({"cpu": {"nominalQuota": 2, "borrowingLimit": 1, "lendingLimit": 5}})
    spec = {"resourceGroups": [quotas], "fairSharing": {"weight": 3}}
    for version, parent in (("v1alpha1", "parent"), ("v1beta1", "parentName"), ("v1beta2", "parentName")):
        cluster = cluster_from([manifest("Cohort", "c", spec | {parent: "root"}, version)], "test")
        expected = ResourceGroup(
            ("cpu",), (FlavorQuotas("default", {"cpu": ResourceQuota(2000, 1000, 5000)}),)
        )
        assert cluster.cohorts["c"] == Cohort("c", "root", (expected,), Fraction(3))
        assert cluster.capacity == {"cpu": 2000}


def test_cohort_without_parent_has_no_limits() -> None:
    """There is nobody to borrow from or to lend to."""
    quotas = group({"cpu": {"nominalQuota": 2, "borrowingLimit": 1, "lendingLimit": 1}})
    assert faults(manifest("Cohort", "c", {"resourceGroups": [quotas]})) == [
        f"{FIRST}.borrowingLimit: must be left out unless a parent is set",
        f"{FIRST}.lendingLimit: must be left out unless a parent is set",
    ]


def test_cohorts_without_manifest_exist() -> None:
    """Whoever refers to a cohort makes it: without quota and without parent."""
    cluster = cluster_from(
        [
            FLAVOR,
            queue("a", cohortName="x"),
            queue("b", cohortName="y"),
            manifest("Cohort", "y", {"parentName": "z"}),
        ],
        "test",
    )
    assert dict(cluster.cohorts) == {"y": Cohort("y", "z"), "x": Cohort("x"), "z": Cohort("z")}


def test_queues_below_a_cohort_that_is_its_own_ancestor_are_inactive() -> None:
    """Each cycle gives one warning, which names all members. Upstream: `skipInactiveCQReason`, `HasCycle`."""
    parents = {"a": "b", "b": "c", "c": "b", "d": "d", "e": "f"}
    cohorts = [manifest("Cohort", name, {"parentName": parent}) for name, parent in parents.items()]
    queues = [queue(f"q{name}", cohortName=name) for name in "abcdefg"]
    cluster = cluster_from([FLAVOR, *cohorts, *queues], "test")
    told = "the cohort is its own ancestor, so Kueue keeps all queues below it inactive"
    assert cluster.warnings == (f"Cohort b: {told}: b > c > b", f"Cohort d: {told}: d > d")
    long, short = "Cohort b is its own ancestor: b > c > b", "Cohort d is its own ancestor: d > d"
    inactive = {name: queue.inactive for name, queue in cluster.cluster_queues.items() if queue.inactive}
    assert inactive == {"qa": long, "qb": long, "qc": long, "qd": short}


def test_flavor_is_read() -> None:
    """Labels, taints and extra tolerations."""
    spec = {
        "nodeLabels": {"gpu": "a100"},
        "nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    }
    cluster = cluster_from([manifest("ResourceFlavor", "f", spec)], "test")
    taint, toleration = Taint("spot", "true", "NoSchedule"), Toleration("spot", "Exists")
    assert cluster.flavors["f"] == ResourceFlavor("f", {"gpu": "a100"}, (taint,), (toleration,))


def test_queue_of_an_unknown_flavor_is_a_warning() -> None:
    """Kueue takes the queue and leaves it inactive."""
    cluster = cluster_from([queue()], "test")
    assert cluster.warnings == (
        "ClusterQueue q: there is no ResourceFlavor default, so Kueue keeps the queue inactive",
    )
    assert cluster.missing_flavors(cluster.cluster_queues["q"]) == ("default",)


def local_queue(name: str, namespace: str, target: str, **spec: Any) -> dict[str, Any]:
    """A LocalQueue."""
    local = manifest("LocalQueue", name, {"clusterQueue": target} | spec)
    local["metadata"]["namespace"] = namespace
    return local


def test_queue_of_a_trace_is_a_local_queue_of_its_namespace_first() -> None:
    """Else it is a ClusterQueue of that name."""
    manifests = [
        FLAVOR,
        queue("q"),
        queue("r"),
        local_queue("r", "team", "q"),
        local_queue("main", "team", "r"),
    ]
    cluster = cluster_from(manifests, "test")
    assert cluster.local_queues["team", "main"] == LocalQueue("main", "team", "r")
    found = {
        (namespace, name): target.name
        for namespace in ("team", "other")
        for name in ("q", "r", "main")
        if (target := cluster.cluster_queue_of(namespace, name)) is not None
    }
    assert found == {
        ("team", "q"): "q",
        ("team", "r"): "q",
        ("team", "main"): "r",
        ("other", "q"): "q",
        ("other", "r"): "r",
    }


def test_local_queue_needs_its_cluster_queue() -> None:
    """Kueue keeps one whose ClusterQueue is gone, and admits nothing that names it; so that is told."""
    assert faults(manifest("LocalQueue", "b")) == ["spec.clusterQueue: is missing"]
    cluster = cluster_from([local_queue("a", "team", "x")], "test")
    assert cluster.warnings == (
        "LocalQueue team/a: there is no ClusterQueue x, so Kueue admits no workload of this queue",
    )
    assert cluster.cluster_queue_of("team", "a") is None


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ({}, False),
        ({"matchLabels": {"kubernetes.io/metadata.name": "team"}}, False),
        ({"matchLabels": {"x": "y"}}, True),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_labels_of_a_namespace_without_a_manifest_are_unknown(selector: dict[str, Any], told: bool) -> None:
    """Where a ClusterQueue selects by them; the name is known of every namespace."""
    manifests = [FLAVOR, queue("q", namespaceSelector=selector), local_queue("a", "team", "q")]
    warnings = cluster_from(manifests, "test").warnings
    assert [each.startswith("LocalQueue team/a: ClusterQueue q selects namespaces") for each in warnings] == (
        [True] if told else []
    )
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    assert cluster_from([*manifests, team], "test").warnings == ()


def test_local_queues_of_one_name_differ_by_namespace() -> None:
    """Namespace and name together are the key; without one it is `default`."""
    twice = [
        FLAVOR,
        queue(),
        local_queue("a", "x", "q"),
        local_queue("a", "y", "q"),
        manifest("LocalQueue", "a"),
    ]
    twice[-1]["spec"]["clusterQueue"] = "q"
    assert list(cluster_from(twice, "test").local_queues) == [("x", "a"), ("y", "a"), ("default", "a")]
    assert faults(*twice, local_queue("a", "x", "q")) == [
        "is given twice; the first is in document 3, LocalQueue x/a"
    ]


def test_a_workload_that_is_given_twice_is_refused() -> None:
    """As any other object, by namespace and name."""
    made = manifest("Workload", "w", {"queueName": "q", "podSets": [{"name": "main", "count": 1}]})
    assert faults(FLAVOR, queue(), made, made) == ["is given twice; the first is in document 3, Workload w"]


def test_workload_priority_class_comes_before_a_priority_class() -> None:
    """Kueue prefers it, and two values under one name are worth a warning."""
    wpc = {
        "apiVersion": f"{API}/v1beta1",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high"},
        "value": 5,
    }
    pc = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    cluster = cluster_from([wpc | {"description": "x"}, pc | {"globalDefault": True}], "test")
    assert cluster.priority_of("high") == PriorityClass("high", 5)
    assert cluster.default_priority == 9
    assert "a PriorityClass of that name has the value 9" in cluster.warnings[0]
    assert cluster_from([wpc, pc | {"value": 5}], "test").warnings == ()


def test_what_is_not_modelled_is_named_with_what_is_assumed() -> None:
    """One sentence a field, however many objects have it."""
    names = ["a", "b", "c", "d", "e"]
    manifests = [FLAVOR, *(queue(name, "v1beta1", admissionChecks=["check"]) for name in names)]
    manifests.append(queue("f", novelty=1))
    manifests.append(manifest("ResourceFlavor", "g", {"resourceWeights": [{"name": "cpu", "weight": 2}]}))
    assert cluster_from(manifests, "test").warnings == (
        (
            "ClusterQueue a, b, c and 2 more: spec.admissionChecks is not modelled: "
            "harness treats every admission check as ready at once; the option "
            "admissionCheckDelay makes checks ready later"
        ),
        "ClusterQueue f: spec.novelty is not modelled: no such field is known",
        "ResourceFlavor g: spec.resourceWeights is not modelled: no such field is known",
    )


def test_checks_are_read_in_both_forms_of_which_only_one_may_be_given() -> None:
    """By name alone they are for all flavors."""
    rules = {"admissionChecks": [{"name": "a", "onFlavors": ["f"]}, {"name": "b"}]}
    found = cluster_from([FLAVOR, queue("q", admissionChecksStrategy=rules)], "test")
    assert found.cluster_queues["q"].checks == (AdmissionCheck("a", ("f",)), AdmissionCheck("b"))
    both = queue("q", "v1beta1", admissionChecksStrategy=rules, admissionChecks=["a"])
    with pytest.raises(ClusterError, match="cannot be given together with admissionChecks"):
        cluster_from([FLAVOR, both], "test")


CONFIGURATION = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
OLDER = {**CONFIGURATION, "apiVersion": "config.kueue.x-k8s.io/v1beta1"}
BY_USAGE = {"admissionMode": "UsageBasedAdmissionFairSharing"}


def test_admission_fair_sharing_is_read_with_kueues_defaults() -> None:
    """The interval is 5 minutes, also where it is 0; usage has no half-life, which is worth a warning."""
    sections = {"usageHalfLifeTime": "168h", "resourceWeights": {"cpu": 2, "memory": 1e-9}}
    cluster = cluster_from([CONFIGURATION | {"admissionFairSharing": sections}], "test")
    assert cluster.warnings == ()
    assert cluster.kueue is not None
    assert cluster.kueue.admission == AdmissionFairSharing(
        168 * HOUR, 5 * MINUTE, {"cpu": 2.0, "memory": 1e-9}
    )
    bare = cluster_from([CONFIGURATION | {"admissionFairSharing": {"usageSamplingInterval": "0s"}}], "test")
    assert bare.kueue is not None
    assert bare.kueue.admission == AdmissionFairSharing(0, 5 * MINUTE)
    assert bare.warnings == (
        (
            "Configuration of Kueue: admissionFairSharing.usageHalfLifeTime is 0, which is also the "
            "default, so "
            "all usage counts as 0 and does not influence the order of jobs"
        ),
    )


@pytest.mark.parametrize(
    ("version", "section", "fault"),
    [
        ("v1beta2", {"fairSharng": {}}, "fairSharng: is not a field of Configuration"),
        ("v1beta2", {"fairSharing": {"enabled": False}}, "fairSharing.enabled: is not a field"),
        ("v1beta1", {"fairSharing": {"enabled": False}}, "enabled: is not a field"),
        ("v1beta2", {"fairSharing": {"enable": True}}, "fairSharing.enable: is not a field"),
        ("v1beta2", {"metadata": {"name": "kueue"}}, "metadata: is not a field"),
        ("v1beta1", {"integrations": {"podOptions": {}, "pods": 1}}, "integrations.pods: is not a field"),
    ],
)
def test_a_key_that_kueue_does_not_know_is_refused(version: str, section: dict[str, Any], fault: str) -> None:
    """As Kueue's strict decoding does, each apiVersion by its own keys; a slip of the pen is told."""
    manifest = {"apiVersion": f"config.kueue.x-k8s.io/{version}", "kind": "Configuration", **section}
    with pytest.raises(ClusterError, match=re.escape(fault)) as caught:
        cluster_from([manifest], "test")
    if "fairSharng" in section:
        assert "did you mean 'fairSharing'?" in str(caught.value)


def test_fair_sharing_is_switched_as_each_version_does_it() -> None:
    """By `enable` in v1beta1, by the section itself in v1beta2."""

    def strategies(version: str, sharing: dict[str, Any] | None) -> tuple[str, ...] | None:
        manifest = {"apiVersion": f"config.kueue.x-k8s.io/{version}", "kind": "Configuration"}
        found = cluster_from([manifest | ({} if sharing is None else {"fairSharing": sharing})], "test").kueue
        assert found is not None
        return found.strategies

    assert strategies("v1beta1", {"enable": True}) == strategies("v1beta2", {})
    assert strategies("v1beta1", {"enable": False}) is strategies("v1beta1", {}) is None
    assert strategies("v1beta2", None) is None


def test_all_faults_of_admission_fair_sharing_come_at_once() -> None:
    """Durations as Go reads them, weights as numbers, and only modes that do something."""
    sections = {
        "usageHalfLifeTime": "7d",
        "usageSamplingInterval": "-5m",
        "resourceWeights": {"cpu": -1, "memory": "1"},
        "resetInactivityPeriod": "1h",
    }
    scope = {"admissionMode": "UsageBasedFairSharing"}
    with pytest.raises(ClusterError) as caught:
        cluster_from(
            [CONFIGURATION | {"admissionFairSharing": sections}, FLAVOR, queue(admissionScope=scope)], "test"
        )
    no_duration = "is not a duration of Kubernetes, such as 168h, 5m or 90s"
    modes = "UsageBasedAdmissionFairSharing, NoAdmissionFairSharing"
    assert [str(fault).split(": ", 1)[1] for fault in caught.value.faults] == [
        f"admissionFairSharing.usageSamplingInterval: '-5m' {no_duration}",
        f"admissionFairSharing.usageHalfLifeTime: '7d' {no_duration}",
        "admissionFairSharing.resourceWeights.cpu: must be a number >= 0, not -1",
        "admissionFairSharing.resourceWeights.memory: must be a number, not '1'",
        (
            "admissionFairSharing.resetInactivityPeriod: is not a field of Configuration in "
            "config.kueue.x-k8s.io/v1beta2, so an API server refuses it; "
            "there is: resourceWeights, usageHalfLifeTime, usageSamplingInterval"
        ),
        f"spec.admissionScope.admissionMode: 'UsageBasedFairSharing' is not one of {modes}",
    ]
    assert faults(FLAVOR, queue(admissionScope={})) == ["spec.admissionScope.admissionMode: is missing"]


def pods_ready(section: Any, version: str = "v1beta2") -> KueueConfiguration:
    """Kueue's Configuration with this `waitForPodsReady`; nothing of it is worth a warning."""
    manifest = {"apiVersion": f"config.kueue.x-k8s.io/{version}", "kind": "Configuration"}
    cluster = cluster_from([manifest | {"waitForPodsReady": section}], "test")
    assert cluster.warnings == ()
    assert cluster.kueue is not None
    return cluster.kueue


def test_wait_for_pods_ready_is_read_with_the_defaults_of_its_version() -> None:
    """In v1beta2 it is on, in v1beta1 its switch turns it on; the older defaults are stricter."""
    for absent in ({}, None, {"timeout": "0s"}):
        assert pods_ready(absent).pods_ready == WaitForPodsReady(30 * MINUTE, 30 * MINUTE)
    older = pods_ready({"enable": True}, "v1beta1")
    assert older.pods_ready == WaitForPodsReady(5 * MINUTE, 5 * MINUTE, block_admission=True)
    assert pods_ready({"timeout": "5m"}, "v1beta1").pods_ready is None
    assert pods_ready({"enable": False}, "v1beta1").pods_ready is None
    assert pods_ready(None, "v1beta1").pods_ready is None
    strategy = {
        "timestamp": "Creation",
        "backoffLimitCount": 0,
        "backoffBaseSeconds": 5,
        "backoffMaxSeconds": 9,
    }
    section = {
        "timeout": "90s",
        "recoveryTimeout": "0s",
        "blockAdmission": True,
        "requeuingStrategy": strategy,
    }
    found = pods_ready(section)
    assert found.pods_ready == WaitForPodsReady(
        90 * SECOND, None, True, 0, backoff_base=5 * SECOND, backoff_max=9 * SECOND, recovery_given=True
    )
    assert (found.evicted_last, pods_ready({}).evicted_last) == (False, True)
    off = {"enable": False, "requeuingStrategy": {"timestamp": "Creation"}}
    assert pods_ready(off, "v1beta1").evicted_last, "of a section that is off nothing counts"


def test_all_faults_of_wait_for_pods_ready_come_at_once() -> None:
    """Also those of a section that is turned off."""
    section = {
        "enable": False,
        "timeout": "0s",
        "recoveryTimeout": "200ms",
        "requeuingStrategy": {"timestamp": "Later", "backoffLimitCount": -1, "backoffBaseSeconds": 10**10},
    }
    with pytest.raises(ClusterError) as caught:
        cluster_from([OLDER | {"waitForPodsReady": section}], "test")
    assert [
        str(fault).split(": ", 1)[1].removeprefix("waitForPodsReady.") for fault in caught.value.faults
    ] == [
        "requeuingStrategy.timestamp: 'Later' is not one of Eviction, Creation",
        "timeout: must be at least 1s, because Kueue uses whole seconds",
        "recoveryTimeout: must be 0s or at least 1s, because Kueue uses whole seconds",
        "requeuingStrategy.backoffLimitCount: -1 is out of range (0 to 2147483647)",
        "requeuingStrategy.backoffBaseSeconds: 10000000000 is out of range (0 to 1000000000)",
    ]


def test_local_queue_has_a_weight_and_what_its_status_says_it_consumed() -> None:
    """Amounts count in billionths, rounded down as Kueue does."""
    door = local_queue("a", "x", "q", fairSharing={"weight": "500m"})
    door["status"] = {
        "pendingWorkloads": 3,
        "fairSharing": {
            "weightedShare": 0,
            "admissionFairSharingStatus": {
                "consumedResources": {"cpu": "31999m", "memory": "1Gi"},
                "lastUpdate": "2025-06-03T14:25:15Z",
            },
        },
    }
    cluster = cluster_from([FLAVOR, queue(), door], "test")
    assert cluster.warnings == ()
    local = cluster.local_queues["x", "a"]
    assert local.weight == Fraction(1, 2)
    assert local.consumed == {"cpu": 31_999_000_000, "memory": 2**30 * 10**9}


@pytest.mark.parametrize(
    ("annotations", "gate"),
    [({"kueue.x-k8s.io/admission-gated-by": "example.com/a"}, "example.com/a"), ({"other": "x"}, "")],
)
def test_who_gates_a_workload_is_read(annotations: dict[str, str], gate: str) -> None:
    """Without a warning, and only where somebody does it is part of the digest."""
    pods = {"name": "main", "template": {"spec": {"containers": [{"name": "c"}]}}}
    made = manifest("Workload", "w", {"queueName": "q", "podSets": [pods]})
    plain = cluster_from([FLAVOR, queue(), made], "test")
    made = {**made, "metadata": {"name": "w", "annotations": annotations}}
    cluster = cluster_from([FLAVOR, queue(), made], "test")
    assert ([each.gated_by for each in cluster.workloads], cluster.warnings) == ([gate], plain.warnings)
    assert (cluster.digest != plain.digest) == bool(gate)


@pytest.mark.parametrize(("gate", "told"), [("kueue.x-k8s.io/topology", False), ("example.com/a", True)])
def test_gates_of_pods_that_kueue_does_not_remove_are_warned_about(gate: str, told: bool) -> None:
    """Kueue removes its own. No manifest says who removes another, so harness says that it is gone."""
    spec = {"containers": [{"name": "c"}], "schedulingGates": [{"name": gate}]}
    made = manifest("Workload", "w", {"queueName": "q", "podSets": [{"template": {"spec": spec}}]})
    warnings = cluster_from([FLAVOR, queue(), made], "test").warnings
    assert any("template.spec.schedulingGates[].name is not modelled" in each for each in warnings) == told


def test_scope_without_configuration_is_warned_about() -> None:
    """As in Kueue it orders nothing then."""
    manifests = [FLAVOR, queue(admissionScope=BY_USAGE)]
    cluster = cluster_from(manifests, "test")
    assert cluster.cluster_queues["q"].by_usage
    assert cluster.warnings == (
        (
            "ClusterQueue q: spec.admissionScope has no effect without admissionFairSharing in Kueue's "
            "Configuration"
        ),
    )
    settings = CONFIGURATION | {"admissionFairSharing": {"usageHalfLifeTime": "1h"}}
    assert cluster_from([*manifests, settings], "test").warnings == ()
    assert not read_queue(admissionScope={"admissionMode": "NoAdmissionFairSharing"}).by_usage


def test_digest_counts_admission_fair_sharing_only_where_it_is_used() -> None:
    """Clusters that do not use it keep the digest that their runs are filed under."""

    def digest(scope: dict[str, str] | None) -> str:
        spec = {} if scope is None else {"admissionScope": scope}
        return replace(cluster_from([FLAVOR, queue(**spec)], "test"), manifests=()).digest

    assert digest(None) == digest({"admissionMode": "NoAdmissionFairSharing"}) != digest(BY_USAGE)


def test_component_without_api_server_takes_what_webhooks_refuse() -> None:
    """Recorded components were driven without webhooks; a wrong type is still a fault."""
    refused = queue(resourceGroups=[group({"cpu": {"borrowingLimit": 1}})], fairSharing={"weight": "1n"})
    manifests = [FLAVOR, refused, local_queue("l", "x", "nowhere")]
    found = cluster_from(manifests, "test", webhooks=False).cluster_queues["q"]
    assert found.resource_groups[0].flavors[0].resources["cpu"] == ResourceQuota(10_000, 1000)
    with pytest.raises(ClusterError, match="stopPolicy"):
        cluster_from([FLAVOR, queue(stopPolicy=3)], "test", webhooks=False)


def test_queue_is_immutable() -> None:
    """Nothing that a replay does can change its cluster."""
    found = read_queue()
    with pytest.raises(AttributeError):
        found.cohort = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.resource_groups[0].flavors[0].resources["cpu"] = ResourceQuota(1)  # type: ignore[index]
    assert replace(found, cohort="x") != found


def test_a_feature_gate_that_kueue_does_not_have_is_refused() -> None:
    """Kueue does not start with one; a gate that is known and not modelled keeps its warning."""

    def read(**gates: bool) -> Any:
        manifest = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "featureGates": gates,
        }
        return cluster_from([manifest], "test")

    with pytest.raises(ClusterError) as told:
        read(PartialAdmision=True)
    (fault,) = told.value.faults
    assert (
        "featureGates.PartialAdmision: is not a feature gate of Kueue, which refuses unknown gates"
    ) in str(fault)
    assert "did you mean 'PartialAdmission'?" in str(fault)
    assert "featureGates.MultiKueue is not modelled" in "".join(read(MultiKueue=True).warnings)
    assert read(PartialAdmission=False).warnings == ()


def test_a_fault_of_a_pod_set_is_named_once() -> None:
    """Requests, grace period and deadline are read from the same template."""
    made = manifest("Workload", "w", {"queueName": "q", "podSets": [{"name": "main", "template": "x"}]})
    (fault,) = faults(FLAVOR, queue(), made)
    assert fault.endswith("podSets[0].template: must be a mapping of names to values, not 'x'")
