"""Recording a cluster: no job is lost or counted twice, whatever breaks off, and nothing is written there."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from cli_environment import LONG
from fake_api import TOKEN, FakeApi
from watched_cluster import HOUR, SECRET, WatchedCluster, expected, told

pytest.importorskip("lightkube", reason="recording needs lightkube: pip install 'harness-replay[live]'")

from harness.plugins import load
from harness.readers.live.cluster import connect, kinds_of
from harness.readers.live.folder import Folder, recording_folder
from harness.readers.live.record import Recorder, record
from harness.trace.trace import Trace, open_trace


class Killed(BaseException):
    """What a recorder ends with that is killed."""


class Recording(threading.Thread):
    """A recorder of its own; killed at its n-th write, before, between or after the two files of it."""

    def __init__(self, api: FakeApi, folder: Path, token: Path, kill: tuple[int, str] | None = None) -> None:
        super().__init__(daemon=True)
        self.api, self.folder, self.token, self.kill = api, folder, token, kill
        self.lines: list[str] = []
        self.last = False
        self.error: BaseException | None = None
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            server = connect(server=self.api.url, token_file=self.token)
            kinds, _ = kinds_of(server, None)
            with recording_folder(self.folder, {"server": server.address, "namespace": None}) as opened:
                self._watch_over(opened)
                recorder = Recorder(opened, self.lines.append)
                record(server, kinds, None, recorder, every=0.01, enough=lambda: self.last, haste=1000)
        except BaseException as error:
            self.error = error
        self.over.set()

    def _watch_over(self, opened: Folder) -> None:
        """Have it killed as told."""
        writes = 0
        write, tell = opened._write, opened._tell

        def killed(place: str) -> None:
            if self.kill == (writes, place):
                raise Killed

        def counted(table: object, first: int, last: int) -> None:
            nonlocal writes
            writes += 1
            killed("before")
            write(table, first, last)  # type: ignore[arg-type]
            killed("between")

        def told_of() -> None:
            tell()
            killed("after")

        opened._write, opened._tell = counted, told_of  # type: ignore[method-assign]

    def end(self) -> None:
        """Have it end by itself, and wait for that."""
        self.last = True
        self.join(20)
        assert not self.is_alive()


def converted(folder: Path) -> Trace:
    """The trace of a recording."""
    return open_trace(folder, load(only=["readers"]))


# Who is killed closes no connection, of which Python warns whenever it finds one.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 21))])
def test_an_hour_is_recorded_whatever_breaks_off(
    serve: Callable[..., FakeApi], tmp_path: Path, token_file: Path, seed: int
) -> None:
    """Watches end, break off in a line and say things twice; the server forgets; the recorder is killed."""
    cluster = WatchedCluster.of(seed, jobs=20)
    api, random = serve(cluster, seed=seed, trouble=0.05), Random(seed)
    folder = tmp_path / "hour"

    recording, kills = Recording(api, folder, token_file, (3, "between")), 0

    def alive() -> None:
        """Begin anew where somebody was killed; for a while nobody was there."""
        nonlocal recording, kills
        if recording.over.is_set():
            assert isinstance(recording.error, Killed), recording.error
            kills += 1
            api.advance(random.randrange(0, 30))
            kill = (random.randrange(1, 12), random.choice(("before", "between", "after")))
            recording = Recording(api, folder, token_file, kill if api.now < HOUR else None)

    while api.now < HOUR:
        api.advance(random.randrange(30, 150))
        wait_for(api.watched, alive)
        if (not api.times_away or random.random() < 0.1) and api.can_go(10):
            wait_for(lambda: has_all(folder, api), alive)
            if api.can_go(10):
                api.away(10)  # too long for what it remembers
                wait_for(lambda: has_all(folder, api), alive)
    recording.kill = None
    wait_for(lambda: has_all(folder, api), alive)
    recording.end()
    trace = converted(folder)
    assert told(trace.frame) == expected(cluster.jobs)
    assert kills >= 3
    assert set(api.methods) == {"GET"}
    assert api.did.keys() >= {"twice", "end", "line", "connection", "BOOKMARK"}
    assert api.did["410"] + api.did["ERROR"] > 0
    for path in folder.rglob("*"):
        assert SECRET.encode() not in path.read_bytes()
        assert TOKEN.encode() not in path.read_bytes()


def wait_for(done: Callable[[], bool], do: Callable[[], object] = lambda: None) -> None:
    """Wait, but not for ever."""
    deadline = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < deadline
        do()
        time.sleep(0.01)


def has_all(folder: Path, api: FakeApi) -> bool:
    """Whether all that has happened is in the parts."""
    positions = json.loads((folder / "recording.json").read_text())["positions"]
    return sorted(positions.values()) == [str(api.revision)] * 3
