"""Recorded cases of Kueue: what a case says and the model does not take is an error."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from kueue_worlds import flavor, queue

from harness.base.errors import HarnessError, PolicyError
from harness_plugins.kueue.conformance.cycles import answer

Case = dict[str, Any]
POLICY = {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}}


def arriving(name: str, cpu: int, *, queue: str = "q", second: int = 0, priority: int = 0) -> Case:
    """A workload that arrives and runs for 10 s."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "workload": {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "creationTimestamp": f"2025-01-01T00:00:{second:02}Z",
            },
            "spec": {"queueName": queue, "priority": priority, "podSets": [pod_set]},
        },
        "duration": 10,
    }


def case(*workloads: Case, objects: list[Case] | None = None, **config: Any) -> Case:
    """A case of 100 s, of one queue of 4 cores unless told otherwise."""
    return {
        "id": "case",
        "component": "kueue/cycles",
        "features": [],
        "config": config,
        "objects": objects or [flavor(), queue("q", cpu=4)],
        "given": {"workloads": list(workloads), "until": 100},
        "expect": {"decisions": []},
    }


def told(asked: Case) -> list[str]:
    """Decisions, such as `0 admit a`."""
    words = []
    for decision in answer(asked)["decisions"]:
        action = next(each for each in ("admit", "preempt", "evict", "finish") if each in decision)
        words.append(f"{decision['t']} {action} {decision[action]}")
    return words


def test_a_workload_that_is_not_active_is_never_queued() -> None:
    """It blocks nobody, also in a strict queue, and is pending in the end."""
    strict = [flavor(), queue("q", cpu=4, queueingStrategy="StrictFIFO")]
    asked = case(arriving("off", 4), arriving("on", 4, second=1), objects=strict)
    asked["given"]["workloads"][0]["workload"]["spec"]["active"] = False
    assert told(asked) == ["1 admit on", "11 finish on"]
    assert answer(asked)["final"] == {"admitted": [], "pending": ["off"]}


@pytest.mark.parametrize(("active", "admitted"), [(True, []), (False, ["a"])])
def test_the_quota_of_a_workload_that_is_not_active_is_free(active: bool, admitted: list[str]) -> None:
    """Although its status still has an admission."""
    held = arriving("held", 4)["workload"]
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "4"}}
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
    held["spec"]["active"] = active
    held["status"] = {
        "admission": {"clusterQueue": "q", "podSetAssignments": [usage]},
        "conditions": [reserved],
    }
    asked = case(arriving("a", 4), objects=[flavor(), queue("q", cpu=4), held])
    asked["given"] = {"workloads": asked["given"]["workloads"], "maxCycles": 1, "now": "2025-01-01T00:00:00Z"}
    assert [each["admit"] for each in answer(asked)["decisions"]] == admitted


@pytest.mark.parametrize(
    ("boost", "gate", "first"), [("7", True, "b"), ("7", False, "a"), ("x", True, "a"), ("-1", True, "a")]
)
def test_a_priority_boost_counts_where_its_gate_is_on(boost: str, gate: bool, first: str) -> None:
    """It is added to the priority; what is no number counts as 0."""
    asked = case(arriving("a", 4), arriving("b", 4), featureGates={"PriorityBoost": gate})
    metadata = asked["given"]["workloads"][1]["workload"]["metadata"]
    metadata["annotations"] = {"kueue.x-k8s.io/priority-boost": boost}
    assert told(asked)[0] == f"0 admit {first}"


def test_pod_sets_of_which_no_pod_is_left_get_their_flavor() -> None:
    """Pods that have ended need no quota, and the admission says how many of each pod set got some."""
    asked = case(arriving("a", 9))
    manifest = asked["given"]["workloads"][0]["workload"]
    (main,) = manifest["spec"]["podSets"]
    small = copy.deepcopy(main) | {"name": "small"}
    small["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 1
    manifest["spec"]["podSets"] = [main, small]
    manifest["status"] = {"reclaimablePods": [{"name": "main", "count": 1}]}
    (admitted, _) = answer(asked)["decisions"]
    assert admitted["counts"] == {"main": 0}
    assert admitted["flavors"] == {"main": {"cpu": "f"}, "small": {"cpu": "f"}}


def test_who_has_no_pod_left_can_be_preempted() -> None:
    """Without the gate its quota counts in full until it goes; it never started, and takes nothing back."""
    low, high = arriving("low", 4), arriving("high", 4, second=5, priority=1)
    low["workload"]["status"] = {"reclaimablePods": [{"name": "main", "count": 1}]}
    lower = queue("q", cpu=4, preemption={"withinClusterQueue": "LowerPriority"})
    asked = case(low, high, objects=[flavor(), lower], featureGates={"ReclaimablePods": False})
    assert told(asked)[:3] == ["0 admit low", "5 preempt low", "5 admit high"]


def test_a_replay_that_does_not_come_to_rest_is_an_error_at_once() -> None:
    """Recorded ones do; here a victim always goes before its preemptor."""
    objects = [
        flavor(),
        *(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Cohort",
                "metadata": {"name": name},
                "spec": {"parentName": "root"},
            }
            for name in ("near", "far")
        ),
        queue("a", cohort="near", cpu=2, preemption=POLICY),
        queue("b", cohort="near", cpu=0),
        queue("c", cohort="far", cpu=1),
    ]
    workloads = [arriving("theirs", 1, queue="b"), arriving("mine", 3, queue="a", second=5, priority=1)]
    with pytest.raises(PolicyError, match=r"at this time never end: \d+ preemptions brought no progress"):
        answer(case(*workloads, objects=objects))


def _add_config(asked: Case) -> None:
    asked["config"]["resources"] = {}


def _add_gate(asked: Case) -> None:
    asked["config"]["featureGates"] = {"NewGate": True}


def _add_field(asked: Case) -> None:
    asked["given"]["workloads"][0]["pause"] = 1


def _add_spec(asked: Case) -> None:
    asked["given"]["workloads"][0]["workload"]["spec"]["maximumExecutionTimeSeconds"] = 5


def _add_topology(asked: Case) -> None:
    pod_set = asked["given"]["workloads"][0]["workload"]["spec"]["podSets"][0]
    pod_set["topologyRequest"] = {"nearest": "rack"}


def _add_annotation(asked: Case) -> None:
    metadata = asked["given"]["workloads"][0]["workload"]["metadata"]
    metadata["annotations"] = {"kueue.x-k8s.io/other": "1"}


def _add_check(asked: Case) -> None:
    asked["objects"][1]["spec"]["admissionChecks"] = ["check"]


def _add_object(asked: Case) -> None:
    asked["objects"].append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})


def _add_waiting(asked: Case) -> None:
    asked["config"]["waitForPodsReady"] = {"blockEverything": True}


def _add_startup(asked: Case) -> None:
    asked["given"]["workloads"][0]["readyAfter"] = [1.5]


def _add_top(asked: Case) -> None:
    asked["clock"] = {}


def test_pods_of_a_case_may_be_lost_and_come_back() -> None:
    """In the first admission they come back in time, in the second they do not; each run begins anew."""
    lost = arriving("a", 4) | {
        "duration": 30,
        "readyAfter": [1, 2],
        "lostAfter": [5, 7],
        "backAfter": [2, None],
    }
    strategy = {"backoffBaseSeconds": 4}
    waiting = {"timeout": "10s", "recoveryTimeout": "3s", "requeuingStrategy": strategy}
    assert told(case(lost, waitForPodsReady=waiting)) == ["0 admit a", "31 finish a"]
    lost["backAfter"] = [None, 1]
    found = answer(case(lost, waitForPodsReady=waiting))
    assert found["decisions"][1:] == [
        {
            "t": 9,
            "evict": "a",
            "reason": "PodsReadyTimeout",
            "cause": "WaitForRecovery",
            "count": 1,
            "requeueAt": 13,
        },
        {**found["decisions"][0], "t": 13, "cycle": 2},
        {"t": 45, "finish": "a"},
    ]
    assert found["final"] == {"admitted": [], "pending": [], "deactivated": []}


def test_a_workload_of_a_case_may_be_deactivated() -> None:
    """It is not among those that are pending."""
    stuck = arriving("a", 4) | {"readyAfter": [None]}
    waiting = {"timeout": "10s", "requeuingStrategy": {"backoffLimitCount": 0}}
    found = answer(case(stuck, waitForPodsReady=waiting))
    reason = "DeactivatedDueToRequeuingLimitExceeded"
    assert found["decisions"][1:] == [{"t": 10, "evict": "a", "reason": reason}]
    assert found["final"] == {"admitted": [], "pending": [], "deactivated": ["a"]}


def test_a_single_cycle_cannot_wait_for_pods() -> None:
    """Nothing happens over time in it."""
    asked = case(arriving("a", 4), waitForPodsReady={})
    asked["given"] |= {"maxCycles": 1, "now": "2025-01-01T00:00:00Z"}
    with pytest.raises(HarnessError, match=r"config.waitForPodsReady: cannot be used"):
        answer(asked)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_add_config, "config.resources: cannot be used"),
        (_add_gate, "featureGates.NewGate: is not a feature gate of Kueue"),
        (_add_field, r"given.workloads\[0\].pause: cannot be used"),
        (_add_spec, r"workload.spec.maximumExecutionTimeSeconds: cannot be used"),
        (_add_topology, r"podSets\[\].topologyRequest.nearest: cannot be used"),
        (_add_annotation, "annotations.kueue.x-k8s.io/other: cannot be used"),
        (_add_check, "spec.admissionChecks is not modelled"),
        (_add_object, r"ConfigMap \(v1\): 1 object is not read"),
        (_add_top, "clock: cannot be used"),
        (_add_waiting, "waitForPodsReady.blockEverything: is not a field of Configuration"),
        (_add_startup, r"readyAfter: must be a list of whole seconds or null, not \[1.5\]"),
    ],
)
def test_what_a_case_says_and_the_model_does_not_take_is_an_error(
    change: Callable[[Case], None], message: str
) -> None:
    """An answer that leaves something out would prove nothing."""
    asked = case(arriving("a", 4))
    assert told(asked) == ["0 admit a", "10 finish a"]
    change(asked)
    with pytest.raises(HarnessError, match=message):
        answer(asked)
