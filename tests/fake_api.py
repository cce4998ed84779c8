"""An API server that plays what happened in a cluster: it lists and watches over HTTP, and breaks off."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

from watched_cluster import PATHS, VERSIONS, WORK, Change, Manifest, WatchedCluster

TOKEN = "token-1f2e3d4c"
_FIRST = 999
_GROUP = {"kind": "APIGroup", "preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}}


class FakeApi:
    """A server at virtual time; it forgets, breaks off and repeats itself as told.

    Args:
        cluster: what happens.
        seed: of what goes wrong.
        trouble: how likely a watch goes wrong after each of its events.
        kueue: whether it knows Workloads.
    """

    def __init__(
        self, cluster: WatchedCluster, *, seed: int = 0, trouble: float = 0.0, kueue: bool = True
    ) -> None:
        self.cluster, self.trouble, self.kueue = cluster, trouble, kueue
        self.random = Random(seed)
        self.forbidden: tuple[str, ...] = ()
        self.now, self.oldest, self.generation = 0, _FIRST, 0
        self.changed = threading.Condition()
        self.status: int | None = None
        self.times_away = 0
        self.methods: Counter[str] = Counter()
        self.did: Counter[str] = Counter()
        self.sent: dict[str, tuple[int, int]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.break_off()
        self._server.shutdown()
        self._server.server_close()

    @property
    def kinds(self) -> list[str]:
        """The kinds that it has."""
        without = () if self.kueue else ("Workload", "ClusterQueue")
        return [
            kind for kind in PATHS if kind not in without and (kind in WORK or self.cluster.of_kind(kind))
        ]

    @property
    def revision(self) -> int:
        """The resource version of now."""
        past = [change.revision for change in self.cluster.changes if change.at <= self.now]
        return max(past, default=_FIRST)

    def advance(self, seconds: int) -> None:
        """Let time pass."""
        with self.changed:
            self.now += seconds
            self.changed.notify_all()

    def away(self, seconds: int) -> None:
        """Be away for so long, and forget all that happened until then."""
        self.times_away += 1
        self.status = 503
        self.break_off()
        self.advance(seconds)
        self.oldest, self.status = self.revision, None

    def can_go(self, seconds: int) -> bool:
        """Whether something happens in the next so many seconds that who does not watch can still find out.

        That is all but when something was deleted.
        """
        until = self.now + seconds
        events = {each.event for each in self.cluster.changes if self.now < each.at <= until}
        return bool(events) and "DELETED" not in events

    def break_off(self) -> None:
        """Break all watches off."""
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def watched(self, kinds: int = 3, timeout: float = 0.1) -> bool:
        """Wait until so many kinds are watched and everything until now has been sent."""

        def done() -> bool:
            now = (self.generation, self.revision)
            return sum(sent == now for sent in self.sent.values()) >= kinds

        with self.changed:
            return self.changed.wait_for(done, timeout)

    def there(self, kind: str) -> list[Manifest]:
        """The objects of a kind as they are now."""
        found: dict[str, Change] = {}
        for change in self.cluster.of_kind(kind):
            if change.at <= self.now:
                found[change.manifest["metadata"]["uid"]] = change
        return [change.manifest for change in found.values() if change.event != "DELETED"]


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _any(self) -> None:
            api.methods[self.command] += 1
            self._status(405, "not allowed")

        do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815

        def do_GET(self) -> None:
            api.methods["GET"] += 1
            url = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._status(401, "Unauthorized")
            elif api.status is not None:
                self._status(api.status, "jobs.batch is forbidden: User cannot list")
            elif url.path == "/apis/kueue.x-k8s.io":
                self._json(_GROUP) if api.kueue else self._status(404, "not found")
            else:
                paths = {path.format(""): kind for kind, path in PATHS.items()}
                kind = paths.get(url.path.replace("/namespaces/team", ""))
                if kind not in api.kinds:
                    self._status(404, "not found")
                elif kind in api.forbidden:
                    self._status(403, "User cannot list")
                elif query.get("watch"):
                    self._watch(kind, int(query["resourceVersion"]))
                else:
                    self._list(kind, query)

        def _list(self, kind: str, query: dict[str, str]) -> None:
            limit = min(int(query.get("limit") or 10**6), 7)
            with api.changed:
                revision, _, start = query.get("continue", f"{api.revision}:0").partition(":")
                if int(revision) != api.revision:
                    self._status(410, "the continue token is too old", reason="Expired")
                    return
                items = api.there(kind)
            page = [
                {name: value for name, value in item.items() if name not in ("apiVersion", "kind")}
                for item in items[int(start) : int(start) + limit]
            ]
            metadata: dict[str, Any] = {"resourceVersion": revision}
            if int(start) + limit < len(items):
                metadata["continue"] = f"{revision}:{int(start) + limit}"
            about = {"apiVersion": VERSIONS[kind], "kind": f"{kind}List", "metadata": metadata}
            self._json({**about, "items": page})

        def _watch(self, kind: str, revision: int) -> None:
            if revision < api.oldest and api.random.random() < 0.5:
                api.did["410"] += 1
                self._status(410, "too old resource version", reason="Expired")
                return
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                if revision < api.oldest:
                    api.did["ERROR"] += 1
                    gone = {"kind": "Status", "code": 410, "reason": "Expired"}
                    self._line({"type": "ERROR", "object": gone})
                else:
                    self._events(kind, revision)
                self._chunk(b"")
            except OSError:
                pass
            self.close_connection = True

        def _events(self, kind: str, revision: int) -> None:
            generation = api.generation
            before: Manifest | None = None
            while True:
                with api.changed:
                    reached = (generation, api.revision)
                    new = [
                        change
                        for change in api.cluster.of_kind(kind)
                        if change.at <= api.now and change.revision > revision
                    ]
                for change in new:
                    if api.random.random() < api.trouble and self._wrong(kind, change, before):
                        return
                    self._line({"type": change.event, "object": change.manifest})
                    before = change.manifest if change.event != "DELETED" else None
                    revision = change.revision
                if reached[1] > revision:
                    revision = reached[1]
                    mark = {"kind": kind, "metadata": {"resourceVersion": str(revision)}}
                    self._line({"type": "BOOKMARK", "object": mark})
                    api.did["BOOKMARK"] += 1
                with api.changed:
                    api.sent[kind] = reached
                    api.changed.notify_all()
                    same = lambda: (api.generation, api.revision) == reached  # noqa: E731, B023
                    api.changed.wait_for(lambda: not same(), 30)  # noqa: B023
                    if api.generation != generation:
                        return

        def _wrong(self, kind: str, change: Change, before: Manifest | None) -> bool:
            """Something goes wrong; answers whether the watch is over."""
            what = api.random.choice(("twice", "end", "line", "connection"))
            if what == "twice" and before is None:
                return False
            api.did[what] += 1
            if what == "twice":
                self._line({"type": "ADDED", "object": before})
                return False
            if what == "line":  # the last line is not whole
                text = json.dumps({"type": change.event, "object": change.manifest}).encode()
                self._chunk(text[: len(text) // 2])
            if what == "connection":
                self.connection.shutdown(2)
            return True

        def _line(self, event: Manifest) -> None:
            self._chunk(json.dumps(event).encode() + b"\n")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _json(self, value: Manifest, status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _status(self, code: int, message: str, reason: str = "") -> None:
            about = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason}
            self._json({**about, "code": code, "message": message}, code)

    return Handler
