"""Servers that mean no good: a bound is named, nothing is waited for long, and no secret is shown."""

from __future__ import annotations

import base64
import gzip
import json
import resource
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from cli_environment import LONG

from harness.base.errors import InputError
from harness.readers.live import follow as following
from harness.readers.live import http as asking
from harness.readers.live.answers import BeyondError, Bounds, LateError, UnreachedError
from harness.readers.live.cluster import ApiServer, _status, kinds_of
from harness.readers.live.follow import Seen, Trouble, follow
from harness.readers.live.http import HttpReader, RefusedError
from harness.readers.live.kept import kept
from harness.readers.live.prometheus import _error, fetch

httpx2 = pytest.importorskip("httpx2")

SECRET = "s3cr3t-token-0f1e2d3c4b"
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], HttpReader]]:
    """Plays a server that answers every connection in its own way; answers who asks it."""
    sockets: list[socket.socket] = []
    readers: list[HttpReader] = []

    def start(play: Callable[[socket.socket], None]) -> HttpReader:
        listener = socket.create_server(("127.0.0.1", 0))
        sockets.append(listener)

        def run() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=quietly, args=(play, peer), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client = httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {SECRET}"})
        readers.append(HttpReader(client, _status))
        return readers[-1]

    yield start
    for reader in readers:
        reader.close()  # a connection that is kept alive outlives its answer
    for each in sockets:
        each.close()


def quietly(play: Callable[[socket.socket], None], peer: socket.socket) -> None:
    try:
        with peer:
            peer.recv(65536)
            play(peer)
    except OSError:
        pass  # whoever asked has gone


def small(monkeypatch: pytest.MonkeyPatch, **bounds: float) -> None:
    """Bounds that a test reaches soon."""
    usual = {"sent": 1 << 20, "held": 1 << 20, "line": 1 << 12, "seconds": 20.0}
    for name in ("ANSWER", "STREAM"):
        monkeypatch.setattr(asking, name, Bounds(**{**usual, **bounds}))  # type: ignore[arg-type]


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_a_body_without_end_is_given_up(serve: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """After as many bytes as an answer can have; of a watch also after one line of so many."""
    small(monkeypatch)

    def endless(peer: socket.socket) -> None:
        peer.sendall((HEAD + "Transfer-Encoding: chunked\r\n\r\n").encode())
        while True:
            peer.sendall(chunked(b"[" + b" " * 65536))

    http = serve(endless)
    with pytest.raises(BeyondError, match="the answer has more than 1,048,576 bytes"):
        http.get("x", {})
    with pytest.raises(BeyondError, match="a line of the answer has more than 4,096 bytes"):
        list(http.lines("x", {}, patience=5))


@pytest.mark.parametrize("head", [True, False])
def test_a_slow_drip_is_given_up(head: bool, serve: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then is no answer, neither of a head nor of a body."""
    small(monkeypatch, seconds=0.3)

    def drip(peer: socket.socket) -> None:
        if not head:
            peer.sendall((HEAD + "Content-Length: 1000000\r\n\r\n").encode())
        else:
            peer.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(50 * LONG):
            peer.sendall(b" ")
            time.sleep(0.02)

    with pytest.raises(LateError, match="the answer takes longer than 0 s"):
        serve(drip).get("x", {}, patience=5)


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: gzip.compress(gzip.compress(data))])
def test_a_bomb_is_given_up(pack: Callable, serve: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a few bytes unpack to is counted while it is unpacked; packed twice it is no JSON."""
    small(monkeypatch)
    data = pack(b" " * (64 << 20))

    def bomb(peer: socket.socket) -> None:
        head = f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(data)}\r\n\r\n"
        peer.sendall(head.encode() + data)

    with pytest.raises(UnreachedError) as told:
        serve(bomb).get("x", {})
    assert "more than 1,048,576 bytes when it is unpacked" in str(told.value) or "not JSON" in str(told.value)


@pytest.mark.parametrize("name", ["br", "zstd", "deflate", "gzip, gzip"])
def test_what_was_not_asked_for_is_not_unpacked(name: str, serve: Callable) -> None:
    """Other packings may unpack to any amount at once."""

    def packed(peer: socket.socket) -> None:
        peer.sendall(f"{HEAD}Content-Encoding: {name}\r\nContent-Length: 2\r\n\r\n{{}}".encode())

    with pytest.raises(BeyondError, match=f"packed as '{name}', but gzip was requested"):
        serve(packed).get("x", {})


def test_a_redirection_is_not_followed(serve: Callable) -> None:
    """What says who asks would go elsewhere."""
    asked: list[int] = []

    def elsewhere(peer: socket.socket) -> None:
        asked.append(1)
        peer.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")

    with pytest.raises(RefusedError, match="it redirects"):
        serve(elsewhere).get("x", {})
    assert len(asked) == 1


BASIC = base64.b64encode(f"me:{SECRET}".encode()).decode()


@pytest.mark.parametrize(
    ("header", "echo"),
    [
        (f"Bearer {SECRET}", f"invalid token {SECRET}"),
        (f"Bearer {SECRET}", f"INVALID {SECRET.upper()}"),
        (f"Bearer {SECRET}", f"starts with {SECRET[:9]}"),
        (f"Bearer {SECRET}", "token " + "".join(f"%{ord(char):02x}" for char in SECRET)),
        (f"Basic {BASIC}", f"unknown user me with {SECRET}"),
        (f"Basic {BASIC}", f"bad header {BASIC}"),
    ],
)
def test_what_was_sent_is_not_shown_where_a_server_repeats_it(header: str, echo: str) -> None:
    """In an answer, in its reason, or in an event of a watch: in any spelling, also a part of it."""

    def handle(request: Any) -> Any:
        reason = {"reason_phrase": echo.encode("ascii", "replace")}
        if "watch" in str(request.url):
            line = json.dumps({"type": "ERROR", "object": {"code": 500, "message": echo}}).encode()
            return answered(200, line + b"\n")
        if "reason" in str(request.url):
            return answered(403, b"", extensions=reason)
        return answered(403, json.dumps({"message": echo}).encode())

    http = reader(handle, header)
    for path in ("x", "reason"):
        with pytest.raises(RefusedError) as told:
            http.get(path, {})
        assert str(told.value) == (
            "the server answers 403: the message is not shown, because it repeats a secret that harness sent"
        )
    tries = iter([False, False, True])
    signs = [sign for sign in follow(http, "x", "1", lambda _: next(tries)) if isinstance(sign, Trouble)]
    (what,) = (sign.what for sign in signs)
    assert what == (
        "the server answers 500: the message is not shown, because it repeats a secret that harness sent; "
        "trying again"
    )


def reader(
    handle: Callable[[Any], Any], header: str = f"Bearer {SECRET}", refused: Any = _status
) -> HttpReader:
    client = httpx2.Client(
        base_url="http://server", headers={"Authorization": header}, transport=httpx2.MockTransport(handle)
    )
    return HttpReader(client, refused)


def answered(status: int, data: bytes, **more: Any) -> Any:
    """An answer that is still to be read, as one that comes over a network."""
    return httpx2.Response(status, stream=httpx2.ByteStream(data), **more)


def told_of_list(*pages: Any) -> str:
    """What is said of a list of these pages, of which the last is sent again and again."""
    left = list(pages)
    http = reader(lambda _: answered(200, json.dumps(left.pop(0) if len(left) > 1 else left[0]).encode()))
    with pytest.raises(UnreachedError) as told:
        list(following._listed(http, "x"))
    return str(told.value)


def test_a_list_that_is_none_is_named() -> None:
    """A malformed item by its number, pages that do not advance, and what is no list at all."""
    good = {"metadata": {"uid": "u"}}
    assert told_of_list({"items": [good, 5]}) == "item 2 of the list is not an object"
    assert told_of_list({"items": [good, {"metadata": []}]}) == "item 2 of the list is not an object"
    assert told_of_list({"items": {"a": 1}}) == "the answer is not a list of objects"
    assert told_of_list([1]) == "the answer is not a list of objects"
    stuck = {"items": [good], "metadata": {"continue": "a"}}
    assert "the pages of the list do not advance" in told_of_list(stuck)
    other = {"items": [], "metadata": {"continue": "b"}}
    assert "the pages of the list do not advance" in told_of_list(stuck, other, stuck, other)


def test_a_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where every page has another token."""
    monkeypatch.setattr(following, "_MOST_PAGES", 3)
    pages = [{"items": [], "metadata": {"continue": f"t{number}"}} for number in range(9)]
    assert "the pages of the list do not advance" in told_of_list(*pages)


def test_what_is_too_large_is_asked_for_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to 15 seconds; then the metric and the bound are named."""
    small(monkeypatch, sent=100, held=100)
    asked: list[str] = []

    def handle(request: Any) -> Any:
        asked.append(str(request.url.params["query"]).rpartition("[")[2])
        return answered(200, b" " * 1000)

    with pytest.raises(InputError, match="kube_pod_created: the answer has more than 100 bytes"):
        list(fetch(reader(handle, refused=_error), 0, 120, window=60, haste=1e9))
    assert asked == ["60s]", "30s]", "15s]"]


def test_a_malformed_item_is_said_while_it_is_recorded() -> None:
    """It was told as if there was nobody to ask as."""
    http = reader(lambda _: answered(200, b'{"items": [5]}'))
    tries = iter([False, True])
    signs = list(follow(http, "x", None, lambda _: next(tries)))
    assert signs == [Trouble("item 1 of the list is not an object; trying again")]


# --- answers made at random -------------------------------------------------------------------------------

ODD: list[Any] = [None, True, 0, -1, 1e308, "", "x", SECRET, [], {}, [[]], [None], {"a": 5}, "\x00", 10**50]


def sample(random: Random) -> Any:
    """Something like an answer: a list, an API group, a watch's event, samples, or a refusal."""
    metadata = {"uid": "u", "name": "n", "namespace": "d", "resourceVersion": "5", "annotations": {"k": "v"}}
    template = {
        "metadata": {},
        "spec": {"containers": [{"name": "c", "ports": [{}]}], "volumes": [{"name": "v"}]},
    }
    spec = {
        "podSets": [{"name": "m", "count": 1, "template": template}],
        "template": template,
        "containers": [],
    }
    status = {
        "conditions": [{"type": "T", "status": "True"}],
        "containerStatuses": [{"state": {"terminated": {}}}],
    }
    item = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
    series = {"metric": {"pod": "p"}, "values": [[1, "1"], [2, "0"]]}
    return random.choice(
        [
            {"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": "c"}, "items": [item, item]},
            {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [item]},
            {"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}},
            {"type": "ADDED", "object": item},
            {"type": "ERROR", "object": {"code": 410, "message": f"token {SECRET}"}},
            {"status": "success", "data": {"resultType": "matrix", "result": [series, series]}},
            {"message": f"who is {SECRET}?", "error": SECRET},
        ]
    )


def broken(value: Any, random: Random) -> Any:
    """A value of which one thing is odd."""
    if random.random() < 0.15 or not isinstance(value, (dict, list)) or not value:
        return random.choice(ODD)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    chosen = random.choice(keys)
    if isinstance(value, dict):
        return {key: broken(each, random) if key == chosen else each for key, each in value.items()}
    return [broken(each, random) if number == chosen else each for number, each in enumerate(value)]


def body_of(random: Random) -> tuple[dict[str, str], bytes]:
    """Headers and bytes."""
    value = sample(random)
    for _ in range(random.choice([0, 1, 1, 2])):
        value = broken(value, random)
    data = json.dumps(value).encode() + random.choice([b"", b"\n", b"\n\n{", b"\xff"])
    how = random.randrange(10)
    if how == 0:
        data = data[: random.randrange(len(data) + 1)]
    elif how == 1:
        data = bytes(random.randrange(256) for _ in range(40))
    elif how == 2:
        data = b"[" * random.choice([10, 5_000])
    if random.random() < 0.3:
        packed = random.choice([gzip.compress(data), zlib.compress(data), data, gzip.compress(data)[:-5]])
        return {"Content-Encoding": random.choice(["gzip", "gzip", "br", "GZIP ", "x"])}, packed
    return {}, data


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 4))])
def test_random_answers_are_read_or_named(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hundred seeds: a clear message or what can be recorded, no secret, bounded time and memory."""
    small(monkeypatch, line=1 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(500 * part, 500 * part + 500):
        random = Random(seed)

        def handle(_: Any, random: Random = random) -> Any:
            headers, data = body_of(random)
            status = random.choice([200, 200, 200, 200, 301, 401, 403, 404, 410, 500])
            phrase = random.choice([b"", b"No", f"no {SECRET}".encode()])
            return httpx2.Response(
                status, headers=headers, content=data, extensions={"reason_phrase": phrase}
            )

        begin = time.process_time()
        said = list(ask_all(handle, random))
        assert time.process_time() - begin < 5, seed
        for text in said:
            assert text.strip(), seed
            assert SECRET not in text, (seed, text)
            assert "no credentials" not in text, (seed, text)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def ask_all(handle: Callable[[Any], Any], random: Random) -> Iterator[str]:
    """What is said when kinds are asked for, objects are followed, and samples are fetched."""
    try:
        kinds_of(ApiServer("http://server", reader(handle)), None)
    except InputError as error:
        yield error.message
    tries = iter([False, False, False, True])
    for sign in follow(reader(handle), "x", random.choice([None, "5"]), lambda _: next(tries)):
        if isinstance(sign, Trouble) and sign.what:
            yield sign.what
        elif isinstance(sign, Seen):
            json.dumps(kept(sign.manifest))
    try:
        for page in fetch(reader(handle, refused=_error), 0, 60, window=60, haste=1e9):
            json.dumps(page.answer)
    except InputError as error:
        yield error.message
