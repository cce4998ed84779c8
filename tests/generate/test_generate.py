"""Synthetic traces hold what their specification says, and nothing but it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.units import DAY, HOUR, MINUTE, SECOND
from harness.trace.generate.arrivals import Bursty, Diurnal, Poisson, Process, Regular
from harness.trace.generate.spec import Spec
from harness.trace.generate.spec_file import load_spec
from harness.trace.generate.streams import jobs_of
from harness.trace.validate import checked

MIX = """
jobs: 4000
tenants:
- queue: batch
  count: 2
  arrivals: {diurnal: {rate: 40/h, swing: 0.9, peak: 12, weekend: 0}}
  jobs:
  - weight: 3
    duration: {lognormal: {median: 10m, p90: 1h}, max: 1d}
    requests: {cpu: 500m}
  - duration: 1h
    pods: {choice: {2: 1, 4: 1}}
    gang: true
    requests: {nvidia.com/gpu: 8}
- queue: prod
  arrivals: {poisson: {rate: 1/2m}}
  jobs:
  - {duration: 5m, requests: {memory: 1Gi}, priority: {choice: {10: 1, 20: 1}}}
"""
KUEUE = """
cohorts:
- className: cohort
  count: 2
  queuesSets:
  - className: cq
    count: 2
    nominalQuota: 20
    borrowingLimit: 100
    reclaimWithinCohort: Any
    withinClusterQueue: LowerPriority
    workloadsSets:
    - count: 3
      creationIntervalMs: 100
      workloads:
      - {className: small, runtimeMs: 200, priority: 50, request: 1}
      - {className: large, runtimeMs: 900, priority: 90, request: 1500m}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Callable[[str], Spec]:
    """A specification of this text."""

    def load(text: str) -> Spec:
        path = tmp_path / "mix.yaml"
        path.write_text(dedent(text), encoding="utf-8")
        return load_spec(path)

    return load


def rows(spec: Spec, seed: int = 1) -> pl.DataFrame:
    return pl.concat(jobs_of(spec, seed))


def test_a_generated_trace_keeps_the_schema(spec: Callable[[str], Spec]) -> None:
    """Sorted, without faults, with the columns that somebody speaks of and no other."""
    frame = rows(spec(MIX))
    assert checked(frame)[1] == []
    assert frame.height == 4000
    assert frame["submit_time"].is_sorted()
    assert set(frame["queue"]) == {"batch-0", "batch-1", "prod"}
    assert frame.columns == [
        *("job_id", "submit_time", "duration", "queue", "request.cpu", "request.memory"),
        *("request.nvidia.com/gpu", "pods", "gang", "priority"),
    ]


def test_equal_seeds_give_equal_traces_and_others_do_not(spec: Callable[[str], Spec]) -> None:
    """The first rows are pinned, so that no version of anything may change them in silence."""
    mix = spec(MIX)
    assert rows(mix).equals(rows(mix))
    assert not rows(mix).equals(rows(mix, seed=2))
    first = rows(mix).head(3).select("job_id", pl.col("submit_time").to_physical(), "request.cpu").rows()
    assert first == PINNED


PINNED = [("batch-0.0", 195143359, 0), ("prod.0", 207796373, 0), ("batch-0.1", 275265640, 500)]


def test_a_tenant_is_the_same_whoever_else_there_is(spec: Callable[[str], Spec]) -> None:
    """Adding a tenant to a study changes nothing about the others."""
    alone = rows(spec(MIX.replace("jobs: 4000", "span: 2d").replace("- queue: prod", "- queue: late")))
    both = rows(spec(MIX.replace("jobs: 4000", "span: 2d")))
    batch = pl.col("queue").str.starts_with("batch")
    assert alone.filter(batch).equals(both.filter(batch))


def test_tenants_with_and_without_a_namespace_make_one_trace(spec: Callable[[str], Spec]) -> None:
    """A tenant whose namespace is not said is in the default one, as in a trace without that column."""
    rows = pl.concat(jobs_of(spec(MIX.replace("- queue: prod", "- queue: prod\n  namespace: lab")), seed=1))
    assert dict(rows.select("queue", "namespace").unique().iter_rows()) == {
        "batch-0": "default",
        "batch-1": "default",
        "prod": "lab",
    }


def test_jobs_of_small_pieces_are_those_of_large_ones(
    spec: Callable[[str], Spec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How much is made at once changes nothing."""
    whole = rows(spec(MIX))
    for name in ("_PIECE", "_LEAST"):
        monkeypatch.setattr(f"harness.trace.generate.streams.{name}", 64)
    assert pl.concat(jobs_of(spec(MIX), 1)).equals(whole)


def test_many_jobs_of_one_instant_do_not_hang(
    spec: Callable[[str], Spec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set of workloads without an interval is created at once."""
    for name in ("_PIECE", "_LEAST"):
        monkeypatch.setattr(f"harness.trace.generate.streams.{name}", 4)
    at_once = rows(spec(KUEUE.replace("creationIntervalMs: 100", "creationIntervalMs: 0")))
    assert at_once["submit_time"].to_physical().to_list() == [0] * 24


@pytest.mark.parametrize(
    ("process", "mean"),
    [
        (Poisson(10 / HOUR), 10),
        (Diurnal(10 / HOUR, 0.8, 14, 0.3), 10),
        (Bursty([1 / HOUR, 100 / HOUR], [90 * MINUTE, 10 * MINUTE]), 10.9),
        (Regular(6 * MINUTE, 6 * MINUTE), 10),
    ],
)
def test_processes_have_their_mean_rate(process: Process, mean: float) -> None:
    """Jobs an hour over a long time, whatever the process."""
    arrivals = process.begun(7)
    times = pl.concat([arrivals.times(20_000), arrivals.times(20_000)])
    assert times.is_sorted()
    assert 40_000 / (times[-1] / HOUR) == pytest.approx(mean, rel=0.05)


def test_a_diurnal_day_has_its_peak_and_its_weekend() -> None:
    """Most jobs come in the hour of the peak, fewest twelve hours later; Saturday is the sixth day."""
    times = Diurnal(100 / HOUR, 1.0, 9, 0.5).begun(7).times(100_000)
    hours = (times % DAY // HOUR).value_counts(sort=True)
    assert hours.row(0)[0] == 9
    assert 21 not in hours[times.name]
    days = pl.DataFrame({"day": times // DAY % 7}).group_by("day").len().sort("day")["len"].to_list()
    assert days[5] / days[0] == pytest.approx(0.5, rel=0.1)


@given(st.integers(0, 50), st.integers(1, 30))
def test_arrivals_go_on_where_they_stopped(first: int, second: int) -> None:
    """Two calls give what one does."""
    process = Bursty([1 / MINUTE, 0.0], [HOUR, HOUR])
    whole, parts = process.begun(3), process.begun(3)
    together = pl.concat([parts.times(each) for each in (first, second) if each])
    assert together.to_list() == whole.times(first + second).to_list()


def test_kueues_generator_files_give_its_workloads_and_queues(spec: Callable[[str], Spec]) -> None:
    """Names, times and queues are those that Kueue's generator creates: workloads of a set take turns."""
    kueue = spec(KUEUE)
    frame = rows(kueue)
    mine = frame.filter(pl.col("queue") == "cq-0-1-cohort-1")
    assert mine["job_id"].str.strip_prefix("cq-0-1-cohort-1/").to_list() == [
        *("small-0-0-0", "large-0-0-1", "small-0-1-0", "large-0-1-1", "small-0-2-0", "large-0-2-1")
    ]
    assert (mine["submit_time"].to_physical() // 1000).to_list() == [100, 200, 300, 400, 500, 600]
    assert mine["request.cpu"].to_list() == [1000, 1500] * 3
    assert mine["namespace"].unique().to_list() == ["cq-0-1-cohort-1"]
    assert frame.height == 24
    assert checked(frame)[1] == []
    from harness.cluster.load import cluster_from

    cluster = cluster_from(kueue.manifests, "generator.yaml")
    assert cluster.warnings == ()
    assert list(cluster.cohorts) == ["cohort-0", "cohort-1"]
    assert cluster.capacity["cpu"] == 80_000


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("tenants: []", ["tenants: is missing"]),
        ("jobs: many", ["jobs: must be a whole number, not 'many'", "tenants: is missing"]),
        ("- a", ["must be a mapping"]),
        ("jobs: 5\njobs: 6", ["jobs"]),
        ("{jobs: 1}\n---\n{jobs: 2}", ["contains 2 documents"]),
        (MIX.replace("queue: prod", "queue: batch-1"), ["tenants: 'batch-1' occurs twice"]),
        (MIX.replace("queue: prod", f"queue: {'p' * 990}"), ["can have at most 1,000 bytes, and a job is"]),
        (
            MIX.replace("queue: prod", f"queue: prod\n  namespace: {'é' * 501}"),
            ["queue 'prod': names of jobs"],
        ),
        (MIX.replace("jobs: 4000", ""), ["jobs: is missing, and 'span' too"]),
        (MIX.replace("rate: 1/2m", "rate: fast"), ["tenants[1].arrivals.poisson.rate: must be a rate"]),
        (MIX.replace("swing: 0.9", "swing: 2"), ["arrivals.diurnal.swing: 2 is out of range"]),
        (MIX.replace("peak: 12", "peek: 12"), ["tenants[0].arrivals.diurnal.peek: is not a known field"]),
        (MIX.replace("lognormal", "normal"), ["jobs[0].duration: must be exactly one of choice"]),
        (MIX.replace("p90: 1h", "p90: 1m"), ["duration.lognormal.p90: is below the median"]),
        (MIX.replace("duration: 1h", "duration: 90"), ["jobs[1].duration: 90 is not a duration"]),
        (MIX.replace("cpu: 500m", "cpu: -1"), ["jobs[0].requests.cpu: -1 is out of range"]),
        (MIX.replace("cpu: 500m", "pods: 4"), ["jobs[0].requests.pods: is reserved: a job's pods are"]),
        (MIX.replace("cpu: 500m", "'': 4"), ["jobs[0].requests: names no resource"]),
        (MIX.replace("{2: 1, 4: 1}", "{two: 1}"), ["jobs[1].pods.choice.two: 'two' is not understood"]),
        (MIX.replace("{10: 1, 20: 1}", "{10: 0}"), ["priority.choice: needs at least one value"]),
        (MIX.replace("weight: 3", "weight: .inf"), ["line 8: .inf is not a number"]),
        (KUEUE.replace("request: 1}", "request: x}"), ["workloads[0].request: 'x' is not a quantity"]),
        (KUEUE + "topology: {levels: []}", ["topology: is not a known field"]),
    ],
)
def test_faults_of_a_specification_name_file_and_field(
    spec: Callable[[str], Spec], text: str, faults: list[str]
) -> None:
    """All of them at once."""
    with pytest.raises(SpecError) as caught:
        spec(text)
    assert caught.value.source.endswith("mix.yaml")
    for fault in faults:
        assert fault in caught.value.message


def test_rates_that_never_fill_a_trace_are_refused(spec: Callable[[str], Spec]) -> None:
    """A million jobs at one a year would end after the sun."""
    slow = "jobs: 1000000\ntenants: [{queue: q, arrivals: {poisson: {rate: 1/365d}}, jobs: [JOB]}]"
    with pytest.raises(SpecError, match="more than 100 years"):
        rows(spec(slow.replace("JOB", "{duration: 1s, requests: {cpu: 1}}")))


def test_a_span_ends_before_its_end(spec: Callable[[str], Spec]) -> None:
    """The bound of submissions is not within."""
    regular = "span: 10s\ntenants: [{queue: q, arrivals: {regular: {every: 5s}}, jobs: [JOB]}]"
    frame = rows(spec(regular.replace("JOB", "{duration: 1s, requests: {cpu: 1}}")))
    assert frame["submit_time"].to_physical().to_list() == [5 * SECOND]


def test_states_that_would_change_for_ever_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that stays for a microsecond is a mistaken unit."""
    monkeypatch.setattr("harness.trace.generate.arrivals._MOST_STATES", 1000)  # a million take seconds
    with pytest.raises(SpecError, match="changes its state more than 1,000 times before enough jobs arrive"):
        Bursty([1 / DAY, 0.0], [1, 1]).begun(1).times(1000)
