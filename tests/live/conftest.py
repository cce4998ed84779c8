"""What tests of live servers share: servers that are closed, and a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_api import TOKEN, FakeApi
from watched_cluster import BEGIN, WatchedCluster

from harness.base.units import SECOND


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeApi]]:
    """Serves a cluster until the test is over."""
    servers: list[FakeApi] = []

    def made(cluster: WatchedCluster, **how: object) -> FakeApi:
        servers.append(FakeApi(cluster, **how))  # type: ignore[arg-type]
        return servers[-1]

    yield made
    for server in servers:
        server.close()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A file with the token that the server takes."""
    path = tmp_path / "token"
    path.write_text(TOKEN)
    return path


@pytest.fixture
def recorded(
    story: WatchedCluster, serve: Callable[..., FakeApi], token_file: Path, tmp_path: Path
) -> Callable[..., Path]:
    """Records the module's `story`, each second at the time at which it happens; answers the folder."""
    from harness.readers.live.cluster import connect, kinds_of
    from harness.readers.live.folder import recording_folder
    from harness.readers.live.record import Recorder, record

    def made(**how: Any) -> Path:
        api = serve(story, **how)
        server = connect(server=api.url, token_file=token_file)
        kinds, notes = kinds_of(server, None)
        assert not notes
        folder = tmp_path / "rec"
        with recording_folder(folder, {"server": api.url, "namespace": None}) as opened:
            recorder = Recorder(
                opened, lambda _: None, clock=lambda: int(BEGIN.timestamp() + api.now) * SECOND
            )
            instants = iter(sorted({change.at for change in story.changes if change.at}))

            def enough() -> bool:
                """Go on as soon as all that happened is in the folder."""
                recorder.write()
                behind = [
                    kind for kind in kinds if recorder.folder.positions.get(kind.name) != str(api.revision)
                ]
                if behind or not api.watched(len(kinds)):
                    return False
                now = next(instants, None)
                if now is not None:
                    api.advance(now - api.now)
                return now is None

            record(server, kinds, None, recorder, every=0.01, enough=enough, haste=100.0)
        return folder

    return made
