"""What is left of a cluster on which one quota is alone."""

from __future__ import annotations

from harness.cluster.kinds.elastic import CAPACITY, KOORDINATORS, ElasticQuota, semantics_of
from harness.cluster.model import Cluster, ClusterQueue, LocalQueue
from harness.runs.one_quota import alone_on

QUOTAS = {
    "whole": ElasticQuota("whole", {"cpu": 8}, {"cpu": 8}, is_parent=True, semantics=CAPACITY),
    "a": ElasticQuota("a", {"cpu": 2}, {"cpu": 8, "memory": 9}, parent="whole", semantics=CAPACITY),
    "b": ElasticQuota("b", {"cpu": 6}, semantics=KOORDINATORS),
}
CLUSTER = Cluster(
    cluster_queues={name: ClusterQueue(name, cohort="all") for name in "ab"},
    local_queues={("x", name): LocalQueue(name, "x", name) for name in "ab"},
    elastic_quotas=QUOTAS,
)


def test_a_queue_and_the_elastic_quotas_of_its_jobs_stay() -> None:
    """Without cohort and quotas above; what `min` names is the `max` as well, and the rest as it was."""
    left = alone_on(CLUSTER, "a", {"a"})
    assert [*left.cluster_queues] == [*left.elastic_quotas] == ["a"]
    assert list(left.local_queues) == [("x", "a")]
    assert left.cluster_queues["a"].cohort == left.elastic_quotas["a"].parent == ""
    assert left.elastic_quotas["a"].max == {"cpu": 2, "memory": 9}


def test_the_rules_stay_those_of_all_quotas_together() -> None:
    """One of Koordinator's makes all of them Koordinator's, also one that is alone."""
    assert semantics_of(CLUSTER.elastic_quotas) == KOORDINATORS
    assert semantics_of(alone_on(CLUSTER, "a", {"a"}).elastic_quotas) == KOORDINATORS


def test_a_queue_whose_jobs_no_elastic_quota_counts_is_left_with_none() -> None:
    """Of its own name or of another one."""
    assert alone_on(CLUSTER, "a", ()).elastic_quotas == {}
    assert [*alone_on(CLUSTER, "a", {"b"}).elastic_quotas] == ["b"]
