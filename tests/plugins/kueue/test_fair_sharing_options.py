"""Where fair sharing's strategies and weights come from, what a run says of them, and what it warns of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from fair_worlds import Manifest, queue

import harness
from harness.base.errors import OptionError

Write = Callable[..., Path]
HOLDERS = [{"job_id": f"b{at}", "queue": "b", "duration": 1000, "request.cpu": 5000} for at in range(2)]
NEWCOMER = {"job_id": "new", "queue": "a", "submit_time": 100, "duration": 10, "request.cpu": 5000}
CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
}


def replay(
    write: Write, folder: Path, *manifests: Manifest, plugin: str = "fairsharing", **options: Any
) -> Any:
    """Two jobs of b fill the 10 cores that a third queue lends, then one of a comes."""
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "f"}}
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([flavor, *manifests]))
    trace = write(*HOLDERS, NEWCOMER)
    return harness.replay(trace, plugin=plugin, cluster=path, options=options, output=folder / "results")


def preempted(run: Any) -> list[Mapping[str, Any]]:
    """The run's preemptions."""
    return list(run.decisions.filter(action="preempt").iter_rows(named=True))


def test_weights_given_for_a_replay_go_before_those_of_the_manifests(
    write_trace: Write, tmp_path: Path
) -> None:
    """With a weight of 4 all 10 cores of b are a smaller share than 5 of a; with a half they are not."""
    manifests = [queue("a", weight="1"), queue("b", weight="4"), queue("lender", 10)]
    assert preempted(replay(write_trace, tmp_path, *manifests)) == []
    found = preempted(replay(write_trace, tmp_path, *manifests, weights="b=500m"))
    assert [row["job_id"] for row in found] == ["b0"]  # of equals the smaller UID


def test_strategies_come_from_the_configuration_unless_the_replay_has_its_own(
    write_trace: Write, tmp_path: Path
) -> None:
    """A newcomer that would end up with more than the victim's queue passes the initial share alone."""
    manifests = [queue("a", weight="1"), queue("b", weight="1500m"), queue("lender", 10)]
    configured = [*manifests, CONFIGURATION]
    assert len(preempted(replay(write_trace, tmp_path, *configured))) == 1
    final = replay(write_trace, tmp_path, *configured, preemptionStrategies="LessThanOrEqualToFinalShare")
    assert preempted(final) == []


def test_a_weight_of_nobody_is_refused_with_the_name_that_was_meant(
    write_trace: Write, tmp_path: Path
) -> None:
    """A typing error must not leave a queue at its old weight."""
    with pytest.raises(OptionError, match="no ClusterQueue or Cohort 'lendr'") as raised:
        replay(write_trace, tmp_path, queue("a"), queue("b"), queue("lender", 10), weights="lendr=2")
    assert "lender" in (raised.value.hint or "")


def test_a_list_of_strategies_that_kueue_refuses_is_refused(write_trace: Write, tmp_path: Path) -> None:
    """The two strategies the wrong way round."""
    wrong = "LessThanInitialShare,LessThanOrEqualToFinalShare"
    with pytest.raises(OptionError, match="does not permit"):
        replay(write_trace, tmp_path, queue("a", 10), queue("b"), preemptionStrategies=wrong)


def test_that_borrow_within_cohort_is_not_heeded_is_a_warning_of_fair_sharing_alone(
    write_trace: Write, tmp_path: Path
) -> None:
    """Kueue's classic preemption heeds it."""
    borrower = queue("a")
    borrower["spec"]["preemption"]["borrowWithinCohort"] = {"policy": "LowerPriority"}
    manifests = [borrower, queue("b"), queue("lender", 10)]
    (warning,) = replay(write_trace, tmp_path, *manifests).info["cluster"]["warnings"]
    assert warning.startswith("ClusterQueue a: spec.preemption.borrowWithinCohort has no effect")
    assert replay(write_trace, tmp_path, *manifests, plugin="kueue-classic").info["cluster"]["warnings"] == []


def test_the_record_of_a_preemption_has_the_shares_of_both_sides_before_and_after(
    write_trace: Write, tmp_path: Path
) -> None:
    """With the newcomer a has 500; b goes from 1000 to 500, which is no less: the preemption is due."""
    (row,) = preempted(replay(write_trace, tmp_path, queue("a"), queue("b"), queue("lender", 10)))
    assert row["reason"] == "InCohortFairSharing"
    assert '"share":{"a":[500.0,500.0],"b":[1000.0,500.0]}' in row["detail"]


def test_the_timeline_has_each_queues_share_and_its_published_weighted_share(
    write_trace: Write, tmp_path: Path, seconds: Callable[[float], Any]
) -> None:
    """The victim's quota is free at 131 s, after its grace period and the latency; the newcomer takes it."""
    run = replay(write_trace, tmp_path, queue("a", weight="3"), queue("b"), queue("lender", 10))
    seen = run.timeline.filter(resource="cpu").select(
        "time", "queue", "allocated", "dominant_share", "weighted_share"
    )
    assert seen.filter(time=seconds(0)).rows() == [
        (seconds(0), "a", 0, 0.0, 0),
        (seconds(0), "b", 10000, 1000.0, 1000),
    ]
    assert seen.filter(time=seconds(131)).rows()[0] == (seconds(131), "a", 5000, 500.0, 167)
    assert seen.filter(time=seconds(131))["dominant_share"].to_list() == [500.0, 500.0]


def test_the_timeline_has_no_shares_of_a_policy_that_knows_none(write_trace: Write, tmp_path: Path) -> None:
    """Null, not zero."""
    run = replay(write_trace, tmp_path, queue("a"), queue("b"), queue("lender", 10), plugin="kueue-classic")
    assert run.timeline["weighted_share"].null_count() == run.timeline.height
