"""Fetching from Prometheus: all that was scraped, whatever it cannot do at once, and no secret shown."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cli_environment import LONG, called

pytest.importorskip("httpx2", reason="fetching needs httpx2: pip install 'harness-replay[live]'")

from harness.base.json_text import leading_json
from harness.plugins import load
from harness.readers.live import prometheus
from harness.trace.trace import Trace, open_trace

ANSWERS = Path(__file__).parents[1] / "plugins" / "readers" / "prometheus" / "scraped.json.gz"
SPAN = ("--from", "2026-11-22T03:39:00Z", "--to", "2026-11-22T03:49:00Z")
PASSWORD = "sesame-sesame"
Series = dict[tuple[tuple[str, str], ...], list[list[Any]]]


def scraped() -> Series:
    """Labels -> samples of all series that were really scraped."""
    import gzip

    found: dict[tuple[tuple[str, str], ...], dict[float, str]] = {}
    text, at = gzip.decompress(ANSWERS.read_bytes()).decode(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        answer, at = leading_json(text, at)
        for series in answer["data"]["result"]:
            found.setdefault(tuple(sorted(series["metric"].items())), {}).update(map(tuple, series["values"]))
    return {labels: [list(item) for item in sorted(values.items())] for labels, values in found.items()}


class FakePrometheus:
    """Answers `query` with a range, as Prometheus 2.42 does; it may be busy, or find a query too much."""

    def __init__(self, series: Series, *, most: int = 10**9, busy: int = 0, secret: str = "") -> None:
        self.series, self.most, self.busy, self.secret = series, most, busy, secret
        self.asked: list[str] = []
        self.did: Counter[str] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/behind/a/path"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, query: str, at: float) -> tuple[int, dict[str, Any]]:
        name, _, rest = query.partition("{")
        selector, _, window = rest.partition("}[")
        wanted = tuple(part.strip().strip('"') for part in selector.split("=", 1))
        begin = at - int(window.removesuffix("s]"))
        result, samples = [], 0
        for labels, values in self.series.items():
            if ("__name__", name) in labels and wanted in labels:
                times = [item[0] for item in values]
                inside = values[bisect_left(times, begin) : bisect_right(times, at)]
                samples += len(inside)
                if inside:
                    result.append({"metric": dict(labels), "values": inside})
        if samples > self.most:
            what = "query processing would load too many samples into memory in query execution"
            return 422, {"status": "error", "errorType": "execution", "error": what}
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[-1] for name, values in parse_qs(url.query).items()}
                fake.asked.append(query.get("query", ""))
                if fake.secret and self.headers.get("Authorization") != fake.secret:
                    self._say(401, {"status": "error", "error": "who are you?"})
                elif url.path != "/behind/a/path/api/v1/query":
                    self._say(404, {})
                elif fake.busy and len(fake.asked) % fake.busy == 1:
                    fake.did["busy"] += 1
                    self._say(503, {"status": "error", "error": "starting up"})
                else:
                    status, answer = fake.answer(query["query"], float(query["time"]))
                    fake.did[str(status)] += 1
                    self._say(status, answer)

            def _say(self, status: int, value: object) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler


@pytest.fixture(scope="module")
def series() -> Series:
    """What was scraped."""
    return scraped()


@pytest.fixture
def serve(series: Series, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakePrometheus]]:
    """Serves what was scraped; nobody waits long before another try."""
    servers: list[FakePrometheus] = []
    monkeypatch.setattr(prometheus, "_LONGEST", 0.001)

    def made(**how: Any) -> FakePrometheus:
        servers.append(FakePrometheus(series, **how))
        return servers[-1]

    yield made
    for server in servers:
        server.close()


def opened(path: Path) -> Trace:
    """The trace of a file."""
    return open_trace(path, load(only=["readers"]))


@pytest.fixture(scope="module")
def whole() -> Trace:
    """The trace of what was scraped, asked for by hand."""
    return opened(ANSWERS)


def test_what_was_scraped_becomes_the_same_trace(
    serve: Callable[..., FakePrometheus], whole: Trace, tmp_path: Path
) -> None:
    """However it is cut into pieces, and whatever is too much or fails once on the way."""
    for number, how in enumerate(({}, {"busy": 5}, {"most": 2000})):
        server = serve(**how)
        out = tmp_path / f"{number}.json.gz"
        assert called(["trace", "fetch", server.url, str(out), *SPAN, "--window", "4m"]) == 0
        assert opened(out).frame.equals(whole.frame)
        assert server.did["busy"] > 0 or "busy" not in how
        assert server.did["422"] > 0 or "most" not in how
    assert max(len(values) for values in serve().series.values()) < 11_000


def test_a_trace_is_written_at_once(
    serve: Callable[..., FakePrometheus], whole: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reader's options, its notes and what was left out."""
    words = [serve().url, str(tmp_path / "out.parquet"), *SPAN, "--set", "tenant=namespace"]
    assert called(["trace", "fetch", *words]) == 0
    trace = opened(tmp_path / "out.parquet")
    assert trace.frame["job_id"].to_list() == whole.frame["job_id"].to_list()
    assert trace.frame["queue"].to_list() == trace.frame["namespace"].to_list()
    assert "left out:" in capsys.readouterr().out


def test_every_metric_that_the_reader_knows_is_asked_for() -> None:
    """The page names the same ones for curl."""
    page = (Path(__file__).parents[2] / "docs" / "sources-live.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("    for m in kube_pod_{"))
    named = line.removeprefix("    for m in ").split(";")[0].split()
    each = [f"{word.split('{')[0]}{end}" for word in named for end in word.split("{")[1][:-1].split(",")]
    assert sorted(each) == sorted(prometheus.METRICS)


@pytest.mark.parametrize("line", ["Ä: b", "A: ü", "A B: c", ": c", "A"])
def test_headers_that_http_does_not_have_are_named(
    line: str, serve: Callable[..., FakePrometheus], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before anything is sent."""
    header = tmp_path / "header"
    header.write_text(line, encoding="utf-8")
    args = [serve().url, str(tmp_path / "out.json"), *SPAN, "--header-file", str(header)]
    assert called(["trace", "fetch", *args]) == 2
    assert f"{header}, line 1 is not a header" in "".join(capfd.readouterr())


def test_a_secret_is_sent_and_never_shown(
    serve: Callable[..., FakePrometheus], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It comes from a file; without it the server refuses, and that is said."""
    server = serve(secret=f"Bearer {PASSWORD}")
    header = tmp_path / "header"
    out = tmp_path / "out.json"
    right = f"Authorization: Bearer {PASSWORD}\n"
    for text in (right, f"\ufeff{right}", f"no header {PASSWORD}", f"Authorization: {PASSWORD}"):
        header.write_text(text, encoding="utf-8")
        code = called(["trace", "fetch", server.url, str(out), *SPAN, "--header-file", str(header)])
        assert code == (0 if text.endswith(right) else 2)
    assert called(["trace", "fetch", server.url, str(tmp_path / "none.json"), *SPAN]) == 2
    said = "".join(capfd.readouterr())
    assert "the server answers 401: who are you?" in said
    assert f"{header}, line 1 is not a header" in said
    assert "with --header-file" in said
    assert called(["trace", "fetch", f"http://me:{PASSWORD}@127.0.0.1:1", str(out), *SPAN]) == 2
    said += "".join(capfd.readouterr())
    assert "many programs would show" in said
    assert PASSWORD not in said
    assert PASSWORD.encode() not in out.read_bytes()
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ftp://x", "o.json", *SPAN], "'ftp://x' is not the address of a server"),
        (["URL", "o.csv", *SPAN], "o.csv is not the name of an answer file or a trace"),
        (["URL", "o.json", "--from", "x", "--to", "2026-11-23"], "--from x is not a date or time"),
        (["URL", "o.json", "--from", "2026-11-23", "--to", "2026-11-23"], "is not after --from"),
        (["URL", "o.json", *SPAN, "--window", "1ms"], "--window 1ms is less than a second"),
        (["URL", "o.json", *SPAN, "--set", "tenant=x"], "--set has no effect, because only"),
        (
            ["URL", "o.json", *SPAN, "--selector", 'job="x"'],
            "no series of kube-state-metrics in this time span",
        ),
        (["URL/x", "o.json", *SPAN], "the server answers 404"),
        (
            ["URL", "o.json", "--from", "0001-01-02", "--to", "9999-12-30"],
            "requests per metric, but at most 20,000",
        ),
        (
            ["http://127.0.0.1:9", "o.json", *SPAN],
            "the server does not answer: it does not accept connections",
        ),
    ],
)
def test_what_cannot_be_is_said(
    serve: Callable[..., FakePrometheus],
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """And nothing is written, nor waited for: an address where nobody answers is more likely a wrong one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prometheus, "time", None)
    url = serve().url
    assert called(["trace", "fetch", *(word.replace("URL", url) for word in words)]) == 2
    assert message in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "result",
    [
        [{"metric": {"__name__": "kube_pod_created"}, "value": [1, "2"]}],
        [{"metric": {"__name__": "kube_pod_created"}, "values": [[1, 2]]}],
        [{"metric": {"__name__": "kube_pod_created"}, "values": [["1", "2", "3"]]}],
        [{"values": [[1, "2"]]}],
        ["series"],
    ],
)
@pytest.mark.parametrize("name", ["o.json", "o.parquet"])
def test_an_answer_that_is_none_of_prometheus_is_refused(
    serve: Callable[..., FakePrometheus],
    result: list[Any],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Kept answers are read later, where nobody can ask again; so nothing is kept."""
    answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
    monkeypatch.setattr(FakePrometheus, "answer", lambda *_: (200, answer))
    assert called(["trace", "fetch", serve().url, str(tmp_path / name), *SPAN]) == 2
    assert "kube_pod_created: series 1 of the answer is not from Prometheus" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_fetching_says_which_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And does nothing else."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert called(["trace", "fetch", "http://x", str(tmp_path / "o.json"), *SPAN]) == 2
    assert "pip install 'harness-replay[live]'" in capfd.readouterr().err


def openmetrics(series: Series) -> Iterator[str]:
    """The samples as a text that promtool takes."""
    for labels, values in sorted(series.items()):
        own = dict(labels)
        name = own.pop("__name__")
        inner = ",".join(f'{key}="{value}"' for key, value in own.items())
        for when, value in values:
            yield f"{name}{{{inner}}} {value} {when:.3f}\n"
    yield "# EOF\n"


def test_a_real_prometheus_gives_the_same_trace(series: Series, whole: Trace, tmp_path: Path) -> None:
    """The program itself, with the same samples in its database."""
    program, tool = shutil.which("prometheus"), shutil.which("promtool")
    if program is None or tool is None:
        pytest.skip("no prometheus and promtool on the PATH: the same is tried with a server of ours only")
    text = tmp_path / "samples.txt"
    text.write_text("".join(openmetrics(series)))
    data = tmp_path / "data"
    make = [tool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
    subprocess.run(make, check=True, capture_output=True)
    (tmp_path / "prometheus.yml").write_text("{}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={data}"]
    command += ["--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}"]
    server = subprocess.Popen([*command, "--query.max-samples=20000"], stderr=subprocess.DEVNULL)
    out = tmp_path / "out.json.gz"
    words = ["trace", "fetch", f"http://127.0.0.1:{port}", str(out), *SPAN, "--window", "10m"]
    try:
        deadline = time.monotonic() + LONG
        while (code := called(words)) and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        server.terminate()
        server.wait(20)
    assert code == 0
    assert opened(out).frame.equals(whole.frame)
