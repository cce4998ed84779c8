"""How a trace's rows become jobs: their order, their times, their pod sets, and what fills the gaps."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import OptionError, TraceError
from harness.base.tables.pod_set_texts import parts_of
from harness.base.units import SECOND
from harness.cluster.changes.edits import Edit, Instant
from harness.cluster.model import Cluster, PriorityClass, frozen
from harness.policy import ENDLESS, Arrival, Job, PodSet
from harness.trace.job_columns import GRACE_PERIOD, JobColumns
from harness.trace.jobs import Jobs
from harness.trace.trace import Trace
from harness.trace.validate import checked

S = timedelta(seconds=1)


def trace_of(*changes: dict[str, Any], origin: int = 0, **types: Any) -> Trace:
    """A valid trace of these rows."""
    plain = {"submit_time": 0 * S, "duration": 10 * S, "queue": "q", "request.cpu": 1000}
    full = [{"job_id": f"j{number}", **plain, **row} for number, row in enumerate(changes)]
    frame, found = checked(pl.DataFrame(full, infer_schema_length=None).cast(types))
    assert found == []
    kind = "timestamp" if frame.schema["submit_time"] == pl.Datetime else "duration"
    return Trace(Path("t.parquet"), frame, kind, None, origin, "")


def all_of(jobs: Jobs, size: int = 2) -> list[Job]:
    """Every job, in order."""
    return [job for chunk in jobs.chunks(size) for job, _, _ in chunk]


def test_jobs_arrive_in_order_of_submission_and_of_rows_within_one_instant() -> None:
    """The sort by submit time is stable."""
    times = [3, 1, 3, 0, 1, 3]
    jobs = Jobs(JobColumns(trace_of(*({"submit_time": time * S} for time in times)), Cluster()))
    assert [job.id for job in all_of(jobs)] == ["j3", "j1", "j4", "j0", "j2", "j5"]
    assert [job.index for job in all_of(jobs)] == list(range(6))
    assert jobs.frame["job_id"].to_list() == [job.id for job in all_of(jobs)]


def test_chunks_of_any_size_give_the_same_jobs() -> None:
    """How many jobs are made at once changes nothing."""
    jobs = Jobs(
        JobColumns(trace_of(*({"submit_time": (7 - n) * S, "pods": n + 1} for n in range(7))), Cluster())
    )
    expected = [(job.id, job.pods) for job in all_of(jobs, 100)]
    assert len(jobs) == 7
    for size in (1, 2, 3, 7):
        assert [len(chunk) for chunk in jobs.chunks(size)][:-1] == [size] * ((7 - 1) // size)
        assert [(job.id, job.pods) for job in all_of(jobs, size)] == expected


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 7), max_size=4),
    st.integers(0, 2),
    st.integers(1, 5),
)
def test_jobs_of_others_keep_their_place(times: list[int], later: list[int], before: int, size: int) -> None:
    """Those that run come first, others by their time, before jobs of the trace of that instant."""
    trace = trace_of(*({"submit_time": time * S} for time in times))
    plain = all_of(Jobs(JobColumns(trace, Cluster())))

    def other(name: str, at: int) -> Arrival:
        job = replace(plain[0], id=name, submit=at * SECOND, index=99)
        return job, ENDLESS, None

    jobs = Jobs(
        JobColumns(trace, Cluster()),
        running=lambda at: [(replace(plain[0], id=f"r{n}", index=n), ENDLESS, None) for n in range(before)],
        later=[other(f"l{number}", at) for number, at in enumerate(sorted(later))],
    )
    found = all_of(jobs, size)
    assert [job.index for job in found] == list(range(len(times) + len(later) + before))
    assert jobs.frame["job_id"].to_list() == [job.id for job in found]
    assert jobs.frame["submit"].to_list()[before:] == [job.submit for job in found][before:]
    expected = [(at, 0, f"l{number}") for number, at in enumerate(sorted(later))]
    expected += [(job.submit // SECOND, 1, job.id) for job in plain]
    expected.sort(key=lambda each: each[:2])
    assert [job.id for job in found] == [*(f"r{n}" for n in range(before)), *(name for *_, name in expected)]


def test_times_count_from_the_origin() -> None:
    """Timestamps become microseconds since the origin; the frame has integers."""
    first = datetime(2020, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)
    origin = int(first.timestamp()) * SECOND
    rows = ({"submit_time": first}, {"submit_time": first + S, "duration": timedelta(microseconds=7)})
    jobs = Jobs(JobColumns(trace_of(*rows, origin=origin), Cluster()))
    assert [job.submit for job in all_of(jobs)] == [250_000, 1_250_000]
    assert jobs.frame.select("submit", "duration").rows() == [(250_000, 10 * SECOND), (1_250_000, 7)]
    assert jobs.frame.schema["submit"] == pl.Int64
    assert jobs.frame.schema["duration"] == pl.Int64


def test_a_chunk_carries_duration_and_checkpoint_interval() -> None:
    """What a policy must not see stands beside the job."""
    jobs = Jobs(
        JobColumns(trace_of({"checkpoint_interval": 3 * S}, {"checkpoint_interval": None}), Cluster())
    )
    assert [(duration, interval) for chunk in jobs.chunks() for _, duration, interval in chunk] == [
        (10 * SECOND, 3 * SECOND),
        (10 * SECOND, None),
    ]
    assert all(job.duration is None for job in all_of(jobs))


def test_a_chunk_carries_the_start_up_of_each_job() -> None:
    """In the trace's column a null is never; what is chosen for the replay counts only without a column."""
    several = trace_of({"startup": 3 * S}, {"startup": None}, {"startup": 0 * S})
    for chosen in (0, 7):
        jobs = Jobs(JobColumns(several, Cluster(), startup=chosen))
        assert [rest for chunk in jobs.chunks() for _, _, _, *rest in chunk] == [
            [(3 * SECOND,)],
            [(ENDLESS,)],
            [(0,)],
        ]
        assert jobs.extra == ()
    plain = trace_of({})
    for chosen, said in ((7, [(7,)]), (0, [])):
        chunks = Jobs(JobColumns(plain, Cluster(), startup=chosen)).chunks()
        assert [rest for chunk in chunks for _, _, _, *rest in chunk] == [said]


def test_only_the_clairvoyant_see_durations() -> None:
    """A job tells its duration if it is asked for by name."""
    jobs = Jobs(JobColumns(trace_of({}), Cluster()), clairvoyant=True)
    assert [job.duration for job in all_of(jobs)] == [10 * SECOND]


def test_every_policy_sees_what_users_requested_and_it_comes_along_to_the_results() -> None:
    """A requested run time is no secret, unlike the duration; a job may not say it."""
    jobs = Jobs(JobColumns(trace_of({"requested_time": 60 * S}, {"requested_time": None}), Cluster()))
    assert [(job.requested, job.duration) for job in all_of(jobs)] == [(60 * SECOND, None), (None, None)]
    assert jobs.extra == ("requested_time",)
    assert [job.requested for job in all_of(Jobs(JobColumns(trace_of({}), Cluster())))] == [None]


def test_a_job_is_never_changed() -> None:
    """However it was made: by a trace, which makes many at once, or by a call."""
    (job,) = all_of(Jobs(JobColumns(trace_of({"pods": 4}), Cluster())))
    assert type(job) is Job
    for each in (job, replace(job, id="other")):
        with pytest.raises(FrozenInstanceError, match=rf"job {each.id} is immutable, .* 'pods'"):
            each.pods = 1  # type: ignore[misc]
        with pytest.raises(FrozenInstanceError, match="'pods'"):
            del each.pods  # type: ignore[misc]
        assert (each.pods, pickle.loads(pickle.dumps(each)).pods) == (4, 4)


def test_what_a_row_does_not_say_has_the_default() -> None:
    """Defaults of the schema, with the UID padded so that text order is row order."""
    jobs = Jobs(JobColumns(trace_of(*[{}] * 10), Cluster()))
    job = all_of(jobs)[1]
    assert (job.namespace, job.user, job.priority, job.priority_class) == ("default", "", 0, "")
    assert (job.preempts, job.gang, job.grace_period, job.uid) == (True, False, GRACE_PERIOD, "02")
    assert (job.pods, len(job.pod_sets)) == (1, 1)
    (pod_set,) = job.pod_sets
    assert (pod_set.name, pod_set.count, pod_set.min_count, dict(pod_set.requests)) == (
        "main",
        1,
        1,
        {"cpu": 1000},
    )
    assert (pod_set.tolerations, pod_set.affinity, pod_set.pod_template) == (None, None, None)
    assert (dict(pod_set.limits), dict(pod_set.labels), dict(pod_set.node_selector)) == ({}, {}, {})


def test_nulls_have_the_default_too() -> None:
    """A null in an optional column is as good as no column."""
    said = {
        "namespace": "n", "user": "u", "uid": "x", "gang": True, "pods": 1, "min_pods": 1,
        "grace_period": 7 * S, "request.memory": 5, "pod_set": "p",
    }  # fmt: skip
    full, empty = all_of(Jobs(JobColumns(trace_of(said, dict.fromkeys(said)), Cluster())))
    assert (full.namespace, full.user, full.uid, full.gang, full.grace_period) == (
        "n",
        "u",
        "x",
        True,
        7 * SECOND,
    )
    assert (empty.namespace, empty.user, empty.uid, empty.gang) == ("default", "", "2", False)
    assert (empty.grace_period, empty.pods, empty.pod_sets[0].name) == (GRACE_PERIOD, 1, "main")
    assert dict(empty.pod_sets[0].requests) == {"cpu": 1000}


def test_a_request_of_0_is_no_request() -> None:
    """Tables write 0 for what a job does not request, and Kueue would assign a flavor for a request of 0."""
    trace = trace_of({"request.memory": 0}, {"request.memory": None}, {"request.memory": 5})
    requests = [dict(job.pod_sets[0].requests) for job in all_of(Jobs(JobColumns(trace, Cluster())))]
    assert requests == [{"cpu": 1000}, {"cpu": 1000}, {"cpu": 1000, "memory": 5}]


@pytest.mark.parametrize("dtype", [pl.Null, pl.Int64])
def test_nobody_asks_for_a_resource_of_which_every_row_is_null(dtype: pl.DataType) -> None:
    """A column of nothing but nulls has no type, as polars writes it, or the right one."""
    trace = trace_of({"request.memory": None}, {"request.memory": None}, **{"request.memory": dtype})
    requests = [dict(job.pod_sets[0].requests) for job in all_of(Jobs(JobColumns(trace, Cluster())))]
    assert requests == [{"cpu": 1000}] * 2


def test_the_uid_is_the_number_of_the_row_in_the_file_not_of_arrival() -> None:
    """Sorting by submit time does not renumber rows."""
    jobs = Jobs(JobColumns(trace_of({"submit_time": 5 * S}, {"submit_time": 1 * S}), Cluster()))
    assert [(job.id, job.uid) for job in all_of(jobs)] == [("j1", "2"), ("j0", "1")]


def test_several_pods_are_a_gang_unless_the_row_says_otherwise() -> None:
    """`gang` defaults to more than one pod over all pod sets."""
    jobs = Jobs(
        JobColumns(trace_of({"pods": 1}, {"pods": 2}, {"pods": 2, "gang": False}, {"gang": True}), Cluster())
    )
    assert [job.gang for job in all_of(jobs)] == [False, True, False, True]


def classes() -> Cluster:
    """High does not preempt; the global default is 3."""
    high, low = PriorityClass("high", 9, preempts=False), PriorityClass("low", 1)
    default = PriorityClass("normal", 3, global_default=True)
    return Cluster(priority_classes=frozen({"high": high, "low": low, "normal": default}))


def test_priority_is_the_rows_own_else_its_classs_else_the_global_default() -> None:
    """The more specific word counts."""
    rows = (
        {"priority": 5, "priority_class": "high"},
        {"priority_class": "high"},
        {"priority_class": "low"},
        {"priority": -2},
        {},
    )
    jobs = Jobs(JobColumns(trace_of(*rows), classes()))
    assert [job.priority for job in all_of(jobs)] == [5, 9, 1, -2, 3]
    assert [job.priority_class for job in all_of(jobs)] == ["high", "high", "low", "", ""]
    assert jobs.frame["priority"].to_list() == [5, 9, 1, -2, 3]


def classes_over_time(*tables: dict[str, PriorityClass]) -> Cluster:
    """Priority classes that are others each 10 s."""
    first, before = Cluster(priority_classes=frozen(tables[0])), tables[0]
    instants = []
    for number, after in enumerate(tables[1:], 1):
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        edits = [Edit("PriorityClass", name, before.get(name), after.get(name)) for name in names]
        instants.append(Instant(number * 10 * SECOND, tuple(edits)))
        before = after
    return replace(first, changes=tuple(instants))


def test_a_job_has_the_priority_that_its_class_or_the_default_has_when_it_arrives() -> None:
    """A class that becomes another one, or a default that is new, counts from its instant on."""
    low, high = PriorityClass("c", 1), PriorityClass("c", 9, preempts=False)
    default = PriorityClass("d", 5, global_default=True, preempts=False)
    cluster = classes_over_time({"c": low}, {"c": high, "d": default}, {"c": high})
    rows = [{"submit_time": time * S, "priority_class": name} for time in (9, 10, 25) for name in ("c", None)]
    jobs = all_of(Jobs(JobColumns(trace_of(*rows), cluster)))
    assert [(job.priority, job.preempts) for job in jobs] == [
        *((1, True), (0, True)),
        *((9, False), (5, False)),
        *((9, False), (0, True)),
    ]


def test_a_job_that_arrives_when_its_class_is_not_there_is_a_fault_that_says_when() -> None:
    """Of all such jobs the first one is named."""
    cluster = classes_over_time({"c": PriorityClass("c", 1)}, {}, {"c": PriorityClass("c", 2)})
    rows = [{"submit_time": time * S, "priority_class": "c"} for time in (5, 12, 15, 20)]
    with pytest.raises(TraceError) as refused:
        JobColumns(trace_of(*rows), cluster)
    assert (
        "job j1, priority_class: 'c' is not a priority class of the cluster when the job arrives, 12s"
    ) in str(refused.value)
    assert "(2 such jobs)" in str(refused.value)


def test_the_global_default_holds_where_no_row_says_anything() -> None:
    """Without priority columns every job has the default class's priority, else 0."""
    assert [job.priority for job in all_of(Jobs(JobColumns(trace_of({}), classes())))] == [3]
    assert [job.priority for job in all_of(Jobs(JobColumns(trace_of({}), Cluster())))] == [0]


def test_whether_a_job_preempts_is_its_own_word_else_its_classs() -> None:
    """`preemption_policy: Never` of a row or of its class."""
    rows = (
        {"preemption_policy": "Never"},
        {"preemption_policy": "PreemptLowerPriority", "priority_class": "high"},
        {"priority_class": "high"},
        {"priority_class": "low"},
    )
    assert [job.preempts for job in all_of(Jobs(JobColumns(trace_of(*rows), classes())))] == [
        False,
        True,
        False,
        True,
    ]


def test_an_unknown_class_is_refused() -> None:
    """No priority is guessed."""
    with pytest.raises(TraceError, match="'gold' is not a priority class of the cluster"):
        Jobs(JobColumns(trace_of({"priority_class": "gold"}), classes()))


def test_the_grace_period_of_the_replay_is_the_default() -> None:
    """A row's own grace period counts, else the replay's."""
    jobs = Jobs(
        JobColumns(trace_of({"grace_period": 0 * S}, {"grace_period": None}), Cluster(), grace_period=5)
    )
    assert [job.grace_period for job in all_of(jobs)] == [0, 5]


def test_jobs_that_ask_for_the_same_share_their_pod_sets() -> None:
    """Equal requests are one object, also across chunks."""
    jobs = all_of(Jobs(JobColumns(trace_of({}, {}, {"request.cpu": 5}, {}, {"pods": 2}), Cluster())))
    assert jobs[0].pod_sets is jobs[1].pod_sets is jobs[3].pod_sets
    assert jobs[0].pod_sets is not jobs[2].pod_sets
    assert jobs[0].pod_sets is not jobs[4].pod_sets


def test_rows_of_one_job_become_its_pod_sets_in_their_order() -> None:
    """A job arrives at its first row; totals are over all its pods."""
    rows = (
        {"job_id": "late", "submit_time": 9 * S},
        {"job_id": "a", "pod_set": "driver", "request.memory": 7},
        {"job_id": "b", "submit_time": 1 * S},
        {"job_id": "a", "pod_set": "workers", "pods": 3, "min_pods": 2, "request.cpu": 500},
    )
    jobs = Jobs(JobColumns(trace_of(*rows), Cluster()))
    assert len(jobs) == 3
    first, second, last = all_of(jobs)
    assert [job.id for job in (first, second, last)] == ["a", "b", "late"]
    assert [(pods.name, pods.count, pods.min_count) for pods in first.pod_sets] == [
        ("driver", 1, 1),
        ("workers", 3, 2),
    ]
    assert (first.pods, first.gang, second.pods, second.gang) == (4, True, 1, False)
    assert [job.uid for job in (first, second, last)] == ["2", "3", "1"]
    assert jobs.resources == ["cpu", "memory"]
    totals = jobs.frame.select("job_id", "pods", "request.cpu", "request.memory")
    assert totals.rows() == [("a", 4, 2500, 7), ("b", 1, 1000, 0), ("late", 1, 1000, 0)]


def test_everything_a_pod_says_reaches_its_pod_set() -> None:
    """Limits, labels, selectors and the JSON of a Pod."""
    entry = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    row = {
        "labels": [{"key": "b", "value": "2"}, {"key": "a", "value": "1"}],
        "node_selector": [{"key": "zone", "value": "z"}],
        "limit.cpu": 2000,
        "limit.memory": None,
        "tolerations": "[]",
        "affinity": "{}",
        "pod_template": '{"x": 1}',
    }
    trace = trace_of(row, dict.fromkeys(row), labels=entry, node_selector=entry)
    one, other = (job.pod_sets[0] for job in all_of(Jobs(JobColumns(trace, Cluster()))))
    assert (dict(one.labels), dict(one.node_selector)) == ({"a": "1", "b": "2"}, {"zone": "z"})
    assert (dict(one.limits), one.tolerations, one.affinity) == ({"cpu": 2000}, "[]", "{}")
    assert one.pod_template == '{"x": 1}'
    assert (dict(other.labels), dict(other.limits), other.tolerations) == ({}, {}, None)


def test_further_columns_are_kept_and_those_called_like_results_are_renamed() -> None:
    """The trace's own columns come along; `state` is also a column of the results."""
    jobs = Jobs(
        JobColumns(trace_of({"recorded_start": 2 * S, "status": 5, "state": "ok", "submit": 1}), Cluster())
    )
    assert jobs.extra == ("recorded_start", "status", "trace.state", "trace.submit")
    assert jobs.frame.columns == [
        "job_id", "queue", "namespace", "user", "priority", "pods", "submit", "duration", "request.cpu",
        *jobs.extra,
    ]  # fmt: skip
    assert jobs.frame.select("recorded_start", "status", "trace.state").row(0) == (2 * S, 5, "ok")


def test_pod_sets_that_ask_for_different_amounts_come_along_to_the_results() -> None:
    """They are told of the jobs that have such, in a column that is there only where any job does."""
    rows = [
        {"job_id": "m", "pod_set": "launcher", "submit_time": 1 * S},
        {"job_id": "m", "pod_set": "worker", "submit_time": 1 * S, "pods": 3, "request.cpu": 3000},
        {"job_id": "n", "pod_set": "left", "pods": 2},
        {"job_id": "n", "pod_set": "right", "pods": 2},
    ]
    jobs = Jobs(JobColumns(trace_of(*rows, pods=pl.Int32), Cluster()))
    assert jobs.extra == ("pod_sets",)
    assert jobs.frame["job_id"].to_list() == ["n", "m"]
    plain, text = jobs.frame["pod_sets"]
    assert plain is None
    assert parts_of(text) == [("launcher", 1, {"cpu": 1000}), ("worker", 3, {"cpu": 3000})]
    assert Jobs(JobColumns(trace_of(*rows[2:], pods=pl.Int32), Cluster())).extra == ()
    assert Jobs(JobColumns(trace_of({"pod_sets": "mine"}), Cluster())).extra == ("trace.pod_sets",)


def test_so_do_those_of_work_of_the_manifests() -> None:
    """The jobs of the trace may have none."""
    sets = (PodSet("driver", 1, 1, {"cpu": 500}), PodSet("executor", 2, 2, {"cpu": 1000, "memory": 7}))
    (other,) = all_of(Jobs(JobColumns(trace_of({}), Cluster())))
    arrival = (replace(other, id="w", pod_sets=sets, pods=3), 5 * SECOND, None)
    jobs = Jobs(JobColumns(trace_of({}), Cluster()), running=lambda first: [arrival])
    text, plain = jobs.frame["pod_sets"]
    assert plain is None
    assert parts_of(text) == [("driver", 1, {"cpu": 500}), ("executor", 2, {"cpu": 1000, "memory": 7})]


def test_scaled_arrivals_are_exact() -> None:
    """Time since the first arrival is divided by the scale and rounded down to the microsecond."""
    rows = (
        {"submit_time": timedelta(microseconds=us)} for us in (1_000_001, 1_000_002, 1_000_011, 9_000_001)
    )
    jobs = Jobs(JobColumns(trace_of(*rows), Cluster(), scale_arrivals=Fraction(3)))
    assert [job.submit for job in all_of(jobs)] == [1_000_001, 1_000_001, 1_000_004, 3_666_667]
    assert jobs.frame["submit"].to_list() == [job.submit for job in all_of(jobs)]


@given(
    st.lists(st.integers(0, 10**15), min_size=1, max_size=20),
    st.fractions(min_value=Fraction(1, 3), max_value=1000).filter(lambda scale: scale > 0),
)
def test_scaling_equals_exact_arithmetic(times: list[int], scale: Fraction) -> None:
    """Whatever the numbers, also where products need more than 64 bits."""
    jobs = Jobs(
        JobColumns(
            trace_of(*({"submit_time": timedelta(microseconds=us)} for us in times)),
            Cluster(),
            scale_arrivals=scale,
        )
    )
    first = min(times)
    assert jobs.frame["submit"].to_list() == [first + (time - first) // scale for time in sorted(times)]


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(1, 10**12)])
def test_a_scale_that_makes_no_sense_is_refused(scale: Fraction) -> None:
    """Not above 0, or so small that the last arrival is a century away."""
    with pytest.raises(OptionError, match="arrivals"):
        Jobs(JobColumns(trace_of({}, {"submit_time": 3600 * S}), Cluster(), scale_arrivals=scale))


_row = st.fixed_dictionaries(
    {
        "submit_time": st.integers(0, 5).map(lambda n: n * S),
        "request.cpu": st.none() | st.integers(0, 3),
        "pods": st.none() | st.integers(1, 3),
        "queue": st.sampled_from("qr"),
        "user": st.none() | st.sampled_from("uv"),
    }
)


@given(st.lists(_row, min_size=1, max_size=30), st.integers(1, 7))
def test_jobs_are_the_rows_stably_sorted(rows: list[dict[str, Any]], size: int) -> None:
    """Against a plain Python reading of the same rows."""
    trace = trace_of(*rows, pods=pl.Int32, user=pl.String, **{"request.cpu": pl.Int64})
    expected = sorted(enumerate(rows), key=lambda item: item[1]["submit_time"])
    jobs = all_of(Jobs(JobColumns(trace, Cluster())), size)
    assert [job.id for job in jobs] == [f"j{number}" for number, _ in expected]
    for job, (_, row) in zip(jobs, expected, strict=True):
        pods = row["pods"] or 1
        assert (job.queue, job.user, job.pods, job.gang) == (row["queue"], row["user"] or "", pods, pods > 1)
        assert job.requests_of(range(pods)).get("cpu", 0) == (row["request.cpu"] or 0) * pods
    assert checked(trace.frame)[1] == []
