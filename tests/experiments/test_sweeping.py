"""Experiments that are carried out: one table, whoever makes the items and however often that is stopped."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import polars as pl
import pytest
from failing_policies import Failing
from small_experiments import written

import harness
from harness.base.errors import OptionError, RunError, SpecError
from harness.plugins import load
from harness.runs import elsewhere as work
from harness.studies.experiments import evaluation as making
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.preparation import prepared
from harness.studies.experiments.requests import REQUESTED
from harness.studies.experiments.specification import Spec
from harness.studies.experiments.sweep import Sweep
from harness.studies.experiments.time_estimate import arriving, estimated

VARY: dict[str, list[Any]] = {"scale-arrivals": [1, 2], "on-preemption": ["restart", "resume"]}


def swept(spec: Spec, output: Path, **how: Any) -> Experiment:
    plugins = load(extra={"failing": Failing()}) if how.pop("failing", False) else load()
    return Sweep(prepared(spec, plugins), output).run(**how)


def table(experiment: Experiment) -> bytes:
    return (experiment.root / "experiment.parquet").read_bytes()


def test_one_table_has_a_row_an_item_and_measured_value(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """Each item's rows are what a replay of its settings measures, beside columns of what varies."""
    asked = spec(vary={"scale-arrivals": [1, 2], "on-preemption": ["resume"]}, metrics=None)
    found = swept(asked, tmp_path / "results", workers=1).to_polars()
    assert found.columns[:4] == ["item", "plugin", "scale-arrivals", "on-preemption"]
    run = harness.replay(
        tmp_path / "trace.parquet",
        plugin="fairsharing",
        cluster=tmp_path / "cluster.yaml",
        on_preemption="resume",
        scale_arrivals=2,
        keep="nothing",
    )
    last = found.filter(pl.col("item") == 1)
    assert last.select("scale-arrivals", "on-preemption").unique().rows() == [(2, "resume")]
    assert last.select(run.metrics.columns).equals(run.metrics)
    assert found.equals(pl.read_parquet(tmp_path / "results" / "small" / "experiment.parquet"))


def test_what_is_there_is_not_made_again(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """Values that are added make only new items, and a table of all."""
    output, seen = tmp_path / "results", list[int]()
    swept(spec(vary={"scale-arrivals": [1, 2]}), output, workers=1)
    again = swept(
        spec(vary={"scale-arrivals": [1, 1.5, 2]}),
        output,
        workers=1,
        watch=lambda state, made: seen.extend([] if made is None else [made.item.number]),
    )
    assert seen == [1]
    assert again.to_polars()["item"].unique().sort().to_list() == [0, 1, 2]


def test_what_decides_makes_another_item(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """Another trace, cluster or option is another item, and a label is none."""

    def keys(**fields: Any) -> list[str]:
        return [item.key for item in Sweep(prepared(spec(**fields), load())).items]

    before = keys()
    assert keys(plugins=["fairsharing@other"]) == before
    assert keys(plugins=[{"fairsharing": {"evictionLatency": "10s"}}]) != before
    assert keys(settings={"until": "9d"}) != before
    cluster = tmp_path / "cluster.yaml"
    text = cluster.read_text()
    cluster.write_text(text.replace("'2'", "'3'"))
    assert keys() != before
    cluster.write_text(text)
    assert keys() == before


def test_the_manifests_beside_a_trace_make_another_item(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """They count as those that are given do; and where they are equal to these, the items are."""

    def keys() -> list[str]:
        return [item.key for item in Sweep(prepared(spec(cluster=None), load())).items]

    of_trace = keys()
    given = [item.key for item in Sweep(prepared(spec(), load())).items]
    beside = (tmp_path / "cluster.yaml").rename(tmp_path / "trace.cluster.yaml")
    assert keys() == given != of_trace
    beside.write_text(beside.read_text().replace("'2'", "'3'"))
    assert keys() not in (given, of_trace)


def test_whoever_makes_items_has_the_manifests_beside_the_trace(
    spec: Callable[..., Spec], tmp_path: Path
) -> None:
    """They travel with the trace: in another folder a cluster was made of the trace, without a word."""
    spec(cluster=None, vary={"scale-cluster": [1, 2]})
    (tmp_path / "cluster.yaml").rename(tmp_path / "trace.cluster.yaml")
    made = Sweep(prepared(spec(cluster=None, vary={"scale-cluster": [1, 2]}), load()), tmp_path / "one")
    here = table(made.run(workers=1))
    (tmp_path / "trace.cluster.yaml").unlink()
    assert table(replace(made, output=tmp_path / "two").run(workers=1)) == here


@pytest.mark.parametrize("given", ["settings", "vary"])
def test_what_new_queues_are_read_from_is_an_input(
    given: str, spec: Callable[..., Spec], tmp_path: Path
) -> None:
    """Its path is relative to the experiment's file; it travels; what it says makes another item."""
    file = tmp_path / "map.csv"
    value = "map:map.csv,top:1"
    tenants = {"tenants": value if given == "settings" else ["hash:1", value]}
    fields = {given: tenants, "cluster": None, "plugins": ["none"]}

    def asked() -> Sweep:
        return Sweep(prepared(spec(**fields), load()), tmp_path / "results")

    with pytest.raises(SpecError, match=rf"{given}\.tenants: .*{file}: cannot be read") as caught:
        asked()
    assert len(caught.value.faults) == 1
    file.write_text("queue,local_queue\na,ours\n")
    before = asked()
    file.write_text("queue,local_queue\na,mine\n")
    changed = asked()
    *others, last = (item.key for item in changed.items)
    assert [item.key for item in before.items][:-1] == others
    assert before.items[-1].key != last
    file.unlink()
    found = changed.run(workers=1).to_polars()
    assert {"queue=mine", "queue=other"} <= {*found.filter(item=len(others))["scope"]}


def test_a_point_is_prepared_as_its_own_request_would_be(spec: Callable[..., Spec]) -> None:
    """What points share is found once, and none of what tells them apart is lost."""
    vary: dict[str, list[Any]] = {
        **VARY,
        "grace-period": ["0s", "1m"],
        "startup": ["0s", "5s"],
        "until": ["5d", "50d"],
        "at-start": ["empty", "dump"],
        "unfinished": ["draw", "2h"],
        "evictionLatency": ["0s", "10s"],
        "ClusterQueue/a.weight": [1, 2],
    }
    made = Sweep(prepared(spec(plugins=["none", "fairsharing"], vary=vary, seeds=2, random="60@1"), load()))
    names = set[str]()
    for item in made.items:
        request = made.bench.request(item.point)
        plan = made.bench.plan(item.point, request)
        assert plan.identity == request.plan(made.bench.plugins).identity
        names.add(plan.run_name)
    assert set(REQUESTED) - {"at-start"} == set(vary) & set(REQUESTED) - {"at-start"}
    assert len(names) > len(made.items) / 2


def test_what_points_share_does_not_let_a_record_be_scaled(
    spec: Callable[..., Spec], write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """A point after one whose arrivals are as they were is refused as it is by itself."""
    asked = spec(plugins=["none", "recorded"], vary={"scale-arrivals": [1, 2]})
    start, end = timedelta(seconds=1), timedelta(seconds=61)
    write_trace({"queue": "a", "request.cpu": 1000, "recorded_start": start, "recorded_end": end})
    found = swept(asked, tmp_path / "results", workers=1).items
    assert found.select("plugin", "scale-arrivals", "state").rows() == [
        ("none", 1, "done"),
        ("none", 2, "done"),
        ("recorded", 1, "done"),
        ("recorded", 2, "failed"),
    ]
    assert "repeats recorded events, so arrivals cannot be scaled" in found["error"][3]


@pytest.mark.parametrize(("until", "scale"), [("3d", 1), ("3d", 2), ("1h", 0.5), ("99d", 1)])
def test_an_estimate_counts_the_jobs_that_arrive(
    until: str, scale: float, spec: Callable[..., Spec], tmp_path: Path
) -> None:
    """They are those that a replay tells of, which ends where it is told to."""
    made = Sweep(prepared(spec(settings={"until": until, "scale-arrivals": scale}), load()), tmp_path)
    request = made.bench.request(made.items[0].point)
    run = request.run(plugins=made.bench.plugins)
    assert arriving(made.bench.trace(made.items[0].point), request) == run.info["outcome"]["jobs"]
    assert estimated(made) > 0


def test_a_failed_item_is_recorded_and_the_others_go_on(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """Its error stands in the table of items; the next sweep makes it once more."""
    asked = spec(plugins=["wrong", "fairsharing"], vary={"scale-arrivals": [1, 2]})
    found = swept(asked, tmp_path / "results", workers=1, failing=True)
    assert found.items.select("plugin", "state").rows() == [
        ("wrong", "failed"),
        ("wrong", "failed"),
        ("fairsharing", "done"),
        ("fairsharing", "done"),
    ]
    assert "requests a wake at 0 microseconds, which is not later than now" in found.items["error"][0]
    assert found.to_polars()["plugin"].unique().to_list() == ["fairsharing"]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_an_item_that_calls_exit_fails_alone(workers: int, spec: Callable[..., Spec], tmp_path: Path) -> None:
    """It is recorded as one that raises any other error; the whole sweep ended with it, without a word."""
    asked = spec(plugins=["exits", "fairsharing", "none"])
    found = swept(asked, tmp_path / "results", workers=workers, failing=True).items
    assert found.select("plugin", "state").rows() == [
        ("exits", "failed"),
        ("fairsharing", "done"),
        ("none", "done"),
    ]
    assert "policy exits failed at 0 microseconds (0s after the origin): SystemExit" in found["error"][0]


def test_an_executor_that_ends_the_program_fails_the_item(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """Whatever a task of an executor raises is told of the item that it was to make."""

    class Ending(ThreadPoolExecutor):
        def submit(self, function: Any, /, *args: Any, **options: Any) -> Any:
            return super().submit(sys.exit, 3)

    with Ending(1) as executor:
        found = swept(spec(plugins=["none"]), tmp_path / "results", executor=executor).items
    assert found["state"].to_list() == ["failed"]
    assert "the executor failed: SystemExit: 3" in found["error"][0]


def test_processes_make_the_table_of_one(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """Two warm processes, one, or an executor of threads: the same bytes."""
    asked = spec(vary=VARY)
    one = swept(asked, tmp_path / "one", workers=1)
    two = swept(asked, tmp_path / "two", workers=2)
    with ThreadPoolExecutor(2) as executor:
        other = swept(asked, tmp_path / "other", executor=executor)
    assert table(one) == table(two) == table(other)


@pytest.mark.nightly
def test_an_item_that_ends_its_process_fails_alone(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """What was handed out with it is made all the same."""
    asked = spec(plugins=["killed", "fairsharing", "none"])
    found = swept(asked, tmp_path / "results", workers=2, failing=True).items
    assert found.filter(pl.col("plugin") != "killed")["state"].unique().to_list() == ["done"]
    failed = found.filter(plugin="killed")
    assert failed["state"].to_list() == ["failed"]
    assert "its process was killed" in failed["error"][0]


def test_inputs_are_sent_to_whoever_has_not_got_them(
    spec: Callable[..., Spec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They travel by their sum: the first item of a process brings them, the others do not."""
    sent: list[bool] = []
    monkeypatch.setattr(work, "_begun", {})

    class OneThread(ThreadPoolExecutor):
        def submit(self, function: Any, /, *args: Any, **others: Any) -> Any:
            sent.append(args[1] is not None)
            return super().submit(function, *args, **others)

    made = Sweep(prepared(spec(vary={"scale-arrivals": [1, 2]}), load()), tmp_path / "results")
    with OneThread(1) as executor:
        made.run(executor=executor)
    assert sent[:2] == [False, False]
    assert 1 <= sum(sent) <= 2
    sent.clear()
    rmtree(made.root)
    with OneThread(1) as executor:
        made.run(executor=executor)
    assert sent == [False, False]


def test_workers_and_an_executor_exclude_each_other(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """An executor has workers of its own."""
    with ThreadPoolExecutor(1) as executor, pytest.raises(OptionError, match="given with an executor"):
        swept(spec(), tmp_path, workers=2, executor=executor)


def test_an_experiment_is_small_on_disk(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """With metrics alone an item takes less than 20 kB."""
    found = swept(spec(metrics=None), tmp_path / "results", workers=1)
    sizes = [path.stat().st_size for path in found.root.rglob("*") if path.is_file()]
    assert sum(sizes) < 20_000


def test_all_of_a_run_is_kept_where_that_is_asked_for(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """`keep: all` leaves runs beside the items, which open like any other."""
    found = swept(spec(keep="all"), tmp_path / "results", workers=1)
    (run,) = (harness.Run.open(path) for path in (found.root / "runs").glob("*/*"))
    assert run.jobs.height == 45


def test_one_item_at_a_time_makes_the_same_table(spec: Callable[..., Spec], tmp_path: Path) -> None:
    """The tasks of an array leave what a sweep then gathers, and makes nothing of."""
    vary = {"scale-arrivals": [1, 2]}
    made = Sweep(prepared(spec(vary=vary), load()), tmp_path / "results")
    for number in (1, 0, 0):
        assert not made.make(number).error
    seen: list[object] = []
    gathered = made.run(workers=1, watch=lambda _, item: seen.append(item))
    assert seen == [None]
    assert table(gathered) == table(swept(spec(vary=vary), tmp_path / "other", workers=1))
    with pytest.raises(OptionError, match="there is no item 2: items are numbered 0 to 1"):
        made.make(2)


def test_a_folder_that_is_no_experiment_is_refused(tmp_path: Path) -> None:
    """The error names what is missing."""
    with pytest.raises(RunError, match="is not an experiment"):
        Experiment.open(tmp_path)


KILLED = """
import sys
from pathlib import Path
from shutil import rmtree
import harness

if __name__ == "__main__":
    harness.sweep("sweep.yaml", output=sys.argv[1], workers=int(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_with_the_same_table(world: Path) -> None:
    """Ended at ten random moments, with one process and two, it ends with the bytes of one that was not."""
    written(world, vary={**VARY, "grace-period": ["0s", "30s", "60s"]}, seeds=2)
    (world / "killed.py").write_text(KILLED)
    whole = harness.sweep(world / "sweep.yaml", output=world / "whole", workers=1)
    draw = random.Random(7)
    for attempt in range(10):
        workers = str(1 + attempt % 2)
        process = subprocess.Popen([sys.executable, "killed.py", "parts", workers], cwd=world)
        try:
            process.wait(1 + 5 * draw.random())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    subprocess.run([sys.executable, "killed.py", "parts", "1"], cwd=world, check=True)
    assert table(Experiment.open(world / "parts" / "small")) == table(whole)


@pytest.fixture
def dask_workers(world: Path) -> Iterator[tuple[Executor, list[subprocess.Popen[bytes]]]]:
    """The executor of a real Dask scheduler with two workers in processes of their own, and these."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed (extra dask)")
    scheduler_file = world / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    begun = [subprocess.Popen([*command, "--scheduler-file", str(scheduler_file)], stderr=subprocess.DEVNULL)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", "--no-nanny"]
    worker += ["--scheduler-file", str(scheduler_file), "--nthreads", "1"]
    try:
        while not scheduler_file.exists():
            time.sleep(0.05)
        begun += [subprocess.Popen(worker, cwd=world, stderr=subprocess.DEVNULL) for _ in range(2)]
        with distributed.Client(scheduler_file=str(scheduler_file)) as client:
            client.wait_for_workers(2, timeout=60)
            yield client.get_executor(), begun[1:]
    finally:
        for process in reversed(begun):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_loses_nothing_and_makes_nothing_twice(
    spec: Callable[..., Spec], tmp_path: Path, dask_workers: tuple[Executor, list[subprocess.Popen[bytes]]]
) -> None:
    """Each item is told once, and the table is that of one process."""
    executor, workers = dask_workers
    asked = spec(vary={**VARY, "grace-period": ["0s", "30s", "60s"]}, seeds=2)
    numbers: list[int] = []

    def watch(_: object, made: making.Made | None) -> None:
        if made is not None:
            numbers.append(made.item.number)
            if len(numbers) == 3:
                workers[0].kill()

    found = swept(asked, tmp_path / "dask", executor=executor, watch=watch)
    assert sorted(numbers) == list(range(24))
    assert found.items["state"].unique().to_list() == ["done"]
    assert table(found) == table(swept(asked, tmp_path / "here", workers=1))


def test_nodes_fail_otherwise_with_each_seed_and_alike_for_each_setting(
    spec: Callable[..., Spec], world: Path
) -> None:
    """The failures of a point are part of its cluster, and differences between settings stay paired."""
    pool = "{apiVersion: harness/v1, kind: NodePool, metadata: {name: p}, spec: {count: 3, template: %s}}"
    (world / "nodes.yaml").write_text(pool % "{allocatable: {cpu: 4, memory: 8Gi, pods: 20}}")
    asked = spec(
        cluster="nodes.yaml",
        plugins=["none"],
        vary={"failures": ["mtbf:2d mttr:4h"], "on-preemption": ["restart", "resume"]},
        seeds={"count": 2, "shake": "arrivals=30s"},
    )
    made = Sweep(prepared(asked, load()))
    gone = {
        (item.point["on-preemption"], item.point["seed"]): tuple(
            time for time, _ in made.bench.plan(item.point, made.bench.request(item.point)).cluster.changes
        )
        for item in made.items
    }
    assert len(gone) == 4
    assert len(set(gone.values())) == 2
    assert gone["restart", 1] == gone["resume", 1] != gone["restart", 2]
