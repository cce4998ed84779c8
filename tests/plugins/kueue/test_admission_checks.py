"""Kueue's admission checks with a delay: quota is reserved, and the start waits until all are ready."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kueue_worlds import Happened, Jobs, Manifest, cluster, configuration, flavor, node, queue

import harness
from harness import PodSet
from harness.api import read_trace
from harness.base.errors import OptionError
from harness.cluster.load import load_cluster
from harness.cluster.model import frozen
from harness.plugins import load
from harness.testing.checks import check_run

WITHIN = {"withinClusterQueue": "LowerPriority"}


def checked(*names: str, **fields: Any) -> Manifest:
    """ClusterQueue q with checks of all flavors, and 4 cores."""
    return queue("q", cpu=4, version="v1beta1", admissionChecks=list(names), **fields)


def on_flavors(**checks: list[str]) -> dict[str, Any]:
    """The field with checks of some flavors."""
    rules = [{"name": name, "onFlavors": flavors} for name, flavors in checks.items()]
    return {"admissionChecksStrategy": {"admissionChecks": rules}}


def happened(jobs: Jobs, *manifests: Manifest, delay: str = "10s", **options: Any) -> Happened:
    """A replay in which it takes no time to evict."""
    given = {"evictionLatency": "0s", "admissionCheckDelay": delay, **options}
    return Happened(cluster(*manifests), jobs, until=100, **given)


def lines(found: Happened) -> list[str]:
    """What happens to jobs from their admission on."""
    return found.lines("admit", "start", "bind", "preempt", "evict", "gone", "finish")


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_who_waits_for_its_checks_holds_quota_and_does_not_run(plugin: str) -> None:
    """The second job finds no quota although nothing runs; the first one starts 10 s later and runs 5 s."""
    jobs = Jobs().add("first", "q", 3, seconds=5).add("second", "q", 3, at=1, seconds=5)
    found = happened(jobs, checked("a"), plugin=plugin)
    assert lines(found) == [
        "0 admit first", "10 start first", "15 finish first",
        "15 admit second", "25 start second", "30 finish second",
    ]  # fmt: skip
    assert [row.holding for row in found.decisions.of("admit", "start")] == [0, 1, 0, 1]
    assert found.row("admit", "first").detail["checks"] == {"a": 10_000_000}
    assert found.decisions.jobs["first"].idle == 0


def test_by_default_all_checks_are_ready_at_once() -> None:
    """A job starts with its admission."""
    jobs = Jobs().add("job", "q", 3, seconds=5)
    assert lines(Happened(cluster(checked("a")), jobs)) == ["0 admit job", "5 finish job"]


@pytest.mark.parametrize(
    ("delay", "start"), [("a=10s,b=3s", "10 start job"), ("b=3s", "3 start job"), ("7s", "7 start job")]
)
def test_checks_run_at_the_same_time_so_the_slowest_counts(delay: str, start: str) -> None:
    """A check without a delay of its own takes no time."""
    jobs = Jobs().add("job", "q", 3, seconds=5)
    assert start in lines(happened(jobs, checked("a", "b"), delay=delay))


def test_a_check_of_some_flavors_is_for_those_who_got_one_of_them() -> None:
    """The first job gets the reserved flavor, the second one the flavor that is provisioned."""
    two = {"old": {"cpu": 4}, "new": {"cpu": 4}}
    fields = on_flavors(prov=["new"], all=[])
    where = (flavor("old"), flavor("new"), queue("q", flavors=two, **fields))
    jobs = Jobs().add("first", "q", 4, seconds=50).add("second", "q", 4, at=1, seconds=50)
    found = happened(jobs, *where, delay="prov=9s,all=2s")
    assert found.lines("admit", "start") == [
        "0 admit first",
        "1 admit second",
        "2 start first",
        "10 start second",
    ]
    assert found.row("admit", "first").detail["checks"] == {"all": 2_000_000}


def test_no_check_is_for_those_who_got_no_flavor() -> None:
    """A check of all flavors applies where any flavor was assigned; who requests nothing gets none."""
    nothing = PodSet("main", 1, 1, frozen({}))
    found = happened(Jobs().add("a", "q", pod_sets=(nothing,), seconds=5), checked("a"))
    assert lines(found) == ["0 admit a", "5 finish a"]


def test_on_nodes_no_pod_is_bound_before_the_admission() -> None:
    """The node stays free for others until then."""
    where = (node("n", 4), checked("a"), queue("r", cpu=4, cohort=""))
    jobs = Jobs().add("job", "q", 4, seconds=5).add("other", "r", 4, at=1, seconds=2)
    assert lines(happened(jobs, *where)) == [
        "0 admit job", "1 admit other", "1 bind other", "3 finish other", "10 bind job", "15 finish job",
    ]  # fmt: skip


@pytest.mark.parametrize("nodes", [[], [node("n", 4)]])
def test_who_is_preempted_before_its_admission_leaves_at_once_and_checks_begin_anew(
    nodes: list[Manifest],
) -> None:
    """It has no pods that need their 30 s of grace; the check that was under way counts for nothing."""
    jobs = Jobs().add("low", "q", 4, seconds=5, grace=30).add("high", "q", 4, at=6, priority=1, seconds=2)
    found = happened(jobs, *nodes, checked("a", preemption=WITHIN))
    begins = "bind" if nodes else "start"
    assert lines(found) == [
        "0 admit low", "6 preempt low by high: InClusterQueue", "6 admit high",
        f"16 {begins} high", "18 finish high", "18 admit low", f"28 {begins} low", "33 finish low",
    ]  # fmt: skip


def test_those_whose_checks_take_no_time_do_not_wait_for_others() -> None:
    """Nobody stands in line behind a job that may not start yet."""
    jobs = Jobs().add("slow", "q", 2, seconds=5).add("quick", "r", 2, at=1, seconds=5)
    found = happened(jobs, checked("a"), queue("r", cpu=2, cohort=""))
    assert found.lines("start", "finish") == ["6 finish quick", "10 start slow", "15 finish slow"]


def test_the_time_out_of_pods_begins_with_the_admission() -> None:
    """10 s of checks, then 5 s of time-out; it blocks others from its reservation on."""
    waiting = configuration(waitForPodsReady={"timeout": "5s", "blockAdmission": True})
    jobs = Jobs().add("stuck", "q", 2, startup=None).add("next", "q", 2, at=1, seconds=1)
    found = happened(jobs, waiting, checked("a"))
    assert lines(found)[:5] == [
        "0 admit stuck", "10 start stuck",
        "15 evict stuck: PodsReadyTimeout", "15 gone stuck", "15 admit next",
    ]  # fmt: skip


def test_a_delay_for_a_check_that_is_not_there_is_an_error() -> None:
    """It names the check that was probably meant."""
    with pytest.raises(OptionError, match="there is no check 'prof'") as error:
        happened(Jobs(), checked("prov"), delay="prof=3s")
    assert "'prov'" in error.value.hint
    with pytest.raises(OptionError) as error:
        happened(Jobs(), queue("q", cpu=4), delay="prov=3s")
    assert "no ClusterQueue has any" in error.value.hint


@pytest.mark.parametrize("delay", ["soon", "a=", "a=1s,a=2s", "a=-1s", ""])
def test_what_is_no_delay_is_an_error(delay: str) -> None:
    """A duration, or one for each of some checks."""
    with pytest.raises(OptionError, match="option admissionCheckDelay"):
        happened(Jobs(), checked("a"), delay=delay)


def test_a_run_tells_what_was_waited_for(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """`explain` names the checks, and the outside checker finds nothing that cannot be."""
    trace = write_trace(
        {"job_id": "a", "queue": "q"},
        {"job_id": "b", "queue": "r", "submit_time": 1},
        {"job_id": "ends as it starts", "queue": "q", "duration": 0},
    )
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([flavor(), checked("prov"), queue("r", cpu=4)]))
    options = {"admissionCheckDelay": "2m"}
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=path, options=options, output=tmp_path / "results"
    )
    told = " ".join(harness.explain(run, "a").text().split())
    assert "it starts when its admission checks are ready (prov after 2m00s)" in told
    assert check_run(run, load_cluster(path), read_trace(trace, load())) == []


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_a_delay_where_no_queue_has_checks_is_warned_of(plugin: str) -> None:
    """It changes nothing."""
    ignored_fields = load().policy(plugin).ignored_fields
    assert ignored_fields is not None
    options = {"admissionCheckDelay": "2m"}
    expected = "option admissionCheckDelay does nothing: no ClusterQueue has an admission check"
    assert list(ignored_fields(cluster(queue("q", cpu=4)), options)) == [expected]
    assert not list(ignored_fields(cluster(checked("a")), options))
