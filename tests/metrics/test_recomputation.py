"""Every metric agrees with what the oracle, plain Python, makes of the decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from dumps.loop import Loop
from dumps.worlds import BEGIN, NOWHERE, dump_world, trace_of
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples
from oracle import agrees, differences, values_of
from policies import AtRandom, Eager, Greedy, PodByPod, Priority
from small_clusters import cohort, local_queue, queues

import harness
from harness import Decision, Reject
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.testing.worlds import PLUGINS, random_world

TRACES = Path(__file__).parents[2] / "traces"
QUOTAS = {"a": {"cpu": "4", "memory": "4Gi"}, "b": {"cpu": "3", "memory": "6Gi"}, "idle": {"cpu": "1"}}
POOL = queues(QUOTAS, weights={"a": "2"})
NODES = queues(QUOTAS, weights={"b": "3"}, nodes=2)
DOORS = queues({"x": QUOTAS["a"], "b": QUOTAS["b"]}) + local_queue("default", "a", "x")
SHARED = queues({"x": {"cpu": "7", "memory": "10Gi"}}) + "".join(
    local_queue("default", name, "x") for name in "ab"
)
TREE = queues(QUOTAS, limits={"a": (None, "1"), "b": ("2", "2")}) + cohort("all", "top", {"cpu": "1"})
"""A cohort with quota of its own under another one; what queues borrow and lend of cpu is limited."""


WORLDS = [
    *((2, "kueue-classic"), (6, "kueue-classic"), (17, "fairsharing"), (12, "elasticquota")),
    *((16, "default-preemption"), (13, "auto"), (4, "none")),
]
"""Seeds of random worlds, and the plugin."""


class Randomly(AtRandom):
    def __init__(self, cluster: Any, view: Any, options: Any) -> None:
        super().__init__(cluster, view, {"preemptions": 12, "seed": 5})


class Early(Eager):
    def __init__(self, cluster: Any, view: Any, options: Any) -> None:
        super().__init__(cluster, view, {"preemptions": 12, "seed": 5})


class Podwise(PodByPod):
    def __init__(self, cluster: Any, view: Any, options: Any) -> None:
        super().__init__(cluster, view, {"preemptions": 12, "seed": 5})


class Choosy(Randomly):
    """Rejects jobs that ask for too much as they arrive, and those that have waited too long."""

    def preempt(self, now: int) -> Iterator[Decision]:
        yield from super().preempt(now)
        for job in list(self.waiting):
            if job.pods == 3 or now - job.submit > 9 * SECOND:
                self.waiting.remove(job)
                yield Reject(job, "Choosy")


def job(number: int, draw: Callable[..., Any]) -> dict[str, Any]:
    return {
        "job_id": f"j{number}",
        "submit_time": draw(st.integers(0, 60)),
        "duration": draw(st.integers(0, 40)),
        "grace_period": draw(st.sampled_from([0, 0, 3])),
        "checkpoint_interval": draw(st.sampled_from([None, None, 3, 7])),
        "startup": draw(st.sampled_from([0, 0, 0, 2, 9, None])),
        "queue": draw(st.sampled_from("ab")),
        "user": draw(st.sampled_from(["", "u", "v", "w"])),
        "priority": draw(st.integers(0, 2)),
        "pods": draw(st.sampled_from([1, 1, 2, 3])),
        "gang": draw(st.booleans()),
        "request.cpu": draw(st.sampled_from([0, 500, 1000, 2000])),
        "request.memory": draw(st.sampled_from([0, 2**30, 3 * 2**29])),
    }


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    spans = ("submit_time", "duration", "grace_period", "checkpoint_interval", "startup")
    times = [name for name in spans if name in rows[0]]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.with_columns((pl.col(times) * SECOND).cast(pl.Duration("us"))).cast(
        {"pods": pl.Int32, "priority": pl.Int32}
    )


def replayed(folder: Path, rows: pl.DataFrame, cluster: str, plugin: Any, **settings: Any) -> harness.Run:
    rows.write_parquet(folder / "t.parquet")
    (folder / "c.yaml").write_text(cluster)
    return harness.replay(
        folder / "t.parquet", plugin=plugin, cluster=folder / "c.yaml", output=folder, **settings
    )


@examples(25)
@given(data=st.data())
def test_metrics_of_random_runs_are_what_their_decisions_say(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whole jobs and pods, gangs and not, preempted, evicted, rejected and cut off, under every loss model.

    Pods are ready at once, later or never. However tables are read in pieces.
    """
    rows = frame([job(number, data.draw) for number in range(data.draw(st.integers(1, 14)))])
    plugin, cluster = data.draw(
        st.sampled_from(
            [
                *((Greedy, POOL), (Priority, POOL), (Randomly, POOL), (Early, POOL), (Podwise, NODES)),
                *((Randomly, DOORS), (Randomly, SHARED), (Choosy, POOL), (Early, TREE)),
                *(("kueue-classic", NODES), ("kueue-classic", TREE), ("fairsharing", TREE)),
            ]
        )
    )
    rows_of_a_piece = data.draw(st.sampled_from([3, 1000]))
    day = data.draw(st.sampled_from([17, 86_400]))
    whole = None if day == 86_400 else "10m"  # time-outs repeat for a month: 150,000 of the short days
    choices: Mapping[str, Any] = {
        "on_preemption": data.draw(st.sampled_from(["restart", "resume", "checkpoint=5s,restore=2s"])),
        "until": data.draw(st.sampled_from([whole, whole, "40s", "70s"])),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.runs.run._BATCH", rows_of_a_piece)
        patch.setattr("harness.analysis.metrics.waiting._MANY", rows_of_a_piece)
        patch.setattr("harness.analysis.metrics.daily.DAY", day * SECOND)
        patch.setattr("oracle.world.DAY", day * SECOND)
        agrees(replayed(tmp_path_factory.mktemp("run"), rows, cluster, plugin, **choices), rows)


CONTENDED = frame(
    [
        {
            "job_id": f"j{number}",
            "submit_time": number * number % 61,
            "duration": 5 + number % 7 * 4,
            "grace_period": number % 3,
            "queue": "ab"[number * number % 5 % 2],
            "priority": number % 3,
            "pods": 1 + number % 2,
            "gang": True,
            "request.cpu": 500 * (1 + number % 3),
            "request.memory": 2**29,
        }
        for number in range(60)
    ]
)


@pytest.mark.parametrize(
    ("plugin", "cluster"),
    [
        ("none", POOL),
        ("kueue-classic", DOORS),
        ("fairsharing", NODES),
        ("kueue-classic", TREE),
        ("default-preemption", NODES),
        *(
            pytest.param(plugin, cluster, marks=pytest.mark.nightly)
            for plugin, cluster in (
                *(("kueue-classic", POOL), ("fairsharing", POOL)),
                *(("fairsharing", SHARED), ("kueue-classic", NODES)),
            )
        ),
    ],
)
def test_metrics_of_built_in_plugins_are_what_their_decisions_say(
    plugin: str, cluster: str, tmp_path: Path
) -> None:
    """Sixty contended jobs of two queues and three priorities."""
    agrees(replayed(tmp_path, CONTENDED, cluster, plugin), CONTENDED)


@pytest.mark.parametrize(
    ("trace", "plugin", "count"),
    [
        ("mix", "fairsharing", 150),
        pytest.param("philly", "kueue-classic", 150, marks=pytest.mark.nightly),
        pytest.param("openb", "default-preemption", 150, marks=pytest.mark.nightly),
    ],
)
def test_metrics_of_bundled_traces_are_what_their_decisions_say(
    trace: str, plugin: str, count: int, tmp_path: Path
) -> None:
    """Their first jobs, of which some are preempted or never run."""
    rows = pl.read_parquet(TRACES / f"{trace}.parquet").head(count)
    agrees(replayed(tmp_path, rows, (TRACES / f"{trace}.cluster.yaml").read_text(), plugin), rows)


def test_metrics_of_random_worlds_are_what_their_decisions_say(tmp_path: Path) -> None:
    """Pod sets that differ, partial admissions, several flavors, cohorts of cohorts, both kinds of quota.

    Pods end before their job is admitted again, and jobs are evicted before any pod is bound.
    """
    for seed, plugin in WORLDS:
        world = random_world(seed, changes=False)
        agrees(world.replay(plugin, tmp_path), world.frame)


@pytest.mark.parametrize(
    ("seed", "plugin", "nodes"),
    [
        *((0, "fairsharing", False), (1, "none", False), (7, "elasticquota", False)),
        *((3, "default-preemption", True), (4, "kueue-classic", True), (0, "auto", True)),
    ],
)
def test_metrics_of_changing_worlds_are_what_their_decisions_say(
    seed: int, plugin: str, nodes: bool, tmp_path: Path
) -> None:
    """Capacity, quotas, limits and weights are functions of time; nodes come, go and shrink under their pods.

    In the fifth world a pod of an admitted job is lost with its node before the job is preempted.
    """
    world = random_world(seed, node_events=nodes)
    run = world.replay(plugin, tmp_path)
    assert run.info["cluster"]["events"]
    agrees(run, world.frame)


def test_a_job_that_is_admitted_again_after_one_of_its_pods_has_ended(tmp_path: Path) -> None:
    """It holds quota of those that are left, by their pod sets; while one never started nothing is kept.

    It is evicted before any of them is bound, so that its quota is free only after `evictionLatency`.
    """
    world = random_world(3, changes=False)
    run = world.replay("kueue-classic", tmp_path, until=9_000 * SECOND)
    assert (run.decisions["action"] == "evict").any()
    agrees(run, world.frame)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_metrics_of_every_plugin_are_what_decisions_say(seed: int, tmp_path: Path) -> None:
    """In sixty worlds with all plugins. A third of the worlds change; in a third nodes come and go."""
    world = random_world(seed, node_events=seed % 3 == 0)
    for plugin in PLUGINS:
        agrees(world.replay(plugin, tmp_path), world.frame)


@pytest.mark.parametrize(
    ("seed", "plugin"),
    [
        *((5, "fairsharing"), (6, "default-preemption"), (4, "elasticquota")),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in ((2, "kueue-classic"), (4, "kueue-classic"), (5, "none"), (11, "kueue-classic"))
        ),
        (6, "fairsharing"),
    ],
)
def test_metrics_of_dumps_are_what_their_decisions_say(seed: int, plugin: str, tmp_path: Path) -> None:
    """What ran before enters no integral, counts as kept, and is lost by itself.

    It is ready, too, unless its Workload says that it is not. Its pods then take a second to become ready.
    Jobs of the last two worlds start up, some again and again because their pods are ready too late.
    """
    world = dump_world(seed, plugin)
    _, objects = Loop().restarted(world)
    frame = world.frame.filter(pl.col("queue") != NOWHERE)
    later = frame.filter(pl.col("submit_time") > BEGIN + timedelta(microseconds=world.at))
    run = harness.replay(
        trace_of(later if later.height else frame.tail(1)),
        plugin=plugin,
        cluster=cluster_from(json.loads(json.dumps([*world.manifests, *objects])), "dump"),
        options=world.options,
        on_preemption=world.losses,
        unfinished="10m",
        until="2h",
        output=tmp_path,
    )
    assert run.jobs["ran_before"].drop_nulls().len()
    unready = pl.DataFrame({"job_id": _unready(objects)}, {"job_id": pl.String})
    starting = unready.with_columns(first_startup=timedelta(seconds=1))
    agrees(run, pl.concat([later if later.height else frame.tail(1), starting], how="diagonal"))


def _unready(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """The jobs that hold quota and whose Workloads say that pods are not ready."""
    found = []
    for each in objects:
        if each["kind"] == "Workload":
            said = {one["type"]: one["status"] for one in each.get("status", {}).get("conditions", ())}
            if said.get("QuotaReserved") == "True" and said.get("PodsReady") == "False":
                found.append(f"{each['metadata']['namespace']}/{each['metadata']['name']}")
    return found


@pytest.mark.parametrize(
    "until", [(None, None), pytest.param(("70s", None), marks=pytest.mark.nightly), ("70s", "50s")]
)
def test_compared_runs_are_measured_as_their_decisions_say(
    until: tuple[str | None, str | None], tmp_path: Path
) -> None:
    """Integrals to the earliest end and jobs to the latest; of runs that were cut all to the earliest cut."""
    runs = []
    for plugin, cut in zip(("none", "kueue-classic"), until, strict=True):
        settings = {} if cut is None else {"until": cut}
        runs.append(replayed(tmp_path, CONTENDED, NODES, plugin, **settings))
    ends = [run.info["window"][1] for run in runs]
    cuts = [run.info["settings"]["until_us"] for run in runs if run.info["settings"]["until_us"] is not None]
    end, last = (min(cuts), min(cuts)) if cuts else (min(ends), max(ends))
    comparison = harness.compare(runs)
    assert comparison.window == (runs[0].info["window"][0], end)
    for name, run in zip(comparison.names, runs, strict=True):
        slow = {key: value for key, value in values_of(run, CONTENDED, end, last).items() if key[1] == "all"}
        rows = [
            {**row, "value": row["values"][name], "at_least": row["at_least"][name]}
            for row in comparison.to_json()["metrics"]
        ]
        assert not differences(rows, slow)
