"""Which quota jobs are measured against: that which the plugin counts them against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from oracle import agrees
from small_clusters import local_queue, queues, quota_tree

import harness
from harness.api import read_cluster, read_trace
from harness.base.errors import PluginError
from harness.cluster.changes.over_time import unrolled
from harness.models.manifests import Quota, cluster_from
from harness.plugins import load
from harness.runs import tenants
from harness.runs.epochs import events
from harness.testing.checks import check_run

Replayed = Callable[..., harness.Run]
TREE = quota_tree({"a": {"cpu": "2"}, "b": {"cpu": "2"}}, {"cpu": "4", "memory": "8Gi"})
ALIKE = queues({"a": {"cpu": "4"}, "b": {"cpu": "0"}}, weights={"a": "3"}, nodes=1)
JOBS = [{"queue": "a", "request.cpu": 1000, "duration": 50} for _ in range(4)]
JOBS += [{"queue": "b", "request.cpu": 1000, "duration": 50, "submit_time": 5} for _ in range(4)]
"""Of 4 cores a holds all; from 5 s on b asks for all: 2 are its own by the tree, none by ClusterQueues."""


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Replayed:
    """Replays jobs on a cluster."""

    def replay(*rows: Mapping[str, Any], cluster: str, plugin: str, **choices: Any) -> harness.Run:
        path = tmp_path / "cluster.yaml"
        path.write_text(cluster)
        return harness.replay(
            write_trace(*rows), plugin=plugin, cluster=path, output=tmp_path / "results", **choices
        )

    return replay


def preempting(algorithm: str) -> str:
    """A KubeSchedulerConfiguration with this `preemptionAlgorithm`, to be added to manifests."""
    version = "kubescheduler.config.k8s.io/v1"
    kind = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "preemptionAlgorithm": algorithm}
    return f"---\n{yaml.safe_dump(kind)}"


@pytest.mark.parametrize("plugin", ["elasticquota", "auto"])
def test_what_goes_by_elastic_quotas_is_measured_as_without_cluster_queues(
    replayed: Replayed, plugin: str
) -> None:
    """Where both kinds share names: against `min`, and without the weights of the queues."""
    both = replayed(*JOBS, cluster=ALIKE + TREE, plugin=plugin)
    bare = replayed(*JOBS, cluster=queues({}, nodes=1) + TREE, plugin=plugin)
    assert [quota["nominal"] for quota in both.info["cluster"]["queues"].values()] == [{"cpu": 2000}] * 2
    assert both.metrics.equals(bare.metrics)
    owed = both.metrics.filter(metric="fairness.guarantee_deficit", scope="quota=b")["value"]
    assert owed.to_list() == [2 * 31 / 3600]


@pytest.mark.parametrize(
    ("plugin", "configuration"),
    [
        ("kueue-classic", ""),
        ("fairsharing", ""),
        ("none", ""),
        ("default-preemption", ""),
        ("auto", preempting("Default")),
        ("auto", preempting("None")),
    ],
)
def test_what_does_not_is_measured_against_cluster_queues(
    replayed: Replayed, plugin: str, configuration: str
) -> None:
    """Whatever elastic quotas of the same names say; `auto` where its configuration chooses another one."""
    both = replayed(*JOBS, cluster=ALIKE + TREE + configuration, plugin=plugin)
    bare = replayed(*JOBS, cluster=ALIKE + configuration, plugin=plugin)
    found = both.info["cluster"]["queues"]
    assert (found["a"]["nominal"], found["b"]["nominal"]) == ({"cpu": 4000}, {"cpu": 0})
    assert both.metrics.equals(bare.metrics)


@pytest.mark.parametrize(
    ("plugin", "quotas"),
    [
        ("elasticquota", {"day": "a", "night": "spare"}),
        ("auto", {"day": "a", "night": "spare"}),
        ("kueue-classic", {"day": "whole", "night": "spare"}),
        ("default-preemption", {"day": "whole", "night": "spare"}),
    ],
)
def test_quotas_of_both_kinds_may_have_other_names(
    replayed: Replayed, plugin: str, quotas: Mapping[str, str]
) -> None:
    """The job's namespace has one, its queue the other, which counts also where no elastic quota does."""
    tree = TREE.replace("name: a\n", "name: a\n      namespaces: [days]\n")
    doors = local_queue("days", "day", "whole") + local_queue("nights", "night", "spare")
    cluster = queues({"whole": {"cpu": "3"}, "spare": {"cpu": "1"}}, nodes=1) + doors + tree
    jobs = [{"queue": name, "namespace": f"{name}s", "request.cpu": 1000} for name in ("day", "night")]
    assert replayed(*jobs, cluster=cluster, plugin=plugin).info["cluster"]["quota_of"] == quotas


# --- quotas that labels name --------------------------------------------------------------------------------

LABEL = "quota.scheduling.koordinator.sh/name"
NODE = queues({}, nodes=1)


def labelled(quota: str | None) -> list[dict[str, str]]:
    """The labels of a pod that names a quota, or none."""
    return [{"key": "app", "value": "x"}, *([{"key": LABEL, "value": quota}] if quota else [])]


def by_label(*jobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same jobs in one queue, with labels that name the quotas which their queues were called like."""
    return [{**job, "queue": "jobs", "labels": labelled(job["queue"])} for job in jobs]


def of_quotas(run: harness.Run) -> pl.DataFrame:
    """What is measured of all jobs and by quotas; which queues there are does not show."""
    return run.metrics.filter(~pl.col("scope").str.contains(r"^(queue|beneficiary)="))


def elastic(name: str, **metadata: Any) -> str:
    """An ElasticQuota with 2 cores of its own and at most 4, to be added to manifests."""
    spec = {"min": {"cpu": "2", "memory": "4Gi"}, "max": {"cpu": "4", "memory": "8Gi"}}
    version = "scheduling.sigs.k8s.io/v1alpha1"
    kind = {"apiVersion": version, "kind": "ElasticQuota", "metadata": {"name": name, **metadata}}
    return f"---\n{yaml.safe_dump({**kind, 'spec': spec})}"


FLAT = "".join(elastic(name, namespace=name) for name in "ab")
KOORDINATORS = "".join(
    elastic(name, namespace="kube-system", labels={"quota.scheduling.koordinator.sh/is-parent": "false"})
    for name in "ab"
)


@pytest.mark.parametrize("quotas", [TREE, FLAT, KOORDINATORS])
@pytest.mark.parametrize("plugin", ["elasticquota", "auto", "default-preemption"])
def test_jobs_count_against_the_quotas_that_their_labels_name(
    replayed: Replayed, plugin: str, quotas: str
) -> None:
    """They are measured as where queues name these, in every form of quotas, and whoever schedules."""
    named = replayed(*JOBS, cluster=NODE + quotas, plugin=plugin)
    run = replayed(*by_label(*JOBS), cluster=NODE + quotas, plugin=plugin)
    assert of_quotas(run).equals(of_quotas(named))
    assert run.metrics.filter(metric="fairness.guarantee_deficit", scope="quota=b")["value"].item() > 0
    assert run.info["cluster"]["quota_of"] == {"default/jobs/a": "a", "default/jobs/b": "b"}
    assert run.jobs["timeline_queue"].to_list() == ["default/jobs/a"] * 4 + ["default/jobs/b"] * 4
    assert set(run.timeline["queue"]) == {"default/jobs/a", "default/jobs/b"}
    assert set(run.jobs["queue"]) == set(run.decisions["queue"]) == {"jobs"}


def test_metrics_of_labelled_jobs_are_what_decisions_say(replayed: Replayed, tmp_path: Path) -> None:
    """Those whose labels name no quota, or one that is not there, count by their queue, else are a holder."""
    jobs = [
        {
            "submit_time": number * number % 61,
            "duration": 5 + number % 7 * 4,
            "grace_period": number % 3,
            "queue": "q" if number % 11 else "b",
            "priority": number % 3,
            "pods": 1 + number % 2,
            "request.cpu": 500 * (1 + number % 3),
            "labels": labelled(["a", "b", None, "other"][number * number % 7 % 4]),
        }
        for number in range(60)
    ]
    run = replayed(*jobs, cluster=NODE + TREE, plugin="elasticquota")
    assert run.info["cluster"]["quota_of"] == {
        "default/b/b": "b", "default/b/a": "a", "default/q": None, "default/q/a": "a", "default/q/b": "b",
    }  # fmt: skip
    assert {"queue=default/q", "quota=a", "quota=b"} < set(run.metrics["scope"])
    agrees(run, pl.read_parquet(tmp_path / "trace.parquet"))
    trace = read_trace(tmp_path / "trace.parquet", load())
    assert check_run(run, read_cluster(tmp_path / "cluster.yaml", trace), trace) == []


def test_a_queue_of_which_all_jobs_name_one_quota_keeps_its_name(replayed: Replayed) -> None:
    """And its namespace tells, where jobs of another one name another: neither needs a further column."""
    jobs = [
        {"queue": queue, "namespace": namespace, "labels": labelled(quota)}
        for queue, namespace, quota in (("p", "x", "a"), ("p", "y", "a"), ("q", "x", "a"), ("q", "y", "b"))
    ]
    run = replayed(*jobs, cluster=NODE + TREE, plugin="elasticquota")
    assert run.info["cluster"]["quota_of"] == {"p": "a", "x/q": "a", "y/q": "b"}
    assert "timeline_queue" not in run.jobs.columns


def test_the_first_pod_set_says_which_quota_a_job_counts_against(replayed: Replayed) -> None:
    """As docs/metrics.md has it; the policy counts each pod against the quota that its own label names."""
    jobs = [
        {"job_id": name, "queue": "q", "pod_set": pod_set, "labels": labelled(quota)}
        for name, pod_set, quota in (("i", "x", "a"), ("j", "x", "b"), ("j", "y", "a"), ("k", "x", None))
    ]
    run = replayed(*jobs, cluster=NODE + TREE, plugin="elasticquota")
    assert run.jobs["timeline_queue"].to_list() == ["default/q/a", "default/q/b", "default/q"]
    (run,) = harness.isolated([run])
    assert run.remarks == ()
    alone = {
        each.info["settings"]["alone"]: each
        for each in (harness.Run.open(path.parent) for path in run.path.parent.glob(".alone/*/run.json"))
    }
    assert {quota: each.jobs["job_id"].to_list() for quota, each in alone.items()} == {"a": ["i"], "b": ["j"]}
    assert alone["b"].jobs["pods"].to_list() == [2]
    assert set(alone["b"].info["cluster"]["content"]["objects"]["ElasticQuota"]) == {"a", "b"}


@pytest.mark.parametrize("plugin", ["kueue-classic", "default-preemption"])
def test_labels_do_not_count_where_cluster_queues_do(replayed: Replayed, plugin: str) -> None:
    """All that is written is as without them."""
    cluster = queues({"q": {"cpu": "4"}}, nodes=1) + TREE
    jobs = [{**job, "queue": "q"} for job in JOBS]
    plain = replayed(*jobs, cluster=cluster, plugin=plugin)
    tables = {name: plain.file(name).read_bytes() for name in ("jobs", "timeline", "metrics")}
    run = replayed(*by_label(*JOBS), cluster=cluster.replace("name: q\n", "name: jobs\n"), plugin=plugin)
    assert run.info["cluster"]["quota_of"] == {"jobs": "jobs"}
    run = replayed(*({**job, "labels": labelled("a")} for job in jobs), cluster=cluster, plugin=plugin)
    assert {name: run.file(name).read_bytes() for name in tables} == tables


def test_pods_that_run_already_count_against_the_quota_of_their_label(replayed: Replayed) -> None:
    """As the policy counts them; what the trace asks for beside them need not name any."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "labels": {LABEL: "a"}},
        "spec": {"nodeName": "n0", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
        "status": {"phase": "Running"},
    }
    cluster = f"{NODE}{TREE}---\n{yaml.safe_dump(pod)}"
    for job in ({"queue": "default"}, {"queue": "default", "labels": labelled("b")}):
        run = replayed(job, cluster=cluster, plugin="elasticquota")
        assert run.jobs["job_id"].to_list() == ["default/p", "j0"]
        behind = run.info["cluster"]["quota_of"]
        assert [behind[name] for name in run.jobs["timeline_queue"]] == [
            "a",
            "b" if "labels" in job else None,
        ]


@dataclass(frozen=True)
class Team:
    """An object of a plugin's kind, whose quota is the cluster's capacity, or what the test says."""

    answer: object = None

    def quota(self, cluster: harness.Cluster) -> object:
        return self.answer or Quota(cluster.capacity, Fraction(1, 2), "all")


def with_teams(manifests: str, **teams: Team) -> harness.Cluster:
    documents = list(yaml.safe_load_all(manifests))
    return replace(cluster_from(documents, "test"), custom_resources={"Team.example.org": teams})


def test_quotas_of_a_plugins_kind_count_where_there_is_no_other() -> None:
    """A ClusterQueue or an elastic quota of the same name goes before; the kind's quotas come in its form."""
    jobs = pl.DataFrame({"namespace": ["default"] * 3, "queue": ["a", "c", "d"]})
    for others in (ALIKE, NODE + TREE):
        cluster = with_teams(others, a=Team(), c=Team())
        found = tenants.quotas(cluster)
        assert found["a"]["weight"] != found["c"]["weight"]
        assert found["c"] == {"cohort": "all", "weight": "1/2", "nominal": dict(cluster.capacity)}
        assert tenants.tenants(jobs, cluster).quotas == {"a": "a", "c": "c", "d": None}


@pytest.mark.parametrize(
    "answer",
    [5, ({"cpu": 1}, 1, None), Quota({"cpu": 1.5}), Quota([("cpu", 1)]), Quota({}, 0.5), Quota({}, 1, 7)],  # type: ignore[dict-item, arg-type]
)
def test_a_kind_that_gives_something_else_is_named(answer: object) -> None:
    """As is one whose method fails."""
    with pytest.raises(PluginError, match="Team a: its method 'quota' must return a Quota"):
        tenants.quotas(with_teams(NODE, a=Team(answer)))
    broken = type("Broken", (), {"quota": lambda self, cluster: {}["x"]})()
    with pytest.raises(PluginError, match="Team a failed in its method 'quota': KeyError"):
        tenants.quotas(with_teams(NODE, a=broken))


def test_quotas_of_a_plugins_kind_follow_the_nodes() -> None:
    """A quota that is the capacity of the cluster shrinks with the node that fails."""
    cluster = cluster_from(list(yaml.safe_load_all(queues({}, nodes=2))), "test")
    gone = {"time": "1h", "until": "2h", "kind": "Node", "name": next(iter(cluster.nodes))}
    changing = unrolled(cluster.patched([{**gone, "field": "remove", "value": ""}]), None)
    with_team = replace(changing, custom_resources={"Team.example.org": {"a": Team()}})
    found = events(with_team, by_elastic_quotas=False)
    whole = cluster.capacity["cpu"]
    assert [each["queues"]["a"]["nominal"]["cpu"] for each in found] == [whole // 2, whole]
