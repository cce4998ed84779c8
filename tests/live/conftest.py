"""What tests of live servers share: servers that are closed, and a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_api import TOKEN, FakeApi
from watched_cluster import WatchedCluster


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
