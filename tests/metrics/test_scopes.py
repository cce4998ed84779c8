"""Scopes: a queue is what jobs name, a quota is what they count against, in every metric that has both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from older_runs import as_before_scopes_of_quotas, as_schema_2
from small_clusters import local_queue, queues

import harness
from harness.base.errors import OptionError
from harness.plugins.scopes import KINDS, Scope, hint_at, parse_scope

DOORS = queues({"team": {"cpu": "2"}, "rest": {"cpu": "2"}}) + "".join(
    local_queue("default", name, quota)
    for name, quota in (("day", "team"), ("night", "team"), ("all", "rest"))
)
ROWS = [
    {"queue": "night", "request.cpu": 4000, "duration": 60},
    {"queue": "all", "request.cpu": 2000, "duration": 30, "submit_time": 10},
    {"queue": "day", "request.cpu": 1000, "duration": 30, "submit_time": 10, "priority": 1},
]
ALIKE = queues({"a": {"cpu": "2"}, "b": {"cpu": "2"}})
OF_ALIKE = [
    {"queue": "a", "request.cpu": 4000, "duration": 60},
    {"queue": "b", "request.cpu": 2000, "duration": 30, "submit_time": 10},
]


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., harness.Run]:
    """Replays rows on manifests, with Kueue."""

    def run(label: str, rows: list[dict[str, Any]], manifests: str) -> harness.Run:
        path = tmp_path / f"{label}.yaml"
        path.write_text(manifests)
        trace = write_trace(*rows, name=f"{label}.parquet")
        return harness.replay(
            trace, plugin="kueue-classic", cluster=path, label=label, output=tmp_path / "results"
        )

    return run


def scopes(run: harness.Run, metric: str, kind: str) -> dict[str, float | None]:
    """Name of a scope of a kind -> the value of a metric."""
    rows = run.metrics.filter(metric=metric).iter_rows(named=True)
    return {
        row["scope"].partition("=")[2]: row["value"] for row in rows if row["scope"].startswith(f"{kind}=")
    }


def test_queues_are_what_jobs_name_and_quotas_what_holds_quota(replayed: Callable[..., harness.Run]) -> None:
    """Two LocalQueues of one ClusterQueue: waits and losses by each of them, quota and what is owed by it."""
    run = replayed("doors", ROWS, DOORS)
    assert set(scopes(run, "wait.first_start.mean", "queue")) == {"all", "day", "night"}
    for metric in ("disruption.preemptions", "disruption.lost"):
        assert set(scopes(run, metric, "queue")) == {"night"}
        assert set(scopes(run, metric, "quota")) == {"team"}
        assert set(scopes(run, metric, "beneficiary")) == {"day"}
    for metric in ("fairness.guarantee_deficit", "quota.over"):
        assert set(scopes(run, metric, "quota")) == {"team", "rest"}
        assert not scopes(run, metric, "queue")


def test_a_queue_without_a_quota_is_a_queue_in_fairness_too(measured: Callable[..., Any]) -> None:
    """There is no quota that could be named, and nothing that is owed."""
    value = measured({"queue": "a"}, {"queue": "b"}, cluster=queues({}, nodes=1), plugin="none")
    assert value("fairness.guarantee_deficit", "queue=a", "cpu") is None
    with pytest.raises(KeyError):
        value("fairness.guarantee_deficit", "quota=a", "cpu")


def test_every_measured_scope_is_of_a_known_kind(replayed: Callable[..., harness.Run]) -> None:
    """And every kind is measured by something, as the documentation says."""
    run = replayed("doors", ROWS, DOORS)
    assert {parse_scope(scope).kind for scope in run.metrics["scope"].unique()} == set(KINDS)
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    for kind in KINDS:
        assert f"\n- `{Scope(kind, '' if kind == 'all' else '<name>').text}`: " in text


@pytest.mark.parametrize("older", [as_schema_2, as_before_scopes_of_quotas])
def test_runs_from_before_quotas_had_a_scope_compare(
    older: Callable[[Path], None], replayed: Callable[..., harness.Run]
) -> None:
    """What they say of queues is read as of quotas, and as of a queue where it alone has the quota."""
    old, new = replayed("old", OF_ALIKE, ALIKE), replayed("new", OF_ALIKE, ALIKE)
    older(old.path)
    old = harness.Run.open(old.path)
    assert not old.scan("metrics").collect()["scope"].str.starts_with("quota=").any()
    comparison = harness.compare([old, new])
    metrics = ["fairness.*", "disruption.*", "wait.*"]
    metrics += ["quota.over"] if older is as_before_scopes_of_quotas else []
    for scope in ("queue", "quota", "beneficiary"):
        for measured, (before, after) in comparison.select(*metrics, scope=scope):
            assert before == after, measured
    for run in (old, new):
        assert scopes(run, "disruption.lost", "queue")["a"] == scopes(run, "disruption.lost", "quota")["a"]
        assert set(scopes(run, "fairness.guarantee_deficit", "quota")) == {"a", "b"}
        assert not scopes(run, "fairness.guarantee_deficit", "queue")


def test_what_several_queues_of_a_quota_lost_is_not_told_apart_in_older_runs(
    replayed: Callable[..., harness.Run],
) -> None:
    """Nothing is guessed: there it is known of the quota alone."""
    run = replayed("doors", ROWS, DOORS)
    as_before_scopes_of_quotas(run.path)
    run = harness.Run.open(run.path)
    assert set(scopes(run, "disruption.lost", "quota")) == {"team"}
    assert not scopes(run, "disruption.lost", "queue")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("quueue", "did you mean 'queue'? there is: all, queue, quota, "),
        ("qouta=x", "did you mean 'quota=x'? "),
        ("zone=me", "there is: all, "),
        ("", "there is: all, "),
        ("queue=", "did you mean 'queue'? "),
        ("all=x", "did you mean 'all'? "),
    ],
)
def test_what_is_no_scope_is_an_error_with_what_there_is(text: str, hint: str) -> None:
    """Also where only a part of it is wrong."""
    with pytest.raises(OptionError) as error:
        parse_scope(text)
    assert error.value.message == f"no metric is measured for scope {text!r}"
    assert (error.value.hint or "").startswith(hint)


def test_hints_are_at_the_nearest_name_and_at_the_same_name_of_another_kind() -> None:
    """A LocalQueue is easily taken for its ClusterQueue."""
    known = ["all", "queue=day", "queue=night", "quota=team"]
    assert hint_at(Scope("queue", "nigth"), known).startswith(
        "did you mean 'queue=night'? there is: queue=day"
    )
    assert hint_at(Scope("queue", "team"), known).startswith("did you mean 'quota=team'? ")
    assert hint_at(Scope("queue", "x"), known) == "there is: queue=day, queue=night"
    assert (
        hint_at(Scope("reason", "x"), known)
        == hint_at(Scope("reason"), known)
        == "there is: all, queue, quota"
    )
