"""Every rule of the trace schema, one by one, and the faults that name what breaks it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness.cluster.load import cluster_from
from harness.cluster.manifests import cluster_queue_manifest, flavor_manifest, node_pool_manifest
from harness.trace.trace import Trace
from harness.trace.validate import checked, cluster_faults

SECOND = timedelta(seconds=1)


def rows(*changes: dict[str, Any], **types: Any) -> pl.DataFrame:
    """A valid trace but for what the rows say."""
    plain = {"submit_time": 0 * SECOND, "duration": 10 * SECOND, "queue": "q", "request.cpu": 1000}
    full = [{"job_id": f"j{number}", **plain, **row} for number, row in enumerate(changes)]
    frame = pl.DataFrame(full, infer_schema_length=None)
    whole = {name: pl.Int32 for name in ("pods", "min_pods", "priority") if name in frame.columns}
    return frame.cast({**whole, **types})


def faults(frame: pl.DataFrame) -> list[str]:
    """The faults as they are shown."""
    return [str(fault) for fault in checked(frame)[1]]


def test_a_plain_trace_has_no_faults() -> None:
    """The required columns alone make a valid trace."""
    assert faults(rows({}, {})) == []


@pytest.mark.parametrize("name", ["job_id", "submit_time", "duration", "queue"])
def test_a_required_column_must_be_there(name: str) -> None:
    """A missing required column is one fault that names it."""
    assert faults(rows({}).drop(name)) == [f"column {name}: is missing; every trace needs it"]


@pytest.mark.parametrize(
    ("required", "called"), [("duration", "durration"), ("job_id", "JobID"), ("submit_time", "Submit Time")]
)
def test_a_required_column_of_another_name_is_asked_about(required: str, called: str) -> None:
    """What it is probably called; columns of the schema are none of these."""
    assert faults(rows({}).rename({required: called})) == [
        f"column {required}: is missing; every trace needs it; is it {called!r}?"
    ]


def test_some_resource_must_be_requested() -> None:
    """A trace without any request column is refused."""
    assert faults(rows({}).drop("request.cpu")) == [
        "columns request.*: are missing; a trace must request at least one resource"
    ]


def test_a_request_for_pods_is_refused() -> None:
    """`request.pods` is reserved, because jobs have their pods counted elsewhere."""
    assert faults(rows({"request.pods": 1})) == [
        "column request.pods: is reserved: a job's pods are counted in the column 'pods'"
    ]


def test_a_request_must_name_a_resource() -> None:
    """`request.` alone is no resource."""
    assert faults(rows({"request.": 1})) == ["column request.: names no resource"]


def test_names_of_ours_are_refused() -> None:
    """Columns that start with `harness.` are for computing."""
    assert faults(rows({"harness.row": 1})) == ["column harness.row: is reserved: rename it"]


@pytest.mark.parametrize("name", ["*", "^.*$", "^$"])
def test_names_that_mean_several_columns_are_refused(name: str) -> None:
    """Before rows of one job id are compared column by column."""
    row = {"job_id": "j", name: "x"}
    assert faults(rows(row, row))[0] == (
        f"column {name}: has a name that would match several columns: rename it"
    )
    assert faults(rows({"^": 1, "$": 1, "**": 1, "a*": 1})) == []


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("job_id", 7, "string"),
        ("submit_time", 3, "timestamp[us] or duration[us]"),
        ("duration", 3, "duration[us]"),
        ("duration", "3s", "duration[us]"),
        ("queue", 1.5, "string"),
        ("request.cpu", 1.0, "int64"),
        ("pods", "2", "int32"),
        ("gang", 1, "bool"),
        ("priority", 1.0, "int32"),
        ("namespace", 1, "string"),
        ("grace_period", 30, "duration[us]"),
        ("labels", "a=b", "map<string, string>"),
        ("recorded_start", "now", "timestamp[us] or duration[us]"),
    ],
)
def test_a_mistyped_column_is_named_with_the_type_it_must_have(name: str, value: object, wanted: str) -> None:
    """A column of a wrong type is one fault of the column."""
    frame = rows({}).with_columns(pl.lit(value).alias(name))
    (fault,) = faults(frame)
    assert fault.startswith(f"column {name}: is ")
    assert f"must be {wanted}" in fault


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_duration_that_is_no_number_is_named_by_its_row(value: float) -> None:
    """Durations as floats are refused, and where they are not even numbers the row is named."""
    frame = rows({}, {}).with_columns(pl.Series("duration", [1.0, value]))
    assert f"row 2 has {str(value).lower()}" in faults(frame)[0]


def test_types_that_lose_nothing_are_taken() -> None:
    """Other integer widths, time units and kinds of text become the schema's types."""
    frame = rows({"pods": 2, "priority": 5}).cast(
        {
            "pods": pl.UInt64,
            "priority": pl.Int8,
            "request.cpu": pl.Int16,
            "job_id": pl.Categorical,
            "queue": pl.Enum(["q"]),
            "duration": pl.Duration("ms"),
            "submit_time": pl.Duration("ns"),
        }
    )
    typed, found = checked(frame)
    assert found == []
    assert typed.schema["pods"] == pl.Int32
    assert typed.schema["request.cpu"] == pl.Int64
    assert typed.schema["job_id"] == pl.String
    assert typed.schema["queue"] == pl.Categorical
    assert typed.schema["duration"] == pl.Duration("us")
    assert typed.schema["submit_time"] == pl.Duration("us")
    assert typed["duration"].to_list() == [10 * SECOND]


def test_nanoseconds_that_microseconds_cannot_hold_are_refused() -> None:
    """A time is not rounded in silence."""
    frame = rows({}, {}).with_columns(pl.Series("duration", [1000, 1500], dtype=pl.Duration("ns")))
    (fault,) = faults(frame)
    assert fault.startswith("column duration: ")
    assert "row 2 has" in fault


def test_an_integer_that_the_schema_cannot_hold_is_refused() -> None:
    """A number of pods beyond 32 bits is a fault, not another number."""
    (fault,) = faults(rows({}).with_columns(pl.lit(2**31).alias("pods")))
    assert "row 1 has 2147483648, which does not fit" in fault


def test_an_empty_column_means_the_default() -> None:
    """A column in which every value is null, whatever its type, is as good as none."""
    frame = rows({}).with_columns(pl.lit(None).alias("gang"), pl.lit(None).alias("labels"))
    typed, found = checked(frame)
    assert found == []
    assert "gang" not in typed.columns


def test_a_name_is_bounded_by_its_bytes() -> None:
    """Each stands in thousands of rows of results; documents such as a pod's template may be long."""
    assert faults(rows({"user": "x" * 1000})) == []
    assert faults(rows({"user": "é" * 501})) != []
    assert faults(rows({"affinity": json.dumps({"x": "y" * 5_000})})) == []


def test_a_trace_without_jobs_is_refused() -> None:
    """No rows, no replay."""
    assert faults(rows({}).clear()) == ["holds no jobs"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"job_id": None}, "row 2, job_id: is missing"),
        ({"job_id": ""}, "row 2, job_id: is empty"),
        ({"queue": "q" * 1001}, f"row 2 (job 'j1'), queue: 'q{'q' * 55}... is longer than 1,000 bytes"),
        ({"submit_time": None}, "row 2 (job 'j1'), submit_time: is missing"),
        ({"submit_time": -SECOND}, "row 2 (job 'j1'), submit_time: -1s must not be negative"),
        ({"duration": None}, "row 2 (job 'j1'), duration: is missing"),
        ({"duration": -SECOND}, "row 2 (job 'j1'), duration: -1s must not be negative"),
        (
            {"duration": timedelta(days=365_000)},
            "row 2 (job 'j1'), duration: 365000d00h is longer than 100 years: is the unit right?",
        ),
        ({"queue": None}, "row 2 (job 'j1'), queue: is missing"),
        ({"queue": ""}, "row 2 (job 'j1'), queue: is empty"),
        ({"request.cpu": -1}, "row 2 (job 'j1'), request.cpu: -1 must not be negative"),
        ({"limit.cpu": -1}, "row 2 (job 'j1'), limit.cpu: -1 must not be negative"),
        ({"pods": 0}, "row 2 (job 'j1'), pods: 0 must be at least 1"),
        ({"min_pods": 0}, "row 2 (job 'j1'), min_pods: 0 must be at least 1"),
        ({"min_pods": 2}, "row 2 (job 'j1'), min_pods: 2 is more than the number of pods in the row, 1"),
        (
            {"min_pods": 4, "pods": 3},
            ("row 2 (job 'j1'), min_pods: 4 is more than the number of pods in the row, 3"),
        ),
        (
            {"preemption_policy": "Sometimes"},
            "row 2 (job 'j1'), preemption_policy: 'Sometimes' is not one of PreemptLowerPriority, Never",
        ),
        ({"namespace": ""}, "row 2 (job 'j1'), namespace: is empty"),
        ({"pod_set": ""}, "row 2 (job 'j1'), pod_set: is empty"),
        ({"uid": ""}, "row 2 (job 'j1'), uid: is empty"),
        ({"grace_period": -SECOND}, "row 2 (job 'j1'), grace_period: -1s must not be negative"),
        (
            {"checkpoint_interval": 0 * SECOND},
            "row 2 (job 'j1'), checkpoint_interval: 0s must be longer than 0",
        ),
        ({"tolerations": "{}"}, "row 2 (job 'j1'), tolerations: '{}' is not a JSON list"),
        ({"affinity": "[]"}, "row 2 (job 'j1'), affinity: '[]' is not a JSON object"),
        ({"pod_template": "{"}, "row 2 (job 'j1'), pod_template: '{' is not a JSON object"),
        (
            {"tolerations": '[{"kee":"a"}]'},
            (
                "row 2 (job 'j1'), tolerations: '[{\"kee\":\"a\"}]' is not valid in a Pod: "
                "tolerations[0].operator: must be Exists when the key is empty"
            ),
        ),
        (
            {"affinity": '{"nodeAffinity":5}'},
            (
                "row 2 (job 'j1'), affinity: '{\"nodeAffinity\":5}' is not valid in a Pod: "
                "affinity.nodeAffinity: must be a mapping of names to values, not 5"
            ),
        ),
        (
            {"pod_template": '{"spec":{"nodeSelector":[]}}'},
            (
                "row 2 (job 'j1'), pod_template: '{\"spec\":{\"nodeSelector\":[]}}' is not valid in a Pod: "
                "spec.nodeSelector: must be a mapping of names to values, not []"
            ),
        ),
        ({"topology_required": ""}, "row 2 (job 'j1'), topology_required: is empty"),
        (
            {"topology_required": "rack", "topology_preferred": "block"},
            (
                "row 2 (job 'j1'), topology_preferred: 'block' is one of topology_required, "
                "topology_preferred, topology_unconstrained: a pod set can have only one"
            ),
        ),
        (
            {"topology_slice": "rack"},
            "row 2 (job 'j1'), topology_slice: 'rack' needs topology_slice_size, too",
        ),
        (
            {"topology_slice": "rack", "topology_slice_size": 0},
            "row 2 (job 'j1'), topology_slice_size: 0 must be at least 1",
        ),
        (
            {"topology_slice": "rack", "topology_slice_size": 3, "pods": 2},
            (
                "row 2 (job 'j1'), topology_slice_size: 3 is more than the pods of the row; Kueue refuses "
                "such a job"
            ),
        ),
    ],
)
def test_a_row_that_breaks_a_rule_is_named_with_job_column_and_value(row: dict[str, Any], fault: str) -> None:
    """One wrong value gives one fault: row (from 1), job id, column, value and rule."""
    assert faults(rows({}, row)) == [fault]


def test_a_label_without_a_value_is_a_fault() -> None:
    """A map's values are texts."""
    entry = pl.Struct({"key": pl.String, "value": pl.String})
    given = [[{"key": "a", "value": None}], [{"key": "a", "value": "b"}]]
    (fault,) = faults(rows({}, {}).with_columns(pl.Series("labels", given, dtype=pl.List(entry))))
    assert fault.startswith("row 1 (job 'j0'), labels: ")
    assert fault.endswith("contains a name without a value")


def test_nulls_take_the_default() -> None:
    """A null is no fault where the schema has a default."""
    given = {
        "request.cpu": 1,
        "pods": 2,
        "min_pods": 1,
        "gang": True,
        "priority": 1,
        "priority_class": "c",
        "preemption_policy": "Never",
        "namespace": "n",
        "user": "u",
        "pod_set": "p",
        "grace_period": SECOND,
        "checkpoint_interval": SECOND,
        "startup": SECOND,
        "limit.cpu": 1,
        "tolerations": "[]",
        "uid": "x",
        "recorded_end": SECOND,
    }
    optional = dict.fromkeys(given)
    assert faults(rows(given, optional)) == []


def test_all_faults_are_found_at_once_in_the_order_of_rows() -> None:
    """Faults of different rules come row by row, those of columns first."""
    found = faults(
        rows({"queue": ""}, {"pods": 0, "request.cpu": -1}, {"duration": None}).drop("submit_time")
    )
    assert [fault.split(":")[0] for fault in found] == [
        "column submit_time",
        "row 1 (job 'j0'), queue",
        "row 2 (job 'j1'), request.cpu",
        "row 2 (job 'j1'), pods",
        "row 3 (job 'j2'), duration",
    ]


def test_many_faults_of_one_rule_are_counted() -> None:
    """A rule that most rows break names a thousand of them and counts the rest."""
    found = faults(rows(*[{"queue": ""}] * 2500))
    assert len(found) == 1001
    assert found[-1] == "column queue: 1,500 more rows: is empty"


def test_a_job_id_twice_is_a_fault() -> None:
    """Every further row of a job without a pod set of its own is named."""
    found = faults(rows({"job_id": "a"}, {"job_id": "b"}, {"job_id": "a"}, {"job_id": "a"}))
    assert found == [
        "row 3 (job 'a'), job_id: 'a' (pod set 'main') already has a row",
        "row 4 (job 'a'), job_id: 'a' (pod set 'main') already has a row",
    ]


def test_a_pod_set_twice_is_a_fault() -> None:
    """Pod sets of one job have different names; a null is called main."""
    given = [{"job_id": "a", "pod_set": name} for name in (None, "main", "workers", "workers")]
    assert faults(rows(*given)) == [
        "row 2 (job 'a'), job_id: 'a' (pod set 'main') already has a row",
        "row 4 (job 'a'), job_id: 'a' (pod set 'workers') already has a row",
    ]


def test_rows_of_one_job_may_differ_in_what_belongs_to_a_pod_set() -> None:
    """Pods, requests, limits and the pods' own fields are each row's own."""
    first = {"job_id": "a", "pod_set": "x", "pods": 1, "min_pods": 1, "limit.cpu": 1, "tolerations": "[]"}
    second = {**first, "pod_set": "y", "pods": 3, "min_pods": 2, "request.cpu": 5, "limit.cpu": 9}
    assert faults(rows(first, second)) == []


@pytest.mark.parametrize(
    ("column", "one", "other"),
    [
        ("submit_time", 0 * SECOND, SECOND),
        ("duration", SECOND, 2 * SECOND),
        ("queue", "q", "r"),
        ("priority", 1, None),
        ("gang", True, False),
        ("remark", "a", "b"),
    ],
)
def test_rows_of_one_job_agree_in_everything_else(column: str, one: object, other: object) -> None:
    """A job has one submit time, duration, queue, ..., also in columns that only the trace knows."""
    given = [{"job_id": "a", "pod_set": name, column: value} for name, value in (("x", one), ("y", other))]
    (fault,) = faults(rows(*given))
    assert fault.startswith(f"row 2 (job 'a'), {column}: ")
    assert fault.endswith("differs from the first row of the job")


def test_requests_that_overflow_are_a_fault() -> None:
    """Pods times request must fit 64 bits, for a row and for all rows of a job."""
    assert faults(rows({"pods": 2, "request.cpu": 2**62})) == [
        "row 1 (job 'j0'), request.cpu: 4611686018427387904 for each of 2 pods is more than 64 bits can count"
    ]
    assert faults(rows({"pods": 1, "request.cpu": 2**62}, {"pods": 2**31 - 1, "request.cpu": 1})) == []
    halves = [{"job_id": "a", "pod_set": name, "request.cpu": 2**62} for name in ("x", "y")]
    (fault,) = faults(rows(*halves))
    assert "and the job's other rows add up to more than 64 bits can count" in fault


def test_too_many_pods_of_one_job_are_a_fault() -> None:
    """All pods of a job are numbered with 32 bits."""
    many = [{"job_id": "a", "pod_set": name, "pods": 2**31 - 1} for name in ("x", "y")]
    assert "and the job's other rows add up to more than 2,147,483,647" in faults(rows(*many))[0]


def test_durations_that_overflow_together_are_a_fault() -> None:
    """Sums of times must fit 64 bits of microseconds."""
    frame = rows(*[{"duration": timedelta(days=36_000)}] * 3000)
    (fault,) = faults(frame)
    assert fault.startswith("row 2,965 (job 'j2964'), duration: 36000d00h and the rows before it add up to")


def test_timestamps_must_be_near_each_other() -> None:
    """A submission a century after the first is a mistaken unit."""
    frame = rows({}, {}).with_columns(pl.Series("submit_time", [datetime(1999, 1, 1), datetime(2100, 1, 1)]))
    (fault,) = faults(frame)
    assert fault.startswith("row 2 (job 'j1'), submit_time: ")
    assert fault.endswith("is more than 100 years after the first submission: is the unit right?")


def test_timestamps_beyond_the_calendar_are_a_fault() -> None:
    """Years that no calendar has are refused instead of shown."""
    frame = rows({}).with_columns(pl.Series("submit_time", [2**62]).cast(pl.Datetime("us")))
    assert "is not in the years 1 to 9999" in faults(frame)[0]


def test_recorded_times_are_of_the_kind_of_submit_time() -> None:
    """A recorded start as a timestamp does not go with submit times as durations."""
    (fault,) = faults(rows({"recorded_start": datetime(2020, 1, 1)}))
    assert fault.startswith("column recorded_start: is ")
    assert "but submit_time is " in fault


def trace_of(*changes: dict[str, Any]) -> Trace:
    """A valid trace of these rows."""
    frame, found = checked(rows(*changes))
    assert found == []
    return Trace(Path("t.parquet"), frame, "duration", None, 0, "")


def quota(amount: int) -> list[dict[str, Any]]:
    """A ClusterQueue `q` with so many millicores."""
    queue = cluster_queue_manifest("q", "f", {"cpu": amount}, preemption={})
    return [flavor_manifest("f"), queue]


def test_a_queue_that_the_cluster_does_not_have_is_named_once() -> None:
    """All rows of an unknown queue are one fault, with the first of them."""
    trace = trace_of({}, {"queue": "r"}, {"queue": "r", "namespace": "n"}, {"queue": "r"})

    def neither(namespace: str) -> str:
        return f"'r' is neither a LocalQueue of namespace {namespace!r} nor a ClusterQueue"

    assert [str(fault) for fault in cluster_faults(trace, cluster_from(quota(10_000), "c"))] == [
        f"row 2 (job 'j1'), queue: {neither('default')} (2 rows)",
        f"row 3 (job 'j2'), queue: {neither('n')} (1 row)",
    ]


def test_a_local_queue_of_the_namespace_is_a_queue() -> None:
    """A trace's queue is a LocalQueue of its row's namespace first."""
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {"clusterQueue": "q"},
    }
    cluster = cluster_from([*quota(10_000), local], "c")
    assert cluster_faults(trace_of({"queue": "r", "namespace": "n"}), cluster) == []
    assert len(cluster_faults(trace_of({"queue": "r"}), cluster)) == 1
    gone = cluster_from([*quota(10_000), {**local, "spec": {"clusterQueue": "s"}}], "c")
    (fault,) = cluster_faults(trace_of({"queue": "r", "namespace": "n"}), gone)
    assert str(fault).startswith("row 1 (job 'j0'), queue: 'r' is a LocalQueue of namespace 'n' whose ")
    assert fault.what.endswith("ClusterQueue 's' does not exist (1 row)")


def test_any_queue_will_do_without_cluster_queues() -> None:
    """Kubernetes alone has no queues to be unknown."""
    cluster = cluster_from([node_pool_manifest("n", 1, {"cpu": 1000})], "c")
    assert cluster_faults(trace_of({"queue": "whatever"}), cluster) == []


def test_an_unknown_priority_class_is_a_fault() -> None:
    """A class is a PriorityClass or a WorkloadPriorityClass of the cluster."""
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    cluster = cluster_from([*quota(10_000), high], "c")
    found = cluster_faults(trace_of({"priority_class": "high"}, {"priority_class": "low"}), cluster)
    assert [str(fault) for fault in found] == [
        "row 2 (job 'j1'), priority_class: 'low' is not a priority class of the cluster (1 row)"
    ]


def test_a_job_larger_than_the_cluster_is_a_fault() -> None:
    """The request of all pods of a job is held against the whole cluster; what it lacks counts as nothing."""
    trace = trace_of(
        {"pods": 4}, {"pods": 5}, {"request.memory": 1}, {"request.memory": 0}, {"pods": 5, "min_pods": 4}
    )
    cpu, memory = map(str, cluster_faults(trace, cluster_from(quota(4000), "c")))
    assert cpu.startswith("row 2 (job 'j1'), request.cpu: 5000 millicores for the whole job is more than ")
    assert cpu.endswith("the cluster's 4000 millicores")
    said = "request.memory: 1 bytes for the whole job is more than the cluster's 0 bytes"
    assert memory == f"row 3 (job 'j2'), {said}"


def test_all_pod_sets_count_for_the_size_of_a_job() -> None:
    """A job's request is the sum over its rows."""
    trace = trace_of({"job_id": "a", "pod_set": "x", "pods": 2}, {"job_id": "a", "pod_set": "y", "pods": 3})
    (fault,) = cluster_faults(trace, cluster_from(quota(4000), "c"))
    assert str(fault).startswith("row 1 (job 'a'), request.cpu: 5000 ")


def test_nodes_limit_the_number_of_pods_where_they_say_so() -> None:
    """More pods than all nodes take together can never run."""
    cluster = cluster_from([node_pool_manifest("n", 2, {"cpu": 100_000, "pods": 3})], "c")
    assert [str(fault) for fault in cluster_faults(trace_of({"pods": 6}, {"pods": 7}), cluster)] == [
        "row 2 (job 'j1'), pods: 7 are more than the 6 pods that the cluster accepts"
    ]
