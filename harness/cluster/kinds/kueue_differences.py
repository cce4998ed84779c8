"""Describes how the decisions of a Kueue release differ from those of the newest recorded release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.base.frozen import Frozen
from harness.cluster.kinds.kueue_configuration import GATES
from harness.cluster.kinds.kueue_controller import controller_release
from harness.cluster.kinds.kueue_gates import GATES_BY_RELEASE, RULES_BY_RELEASE, is_on, why_refused
from harness.cluster.kinds.kueue_releases import NEWEST, Release, state_at
from harness.cluster.model import Cluster

_REPOSITORY = "https://github.com/kubernetes-sigs/kueue"
_GATES_ARE_IN = "pkg/features/kube_features.go"


class Difference(NamedTuple):
    """A rule that differs between a release and the newest release.

    Attributes:
        sentence: what the older release does.
        link: a link to the change. For a gate, it is a link to the file that defines the gates of the
            release.
    """

    sentence: str
    link: str


_BY_GATE: Mapping[str, tuple[int, str]] = Frozen(
    {
        "AdmissionFairSharing": (0, "The past usage of LocalQueues does not influence the order of jobs."),
        "AdmissionGatedBy": (0, "The annotation admission-gated-by does not hold back any workload."),
        "FairSharingPreemptWithinNominal": (
            9494,
            "With fair sharing, a preemption depends on shares even if the queue uses only its own quota.",
        ),
        "FairSharingPrioritizeNonBorrowing": (
            9484,
            "With fair sharing, only the share decides the order, even if some of the queues would borrow.",
        ),
        "FlavorFungibilityPreserveScanProgress": (
            13956,
            "A head forgets the flavors that it has tried if its queue changes or if it is skipped.",
        ),
        "KueueDRAIntegration": (0, "Devices that pods claim do not count against quotas."),
        "KueueDRARejectWorkloadsWhenDRADisabled": (
            0,
            "A Workload with device claims is queued, although devices do not count against quotas.",
        ),
        "QuotaCheckStrategy": (9808, "quotaCheckStrategy does not exist, or has no effect."),
        "RecomputeAssignmentUponPreemptionTargetsOverlap": (
            13863,
            (
                "A head is skipped if an earlier head preempts one of its targets. It does not look for "
                "other targets."
            ),
        ),
        "SchedulingEquivalenceHashing": (
            9698,
            "A BestEffortFIFO queue sets aside only its head, not all workloads that are equal to the head.",
        ),
        "TASFailedNodeReplacement": (
            0,
            "A failed node does not affect a workload until its pods leave the node.",
        ),
        "TASFailedNodeReplacementFailFast": (
            0,
            "A workload that lost a node and finds no replacement is not evicted, but waits for one.",
        ),
        "TASHandleOverlappingFlavors": (0, "Flavors that share nodes ignore each other's pods."),
        "TASProfileMixed": (0, "Pods that may run anywhere in a topology do not fill small gaps first."),
        "TASRecomputeAssignmentWithinSchedulingCycle": (
            0,
            "A head is skipped if an earlier head of the same cycle takes its place in a topology.",
        ),
        "TASReplaceNodeDueToNotReadyOverFixedTime": (
            0,
            "A node that is not ready for 30 seconds counts as failed, whatever pods it has.",
        ),
        "TASReplaceNodeOnNodeTaints": (0, "The taints of a node do not cause pods to move to another node."),
        "TASReplaceNodeOnPodTermination": (
            0,
            "A node that is tainted, or not ready for 30 seconds, counts as failed before its pods are gone.",
        ),
        "TopologyAwareScheduling": (0, "Topologies have no effect."),
    }
)
"""Maps a gate to the pull request that added it (0 for none), and to what releases without the gate do."""

_BY_RULE: Mapping[str, tuple[int, str]] = Frozen(
    {
        "borrows_at_each_level": (
            10149,
            (
                "With fair sharing, a workload that borrows comes last at every cohort, even at a cohort "
                "from which it borrows nothing."
            ),
        ),
        "checks_device_claims": (
            7226,
            "A claim of devices that cannot be counted counts as zero and does not block its workload.",
        ),
        "cohorts_end_searches": (
            10891,
            "With fair sharing, the controller crashes when a queue without cohort has too few candidates.",
        ),
        "counts_unlendable": (
            9738,
            "With fair sharing, no queue preempts from a queue that borrows only quota that cannot be lent.",
        ),
        "exact_transformations": (
            12953,
            "Resource transformations round requests up to whole units before they multiply.",
        ),
        "keeps_transformed_inputs": (
            13986,
            "Kueue also multiplies the quantity of a retained resource with multiplyBy.",
        ),
        "no_candidates_last": (
            13616,
            (
                "With PreemptionOverBorrowing, Kueue can choose a flavor in which it finds nothing to "
                "preempt, although another flavor fits."
            ),
        ),
        "own_label_keys": (
            12449,
            "A node selector excludes flavors without its label if another flavor of the group has it.",
        ),
        "parks_classes_for_quota_alone": (
            9698,
            "With SchedulingEquivalenceHashing, equal workloads are set aside together, whatever the reason.",
        ),
        "preference_is_named": (
            9464,
            (
                "The two values of flavorFungibility.preference are swapped, so each has the meaning of the "
                "other."
            ),
        ),
        "preference_is_read": (
            7316,
            "There is no flavorFungibility.preference, so a flavor that fits is always preferred.",
        ),
        "recovery_times_out": (
            8493,
            (
                "Lost pods have no time limit to become ready again, unless the Configuration has "
                "recoveryTimeout. With 0s, a workload is evicted as soon as it loses a pod."
            ),
        ),
        "skips_admin_access": (13642, "A workload that claims devices with adminAccess is not admitted."),
        "spares_first_backoff": (
            7147,
            "With waitForPodsReady, backoffMaxSeconds also limits the first backoff, and 0 means no backoff.",
        ),
        "sticky_preemptors": (
            7157,
            "A job of higher priority overtakes a head that waits for its preemptions.",
        ),
        "takes_device_constraints": (
            12451,
            "A workload that claims devices with constraints or config is not admitted.",
        ),
        "takes_device_selectors": (9742, "A workload whose claim selects devices is not admitted."),
        "waits_for_pods": (
            0,
            "Pods have no time limit to become ready, unless the Configuration has waitForPodsReady.",
        ),
        "zero_needs_no_quota": (
            8241,
            "A workload that requests 0 of a resource that the queue does not cover is not admitted.",
        ),
    }
)
"""Maps a rule to the pull request that changed it (0 for none), and to what releases without the rule do."""

_DEVICES = ("KueueDRAIntegration", "DynamicResourceAllocation")

_ONLY_WITH: Mapping[str, tuple[str, ...]] = Frozen(
    {
        "borrows_at_each_level": ("FairSharingPrioritizeNonBorrowing",),
        "checks_device_claims": _DEVICES,
        "parks_classes_for_quota_alone": ("SchedulingEquivalenceHashing",),
        "skips_admin_access": _DEVICES,
        "takes_device_constraints": _DEVICES,
        "takes_device_selectors": _DEVICES,
    }
)
"""Maps a rule to gates. The difference matters only if one of these gates is on, or if a user can turn it on.
"""


def differences(release: Release) -> Iterator[Difference]:
    """Yields the rules by which the decisions of a release differ from those of the newest release.

    Both releases have their default gates.
    """
    rules = [name for name, history in RULES_BY_RELEASE.items() if state_at(history, release) != "+"]
    if "preference_is_read" in rules:
        rules.remove("preference_is_named")
    for name in rules:
        if not any(
            is_on(gate, release) or _can_be_set(gate, release) for gate in _ONLY_WITH.get(name, GATES)
        ):
            continue
        pull, sentence = _BY_RULE[name]
        yield Difference(sentence, _link(pull, release))
    for gate, (pull, sentence) in _BY_GATE.items():
        if is_on(gate, NEWEST) is not is_on(gate, release):
            yield Difference(f"{sentence} {_about_gate(gate, release)}", _link(pull, release))


def counting_sentences(cluster: Cluster) -> Iterator[str]:
    """Yields sentences about the rules by which the cluster's Kueue counts requests against quotas.

    If the Configuration maps DeviceClasses but no gate is on to count devices, a sentence says so.
    """
    counting, release = cluster.counting, controller_release(cluster.kueue_controller)
    yield from counting.sentences()
    if counting.ignores_undeclared and is_on_in(cluster, "QuotaCheckStrategy"):
        yield "resources that a ClusterQueue does not cover need no quota of this queue"
    if counting.devices and not any(is_on_in(cluster, gate) for gate in _DEVICES):
        gate = next((each for each in _DEVICES if _can_be_set(each, release)), "")
        yield "no devices, since " + (
            f"feature gate {gate} is off" if gate else f"{release} has no gate for it"
        )


def is_on_in(cluster: Cluster, gate: str) -> bool:
    """Returns True if a gate is on by the cluster's Configuration, or by default in its Kueue's release."""
    kueue = cluster.kueue
    given = {} if kueue is None else {**kueue.other_gates, **kueue.gates}
    return given.get(gate, is_on(gate, controller_release(cluster.kueue_controller)))


def gates_of_its_own(release: Release) -> list[str]:
    """Returns the modelled gates that exist in a release, but no longer exist in the newest release."""
    return [gate for gate in GATES if _can_be_set(gate, release) and not _can_be_set(gate, NEWEST)]


def gates_that_it_lacks(release: Release) -> list[str]:
    """Returns the modelled gates that exist in the newest release, but not in the given release."""
    return [gate for gate in GATES if _can_be_set(gate, NEWEST) and not _can_be_set(gate, release)]


def _can_be_set(gate: str, release: Release) -> bool:
    return state_at(GATES_BY_RELEASE[gate], release) in ("T", "F")


def _about_gate(gate: str, release: Release) -> str:
    if why_refused({gate: True}, release):
        return f"(The gate {gate} does not exist.)"
    return f"(The gate {gate} is {'on' if is_on(gate, release) else 'off'} by default.)"


def _link(pull: int, release: Release) -> str:
    return f"{_REPOSITORY}/{f'pull/{pull}' if pull else f'blob/{release}/{_GATES_ARE_IN}'}"
