"""Which semantics quotas have: what their manifests stand for, unless others are asked for."""

from __future__ import annotations

from typing import Any

import pytest
from quota_worlds import Manifest, leaf, node, tree

from harness.cluster.kinds.elastic import semantics_of
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness_plugins.elastic_quota.options import OPTIONS

LABEL = "quota.scheduling.koordinator.sh/is-parent"


def quota(group: str, **labels: str) -> Manifest:
    """An ElasticQuota of one of both API groups."""
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "a", "namespace": "a", "labels": labels},
        "spec": {"min": {"cpu": 4}, "max": {"cpu": 4}},
    }


SCHEDULER_PLUGINS = quota("scheduling.x-k8s.io")
OLDER = quota("scheduling.sigs.k8s.io")
KOORDINATORS = quota("scheduling.sigs.k8s.io", **{LABEL: "false"})


@pytest.mark.parametrize(
    ("manifest", "native"),
    [
        (tree(4, leaf("a", 4, 4)), "ack"),
        (SCHEDULER_PLUGINS, "capacity-scheduling"),
        (OLDER, "capacity-scheduling"),
        (KOORDINATORS, "koordinator"),
    ],
)
@pytest.mark.parametrize("plugin", ["elasticquota", "auto"])
@pytest.mark.parametrize("asked", [None, "ack", "capacity-scheduling", "koordinator"])
def test_manifests_choose_the_semantics_and_a_mismatch_is_warned_of(
    plugin: str, manifest: Manifest, native: str, asked: str | None
) -> None:
    """What is chosen but for the default is told; asking for what is there anyway needs no word."""
    cluster = cluster_from([node("n", 8), manifest], "test")
    assert semantics_of(cluster.elastic_quotas, asked) == (asked or native)
    heeds = load().policy(plugin).ignored_fields
    assert heeds is not None
    options: dict[str, Any] = {"semantics": asked, "gang": None}
    said = list(heeds(cluster, options))
    if asked is None and native != "ack":
        assert [each.split(",")[0] for each in said] == [f"semantics={native}"]
    elif asked not in (None, native):
        assert len(said) == 1
        assert said[0].startswith(f"semantics={asked} is chosen, but ")
        assert f"is semantics={native}" in said[0]
    else:
        assert said == []


@pytest.mark.parametrize(
    "given",
    [{"claims": "usage"}, {"cordonedNodes": "tried"}, {"evictDaemonSets": True}, {"protectedLabel": "app"}],
    ids=str,
)
def test_an_option_of_acks_rules_is_warned_of_where_other_rules_decide(given: dict[str, Any]) -> None:
    """Not at its default, and not where ACK's rules are asked for."""
    heeds = load().policy("elasticquota").ignored_fields
    assert heeds is not None
    cluster = cluster_from([node("n", 8), SCHEDULER_PLUGINS], "test")
    defaults = {option.name: option.default for option in OPTIONS}
    before = list(heeds(cluster, defaults))
    (name,) = given
    assert list(heeds(cluster, defaults | given)) == [
        *before,
        f"{name} has an effect only with semantics=ack",
    ]
    asked = defaults | {"semantics": "ack"}
    assert list(heeds(cluster, asked | given)) == list(heeds(cluster, asked))


def test_what_a_max_does_not_name_is_not_said_to_be_refused_where_it_is_not() -> None:
    """Koordinator's quotas do not bound what their max does not name."""
    assert cluster_from([KOORDINATORS], "test").warnings == ()
    (warning,) = cluster_from([SCHEDULER_PLUGINS], "test").warnings
    assert "pods that request it are not admitted, except with semantics=koordinator" in warning


def test_quotas_of_other_semantics_are_another_cluster() -> None:
    """So that a run of the one is no answer to a replay of the other."""
    unlabelled = cluster_from([SCHEDULER_PLUGINS], "test")
    assert unlabelled.digest == cluster_from([OLDER], "test").digest
    assert unlabelled.digest != cluster_from([KOORDINATORS], "test").digest
