"""Requests as Kueue counts them: left out by a prefix, or turned into other resources."""

from __future__ import annotations

import gc
from dataclasses import replace
from fractions import Fraction
from threading import Thread
from typing import Any

import pytest
from kueue_worlds import GI, Happened, Jobs, cluster, configuration, pod_set, queue

from harness import Cluster, PodSet, View
from harness.base.errors import ClusterError
from harness.base.options import resolve
from harness.cluster.kinds.kueue_requests import Counting, Transformation
from harness.cluster.model import frozen
from harness.plugins import load
from harness.testing import replayed
from harness_plugins.kueue.factory import classic, impossible
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.state.asks import Asks

MIG = "nvidia.com/mig-1g.5gb"


def pods(**requests: int) -> PodSet:
    """One pod that requests these and no more."""
    return replace(pod_set("main", 1, 0), requests=frozen(requests))


def resources(**section: Any) -> Any:
    """Kueue's Configuration with this section `resources`."""
    return configuration(resources=section)


def counting(*rules: Transformation, excluded: tuple[str, ...] = ()) -> Counting:
    """These transformations."""
    return Counting(excluded, rules)


def test_a_profile_counts_as_the_memory_that_it_stands_for() -> None:
    """Two profiles of 5Gi fill a quota of 10Gi, though no quota knows the profile."""
    rule = {"input": MIG, "strategy": "Replace", "outputs": {"example.com/gpu-memory": "5Gi"}}
    where = cluster(
        queue("a", cohort="", flavors={"f": {"cpu": 9, "example.com/gpu-memory": "10Gi"}}),
        resources(transformations=[rule]),
    )
    assert where.warnings == ()
    jobs = Jobs()
    for name in "abc":
        jobs.add(name, "a", pod_sets=(pods(**{"cpu": 1000, MIG: 1}),))
    happened = Happened(where, jobs)
    assert happened.admitted == ["a", "b"]
    assert happened.row("admit", "a").flavors == {"main": {"cpu": "f", "example.com/gpu-memory": "f"}}


def test_what_begins_with_an_excluded_prefix_needs_no_quota() -> None:
    """Otherwise no group covers it, and nobody is admitted."""
    asked = pods(**{"cpu": 1000, "networking.example.com/vpc": 1})
    jobs = Jobs().add("a", "a", pod_sets=(asked,))
    where = cluster(queue("a", cpu=1), resources(excludeResourcePrefixes=["networking.example.com/"]))
    assert Happened(where, jobs).admitted == ["a"]
    assert Happened(cluster(queue("a", cpu=1)), jobs).admitted == []


@pytest.mark.parametrize(
    ("section", "gates", "found"),
    [
        ({"quotaCheckStrategy": "IgnoreUndeclared"}, {}, ["a", "b"]),
        ({"quotaCheckStrategy": "IgnoreUndeclared"}, {"QuotaCheckStrategy": False}, ["b"]),
        ({"quotaCheckStrategy": "BlockUndeclared"}, {}, ["b"]),
    ],
)
def test_what_a_queue_does_not_cover_needs_no_quota_if_it_is_ignored(
    section: dict[str, str], gates: dict[str, bool], found: list[str]
) -> None:
    """It counts nowhere else: `a` and `b` fill the quota of 2 cores, and `c` waits."""
    where = cluster(queue("q", cpu=2), configuration(resources=section, featureGates=gates))
    assert where.warnings == ()
    jobs = Jobs().add("a", "q", pod_sets=(pods(**{"cpu": 1000, "ephemeral-storage": GI}),))
    for name in "bc":
        jobs.add(name, "q", pod_sets=(pods(cpu=1000 if found == ["a", "b"] else 2000),))
    assert Happened(where, jobs).admitted == found


def test_ignoring_what_is_not_covered_excludes_prefixes() -> None:
    """Kueue refuses to start with both (`validateQuotaCheckStrategy`)."""
    section = {"quotaCheckStrategy": "IgnoreUndeclared", "excludeResourcePrefixes": ["example.com/"]}
    with pytest.raises(ClusterError, match="together with excludeResourcePrefixes"):
        cluster(queue("q", cpu=2), resources(**section))


@pytest.mark.parametrize(("replaces", "found"), [(True, {"b": 6}), (False, {"a": 3, "b": 6})])
def test_a_retained_resource_counts_beside_its_outputs(replaces: bool, found: dict[str, int]) -> None:
    """A replaced one does not count itself."""
    rule = Transformation("a", replaces, "", frozen({"b": Fraction(2)}))
    assert counting(rule).counted({"a": 3}) == found


def test_outputs_are_added_to_each_other_and_to_what_is_requested() -> None:
    """And without outputs a replaced resource counts as nothing."""
    rules = (
        Transformation("a", True, "", frozen({"c": Fraction(2)})),
        Transformation("b", True, "", frozen({"c": Fraction(-1), "d": Fraction(-1)})),
        Transformation("e", True),
    )
    counted = counting(*rules).counted({"a": 3, "b": 1, "c": 10, "e": 7})
    assert counted == {"c": 15, "d": 0}


def test_outputs_are_multiplied_by_another_request_where_there_is_one() -> None:
    """`multiplyBy`; what is retained is not."""
    rule = Transformation("a", False, "b", frozen({"c": Fraction(2)}))
    assert counting(rule).counted({"a": 3, "b": 4}) == {"a": 3, "b": 4, "c": 24}
    assert counting(rule).counted({"a": 3}) == {"a": 3, "c": 6}
    assert counting(rule).counted({"a": 3, "b": 4}, keeps_inputs=False) == {"a": 12, "b": 4, "c": 24}


@pytest.mark.parametrize(("exact", "found"), [(True, 8), (False, 10)])
def test_fractions_of_a_unit_once_counted_whole(exact: bool, found: int) -> None:
    """1500m of cpu: 7.5 credits are 8; before PR 12953 they were those of 2 cores."""
    rule = Transformation("cpu", True, "", frozen({"credits": Fraction(5)}))
    assert counting(rule).counted({"cpu": 1500}, exact=exact) == {"credits": found}


def test_an_output_of_cpu_is_in_cores() -> None:
    """As quantities are."""
    rule = Transformation("a", True, "", frozen({"cpu": Fraction(1, 2)}))
    assert counting(rule).counted({"a": 3}) == {"cpu": 1500}


def test_without_its_section_requests_count_as_they_are_written() -> None:
    """The very same object: nothing is copied."""
    requests = {"cpu": 1000, "memory": GI}
    assert Counting().counted(requests) is requests


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ([{"input": "a"}, {"input": "a"}], "transformations[1].input: a is transformed twice"),
        ([{"input": "a", "strategy": "Drop"}], "transformations[0].strategy"),
        ([{"strategy": "Replace"}], "transformations[0].input: is missing"),
        ([{"input": "a", "outputs": {"b": "many"}}], "transformations[0].outputs.b"),
        ([{"input": "a", "outputs": {"b": [1]}}], "transformations[0].outputs.b: must be a quantity"),
    ],
)
def test_faults_of_transformations_are_named(rules: Any, fault: str) -> None:
    """Each with its place."""
    with pytest.raises(ClusterError) as refused:
        cluster(resources(transformations=rules))
    assert fault in str(refused.value)


def test_what_counts_as_what_is_told_in_sentences() -> None:
    """As `harness cluster check` prints it."""
    found = cluster(
        resources(
            excludeResourcePrefixes=["a.com/", "b.com/"],
            transformations=[
                {"input": MIG, "strategy": "Replace", "outputs": {"gpu-memory": 5}},
                {"input": "cpu", "multiplyBy": "gpu", "outputs": {"credits": "0.5"}},
                {"input": "x", "strategy": "Replace"},
            ],
        )
    )
    assert found.kueue is not None
    assert list(found.kueue.counting.sentences()) == [
        "resources that begin with a.com/, b.com/ do not count",
        f"1 {MIG} counts as 5 gpu-memory",
        "1 cpu counts as 0.5 credits for each gpu and itself",
        "1 x counts as nothing",
    ]


@pytest.mark.parametrize(("elsewhere", "times"), [(False, 1), (True, 3)])
def test_the_check_before_a_replay_and_the_replay_read_a_request_once(elsewhere: bool, times: int) -> None:
    """On a cluster that never changes, both have one object for it.

    In different threads, the check, the judge of the replay and its scheduler each have their own.
    """
    cores = 4321 + elsewhere
    jobs = Jobs().add("j", "q", cores, seconds=5)
    ((job, *_),) = (each for chunk in jobs.chunks() for each in chunk)
    checks = []

    def make(where: Cluster, view: View, options: Any) -> KueuePolicy:
        given = resolve(load().policy("kueue-classic").options, {}, owner="")

        def check() -> None:
            checks.append(impossible(where, given))
            assert checks[-1](job) is None

        if elsewhere:
            thread = Thread(target=check)
            thread.start()
            thread.join()
        else:
            check()
        return classic(where, view, given)

    replayed(make, jobs, cluster(queue("q", cohort="", cpu=5000)))
    asks = [each for each in gc.get_objects() if isinstance(each, Asks)]
    assert [dict(each.pod_sets[0].requests) for each in asks].count({"cpu": 1000 * cores}) == times
