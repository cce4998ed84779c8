"""What releases of Kueue decide differently, rule by rule, and which gates they start with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kueue_worlds import (
    Happened,
    Jobs,
    cluster,
    configuration,
    flavor,
    local_queue,
    manifest,
    pod_set,
    queue,
    quota,
)

from harness import Cluster, PodSet
from harness.base.errors import HarnessError, OptionError
from harness.base.options import resolve
from harness.cluster.kinds.kueue_configuration import GATES
from harness.cluster.kinds.kueue_differences import differences, is_on_in
from harness.cluster.kinds.kueue_gates import GATES_BY_RELEASE, RULES_BY_RELEASE, is_on, why_refused
from harness.cluster.kinds.kueue_releases import (
    NEWEST,
    RELEASES,
    Release,
    nearest_release,
    release_named,
    state_at,
)
from harness.cluster.model import frozen
from harness.plugins import load
from harness_plugins.kueue.factory import assumptions, fair_sharing, release_of
from harness_plugins.kueue.rules.feature_gates import gates_from

TRY = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}


def options(**given: Any) -> dict[str, Any]:
    """The options of `fairsharing`, with these."""
    return resolve(load().policy("fairsharing").options, given, owner="fairsharing")


# --- names and histories ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "release"),
    [("v0.17.8", (17, 8)), ("0.17.8", (17, 8)), ("v0.17", (17, 8)), ("v0.13.0", (13, 0)), ("v0.19", (19, 2))],
)
def test_a_minor_version_means_its_newest_patch(text: str, release: tuple[int, int]) -> None:
    """With or without the letter of the tags."""
    assert release_named(text) == Release(*release)
    assert str(release_named(text)).startswith("v0.")


def test_the_newest_is_named_by_its_commit() -> None:
    """However many of its digits are given."""
    assert release_named("ff69552") == release_named("ff69552e79") == NEWEST
    assert str(NEWEST) == "ff69552"


@pytest.mark.parametrize("text", ["v0.17.9", "v0.12.3", "v0.20", "main", "v1.0.0", "ff"])
def test_a_release_that_is_not_known_is_refused_with_those_that_are(text: str) -> None:
    """Nobody read it, so nobody knows what it decides."""
    with pytest.raises(OptionError, match="not a known release") as refused:
        release_named(text)
    assert "v0.17.8" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("tag", "release"),
    [
        ("v0.17.8", "v0.17.8"),
        ("v0.17.99", "v0.17.8"),
        ("v0.21.0", "ff69552"),
        ("v0.9.1", "v0.13.0"),
        ("v0.18.0-rc.1", "v0.18.0"),
        ("main", None),
    ],
)
def test_a_tag_that_is_not_known_means_the_nearest_release(tag: str, release: str | None) -> None:
    """Not above it if any is."""
    found = nearest_release(tag)
    assert (None if found is None else str(found)) == release


def test_what_was_added_to_an_older_minor_version_later_begins_anew_with_the_next_one() -> None:
    """Histories follow the order of the numbers, not of the days."""
    hashing = GATES_BY_RELEASE["SchedulingEquivalenceHashing"]
    states = {str(each): state_at(hashing, each) for each in RELEASES}
    told = ("v0.15.5", "v0.15.6", "v0.15.7", "v0.16.2", "v0.16.3", "v0.16.4", "v0.17.0", "v0.18.0", "ff69552")
    assert [states[each] for each in told] == ["-", "T", "F", "-", "T", "F", "F", "T", "T"]


# --- gates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "on", "release", "why"),
    [
        ("LendingLimit", False, "v0.17.8", "feature gate LendingLimit is locked on"),
        ("LendingLimit", False, "v0.19.2", "has no feature gate LendingLimit"),
        ("PriorityBoost", True, "v0.16.9", "has no feature gate PriorityBoost"),
        (
            "FlavorFungibility",
            False,
            "ff69552",
            "feature gate FlavorFungibilityPreserveScanProgress on and FlavorFungibility off",
        ),
        (
            "TASFailedNodeReplacement",
            False,
            "ff69552",
            "gates TASFailedNodeReplacementFailFast, TASReplaceNodeOnPodTermination on and TASFailed",
        ),
    ],
)
def test_gates_are_refused_with_which_a_release_does_not_start(
    gate: str, on: bool, release: str, why: str
) -> None:
    """Those that it does not have, those that are locked, and those that others need, all at once."""
    with pytest.raises(OptionError, match=why):
        gates_from({gate: on}, release_named(release))


def test_a_locked_gate_may_be_set_as_it_is() -> None:
    """As in Kueue."""
    assert gates_from({"LendingLimit": True}, release_named("v0.17.8")).lending_limit


def test_a_gate_of_the_configuration_that_changes_nothing_is_refused_as_well() -> None:
    """The release would not start with it."""
    where = cluster(queue("q", cpu=1), configuration(featureGates={"QueueVisibility": True}))
    Happened(where, Jobs().add("a", "q", 1), kueueVersion="v0.13")
    with pytest.raises(HarnessError, match="has no feature gate QueueVisibility"):
        Happened(where, Jobs().add("a", "q", 1), kueueVersion="v0.14")


def test_pods_that_have_ended_needed_no_quota_before_there_was_a_gate_for_it() -> None:
    """The gate came with 0.13.9 and 0.14.4."""
    assert all(gates_from({}, each).reclaimable_pods for each in RELEASES)


# --- gates that are gone ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("gates", "admitted"), [("", ["a0"]), ("LendingLimit=false", ["a0", "a1", "a2"])])
def test_without_its_gate_a_lending_limit_is_not_read(gates: str, admitted: list[str]) -> None:
    """Of queue `b` everything may be lent."""
    where = cluster(queue("a", cpu=1), queue("b", cpu=quota(2, lend=0)))
    jobs = Jobs().many("a", 3, "a", 1)
    assert Happened(where, jobs, kueueVersion="v0.16", featureGates=gates).admitted == admitted


@pytest.mark.parametrize(("gates", "admitted"), [("", ["a0", "a1"]), ("HierarchicalCohorts=false", ["a0"])])
def test_without_their_gate_cohorts_are_not_read(gates: str, admitted: list[str]) -> None:
    """Neither what is above them nor quota of their own."""
    cohorts = [manifest("Cohort", each, parentName="top") for each in ("left", "right")]
    where = cluster(*cohorts, queue("a", cohort="left", cpu=1), queue("b", cohort="right", cpu=1))
    jobs = Jobs().many("a", 2, "a", 1)
    assert Happened(where, jobs, kueueVersion="v0.16", featureGates=gates).admitted == admitted


@pytest.mark.parametrize(("gates", "taken"), [("", "g"), ("FlavorFungibility=false", "f")])
def test_without_flavor_fungibility_the_first_flavor_that_fits_is_taken(gates: str, taken: str) -> None:
    """Though the queue would rather go on than borrow."""
    flavors = {"f": {"cpu": 0}, "g": {"cpu": 1}}
    where = cluster(
        flavor("g"),
        queue("a", flavors=flavors, flavorFungibility=TRY),
        queue("b", flavors={"f": {"cpu": 1}, "g": {"cpu": 1}}),
    )
    happened = Happened(where, Jobs().add("a", "a", 1), kueueVersion="v0.17", featureGates=gates)
    assert happened.row("admit", "a").flavors == {"main": {"cpu": taken}}


@pytest.mark.parametrize(("at", "victims"), [(300, []), (301, ["old"])])
def test_with_its_gate_only_who_is_newer_by_more_than_5_minutes_may_go(at: int, victims: list[str]) -> None:
    """`LowerOrNewerEqualPriority` with `SchedulerTimestampPreemptionBuffer`, of 0.15.6 to 0.19."""
    where = cluster(
        queue("a", cpu=2, cohort="", preemption={"withinClusterQueue": "LowerOrNewerEqualPriority"})
    )
    # The large one is older than the one that holds quota, but did not fit when it came.
    jobs = Jobs().add("first", "a", 1, seconds=400).add("large", "a", 2).add("old", "a", 1, at=at)
    given = {"kueueVersion": "v0.19", "featureGates": "SchedulerTimestampPreemptionBuffer=true"}
    happened = Happened(where, jobs, until=500, **given)
    assert [row.job for row in happened.decisions.of("preempt")] == victims


# --- rules without a gate ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "taken"),
    [("v0.14", "f"), ("v0.15", "g"), ("v0.16.1", "g"), ("v0.16.2", "f"), ("ff69552", "f")],
)
def test_the_two_preferences_were_swapped_from_0_15_to_0_16_1(release: str, taken: str) -> None:
    """BorrowingOverPreemption: flavor `f` fits by borrowing; in `g` somebody would have to go."""
    where = cluster(
        flavor("f", nodeLabels={"kind": "f"}),
        flavor("g", nodeLabels={"kind": "g"}),
        queue(
            "a",
            flavors={"f": {"cpu": 0}, "g": {"cpu": 1}},
            flavorFungibility={**TRY, "preference": "BorrowingOverPreemption"},
            preemption={"withinClusterQueue": "LowerPriority"},
        ),
        queue("b", flavors={"f": {"cpu": 1}, "g": {"cpu": 0}}),
        flavors=False,
    )
    jobs = Jobs().add("low", "a", pod_sets=(on("g"),)).add("high", "a", 1, at=5, priority=1)
    happened = Happened(where, jobs, kueueVersion=release)
    assert [row.job for row in happened.decisions.of("preempt")] == (["low"] if taken == "g" else [])


def on(kind: str) -> PodSet:
    """A pod of one core that selects flavors with this label."""
    return pod_set("main", 1, 1, node_selector=frozen({"kind": kind}))


@pytest.mark.parametrize(
    ("release", "taken"), [("v0.17.5", "g"), ("v0.17.6", "f"), ("v0.18.1", "g"), ("v0.18.2", "f")]
)
def test_selectors_once_counted_by_the_labels_of_the_whole_group(release: str, taken: str) -> None:
    """Flavor `f` has no label, and so suits everybody since PR 12449."""
    where = cluster(
        flavor("g", nodeLabels={"kind": "g"}), queue("a", flavors={"f": {"cpu": 1}, "g": {"cpu": 1}})
    )
    happened = Happened(where, Jobs().add("a", "a", pod_sets=(on("g"),)), kueueVersion=release)
    assert happened.row("admit", "a").flavors == {"main": {"cpu": taken}}


@pytest.mark.parametrize(("release", "admitted"), [("v0.15", []), ("v0.16", ["a"])])
def test_a_request_of_0_once_had_to_be_covered(release: str, admitted: list[str]) -> None:
    """Since PR 8241 it needs no quota."""
    both = pod_set("main", 1, 1)
    both = replace(both, requests=frozen({**both.requests, "example.com/gpu": 0}))
    jobs = Jobs().add("a", "a", pod_sets=(both,))
    assert Happened(cluster(queue("a", cpu=1)), jobs, kueueVersion=release).admitted == admitted


@pytest.mark.parametrize(
    ("release", "admitted"),
    [
        ("v0.15.4", ["a", "b"]),
        ("v0.15.7", ["b", "a"]),
        ("v0.15.8", ["a", "b"]),
        ("v0.16.4", ["b", "a"]),
        ("v0.16.5", ["a", "b"]),
    ],
)
def test_a_workload_that_borrows_once_came_last_even_where_its_cohort_borrows_nothing(
    release: str, admitted: list[str]
) -> None:
    """`entryComparer.less`: `a` borrows within its cohort, so at the top nobody borrows since PR 10149."""
    cohorts = [manifest("Cohort", each, parentName="top") for each in ("left", "right")]
    queues = queue("a", cohort="left", cpu=0), queue("c", cohort="left", cpu=1)
    where = cluster(*cohorts, *queues, queue("b", cohort="right", cpu=1))
    jobs = Jobs().add("a", "a", 1, priority=1).add("b", "b", 1)
    assert Happened(where, jobs, plugin="fairsharing", kueueVersion=release).admitted == admitted


@pytest.mark.parametrize(("release", "second"), [("v0.14.0", "later"), ("v0.14.1", "waiting")])
def test_a_head_that_waits_for_its_preemptions_could_once_be_overtaken(release: str, second: str) -> None:
    """By a job of higher priority that arrives meanwhile, until PR 7157."""
    where = cluster(queue("a", cpu=1, cohort="", preemption={"withinClusterQueue": "LowerPriority"}))
    jobs = Jobs().add("low", "a", 1, grace=10).add("waiting", "a", 1, at=1, priority=1, seconds=100)
    jobs.add("later", "a", 1, at=5, priority=2, seconds=100)
    assert Happened(where, jobs, until=20, kueueVersion=release).admitted[:2] == ["low", second]


@pytest.mark.parametrize(
    ("release", "admitted"), [("v0.15.6", ["b"]), ("v0.15.7", ["b", "a2"]), ("v0.18", ["b", "a2"])]
)
def test_in_two_patches_whoever_is_put_aside_takes_its_equals_along(
    release: str, admitted: list[str]
) -> None:
    """0.15.6 and 0.16.3: also who asks for more than its limit; since 0.18 only where quota is the reason."""
    pods = pod_set("main", 1, 1)
    over = replace(pods, limits=frozen({"cpu": 500}))
    jobs = Jobs().add("b", "a", 1, at=0, seconds=1000)
    jobs.add("a1", "a", at=1, pod_sets=(over,)).add("a2", "a", at=1, pod_sets=(pods,))
    where = cluster(queue("a", cpu=2, cohort=""))
    assert Happened(where, jobs, until=20, kueueVersion=release).admitted == admitted


# --- the crash --------------------------------------------------------------------------------------------


def crashing() -> tuple[Cluster, Jobs]:
    """One queue without cohort in which the only candidate holds too little for the next head."""
    where = cluster(queue("a", cpu=2, cohort="", preemption={"withinClusterQueue": "LowerPriority"}))
    jobs = Jobs().add("low", "a", 1).add("high", "a", 1, priority=2).add("head", "a", 2, at=5, priority=1)
    return where, jobs


@pytest.mark.parametrize(("release", "crashes"), [("v0.13", 1), ("v0.17", 1), ("v0.18", 0), ("ff69552", 0)])
def test_releases_up_to_0_17_crash_where_candidates_of_a_queue_without_cohort_are_too_little(
    release: str, crashes: int
) -> None:
    """The replay says when and why, and goes on as later releases do."""
    where, jobs = crashing()
    happened = Happened(where, jobs, plugin="fairsharing", kueueVersion=release)
    told = [row for row in happened.decisions.of("refuse") if row.reason == "ControllerCrash"]
    assert len(told) == crashes
    for row in told:
        assert row.job == "head"
        assert (
            f"Kueue {release_named(release)} crashes here: ClusterQueue a has no cohort"
            in row.detail["message"]
        )
    rest = [row.reason for row in happened.decisions.of("refuse") if row.reason != "ControllerCrash"]
    assert rest == ["PreemptionNoCandidates"]


def test_without_fair_sharing_nothing_crashes() -> None:
    """The search is another one."""
    happened = Happened(*crashing(), kueueVersion="v0.17")
    assert [row.reason for row in happened.decisions.of("refuse")] == ["PreemptionNoCandidates"]


# --- which release it is ----------------------------------------------------------------------------------


def deployment(tag: str, **fields: Any) -> dict[str, Any]:
    """The Deployment of Kueue's controller."""
    image = f"registry.k8s.io/kueue/kueue:{tag}"
    containers = [{"name": "proxy", "image": "proxy:v1"}, {"name": "manager", "image": image}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": {"spec": {"containers": containers}}},
        **fields,
    }


def controller_pod(tag: str, **fields: Any) -> dict[str, Any]:
    """A Pod of Kueue's controller."""
    found = deployment(tag)
    metadata = {"name": "kueue-1", "namespace": "kueue-system", **fields}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": found["spec"]["template"]["spec"],
    }


@pytest.mark.parametrize("release", [each for each in RELEASES if each != NEWEST])
def test_the_release_of_the_controllers_deployment_is_taken_and_said(release: Release) -> None:
    """Without a warning that the Deployment is not read."""
    where = cluster(queue("q", cpu=1), deployment(str(release)))
    assert release_of(where, options()) == release
    assert where.warnings == ()
    (told, *_) = assumptions(where, options())
    assert told == (
        f"Kueue decides like {release}: Deployment kueue-system/kueue-controller-manager runs {release}"
    )


def test_the_deployment_goes_before_a_pod_and_a_pod_that_is_going_does_not_count() -> None:
    """While a new release is rolled out, Pods of the old one are still there."""
    pods = controller_pod("v0.15.1", deletionTimestamp="2025-01-01T00:00:00Z"), controller_pod("v0.16.1")
    assert release_of(cluster(pods[0]), options()) == NEWEST
    assert str(release_of(cluster(pods[1]), options())) == "v0.16.1"
    assert str(release_of(cluster(pods[1], deployment("v0.17.1@sha256:0a")), options())) == "v0.17.1"


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["--config=/c.yaml", "--feature-gates=PartialAdmission=false,PriorityBoost=true"]},
        {"args": ["-feature-gates", "PriorityBoost=true, PartialAdmission=false"]},
        {"command": ["/manager", "--feature-gates=PriorityBoost=1,PartialAdmission=0"], "args": ["-v=2"]},
    ],
)
@pytest.mark.parametrize("made", [deployment, controller_pod])
def test_the_command_line_of_the_controller_sets_feature_gates(
    container: dict[str, Any], made: Callable[[str], dict[str, Any]]
) -> None:
    """Kueue's Helm chart writes them there, and not into the Configuration."""
    controller = made("v0.17.2")
    spec = controller["spec"] if controller["kind"] == "Pod" else controller["spec"]["template"]["spec"]
    spec["containers"] = [{**each, **container} for each in spec["containers"]]
    where = cluster(queue("q", cpu=1), controller)
    assert where.warnings == ()
    assert where.kueue is not None
    assert where.kueue.gates == {"PriorityBoost": True, "PartialAdmission": False}
    given = configuration(featureGates={"AdmissionFairSharing": False})
    beside = cluster(queue("q", cpu=1), controller, given)
    assert [is_on_in(beside, gate) for gate in ("PriorityBoost", "AdmissionFairSharing")] == [True, False]
    jobs = Jobs().add("j", "q", pod_sets=(pod_set("main", 3, 1, least=1),))
    assert Happened(where, jobs).admitted == []
    assert Happened(cluster(queue("q", cpu=1)), jobs).admitted == ["j"]


def test_a_gate_of_the_command_line_that_is_not_modelled_is_warned_of() -> None:
    """Kueue knows AllAlpha in all releases."""
    controller = deployment("v0.17.2")
    controller["spec"]["template"]["spec"]["containers"][1]["args"] = ["--feature-gates=AllAlpha=true"]
    where = cluster(queue("q", cpu=1), controller)
    (said,) = where.warnings
    assert said.startswith("Kueue's controller: --feature-gates sets AllAlpha, but harness assumes")
    assert Happened(where, Jobs().add("j", "q")).admitted == ["j"]


def test_the_option_goes_before_the_manifests_and_is_not_assumed() -> None:
    """Whoever names it need not be told."""
    where = cluster(queue("q", cpu=1), deployment("v0.15.0"))
    given = options(kueueVersion="v0.17", featureGates="PriorityBoost=true")
    assert str(release_of(where, given)) == "v0.17.8"
    assert list(assumptions(where, given)) == []


@pytest.mark.parametrize(
    ("manifests", "told"),
    [
        ([], "no manifest names the release of Kueue, so the plugin decides like ff69552, the newest"),
        ([deployment("v0.17.99")], "runs v0.17.99, which is not known; v0.17.8 is the nearest known one"),
        ([deployment("main")], "runs main, which is not a release; ff69552 is the newest recorded one"),
    ],
)
def test_what_is_assumed_of_the_release_is_said(manifests: list[Any], told: str) -> None:
    """Where no manifest says it, and where what it says is not known."""
    assert told in next(iter(assumptions(cluster(queue("q", cpu=1), *manifests), options())))


def test_the_release_is_part_of_a_runs_identity() -> None:
    """Clusters of which other releases run are not the same, those of which nobody says it are as before."""
    plain = cluster(queue("q", cpu=1))
    assert cluster(queue("q", cpu=1), deployment("v0.15.0")).digest != plain.digest
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}
    assert cluster(queue("q", cpu=1), other).digest == plain.digest


@pytest.mark.parametrize(("release", "waits"), [("v0.18", False), ("v0.19", True)])
def test_pods_are_waited_for_by_default_since_0_19(release: str, waits: bool) -> None:
    """And in every release where the Configuration says so."""
    given = options(kueueVersion=release)
    assert any("waitForPodsReady is on" in each for each in assumptions(cluster(), given)) is waits
    said = cluster(queue("q", cpu=1), configuration(waitForPodsReady={"timeout": "5m"}))
    assert fair_sharing(said, None, given).pods_ready is not None  # type: ignore[arg-type]
    plain = fair_sharing(cluster(queue("q", cpu=1), local_queue("l", "q")), None, given)  # type: ignore[arg-type]
    assert (plain.pods_ready is not None) is waits


# --- what is told -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_every_rule_and_gate_that_differs_has_its_sentence(release: Release) -> None:
    """Two that say the same apart, and what lacks its gate: what is not read cannot be swapped."""
    rules = [name for name, history in RULES_BY_RELEASE.items() if state_at(history, release) != "+"]
    gates = [name for name in GATES if is_on(name, release) is not is_on(name, NEWEST)]
    told = [each.sentence for each in differences(release)]
    unsaid = ("preference_is_read" in rules) + (
        "parks_classes_for_quota_alone" in rules
        and bool(why_refused({"SchedulingEquivalenceHashing": True}, release))
    )
    unsaid += "borrows_at_each_level" in rules and bool(
        why_refused({"FairSharingPrioritizeNonBorrowing": True}, release)
    )
    if release < Release(14, 0):  # there is no gate yet that has devices counted
        unsaid += len({name for name in rules if "device" in name or "admin_access" in name})
    assert len(told) == len(set(told)) == len(rules) + len(gates) - unsaid
