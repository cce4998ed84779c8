"""Why capacity stands idle while jobs wait, worked by hand on tiny replays, and what must hold in any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from oracle import differences
from oracle.book import Book
from oracle.idle import idle as idle_of_oracle
from oracle.world import World
from small_clusters import queues, quota_tree

import harness
from harness import Admit, Bind, Cluster, Decision, Job, View, Wake, Why
from harness.analysis.metrics.idle import FRAGMENTED, METRICS, POLICY, QUOTA, _Split
from harness.analysis.metrics.shared_window import measure_shared, shared_by
from harness.base.errors import PolicyError, RunError
from harness.plugins.measurement import Measurement
from harness.policy import Policy
from harness.testing.worlds import PLUGINS, random_world

SECOND = 1_000_000
HALVES = {"a": {"cpu": "2"}, "b": {"cpu": "2"}}

Replayed = Callable[..., harness.Run]


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Replayed:
    """Replays jobs on a cluster."""

    def replay(*rows: Mapping[str, Any], cluster: str, plugin: Any = "none", **choices: Any) -> harness.Run:
        path = tmp_path / f"cluster{len(cluster)}.yaml"
        path.write_text(cluster)
        output = tmp_path / "results"
        return harness.replay(write_trace(*rows), plugin=plugin, cluster=path, output=output, **choices)

    return replay


def node(name: str, cpu: str = "4", **spec: Any) -> str:
    """A node, to be added to manifests."""
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    found = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}
    return f"---\n{yaml.safe_dump({**found, 'status': {'allocatable': amounts}})}"


def idle(run: harness.Run, resource: str = "cpu") -> dict[str, float]:
    """What of a resource was idle for each cause, where anything was."""
    rows = run.metrics.filter(pl.col("metric").is_in(METRICS) & (pl.col("resource") == resource))
    values = dict(zip(rows["metric"].str.strip_prefix("idle."), rows["value"], strict=True))
    assert len(values) == len(METRICS)
    return {name: value for name, value in values.items() if value}


def judged(run: harness.Run) -> harness.Run:
    """The run with causes."""
    (found,) = harness.idle_causes([run])
    return found


def adds_up(run: harness.Run) -> None:
    """The five and what is allocated are all there is, and more only where pods hold more than there is."""
    falls = "capacity" in str(run.info["cluster"].get("events", ""))
    names = pl.col("metric").is_in([*METRICS, "utilization.allocated"]) & (pl.col("scope") == "all")
    for _, rows in run.metrics.filter(names).group_by("resource"):
        values = rows["value"].to_list()
        (allocated,) = rows.filter(metric="utilization.allocated")["value"]
        if allocated is None:
            assert values == [None] * 6
        else:
            least = pytest.approx(max(1, allocated), abs=1e-9)
            assert sum(values) == least or (falls and sum(values) > max(1, allocated))


def test_what_no_quota_lets_in_is_idle_for_quota(replayed: Replayed) -> None:
    """Of 4 cores a may have 2: its second job waits 100 s beside b's 2 cores, which nobody wants then."""
    job = {"queue": "a", "request.cpu": 2000, "duration": 100}
    cluster = queues(HALVES).replace("  cohortName: all\n", "")
    run = judged(replayed(job, job, cluster=cluster))
    assert idle(run) == {"quota": 1 / 4, "no_demand": 1 / 4}
    assert run.remarks == ()


def test_parts_go_by_requests_and_the_largest_remainder(replayed: Replayed) -> None:
    """Of 3 cores one is idle for 100 s: 2 that no quota lets in wait before one that would fit (`strict`).

    Of 1000 millicores they get 666 and 333, and what is left goes to the larger remainder, 2000 of 3000.
    """
    first = {"queue": "a", "request.cpu": 2000, "duration": 100}
    rows = (first, first, {"queue": "a", "request.cpu": 1000, "duration": 100})
    run = judged(replayed(*rows, cluster=queues({"a": {"cpu": "3"}}), options={"blocking": "strict"}))
    assert idle(run) == {"quota": pytest.approx(0.667 / 6), "policy": pytest.approx(0.333 / 6)}


def test_what_no_node_takes_is_idle_for_fragmentation(replayed: Replayed) -> None:
    """Two nodes of 4 cores have one each left, and a job of 2 waits: 2 of 8 cores, for 100 of 200 s."""
    rows = [{"request.cpu": cpu, "duration": 100} for cpu in (3000, 3000, 2000)]
    run = judged(replayed(*rows, cluster=node("n0") + node("n1")))
    assert idle(run) == {"fragmented": 2 / 16, "no_demand": 6 / 16}


def test_a_gang_is_fragmented_as_a_whole(replayed: Replayed) -> None:
    """One of its two pods would fit: 4 cores are idle, and it asks for 6."""
    rows = (
        {"request.cpu": 3000, "duration": 100},
        {"request.cpu": 3000, "pods": 2, "gang": True, "duration": 100},
    )
    cluster = node("n0") + node("n1")
    run = judged(replayed(*rows, cluster=cluster, plugin="backfill"))
    assert idle(run) == {"fragmented": 5 / 16, "no_demand": 2 / 16}


@pytest.mark.parametrize(
    "spec", [{"unschedulable": True}, {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}]
)
def test_a_cordoned_or_tainted_node_takes_nobody(replayed: Replayed, spec: Mapping[str, Any]) -> None:
    """Half of the cores are on a node that may not be used: idle for that reason while a job waits."""
    job = {"request.cpu": 4000, "duration": 100}
    run = judged(replayed(job, job, cluster=node("n0") + node("n1", **spec)))
    assert idle(run) == {"fragmented": 1 / 4, "no_demand": 1 / 4}


def test_nodes_are_those_that_there_are_then(replayed: Replayed) -> None:
    """A node is cordoned from 60 to 120 s: 4 cores are idle in vain for a job that comes at 60 s."""
    times = {"harness/from": "60s", "harness/until": "120s"}
    patch = {
        "kind": "Node",
        "metadata": {"name": "n1", "annotations": times},
        "spec": {"unschedulable": True},
    }
    over_time = node("n0") + node("n1") + f"---\n{yaml.safe_dump({'apiVersion': 'v1', **patch})}"
    rows = ({"request.cpu": 4000, "duration": 200}, {"request.cpu": 4000, "duration": 100, "submit_time": 60})
    run = judged(replayed(*rows, cluster=over_time, plugin="default-preemption"))
    assert idle(run) == {"fragmented": 240 / (8 * 220), "no_demand": (4 * 60 + 4 * 20) / (8 * 220)}


def test_quota_comes_before_fragmentation(replayed: Replayed) -> None:
    """Elastic quotas: b's job is beyond what all are guaranteed; that no node has room counts less."""
    tree = quota_tree({"a": {"cpu": "2"}}, {"cpu": "2"})
    job = {"queue": "a", "request.cpu": 2000, "duration": 100}
    run = judged(replayed(job, job, cluster=node("n0", "3") + tree, plugin="elasticquota"))
    assert idle(run) == {"quota": 1 / 6, "no_demand": 1 / 6}
    run = judged(replayed(job, job, cluster=node("n0", "3") + tree, plugin="default-preemption"))
    assert idle(run) == {"fragmented": 1 / 6, "no_demand": 1 / 6}


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_what_waits_for_victims_is_reserved(replayed: Replayed, plugin: str) -> None:
    """On 8 cores with a quota of 4, a takes its half back from b at 60 s; the victim goes at 120 s.

    Kueue knows a second later, until when quota lacks; then the victim lacks it, for the 100 s that a's job
    runs. The run ends when the victim has run again, at 221 + 500 s.
    """
    rows = (
        {"queue": "b", "request.cpu": 2000, "duration": 500},
        {"queue": "b", "request.cpu": 2000, "duration": 500, "submit_time": 1},
        {"queue": "a", "request.cpu": 2000, "duration": 100, "submit_time": 60},
    )
    run = judged(replayed(*rows, cluster=queues(HALVES, nodes=2), plugin=plugin, grace_period="60s"))
    found = idle(run)
    assert set(found) == {"reserved", "quota", "no_demand"}
    assert found["reserved"] == pytest.approx(2 * 60 / (8 * 721))
    assert found["quota"] == pytest.approx((2 * 1 + 2 * 101) / (8 * 721))
    adds_up(run)


class Sleeper:
    """Starts what has arrived when it wakes, two minutes after it came."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        self._on_nodes = bool(cluster.nodes)
        self._jobs: list[tuple[int, Job]] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        """It waits."""
        self._jobs.append((now + 120 * SECOND, job))

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Nothing is to be done."""

    def cycle(self, now: int) -> Iterator[Decision]:
        """Start those whose time has come."""
        due = [job for at, job in self._jobs if at <= now]
        self._jobs = [each for each in self._jobs if each[0] > now]
        for job in due:
            yield Bind(job, range(job.pods), "n0") if self._on_nodes else Admit(job)
        for at, _ in self._jobs[:1]:
            yield Wake(at)


class Strict(Sleeper):
    """The same, and says that its quota keeps out whom it lets wait."""

    def within_quota(self, job: Job, pods: list[int]) -> bool:
        """Never."""
        return False


class Broken(Sleeper):
    """The same, and fails where it is asked."""

    def within_quota(self, job: Job, pods: list[int]) -> bool:
        """Fails."""
        raise ZeroDivisionError


@pytest.mark.parametrize("cluster", [queues({"a": {"cpu": "2"}}), node("n0", "2")])
@pytest.mark.parametrize(("policy", "cause"), [(Sleeper, "policy"), (Strict, "quota")])
def test_what_a_policy_lets_wait_is_its_own_cause(
    replayed: Replayed, cluster: str, policy: type[Policy], cause: str
) -> None:
    """Nobody else is there: 120 of 220 s it sleeps. Only what a policy says of quotas counts as quota."""
    run = judged(
        replayed({"queue": "a", "request.cpu": 2000, "duration": 100}, cluster=cluster, plugin=policy)
    )
    assert idle(run) == {cause: 120 / 220}


def test_a_policy_that_fails_when_it_is_asked_is_named(replayed: Replayed) -> None:
    """With the policy's name, as everywhere."""
    run = replayed({"request.cpu": 2000}, cluster=node("n0", "2"), plugin=Broken)
    with pytest.raises(PolicyError, match="Broken"):
        judged(run)


def test_causes_are_judged_at_whole_minutes_and_hold_until_the_next(replayed: Replayed) -> None:
    """The policy wakes at 120 s and starts j0. j1 came at 30 s and is judged at 60 s: the node is free.

    It had that cause from the beginning, and has it until 120 s, when j0 has left too little room for it.
    """
    rows = ({"request.cpu": 1000, "duration": 80}, {"request.cpu": 3000, "duration": 80, "submit_time": 30})
    run = judged(replayed(*rows, cluster=node("n0", "3"), plugin=Sleeper, until="140s"))
    found = run.scan("causes").collect()
    assert found.rows() == [(0, 0, POLICY), (1, 1, POLICY), (2, 1, FRAGMENTED)]
    # 0 to 30 s: 1 of 3 is asked for. 30 to 120 s: 4 are. 120 to 140 s: 2 are idle and 3 asked for.
    assert idle(run) == {
        "policy": pytest.approx((1 * 30 + 3 * 90) / (3 * 140)),
        "no_demand": pytest.approx(2 * 30 / (3 * 140)),
        "fragmented": pytest.approx(2 * 20 / (3 * 140)),
    }


def test_who_is_never_judged_waited_for_the_policy(replayed: Replayed) -> None:
    """One that comes at 70 s and starts before 120 s waited between two judgements: nothing says why."""
    rows = ({"request.cpu": 2000, "duration": 90}, {"request.cpu": 2000, "duration": 90, "submit_time": 70})
    run = judged(replayed(*rows, cluster=node("n0", "3")))
    assert run.scan("causes").collect().is_empty()
    assert idle(run)["policy"] == pytest.approx(1 * 20 / (3 * 180))


def test_a_run_is_judged_once_and_keeps_its_judgements(replayed: Replayed) -> None:
    """The folder is the same, asked again; metrics are those of the run, and five more a resource."""
    run = replayed({"request.cpu": 3000}, {"request.cpu": 3000}, cluster=node("n0"))
    rows = run.metrics.height
    first = judged(run)
    assert first.path == run.path
    before = {path: path.read_bytes() for path in sorted(run.path.iterdir())}
    again = judged(harness.Run.open(run.path))
    assert {path: path.read_bytes() for path in sorted(again.path.iterdir())} == before
    added = first.metrics.filter(pl.col("metric").is_in(METRICS)).height
    assert first.metrics.height == rows + added
    assert added == 5 * len(run.resources)


def test_compared_runs_are_measured_over_the_window_that_they_share(replayed: Replayed) -> None:
    """One ends at 200 s, the other, with a node more, at 100 s: until then 2 of 8 cores are idle."""
    rows = [{"request.cpu": 3000, "duration": 100} for _ in range(3)]
    two = node("n0") + node("n1")
    runs = [replayed(*rows, cluster=cluster, label=str(len(cluster))) for cluster in (two, two + node("n2"))]
    comparison = harness.compare(runs, idle_causes=True)
    values = [{(row.metric, row.resource): row.value for row in each} for each in rows_of(comparison.runs)]
    assert values[0]["idle.fragmented", "cpu"] == 2 / 8
    assert values[0]["idle.no_demand", "cpu"] == 0
    assert ("idle.fragmented", "cpu") not in values[1]
    assert idle(comparison.runs[0])["fragmented"] == 2 / 16
    assert "idle.fragmented" in comparison.table()


def rows_of(runs: Sequence[harness.Run]) -> list[list[Measurement]]:
    """What is measured of runs over the window that they share."""
    return [list(measure_shared(run, shared)) for run, shared in zip(runs, shared_by(runs), strict=True)]


def test_twins_are_judged_too(replayed: Replayed) -> None:
    """Each has values of its own, over what it shares with its siblings; nothing is made twice."""
    rows = [{"request.cpu": 3000, "duration": 200, "submit_time": 60 * number} for number in range(4)]
    runs = [
        replayed(*rows, cluster=node("n0"), plugin=plugin, label=plugin)
        for plugin in ("none", "default-preemption")
    ]
    comparison = harness.compare(runs, shake="2,arrivals=4s", idle_causes=True)
    for run in (*comparison.runs, *(twin for twins in comparison.twins for twin in twins)):
        adds_up(run)
        assert idle(run)["fragmented"] > 0
    again = harness.compare(runs, shake="2,arrivals=4s", idle_causes=True)
    assert all(twin.stored for twins in again.twins for twin in twins)
    unlike = harness.compare(comparison.runs, shake="2,arrivals=3s").table()
    assert "to measure the twins, add --idle-causes to --shake" in " ".join(unlike.split())


def test_a_record_is_not_judged(replayed: Replayed) -> None:
    """It does not say why jobs waited: the five are null, and the run says why."""
    times = {"recorded_start": timedelta(seconds=2), "recorded_end": timedelta(seconds=12)}
    run = judged(replayed(times, cluster=node("n0"), plugin="recorded"))
    assert idle(run) == {}
    assert run.remarks == ("idle.*: not measured: recorded times do not say why jobs waited",)


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2))])
def test_the_five_and_what_is_allocated_are_all_in_random_worlds(seed: int, tmp_path: Path) -> None:
    """With every plugin, also where jobs are preempted, rejected, admitted in part, or quotas change."""
    world = random_world(seed, node_events=seed == 2)
    for plugin in PLUGINS:
        adds_up(judged(world.replay(plugin, tmp_path / "results")))


@pytest.mark.parametrize(
    ("plugin", "nodes"), [("none", 0), ("kueue-classic", 0), ("kueue-classic", 2), ("default-preemption", 2)]
)
def test_a_slow_recomputation_agrees(
    replayed: Replayed, write_trace: Callable[..., Path], plugin: str, nodes: int
) -> None:
    """Of jobs of one and several pods that wait for quota, nodes or the policy."""
    rows = [
        {
            "queue": "ab"[number % 2],
            "submit_time": 7 * number,
            "duration": 20 + 31 * number % 90,
            "request.cpu": 250 * (1 + 5 * number % 7),
            "pods": 1 + number % 2,
            "gang": bool(number % 2),
            "priority": number % 3,
        }
        for number in range(24)
    ]
    run = judged(replayed(*rows, cluster=queues(HALVES, nodes=nodes), plugin=plugin))
    book = Book()
    world = World(run, pl.read_parquet(write_trace(*rows)))
    idle_of_oracle(world, book, run.scan("causes").select("minute", "job", "cause").collect().iter_rows())
    fast = run.metrics.filter(pl.col("metric").is_in(METRICS)).to_dicts()
    assert len(fast) == len(METRICS) * len(run.resources)
    assert differences(fast, book.values) == []
    assert sum(row["value"] > 0 for row in fast if row["value"] is not None) > 1


def test_a_damaged_table_of_causes_is_found(replayed: Replayed) -> None:
    """As any other table of a run."""
    run = judged(replayed({"request.cpu": 3000}, {"request.cpu": 3000}, cluster=node("n0")))
    (run.path / "causes.parquet").write_bytes(b"")
    with pytest.raises(RunError, match=r"causes\.parquet is damaged"):
        harness.Run.open(run.path).check()


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3, 7]), st.sampled_from([QUOTA, POLICY])), min_size=1),
    st.integers(0, 40),
)
def test_parts_are_by_largest_remainder_whatever_jobs_ask_for(asks: list[tuple[int, int]], idle: int) -> None:
    """As one works it out job by job: the rounded part, and one more for the largest remainders, by order."""
    total = sum(amount for amount, _ in asks)
    split = _Split([(-1, min(idle, total))], [cause for _, cause in asks], 0)
    for job, (amount, _) in enumerate(asks):
        split.move(job, amount, 0)
    split.reach(1)
    free = min(idle, total)
    parts = [free * amount // total for amount, _ in asks]
    ranked = sorted(range(len(asks)), key=lambda job: (-(free * asks[job][0] % total), job))
    for job in ranked[: free - sum(parts)]:
        parts[job] += 1
    expected = [0] * len(METRICS)
    for part, (_, cause) in zip(parts, asks, strict=True):
        expected[cause + 1] += part
    assert split.sums == expected
