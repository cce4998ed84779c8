"""The outside checker: it names each kind of fault that is planted in a good run, or that a policy makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from policies import scripted
from small_clusters import queues

import harness
from harness.api import read_cluster, read_trace
from harness.base.errors import InputError, OptionError
from harness.plugins import load
from harness.runs.run import Run
from harness.testing.checks import RULES, Broken, check_run
from harness.testing.worlds import World, random_world

PLUGINS = load()
Change = Callable[[pl.DataFrame], pl.DataFrame]


class Changed(Run):
    """A run of which one table is another one."""

    def __init__(self, run: Run, table: str, change: Change) -> None:
        super().__init__(run.path, run.info)
        self._other = {table: change(run.scan(table).collect())}

    def scan(self, table: str) -> pl.LazyFrame:
        return self._other[table].lazy() if table in self._other else super().scan(table)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[World, Run]]:
    """Runs with gangs, preemptions and grace periods: on nodes, and without."""
    found = {}
    for name, seed, plugin in (("nodes", 5, "default-preemption"), ("pool", 15, "fairsharing")):
        world = random_world(seed)
        folder = tmp_path_factory.mktemp(name)
        run = world.replay(plugin, folder, plugins=PLUGINS, on_preemption="restart", grace_period=30_000_000)
        assert world.faults(run) == []
        found[name] = world, run
    return found


def the(action: str, number: int = 0) -> pl.Expr:
    """The row of the so-manyeth decision of a kind; -1 is the last."""
    of_kind = pl.int_range(pl.len()).filter(pl.col("action") == action)
    return pl.int_range(pl.len()) == of_kind.get(number)


def put(row: pl.Expr, **values: Any) -> Change:
    """Other values in a row; expressions are of the row."""
    return lambda frame: frame.with_columns(
        pl.when(row).then(value if isinstance(value, pl.Expr) else pl.lit(value)).otherwise(pl.col(name))
        .cast(frame.schema[name]).alias(name)
        for name, value in values.items()
    )  # fmt: skip


def without(row: pl.Expr) -> Change:
    """One row less, the others numbered anew."""
    return lambda frame: frame.filter(~row).with_columns(seq=pl.int_range(pl.len()))


def twice(row: pl.Expr) -> Change:
    """One row twice."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        again = pl.concat([frame, frame.filter(row)]).sort("seq", maintain_order=True)
        return again.with_columns(seq=pl.int_range(pl.len()))

    return change  # fmt: skip


LATER = pl.col("time") + pl.duration(microseconds=1)
EARLIER = pl.col("time") - pl.duration(microseconds=1)
FIRST = pl.int_range(pl.len()) == 0
LARGER = pl.int_range(pl.len()) == pl.col("request.cpu").arg_max()
PLANTED: list[tuple[str, str, str, Change]] = [
    ("time.order", "nodes", "decisions", put(the("finish", -1), time=pl.lit(0, pl.Duration("us")))),
    ("time.order", "nodes", "decisions", put(the("finish"), seq=7)),
    ("time.order", "nodes", "decisions", put(the("preempt", -1), cycle=0)),
    ("time.due", "nodes", "decisions", without(the("finish"))),
    ("order.requeue", "nodes", "decisions", without(the("gone"))),
    ("time.due", "pool", "decisions", without(the("requeue", -1))),
    ("order.finish", "nodes", "decisions", put(the("finish"), time=EARLIER)),
    ("order.finish", "pool", "decisions", put(the("finish", -1), time=EARLIER)),
    ("order.gone", "nodes", "decisions", put(the("gone"), time=EARLIER)),
    ("order.submit", "nodes", "decisions", put(the("submit", -1), time=LATER)),
    ("order.submit", "nodes", "decisions", put(the("submit"), pods=9)),
    ("time.order", "nodes", "decisions", twice(the("submit"))),
    ("order.bind", "nodes", "decisions", twice(the("bind"))),
    ("order.bind", "nodes", "decisions", put(the("bind", -1), pod=pl.col("pod") + "-r9")),
    ("order.bind", "nodes", "decisions", put(the("bind"), holding=0)),
    ("order.admit", "pool", "decisions", twice(the("admit"))),
    ("order.admit", "pool", "decisions", put(the("admit"), pods=50)),
    ("order.preempt", "nodes", "decisions", twice(the("preempt"))),
    ("invented.job", "nodes", "decisions", put(the("bind"), job_id="ghost")),
    ("invented.job", "nodes", "jobs", put(FIRST, job_id="ghost")),
    ("invented.by", "nodes", "decisions", put(the("preempt"), by="ghost")),
    ("invented.by", "nodes", "decisions", put(the("preempt"), by=None)),
    ("invented.node", "nodes", "decisions", put(the("bind"), node="ghost")),
    ("invented.action", "nodes", "decisions", put(the("bind"), action="bound")),
    ("capacity.node", "nodes", "decisions", put(pl.col("action") == "bind", node="n1")),
    ("jobs.state", "nodes", "jobs", put(FIRST, state="pending")),
    ("jobs.start_time", "pool", "jobs", put(FIRST, start_time=pl.duration(seconds=9))),
    ("jobs.finish_time", "nodes", "jobs", put(FIRST, finish_time=None)),
    ("jobs.admitted_time", "pool", "jobs", put(FIRST, admitted_time=None)),
    ("jobs.duration", "nodes", "jobs", put(FIRST, duration=pl.duration(seconds=9))),
    ("jobs.preemptions", "pool", "jobs", put(FIRST, preemptions=9)),
    ("jobs.progress_lost", "nodes", "jobs", put(FIRST, progress_lost=pl.duration(seconds=9))),
    ("jobs.held_idle", "nodes", "jobs", put(FIRST, held_idle=pl.duration(seconds=9))),
    ("jobs.request.cpu", "nodes", "jobs", put(FIRST, **{"request.cpu": 9})),
    ("stints.amounts", "nodes", "stints", put(LARGER, **{"request.cpu": 9})),
    ("stints.invented", "nodes", "stints", lambda frame: put(FIRST, state="waiting")(frame)),
    ("timeline.levels", "nodes", "timeline", put(FIRST, pending=1)),
    ("timeline.levels", "pool", "timeline", lambda frame: frame.head(-3)),
    ("identity.allocated", "nodes", "stints", put(LARGER, end=pl.col("end") + pl.duration(microseconds=1))),
    ("identity.metrics", "nodes", "metrics",
     put(pl.col("metric") == "utilization.lost.hours", value=pl.col("value") + 1.0)),
    ("quotas.over", "pool", "metrics",
     put((pl.col("metric") == "quota.over") & pl.col("scope").str.starts_with("quota="), value=9.0)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "kind", "table", "change"), PLANTED)
def test_a_planted_fault_is_named(
    rule: str, kind: str, table: str, change: Change, good: Mapping[str, tuple[World, Run]]
) -> None:
    """Of a good run one row is changed, and a rule about it is told to be broken."""
    world, run = good[kind]
    found = world.faults(Changed(run, table, change))
    assert rule in {broken.rule for broken in found}, found[:5]


def test_gangs_that_are_half_bound_are_counted_again(good: Mapping[str, tuple[World, Run]]) -> None:
    """So is the number of jobs."""
    world, run = good["nodes"]
    gang = {"job": "j00", "bound": 1, "pods": 2, "held": {}}
    outcome = {**run.info["outcome"], "half_bound_gangs": [gang], "jobs": 1}
    changed = Run(run.path, {**run.info, "outcome": outcome})
    assert {each.rule for each in world.faults(changed)} == {"outcome.half_bound_gangs", "outcome.jobs"}


def test_only_runs_of_this_world_are_checked(good: Mapping[str, tuple[World, Run]]) -> None:
    """Another cluster or trace is an error, and so is a rule that nobody knows."""
    world, run = good["nodes"]
    with pytest.raises(InputError, match="was not made from this cluster and trace"):
        check_run(run, random_world(6).cluster, world.trace)
    with pytest.raises(OptionError, match="there is no rule 'kueu'"):
        check_run(run, world.cluster, world.trace, rules=["kueu"])
    assert str(Broken("a.b", "here", "is wrong")) == "a.b: here: is wrong"


# --- policies that break rules ------------------------------------------------------------------------------

Checked = Callable[..., set[str]]


@pytest.fixture
def checked(tmp_path: Path, write_trace: Callable[..., Path]) -> Checked:
    """Replays jobs through a scripted policy on manifests, and answers the rules of a kind that it breaks."""

    def check(rules: list[str], manifests: str, steps: dict[float, Any], *jobs: dict[str, Any]) -> set[str]:
        opened = read_trace(write_trace(*jobs), PLUGINS)
        path = tmp_path / "cluster.yaml"
        path.write_text(manifests)
        cluster = read_cluster(path, opened)
        run = harness.replay(
            opened, plugin=scripted(steps), cluster=cluster, output=tmp_path, plugins=PLUGINS, force=True
        )
        assert check_run(run, cluster, opened, rules=[]) == []
        return {broken.rule for broken in check_run(run, cluster, opened, rules=rules)}

    return check


def node(name: str, cpu: int = 8, **spec: Any) -> dict[str, Any]:
    """A Node."""
    amounts = {"cpu": cpu, "nvidia.com/gpu": cpu, "pods": 9}
    kind = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": name}}}
    return {**kind, "spec": spec, "status": {"allocatable": amounts}}


def quota_tree(**bounds: tuple[int, int]) -> dict[str, Any]:
    """An ElasticQuotaTree: quota -> its min and max of cpu."""
    leaves = [
        {"name": name, "min": {"cpu": least}, "max": {"cpu": most}} for name, (least, most) in bounds.items()
    ]
    root = {"name": "root", "min": {"cpu": 8}, "max": {"cpu": 8}, "children": leaves}
    kind = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    return {**kind, "metadata": {"name": "t", "namespace": "kube-system"}, "spec": {"root": root}}


TAINTED = yaml.safe_dump_all([node("one", taints=[{"key": "k", "effect": "NoSchedule"}]), node("free")])
CORDONED = yaml.safe_dump_all([node("one", unschedulable=True)])
BIND = {0: [("bind", "a", 0, "one")]}
WISH = {"job_id": "a", "node_selector": [{"key": "zone", "value": "b"}]}


def test_pods_on_nodes_that_do_not_suit_them_are_named(checked: Checked) -> None:
    """Selectors, taints, cordons; tolerated taints are none."""
    assert checked(["placement"], TAINTED, BIND, {"job_id": "a"}) == {"placement.taint"}
    assert checked(["placement"], CORDONED, BIND, {"job_id": "a"}) == {"placement.taint"}
    tolerant = {"job_id": "a", "tolerations": '[{"operator": "Exists"}]'}
    assert checked(["placement"], TAINTED, BIND, tolerant) == set()
    assert checked(["placement"], yaml.safe_dump(node("one")), BIND, WISH) == {"placement.selector"}


def test_preemptions_that_may_not_be_are_named(checked: Checked) -> None:
    """By priority, by who never preempts, and where nothing is preempted."""
    low = {"job_id": "low", "priority": 0, "preemption_policy": "Never"}
    steps = {0: [("bind", "high", 0, "one")], 1: [("preempt", "high", "low", "Priority", 0)]}
    rules = ["priority", "never"]
    found = checked(rules, yaml.safe_dump(node("one")), steps, {"job_id": "high", "priority": 1}, low)
    assert found == {"priority.lower", "priority.never", "none.preempts"}
    steps = {0: [("bind", "high", 0, "one")], 1: [("preempt", "high", None, "Drain", 0)]}
    jobs = ({"job_id": "high", "priority": 1}, low)
    everywhere = yaml.safe_dump_all([node("one"), quota_tree(default=(1, 8))])
    assert checked(["priority", "elastic"], everywhere, steps, *jobs) == {"priority.evicts", "elastic.evicts"}


SMALL = queues({"a": {"cpu": "2"}, "b": {"cpu": "2"}, "c": {"cpu": "4"}})
OPEN = {"queue": "a", "duration": 100}


def test_admissions_beyond_a_quota_are_named(checked: Checked) -> None:
    """Scripted jobs get no flavors, which is one fault; the real plugins' choice is not theirs."""
    steps = {0: [("admit", "x"), ("admit", "y")]}
    jobs = ({"job_id": "x", **OPEN}, {"job_id": "y", **OPEN})
    assert checked(["quotas"], SMALL, steps, *jobs) == {"quotas.flavor"}
    held = SMALL.replace("namespaceSelector", "stopPolicy: Hold\n  namespaceSelector")
    assert checked(["kueue"], held, steps, *jobs) == {"quotas.flavor", "kueue.stopped"}


class Kueueless(scripted({})):  # type: ignore[misc]
    """Admits whatever comes, in the flavor f."""

    def submit(self, job: harness.Job, pods: range, now: int) -> None:
        self.jobs[job.id] = job

    def cycle(self, now: int) -> Any:
        for job in [self.jobs.pop(name) for name in list(self.jobs)]:
            yield harness.Admit(job, {"main": {"cpu": "f"}})


def test_quotas_are_worked_out_for_every_cohort(tmp_path: Path, write_trace: Callable[..., Path]) -> None:
    """A may borrow nothing, and lends nothing that b could take."""
    limited = SMALL.replace("nominalQuota: '2'", "nominalQuota: '2'\n        borrowingLimit: '0'")
    for manifests, cpu, expected in (
        (limited, 3000, {"quotas.admission", "quotas.over"}),
        (limited, 2000, set()),
        (SMALL, 8000, set()),
        (SMALL.replace("cohortName: all", "cohortName: ''"), 3000, {"quotas.admission", "quotas.over"}),
    ):
        opened = read_trace(write_trace({"job_id": "x", **OPEN, "request.cpu": cpu}), PLUGINS)
        path = tmp_path / "cluster.yaml"
        path.write_text(manifests)
        cluster = read_cluster(path, opened)
        run = harness.replay(opened, plugin=Kueueless, cluster=cluster, output=tmp_path, force=True)
        found = check_run(run, cluster, opened, rules=["quotas"])
        assert {broken.rule for broken in found} == expected, found


class Follows(Kueueless):
    """The same, where quotas change."""

    def changed(self, change: Any, now: int) -> None:
        """Nothing is to be followed."""


def changing(kind: str, name: str, begin: int, **spec: Any) -> str:
    """A patch that holds from a second on."""
    metadata = {"name": name, "annotations": {"harness/from": f"{begin}s"}}
    content = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}
    return "---\n" + yaml.safe_dump(content)


@pytest.mark.parametrize(
    ("at", "stop", "expected"),
    [
        (1, None, set()),
        (9, None, {"quotas.admission", "quotas.over"}),
        (1, "Hold", set()),
        (9, "Hold", {"kueue.stopped", "quotas.admission", "quotas.over"}),
    ],
)
def test_a_check_goes_by_the_quotas_and_stops_of_the_moment(
    at: int, stop: str | None, expected: set[str], tmp_path: Path, write_trace: Callable[..., Path]
) -> None:
    """From 5 s on queue a may borrow nothing and is stopped; what was borrowed before is no fault."""
    resources = [{"name": "cpu", "borrowingLimit": 0}]
    alone = [{"flavors": [{"name": "f", "resources": resources}]}]
    manifests = SMALL + changing("ClusterQueue", "a", 5, resourceGroups=alone)
    manifests += changing("ClusterQueue", "a", 5, stopPolicy=stop) if stop else ""
    opened = read_trace(write_trace({"job_id": "x", **OPEN, "request.cpu": 3000, "submit_time": at}), PLUGINS)
    path = tmp_path / "cluster.yaml"
    path.write_text(manifests)
    cluster = read_cluster(path, opened)
    run = harness.replay(opened, plugin=Follows, cluster=cluster, output=tmp_path, force=True)
    found = check_run(run, cluster, opened, rules=["kueue"])
    assert {broken.rule for broken in found} == expected, found


def test_preemptions_against_policies_of_kueue_are_named(checked: Checked) -> None:
    """The victim's queue borrows nothing, is in another cohort, or the victim is as important."""
    steps = {0: [("admit", "x")], 1: [("preempt", "x", "y", "Any")]}
    jobs = ({"job_id": "x", **OPEN}, {"job_id": "y", **OPEN, "queue": "b"})
    flavors = {"quotas.flavor"}
    assert checked(["kueue"], SMALL, steps, *jobs) == {"kueue.borrows", *flavors}
    apart = SMALL.replace("cohortName: all", "cohortName: other", 1)
    assert checked(["kueue"], apart, steps, *jobs) == {"kueue.borrows", "kueue.cohort", *flavors}
    fellow = {"job_id": "y", **OPEN}
    assert checked(["kueue"], SMALL, steps, jobs[0], fellow) == {"kueue.policy", *flavors}
    steps = {0: [("admit", "x")], 1: [("preempt", "x", None, "Any")]}
    assert checked(["kueue"], SMALL, steps, *jobs) == {"kueue.evicts", *flavors}


@pytest.mark.parametrize("seed", [462, 655])
def test_what_heads_wait_for_counts_as_used_in_their_cycle(seed: int, tmp_path: Path) -> None:
    """Kueue takes back quota from a queue that would borrow once its own head has what it waits for."""
    world = random_world(seed)
    run = world.replay(
        "kueue-classic", tmp_path, plugins=PLUGINS, on_preemption="restart", grace_period=30_000_000
    )
    preempted = run.decisions.filter(pl.col("action") == "preempt")
    assert preempted["reason"].str.starts_with("InCohort").any()
    assert world.faults(run) == []


def test_elastic_quotas_above_their_bounds_are_named(checked: Checked) -> None:
    """Above a max, together above the root's min, and preemptions that a min or a priority forbids."""
    manifests = yaml.safe_dump_all([node("one"), node("two"), quota_tree(a=(2, 3), b=(2, 8))])
    jobs = [
        {"job_id": name, "queue": name[0], "request.cpu": 4000, "duration": 99} for name in ("a", "b", "b2")
    ]
    steps = {0: [("bind", name, 0, node) for name, node in (("a", "one"), ("b", "one"), ("b2", "two"))]}
    found = checked(["elastic"], manifests, steps, *jobs)
    assert found == {"elastic.max", "elastic.together"}
    jobs = [
        {"job_id": name, "queue": name[0], "request.cpu": 2000, "duration": 99} for name in ("a", "b", "b2")
    ]
    steps = {0: [("bind", "b", 0, "one")], 1: [("preempt", "b", "a", "QuotaReclaim", 0)]}
    assert checked(["elastic"], manifests, steps, *jobs) == {"elastic.min"}
    steps = {0: [("bind", "b", 0, "one")], 1: [("preempt", "b", "b2", "QuotaPriority", 0)]}
    assert checked(["elastic"], manifests, steps, *jobs) == {"elastic.priority"}
    stranger = {**jobs[0], "queue": "nobody's"}
    steps = {0: [("bind", "a", 0, "one")], 1: [("preempt", "a", "b", "QuotaReclaim", 0)]}
    assert checked(["elastic"], manifests, steps, stranger, jobs[1]) == {"elastic.stranger"}
    never = {**jobs[0], "preemption_policy": "Never"}
    steps = {
        0: [("bind", "b", 0, "one"), ("bind", "b2", 0, "one")],
        1: [("preempt", "b", "a", "QuotaReclaim", 0)],
    }
    assert checked(["elastic"], manifests, steps, never, *jobs[1:]) == {"elastic.never"}


def test_every_rule_that_can_be_asked_for_is_tried_here() -> None:
    """A new one needs a fault that it finds."""
    assert set(RULES) == {"placement", "never", "priority", "quotas", "kueue", "elastic"}


@pytest.mark.nightly
def test_the_guide_s_test_of_its_policy_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy, the option and the test of `plugins/README.md`, as they stand there."""
    guide = (Path(__file__).parents[2] / "plugins" / "README.md").read_text()
    policy, option, test = (
        block.removeprefix("python\n") for block in guide.split("```") if block.startswith("python\n")
    )
    (tmp_path / "shortest.py").write_text(policy)
    monkeypatch.syspath_prepend(tmp_path)
    exec(option, {})
    names: dict[str, Any] = {}
    exec(test, names)
    names["test_random_worlds"](tmp_path)
