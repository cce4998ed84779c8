"""Answers of Prometheus: real ones against what the pods recorded, and every rule on series by hand."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import OptionError, TraceError
from harness.plugins import Plugins
from harness.trace.trace import Trace, open_trace

ANSWERS = Path(__file__).parent / "prometheus"
FORMS = [("scraped.json.gz", 5), ("steps.json.gz", 15)]
ENDLESS = "not ended when last scraped, so their run times are unknown"


@pytest.fixture(scope="module")
def opened(readers: Plugins) -> Callable[..., Trace]:
    """The trace of a file of answers."""

    @cache
    def trace(name: str, **options: str) -> Trace:
        return open_trace(ANSWERS / name, readers, options=options)

    return trace


def table(name: str) -> list[dict[str, str]]:
    """The rows of a table of what really happened."""
    with gzip.open(ANSWERS / name, "rt", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize(("name", "interval"), FORMS)
def test_pods_are_what_they_recorded_within_one_interval(
    opened: Callable[..., Trace], name: str, interval: int
) -> None:
    """Starts are exact to the second, ends to an interval; requests are exact, also of init containers."""
    truth = {row["uid"]: row for row in table("truth_pods.tsv.gz")}
    rows = list(opened(name).frame.iter_rows(named=True))
    for row in rows:
        pod = truth[row["uid"]]
        assert 0 <= float(pod["started"]) - row["recorded_start"].timestamp() < 1, row["job_id"]
        end = float(pod["completed"] or pod["deleted"])
        assert abs(end - row["recorded_end"].timestamp()) <= interval, row["job_id"]
        for column, resource in (("cpu_millicores", "cpu"), ("memory_bytes", "memory")):
            most = max(int(pod[column] or 0), int(pod[f"init_{column}"] or 0))
            assert (row[f"request.{resource}"] or 0) == most, row["job_id"]
        assert (row["request.nvidia.com/gpu"] or 0) == int(pod["gpus"])
    ended = {
        uid for uid, pod in truth.items() if pod["completed"] and int(pod["scrapes_seen"]) * 5 > interval
    }
    assert ended <= {row["uid"] for row in rows}


@pytest.mark.parametrize(("name", "interval"), FORMS)
def test_every_pod_that_was_scraped_is_a_job_or_counted(
    opened: Callable[..., Trace], name: str, interval: int
) -> None:
    """Those that never started, and those that ran on."""
    trace = opened(name)
    assert trace.left_out == {
        ENDLESS: 3, "not started when last scraped": 7, "deleted before a start was scraped": 1,
    }  # fmt: skip
    seen = sum(
        int(pod["scrapes_seen"]) * 5 > (0 if interval == 5 else interval)
        for pod in table("truth_pods.tsv.gz")
    )
    assert trace.rows_read == trace.frame.height + 11 >= seen


def test_queueing_begins_when_the_job_was_made(opened: Callable[..., Trace]) -> None:
    """For its first pods; later ones, as retries, or of a second admission, arrive when they were made."""
    jobs = table("truth_jobs.tsv.gz")
    pods = {row["uid"]: row for row in table("truth_pods.tsv.gz")}
    for row in opened("scraped.json.gz").frame.iter_rows(named=True):
        pod = pods[row["uid"]]
        made = float(pod["created"])
        key = (pod["namespace"], pod["owner_name"])
        own = [job for job in jobs if (job["namespace"], job["job"]) == key]
        before = [float(job["created"]) for job in own if float(job["created"]) <= made]
        firsts = [
            float(other["created"])
            for other in pods.values()
            if (other["namespace"], other["owner_name"]) == key
            and before
            and float(other["created"]) >= before[-1]
        ]
        first = bool(before) and made - min(firsts) < 1
        assert 0 <= (before[-1] if first else made) - row["submit_time"].timestamp() < 1, row["job_id"]
    for row in opened("scraped.json.gz", arrival="pod").frame.iter_rows(named=True):
        assert 0 <= float(pods[row["uid"]]["created"]) - row["submit_time"].timestamp() < 1


def test_queues_are_those_of_the_labels(opened: Callable[..., Trace]) -> None:
    """Of the pod, else of its Job; without one it is the namespace."""
    queues = {row["uid"]: row["queue"] or row["namespace"] for row in table("truth_pods.tsv.gz")}
    for row in opened("scraped.json.gz").frame.iter_rows(named=True):
        assert row["queue"] == queues[row["uid"]]
    other = opened("scraped.json.gz", tenant="namespace").frame
    assert other["queue"].cast(str).to_list() == other["namespace"].cast(str).to_list()


@pytest.mark.parametrize(
    "says",
    [
        "samples are 5 s apart",
        "pods that lived less than 5 s may be in no sample",
        "3 Jobs have no pod in the answers",
        "8 pods were gone before the end was scraped: they end with their last sample, which is within 5 s",
        "nothing was scraped for more than two intervals once, at most 23.424 s",
        "4 pods have no series of requests, so nothing is requested",
    ],
)
def test_what_samples_cannot_tell_is_said(opened: Callable[..., Trace], says: str) -> None:
    """With how many pods it concerns."""
    notes = opened("scraped.json.gz").notes
    assert any(says in note for note in notes), "\n".join(notes)
    assert not any(". 0 pods" in note for note in notes)


# --- rules ------------------------------------------------------------------------------------------------

Read = Callable[..., Trace]


def series(metric: str, *values: tuple[float, object], **labels: str) -> dict[str, Any]:
    """One series of a pod."""
    own = {"__name__": metric, "namespace": "a", "pod": "p", "uid": "u", "job": "ksm", "instance": "i"}
    return {"metric": own | labels, "values": [[time, str(value)] for time, value in values]}


def answer(*found: dict[str, Any]) -> str:
    """An answer with these series."""
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}})


def lived(start: int = 10, **labels: str) -> list[dict[str, Any]]:
    """A pod that was made, and taken on, at a time, and another one's sample long after it."""
    seen = (start, start + 5, start + 10)
    return [
        series("kube_pod_created", *((time, start - 5) for time in seen), **labels),
        series("kube_pod_start_time", *((time, start) for time in seen), **labels),
        series("up", (900, 1)),
        series("kube_node_status_allocatable", (900, 1)),
    ]


def only(trace: Trace) -> dict[str, Any]:
    """The one row of a trace."""
    (row,) = trace.frame.iter_rows(named=True)
    return row


def test_a_pod_without_completion_ends_with_its_last_sample(read_text: Read) -> None:
    """If it is gone; else it has not ended."""
    row = only(read_text(answer(*lived()), name="a.json"))
    assert row["recorded_end"] == datetime.fromtimestamp(20, UTC)


def test_without_jobs_no_pod_arrives_with_its_job(read_text: Read) -> None:
    """A note of "0 pods, the first of their Jobs" would be odd."""
    notes = read_text(answer(*lived()), name="a.json").notes
    assert "pods arrive when they were created" in notes


def test_a_completion_counts_in_a_final_phase_only(read_text: Read) -> None:
    """A container that starts again takes its time away."""
    completion = series("kube_pod_completion_time", (12, 11))
    running = series("kube_pod_status_phase", (12, 1), (20, 1), phase="Running")
    done = series("kube_pod_status_phase", (15, 0), (20, 1), phase="Succeeded")
    assert only(read_text(answer(*lived(), completion, done), name="a.json"))["duration"].total_seconds() == 1
    assert (
        only(read_text(answer(*lived(), completion, running), name="a.json"))["duration"].total_seconds()
        == 10
    )
    assert only(read_text(answer(*lived(), completion), name="a.json"))["duration"].total_seconds() == 10
    stays = series("kube_pod_completion_time", (12, 11), (20, 18))
    assert only(read_text(answer(*lived(), stays), name="a.json"))["duration"].total_seconds() == 8


def scraped(*phases: tuple[int, str], start: int = 10, **labels: str) -> list[dict[str, Any]]:
    """A pod that was scraped in these phases, without a completion time, and another one's sample at 900."""
    seen = [time for time, _ in phases]
    return [
        series("kube_pod_created", *((time, start) for time in seen), **labels),
        series("kube_pod_start_time", *((time, start) for time in seen), **labels),
        *(series("kube_pod_status_phase", (time, 1), phase=phase, **labels) for time, phase in phases),
        series("kube_node_status_allocatable", (900, 1)),
    ]


RAN = [(time, "Running") for time in range(15, 40, 5)]
FAILED = [(time, "Failed") for time in range(40, 905, 5)]


@pytest.mark.parametrize("until", [400, 905])
def test_a_final_phase_is_an_end_where_no_completion_is(read_text: Read, until: int) -> None:
    """As of a pod that was evicted: not when its object is gone, nor has it not ended while that is there."""
    trace = read_text(answer(*scraped(*RAN, *(each for each in FAILED if each[0] < until))), name="a.json")
    row = only(trace)
    assert (row["duration"].total_seconds(), row["recorded_state"]) == (30, "Failed")
    assert any(
        note.startswith("1 pod ended without a completion time")
        and note.endswith("the first sample of their final phase, at most 5 s too late")
        for note in trace.notes
    )
    assert not any("gone before the end was scraped" in note for note in trace.notes)


def test_an_end_while_nothing_was_scraped_is_as_much_too_late_at_most(read_text: Read) -> None:
    """It is between the last sample in another phase and the first one in the final phase."""
    trace = read_text(answer(*scraped(*RAN, *FAILED[20:])), name="a.json")
    assert only(trace)["duration"].total_seconds() == 130
    assert any("at most 105 s too late" in note for note in trace.notes)


def test_what_had_ended_before_it_was_scraped_has_no_end(read_text: Read) -> None:
    """Unless it had only just started."""
    ended, again = scraped(*FAILED[20:]), {"uid": "v", "pod": "q"}
    short = scraped(*[(time + 100, phase) for time, phase in FAILED[:9]], start=133, **again)
    trace = read_text(answer(*ended, *short), name="a.json")
    assert only(trace)["duration"].total_seconds() == 7
    assert trace.left_out == {"had ended when first scraped, at an unknown time": 1}


def test_series_with_and_without_a_node_are_one_container(read_text: Read) -> None:
    """Containers are added; the same one before and after it was bound is not."""
    requests = "kube_pod_container_resource_requests"
    found = [
        series(requests, (10, 0.1), resource="cpu", unit="core", container="one"),
        series(requests, (15, 0.1), resource="cpu", unit="core", container="one", node="n"),
        series(requests, (15, 2), resource="cpu", unit="core", container="two", node="n"),
    ]
    assert only(read_text(answer(*lived(), *found), name="a.json"))["request.cpu"] == 2100


def test_resources_have_the_names_of_the_cluster(read_text: Read) -> None:
    """kube-state-metrics writes _ for dots, slashes and dashes; a name that is not known keeps them."""
    names = {
        "nvidia_com_gpu": "nvidia.com/gpu",
        "nvidia_com_mig_1g_5gb": "nvidia.com/mig-1g.5gb",
        "nvidia_com_mig_1g_10gb_me": "nvidia.com/mig-1g.10gb.me",
        "nvidia_com_gpu_shared": "nvidia.com/gpu.shared",
        "amd_com_gpu": "amd.com/gpu",
        "aliyun_com_gpu_mem": "aliyun.com/gpu-mem",
        "rdma_shared_ib": "rdma/shared_ib",
        "hugepages_2Mi": "hugepages-2Mi",
        "example_com_fpga": "example_com_fpga",
    }
    requests = "kube_pod_container_resource_requests"
    found = [series(requests, (10, 1), resource=name, unit="integer", container="c") for name in names]
    trace = read_text(answer(*lived(), *found), name="a.json")
    columns = {name.removeprefix("request.") for name in trace.frame.columns if name.startswith("request.")}
    assert columns == set(names.values())
    assert "resources keep Prometheus' names, with _ for other characters: example_com_fpga" in trace.notes


def test_warnings_of_the_server_are_noted(read_text: Read) -> None:
    """A store that could not answer leaves out series, which nothing else would tell."""
    warned = json.loads(answer(*lived())) | {"warnings": ["store b: unavailable", "store b: unavailable"]}
    notes = read_text(json.dumps(warned) + answer(), name="a.json").notes
    says = "the server warns in 1 answer, so data may be missing: store b: unavailable"
    assert [note for note in notes if "warns" in note] == [says]


def test_pods_of_one_name_are_told_by_uid(read_text: Read) -> None:
    """And counted in their names."""
    text = answer(*lived(), *lived(100, uid="v"))
    assert read_text(text, name="a.json").frame["job_id"].to_list() == ["a/p", "a/p#2"]


def test_a_name_that_is_used_again_is_another_job_of_kubernetes(read_text: Read) -> None:
    """Jobs have no uid: another time of creation is another Job."""
    owner = {"owner_kind": "Job", "owner_name": "j", "owner_is_controller": "true"}
    text = answer(
        *lived(), *lived(100, uid="v"),
        series("kube_pod_owner", (15, 1), **owner), series("kube_pod_owner", (105, 1), uid="v", **owner),
        series("kube_job_created", (5, 2), (90, 80), job_name="j", pod="", uid=""),
    )  # fmt: skip
    found = read_text(text, name="a.json").frame["submit_time"].dt.timestamp("ms").to_list()
    assert found == [2000, 80_000]


def test_labels_of_the_scrape_are_not_those_of_the_pod(read_text: Read) -> None:
    """Without honor_labels the pod is in exported_pod; a pod that is there twice counts once."""
    foreign = {"namespace": "monitoring", "pod": "ksm-0", "exported_namespace": "a", "exported_pod": "p"}
    trace = read_text(answer(*lived(), *lived(**foreign)), name="a.json")
    assert (only(trace)["job_id"], trace.rows_read) == ("a/p", 1)


def test_pods_of_a_daemon_set_are_no_work(read_text: Read) -> None:
    """Every node has them; counted."""
    owner = series("kube_pod_owner", (105, 1), uid="v", owner_kind="DaemonSet", owner_name="d")
    trace = read_text(answer(*lived(), *lived(100, uid="v"), owner), name="a.json")
    assert trace.left_out == {"of a DaemonSet, which every node has": 1}


def test_answers_may_follow_each_other_or_stand_beside(read_text: Read, tmp_path: Path) -> None:
    """As cat joins them, in a list, or by a pattern; pages that overlap give a sample once."""
    whole = read_text(answer(*lived()), name="a.json").frame
    parts = [answer(each) for each in lived()]
    assert read_text(f"[{', '.join(parts)}]", name="a.json").frame.equals(whole)
    assert read_text("\n".join([*parts, parts[0]]), name="a.json").frame.equals(whole)
    (tmp_path / "b.json").write_text("\n".join(parts[1:]), encoding="utf-8")
    beside = read_text(parts[0], name="a.json", files="*.json")
    assert beside.frame.equals(whole)
    assert "harness.also_read.b.json" in beside.metadata
    with pytest.raises(OptionError, match="no file next to"):
        read_text(parts[0], name="a.json", files="*.txt")


def test_what_is_no_series_is_counted(read_text: Read) -> None:
    """Scalars, texts and aggregations; NaN is no sample."""
    shapes = gzip.decompress((ANSWERS / "shapes.json.gz").read_bytes()).decode()
    notes = read_text(answer(*lived()) + shapes, name="a.json").notes
    for says in ("1 answers of type 'scalar'", "1 answers of type 'string'", "series without a name"):
        assert any(says in note for note in notes), notes


def test_pods_that_two_scrape_jobs_export_are_there_once(readers: Plugins) -> None:
    """Thirty series are fifteen pods."""
    with pytest.raises(TraceError, match=f"15 {ENDLESS}"):
        open_trace(ANSWERS / "relabelled.json.gz", readers)


ERROR = (ANSWERS / "error.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (ERROR, "answer 1: is an error of the server, bad_data: exceeded"),
        ('{"status":"success"}', "answer 1: is not an answer to query or query_range"),
        (answer(*lived()) + "\n{", "line 2: is not JSON"),
        (f"[{answer(*lived())}, null]", "answer 2: is not an answer to query or query_range"),
        (
            answer({"metric": {}, "values": [[1, 2]]}),
            "series 1: '[1, 2]' is not a time and a value in quotes",
        ),
        (answer(), "holds no pod that has ended (no series of kube_pod_*)"),
    ],
)
def test_what_is_no_answer_is_refused(
    faults_of_text: Callable[..., list[str]], text: str, fault: str
) -> None:
    """With its place."""
    (found,) = faults_of_text(text, reader="prometheus", name="a.json")
    assert fault in found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '{"results": {"A": {"status": 200, "frames": [{"schema": {"refId": "A"}, "data": {}}]}}}',
            "Ask Grafana for /api/datasources/proxy/uid/UID/api/v1/query for METRIC[1h]",
        ),
        (
            '{"metric":{"__name__":"kube_pod_created","pod":"a"},"values":[1],"timestamps":[2]}\n',
            "an export of VictoriaMetrics. Ask its /api/v1/query for METRIC[1h]",
        ),
    ],
)
def test_the_same_samples_in_another_form_are_recognized(
    tmp_path: Path, readers: Plugins, text: str, says: str
) -> None:
    """The hint says how to get Prometheus' own answer."""
    path = tmp_path / "answer.json"
    path.write_text(text)
    with pytest.raises(TraceError, match="no reader accepts") as caught:
        open_trace(path, readers)
    assert caught.value.hint is not None
    assert says in caught.value.hint
