"""Tables of events from a recording and from Prometheus: what changed, when, and what is not known."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cli_environment import called
from fake_api import FakeApi
from watched_cluster import BEGIN, SECRET, Story, WatchedCluster

pytest.importorskip("lightkube", reason="recording needs lightkube: pip install 'harness-replay[live]'")

from harness.base.units import SECOND
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness.readers.events.recording import of_recording
from harness.readers.live.cluster import connect, kinds_of
from harness.readers.recordings import read_rows

QUEUE: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "a", "uid": "q-a", "annotations": {"note": SECRET}},
    "spec": {
        "cohortName": "all",
        "stopPolicy": "None",
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["gpu"],
                "flavors": [{"name": "any", "resources": [{"name": "gpu", "nominalQuota": "8"}]}],
            }
        ],
    },
    "status": {"pendingWorkloads": 0},
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "uid": "node", "labels": {"zone": "x"}},
    "spec": {"providerID": SECRET},
    "status": {"allocatable": {"gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
FLAVOR = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}}


@pytest.fixture
def story() -> WatchedCluster:
    """A month in small: a quota that is halved, a stop, a heartbeat, a cordon, a lost GPU, a new queue."""
    said = Story()
    queue = said.happens(0, "ADDED", QUEUE)
    node = said.happens(0, "ADDED", NODE)
    quota = {"flavors": [{"name": "any", "resources": [{"name": "gpu", "nominalQuota": "4"}]}]}
    group = {"coveredResources": ["gpu"], **quota}
    queue = said.happens(60, "MODIFIED", queue, spec__resourceGroups=[group])
    queue = said.happens(70, "MODIFIED", queue, status__pendingWorkloads=5)
    queue = said.happens(120, "MODIFIED", queue, spec__stopPolicy="Hold")
    node = said.happens(130, "MODIFIED", node, spec__unschedulable=True)
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    broken = {"key": "broken", "value": "disk", "effect": "NoExecute"}
    node = said.happens(131, "MODIFIED", node, spec__taints=[cordon])
    node = said.happens(140, "MODIFIED", node, spec__taints=[cordon, broken])
    node = said.happens(150, "MODIFIED", node, spec__taints=[], spec__unschedulable=False)
    node = said.happens(160, "MODIFIED", node, status__allocatable={"gpu": "7"})
    second = deepcopy(QUEUE)
    second["metadata"] |= {"name": "b", "uid": "q-b"}
    second = said.happens(180, "ADDED", second)
    said.happens(200, "DELETED", node)
    said.happens(210, "MODIFIED", second, spec__namespaceSelector={"matchLabels": {"x": "y"}})
    return said.cluster


def at(seconds: int) -> str:
    """A time of the story, as tables have it."""
    return (BEGIN + timedelta(seconds=seconds)).isoformat()


EXPECTED = [
    (0, None, "ClusterQueue", "a", "quota[any/gpu]", "8"),
    (0, None, "ClusterQueue", "a", "stopPolicy", "None"),
    (0, 180, "ClusterQueue", "b", "remove", ""),
    (0, None, "Node", "n", "resize", "gpu=8"),
    (60, None, "ClusterQueue", "a", "quota[any/gpu]", "4"),
    (120, None, "ClusterQueue", "a", "stopPolicy", "Hold"),
    (130, 150, "Node", "n", "cordon", ""),
    (140, 150, "Node", "n", "taint", "broken=disk:NoExecute"),
    (160, None, "Node", "n", "resize", "gpu=7"),
    (200, None, "Node", "n", "remove", ""),
]


def test_a_recording_becomes_a_table_of_what_changed(recorded: Callable[..., Path]) -> None:
    """Each change once, at its time; a field that never changed has no row."""
    watched = of_recording(recorded())
    rows = [tuple(row.values()) for row in watched.rows()]
    assert rows == [(at(begin), "" if end is None else at(end), *rest) for begin, end, *rest in EXPECTED]
    assert list(watched.notes) == [
        "ClusterQueue b changed in a field that a row cannot express: use a patch with a time"
    ]


def test_what_does_not_matter_of_quotas_and_nodes_is_not_recorded(recorded: Callable[..., Path]) -> None:
    """A status that counts workloads makes no version, and no secret gets in."""
    folder = recorded()
    rows = list(read_rows(folder))
    assert len(rows) == 12
    assert SECRET not in "".join(json.dumps(row.content) for row in rows)
    assert {row.kind for row in rows} == {"ClusterQueue", "Node"}


def test_the_table_is_taken_by_a_replay_and_says_the_same(
    recorded: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As CSV and as Parquet: what the manifests were at first becomes what they are at last."""
    folder = recorded()
    for name in ("out.csv", "out.parquet"):
        assert called(["cluster", "events", str(folder), "-o", str(tmp_path / name)]) == 0
        assert f"10 events of 3 objects: {tmp_path / name}" in capsys.readouterr().out
    assert called(["cluster", "events", str(folder)]) == 0
    assert capsys.readouterr().out == (tmp_path / "out.csv").read_text()
    second = deepcopy(QUEUE)
    second["metadata"]["name"] = "b"
    base = cluster_from([FLAVOR, QUEUE, second, NODE], "the test")
    origin = int(BEGIN.timestamp()) * SECOND
    made = [unrolled(base.patched(tmp_path / name), origin) for name in ("out.csv", "out.parquet")]
    assert made[0].digest == made[1].digest
    assert set(made[0].cluster_queues) == {"a"}
    last = made[0]
    for edit in (edit for instant in last.changes for edit in instant.edits):
        last = edit.on(last)
    assert (last.cluster_queues["a"].stop_policy, set(last.cluster_queues), set(last.nodes)) == (
        "Hold",
        {"a", "b"},
        set(),
    )


def test_a_recording_with_quotas_is_a_trace_of_its_jobs_alone(
    recorded: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Quotas and nodes are no jobs that were left out."""
    assert called(["trace", "convert", str(recorded()), str(tmp_path / "out.parquet")]) == 2
    assert "ClusterQueue" not in capsys.readouterr().err


def test_who_may_not_see_quotas_records_jobs_all_the_same(
    serve: Callable[..., FakeApi], token_file: Path, story: WatchedCluster
) -> None:
    """And hears which kinds are not recorded."""
    api = serve(story)
    api.forbidden = ("Node",)
    server = connect(server=api.url, token_file=token_file)
    kinds, notes = kinds_of(server, None)
    server.http.close()
    assert [kind.name for kind in kinds] == ["Workload", "Job", "Pod", "ClusterQueue"]
    (note,) = notes
    assert note.startswith("nodes are not recorded: ")
    assert "docs/recording.md shows the required role" in note


# --- Prometheus -------------------------------------------------------------------------------------------

ORIGIN = 1_795_318_800
STEP = 60


def series(metric: str, queue: str, values: dict[int, str], **labels: str) -> dict[str, Any]:
    """A series as an answer has it: minute -> value."""
    named = {"__name__": f"kueue_cluster_queue_{metric}", "cluster_queue": queue, "cohort": "all"}
    more = {"flavor": "any", "resource": "gpu", "instance": "10.0.0.1:8443", "job": "kueue"}
    samples = [[ORIGIN + STEP * minute, value] for minute, value in sorted(values.items())]
    return {"metric": {**named, **more, **labels}, "values": samples}


def minutes(*spans: tuple[int, int, str]) -> dict[int, str]:
    """Minute -> value, of spans without their ends."""
    return {minute: value for begin, end, value in spans for minute in range(begin, end)}


SERIES = [
    series("nominal_quota", "a", minutes((0, 20, "8"), (20, 60, "4"))),
    series("nominal_quota", "b", minutes((0, 60, "8"))),
    series("nominal_quota", "late", minutes((30, 50, "2"))),
    series("nominal_quota", "mover", minutes((0, 10, "1.5")), resource="cpu"),
    series("nominal_quota", "mover", minutes((10, 60, "1.5")), resource="cpu", cohort="other"),
    series("borrowing_limit", "a", minutes((0, 40, "+Inf"), (40, 60, "0"))),
    series("lending_limit", "b", minutes((0, 40, "0"), (40, 60, "3"))),
    series("nominal_quota", "b", minutes((0, 60, "9")), replica_role="follower"),
    series("weighted_share", "b", minutes((0, 60, "9"))),
]


def minute(number: int) -> str:
    """A time as tables have it."""
    return datetime.fromtimestamp(ORIGIN + STEP * number, UTC).isoformat()


FROM_METRICS = [
    (0, None, "a", "borrowingLimit[any/gpu]", ""),
    (0, None, "a", "quota[any/gpu]", "8"),
    (0, None, "b", "lendingLimit[any/gpu]", ""),
    (0, 30, "late", "remove", ""),
    (0, None, "mover", "cohort", "all"),
    (10, None, "mover", "cohort", "other"),
    (20, None, "a", "quota[any/gpu]", "4"),
    (40, None, "a", "borrowingLimit[any/gpu]", "0"),
    (40, None, "b", "lendingLimit[any/gpu]", "3"),
    (50, None, "late", "remove", ""),
]
TABLE = "time,until,kind,name,field,value\n" + "".join(
    f"{minute(begin)},{'' if end is None else minute(end)},ClusterQueue,{','.join(rest)}\n"
    for begin, end, *rest in FROM_METRICS
)


class FakePrometheus:
    """Answers `query_range` as Prometheus does: at each step within both ends, and not too many at once."""

    def __init__(self, most: int = 11_000) -> None:
        fake = self
        self.most, self.asked = most, 0

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                fake.asked += 1
                url = urlsplit(self.path)
                query = {name: values[-1] for name, values in parse_qs(url.query).items()}
                begin, end, step = (int(query[name]) for name in ("start", "end", "step"))
                if url.path != "/api/v1/query_range":
                    self._say(404, {})
                elif (end - begin) // step > fake.most:
                    what = "exceeded maximum resolution of 11,000 points per timeseries"
                    self._say(400, {"status": "error", "errorType": "bad_data", "error": what})
                else:
                    steps = range(begin, end + 1, step)
                    name = query["query"].partition("{")[0]
                    named = [each for each in SERIES if each["metric"]["__name__"] == name]
                    found = [
                        {**each, "values": inside}
                        for each in named
                        if (inside := [sample for sample in each["values"] if sample[0] in steps])
                    ]
                    data = {"resultType": "matrix", "result": found}
                    self._say(200, {"status": "success", "data": data})

            def _say(self, status: int, value: object) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def prometheus() -> Iterator[FakePrometheus]:
    """A server of an hour."""
    server = FakePrometheus(most=25)
    yield server
    server.close()


SPAN = ("--from", minute(0), "--to", minute(60))


@pytest.mark.parametrize("window", ["1h", "7m"])
def test_the_metrics_of_kueue_become_a_table_of_what_changed(
    prometheus: FakePrometheus, window: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However they are cut into pieces; followers of the leader, and other metrics, do not count."""
    out = tmp_path / "out.csv"
    assert called(["cluster", "events", prometheus.url, *SPAN, "--window", window, "-o", str(out)]) == 0
    assert out.read_text() == TABLE
    told = capsys.readouterr()
    assert "10 events of 4 objects" in told.out
    assert (
        "note: a change has the time of the first sample that shows it, which is up to 1m00s late" in told.err
    )
    assert "note: a lendingLimit of 0 counts as no limit" in told.err
    assert "borrowingLimit of 0" not in told.err
    assert "note: Kueue exports no metrics for weights, stopPolicy" in told.err


def test_saved_answers_give_the_same_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, as curl writes them; an outage is no removal, and is said."""
    answers = tmp_path / "answers.json"
    cut = [
        {**each, "values": [sample for sample in each["values"] if not 1 <= (sample[0] - ORIGIN) // 60 < 8]}
        for each in SERIES
    ]
    halves = (cut[:4], cut[4:])
    answers.write_text("\n".join(json.dumps({"data": {"result": half}}) for half in halves))
    assert called(["cluster", "events", str(answers)]) == 0
    told = capsys.readouterr()
    assert told.out == TABLE
    assert "note: there is no sample between 2026-11-22T03:40:00Z and 2026-11-22T03:48:00Z" in told.err


def node_series(metric: str, node: str, values: dict[int, str], **labels: str) -> dict[str, Any]:
    """A series of kube-state-metrics: minute -> value."""
    samples = [[ORIGIN + STEP * minute, value] for minute, value in sorted(values.items())]
    return {"metric": {"__name__": f"kube_node_{metric}", "node": node, **labels}, "values": samples}


ALWAYS = minutes((0, 60, "1"))
NODES = [
    node_series("status_allocatable", "n", minutes((0, 60, "30")), resource="cpu", unit="core"),
    node_series(
        "status_allocatable",
        "n",
        minutes((0, 20, "8"), (20, 60, "7")),
        resource="nvidia_com_gpu",
        unit="integer",
    ),
    node_series("spec_unschedulable", "n", minutes((0, 10, "0"), (10, 30, "1"), (30, 60, "0"))),
    node_series("status_allocatable", "late", minutes((5, 40, "4")), resource="cpu", unit="core"),
    node_series("status_condition", "n", minutes((0, 60, "0")), condition="Ready", status="false"),
    node_series(
        "status_condition",
        "n",
        minutes((0, 45, "0"), (45, 50, "1"), (50, 60, "0")),
        condition="Ready",
        status="unknown",
    ),
    node_series("status_condition", "n", ALWAYS, condition="MemoryPressure", status="true"),
]


def cells(text: str) -> list[tuple[str, ...]]:
    """Time and until as minutes, name, field and value of each row."""
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        times = [
            "" if not row[name] else str((int(datetime.fromisoformat(row[name]).timestamp()) - ORIGIN) // 60)
            for name in ("time", "until")
        ]
        found.append((*times, row["name"], row["field"], row["value"]))
    return found


def test_the_metrics_of_nodes_become_a_table_of_what_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cordon, another amount, a node that comes and goes; and the taints of one that is not ready."""
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"data": {"result": NODES}}))
    assert called(["cluster", "events", str(answers)]) == 0
    told = capsys.readouterr()
    unreachable = "node.kubernetes.io/unreachable"
    assert cells(told.out) == [
        ("0", "5", "late", "remove", ""),
        ("0", "", "n", "resize", "nvidia.com/gpu=8"),
        ("10", "30", "n", "cordon", ""),
        ("20", "", "n", "resize", "nvidia.com/gpu=7"),
        ("40", "", "late", "remove", ""),
        ("45", "50", "n", "taint", f"{unreachable}:NoExecute"),
        ("45", "50", "n", "taint", f"{unreachable}:NoSchedule"),
    ]
    assert "up to 1m00s late" in told.err
    assert "Kueue" not in told.err
    taint = node_series(
        "spec_taint", "n", minutes((7, 9, "1"), (20, 21, "1")), key="gpu", value="bad", effect="NoSchedule"
    )
    answers.write_text(json.dumps({"data": {"result": [*NODES, taint]}}))
    assert called(["cluster", "events", str(answers)]) == 0
    taints = [row for row in cells(capsys.readouterr().out) if row[3] == "taint"]
    assert taints == [(*span, "n", "taint", "gpu=bad:NoSchedule") for span in (("7", "9"), ("20", "21"))]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "answer 1: is not an answer from Prometheus"),
        ('{"data": {"result": [{"metric": {}}]}}', "answer 1, series 1: is not a series with samples"),
        ('{"data": {"result": []}}', "has no sample of kueue_cluster_queue_nominal_quota"),
        ("not JSON", "answer 1: is not an answer from Prometheus"),
        (json.dumps({"data": {"result": [series("nominal_quota", "a", {0: "x"})]}}), "'x', which is no"),
        (json.dumps({"data": {"result": [series("nominal_quota", "a", {10**12: "1"})]}}), "has the time"),
    ],
)  # fmt: skip
def test_a_file_that_has_no_answers_is_refused_in_words(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what it lacks."""
    (tmp_path / "answers.json").write_text(content)
    assert called(["cluster", "events", str(tmp_path / "answers.json")]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["http://127.0.0.1:9"], "a server needs a time span"),
        (["http://127.0.0.1:9", "--from", "2026-01-02", "--to", "2026-01-01"], "is not after --from"),
        (["http://127.0.0.1:9", *SPAN, "--step", "1s"], "has more than 11,000 steps of 1s"),
        (["http://127.0.0.1:9", *SPAN], "the server does not answer"),
        (["rec", *SPAN], "rec is not an address"),
        (["rec", "-o", "rec.txt"], "rec.txt is not the name of a table"),
        ([".", "-o", "rec.csv"], ". is not a recording"),
    ],
)
def test_what_cannot_be_asked_is_said(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Before anything is asked, where that can be."""
    monkeypatch.chdir(tmp_path)
    assert called(["cluster", "events", *words]) == 2
    assert said in capsys.readouterr().err
