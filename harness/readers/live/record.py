"""Records a cluster's work, quotas and nodes into a folder until it is stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

from harness.readers.live.cluster import ApiServer, Kind
from harness.readers.live.folder import Folder, Known
from harness.readers.live.follow import At, Seen, Sign, Whole, follow
from harness.readers.live.kept import kept
from harness.readers.recordings import GAP, STANDING

_MOST_ROWS = 5_000
_LOOK = 0.5
_PATIENCE = 2.0  # the longest time that a watch may take to end, in seconds

_GONE, _DELETED = "GONE", "DELETED"


class Failed(NamedTuple):
    """The failure of a thread that follows a kind."""

    error: BaseException


@dataclass
class Recorder:
    """Writes observations into a folder.

    Args:
        tell: shows a line to the user.
        clock: returns the microseconds since 1970.

    Attributes:
        seen: the number of recorded versions.
    """

    folder: Folder
    tell: Callable[[str], None]
    clock: Callable[[], int] = lambda: time.time_ns() // 1000
    seen: int = 0
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _positions: dict[str, str] = field(default_factory=dict)
    _known: dict[str, dict[str, Known]] = field(default_factory=dict)
    # the text of each quota or node without versions, by uid
    _last: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = self.folder.known()

    @property
    def rows(self) -> int:
        """The number of rows that are waiting to be written."""
        return len(self._rows)

    def take(self, kind: Kind, sign: Sign) -> None:
        """Take an observation of one kind, and ignore known versions of objects."""
        if isinstance(sign, Seen):
            self._object(kind, sign)
        elif isinstance(sign, Whole):
            self._whole(kind, sign)
        elif isinstance(sign, At):
            self._positions[kind.name] = sign.revision
        else:
            self.tell(f"{kind.plural}: {sign.what or 'working again'}")

    def write(self) -> None:
        """Writes the observations that were taken so far.

        Raises:
            InputError: the observations cannot be written.
        """
        if self._rows or self._positions:
            self.folder.add(self._rows, self._positions, self.clock())
            self.seen += len(self._rows)
            self._rows, self._positions = [], {}

    def _object(self, kind: Kind, sign: Seen) -> None:
        manifest = kept(sign.manifest)
        metadata = manifest["metadata"]
        uid, revision = str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")
        there = self._known.setdefault(kind.name, {})
        before = there.get(uid)
        if sign.event == _DELETED:
            there.pop(uid, None)
        elif before is not None and before.revision == revision:
            return
        else:
            there[uid] = Known(
                str(metadata.get("namespace") or ""),
                str(metadata.get("name") or ""),
                str(manifest.get("apiVersion")),
                revision,
            )
        if kind.name not in STANDING or self._is_new(uid, sign.event, manifest):
            self._row(kind, sign.event, metadata, str(manifest.get("apiVersion")), manifest)
        if sign.event != "LISTED":
            self._positions[kind.name] = revision

    def _is_new(self, uid: str, event: str, manifest: dict[str, Any]) -> bool:
        """Returns True if a recorded field of a quota or node changed.

        Other fields change often, so the caller ignores versions in which only they changed.
        """
        plain = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": ""}}
        before, now = self._last.get(uid), _DELETED if event == _DELETED else _text(plain)
        self._last[uid] = now
        return now != before

    def _whole(self, kind: Kind, sign: Whole) -> None:
        """Handle the end of a list, which shows deletions and the gap after an earlier watch."""
        there = self._known.setdefault(kind.name, {})
        for uid in [uid for uid in there if uid not in sign.uids]:
            known = there.pop(uid)
            metadata = {"namespace": known.namespace, "name": known.name, "uid": uid}
            manifest = {"apiVersion": known.api_version, "kind": kind.name, "metadata": metadata}
            self._row(kind, _GONE, metadata, known.api_version, manifest)
        since = self.folder.heard.get(kind.name)
        if since is not None:
            self._row(kind, GAP, {}, kind.api, {"since": since})
            self.tell(f"{kind.plural}: the server no longer has all events since {since}")
        self._positions[kind.name] = sign.revision

    def _row(self, kind: Kind, event: str, metadata: Any, api: str, content: Any) -> None:
        self._rows.append(
            {
                "seen": self.clock(),
                "event": event,
                "api_version": api,
                "kind": kind.name,
                **{name: str(metadata.get(name) or "") for name in ("namespace", "name", "uid")},
                "resource_version": str(metadata.get("resourceVersion") or ""),
                "object": _text(content),
            }
        )


def _text(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), sort_keys=True)


def record(
    server: ApiServer,
    kinds: Iterable[Kind],
    namespace: str | None,
    recorder: Recorder,
    *,
    every: float,
    enough: Callable[[], bool] = lambda: False,
    haste: float = 1.0,
) -> None:
    """Records until `enough` returns True or an interrupt occurs, and then writes all observations.

    The connections to the server are closed afterwards.

    All namespaces are recorded if `namespace` is None. Every `every` seconds, observations are written.
    `enough` is called at least every half second. `haste` divides the waits before new attempts.

    Raises:
        InputError: the folder cannot be written, or the credentials no longer work.
    """
    stop = Event()
    threads: list[Thread] = []
    signs: SimpleQueue[tuple[Kind, Sign | Failed]] = SimpleQueue()
    for kind in kinds:
        position = recorder.folder.positions.get(kind.name)
        of_kind = (server, kind, namespace, position, signs, stop, haste)
        threads.append(Thread(target=_follow, args=of_kind, daemon=True))
        threads[-1].start()
    written = time.monotonic()
    try:
        while not enough():
            try:
                kind, sign = signs.get(timeout=min(_LOOK, every))
            except Empty:
                pass
            else:
                if isinstance(sign, Failed):
                    raise sign.error
                recorder.take(kind, sign)
            if recorder.rows >= _MOST_ROWS or time.monotonic() >= written + every:
                recorder.write()
                written = time.monotonic()
    except KeyboardInterrupt:
        recorder.write()
    else:
        recorder.write()
    finally:
        stop.set()
        server.http.break_off()
        for thread in threads:
            thread.join(_PATIENCE)
        server.http.close()  # If it came first, a connection that a thread was opening would stay open.


def _follow(
    server: ApiServer,
    kind: Kind,
    namespace: str | None,
    position: str | None,
    signs: SimpleQueue[tuple[Kind, Sign | Failed]],
    stop: Event,
    haste: float,
) -> None:
    try:
        for sign in follow(server.http, kind.path(namespace), position, lambda wait: stop.wait(wait / haste)):
            signs.put((kind, sign))
            if stop.is_set():
                return
    except BaseException as error:  # passed to the writing thread, which ends with this error
        signs.put((kind, Failed(error)))
